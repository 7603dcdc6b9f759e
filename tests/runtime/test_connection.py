"""Connections over real sockets: who is let in, who is sent away and how, and what ends a session."""

from __future__ import annotations

import asyncio
import tracemalloc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import numpy as np
import pytest

from emuml.message import Array, Decoder, Message
from emuml.runtime import system, wire
from emuml.runtime.connection import Connection, NoConnection, Security
from emuml.runtime.dialing import UNAUTHENTICATED_MAX, Listener, _hello, dial
from emuml.runtime.frames import HEADER_FIELDS
from emuml.runtime.greeting import preamble
from emuml.runtime.handshake import Dialer, Refused
from emuml.runtime.settings import RuntimeSettings
from tests.runtime.asynchronous import drive, raises, until

SECRET = "ab" * 20


class Note(Message):
    number: int


class Bulk(Message):
    value: Array


OtherNote = type(Message)("Note", (Message,), {"__annotations__": {"number": float}, "__module__": __name__})


def security(
    node: str = "server-0",
    secret: str = SECRET,
    run: str = "run1",
    messages: tuple[type[Message], ...] = (Bulk, Note),
    **settings: float,
) -> Security:
    return Security(run, secret, node, 1, Decoder(messages), RuntimeSettings(**settings))  # type: ignore[arg-type]


def worker(**options: object) -> Security:
    return security("worker-0", **options)  # type: ignore[arg-type]


@dataclass
class Port:
    """A listener that keeps what comes to it."""

    listener: Listener = None  # type: ignore[assignment]
    accepted: list[Connection] = field(default_factory=list)
    notes: list[Message] = field(default_factory=list)
    closed: list[str] = field(default_factory=list)
    asked: list[tuple[str, int]] = field(default_factory=list)
    answers: list[str | None] = field(default_factory=list)

    def accept(self, connection: Connection) -> None:
        self.accepted.append(connection)
        connection.on_data = lambda message, size_bytes, seq: self.notes.append(message)
        connection.on_system = self.notes.append
        connection.on_closed = self.closed.append

    def admit(self, node: str, incarnation: int) -> str | None:
        self.asked.append((node, incarnation))
        return self.answers.pop(0) if self.answers else None


@asynccontextmanager
async def port(here: Security | None = None) -> AsyncIterator[Port]:
    found = Port()
    found.listener = Listener(here or security(), found.accept, found.admit, "test")
    try:
        yield found
    finally:
        await found.listener.close()
        for connection in found.accepted:
            connection.abort("the test is over")
        await until(lambda: all(connection.closed.done() for connection in found.accepted))


@asynccontextmanager
async def linked(dialer: Security | None = None) -> AsyncIterator[tuple[Port, Connection]]:
    async with port() as there:
        connection = await dial(there.listener.address, dialer or worker(), "server-0")
        yield there, connection
        connection.abort("the test is over")
        await connection.closed


async def answer_to(there: Port, data: bytes) -> bytes:
    """Return all that a stranger gets who sends these bytes and then listens."""
    reader, writer = await asyncio.open_connection(*there.listener.address)
    writer.write(data)
    try:
        return await reader.read()
    except ConnectionResetError:
        return b""
    finally:
        writer.close()


def test_both_ends_know_each_other_and_get_messages_in_order() -> None:
    async def work() -> None:
        async with linked() as (there, connection):
            for number in range(20_000):
                connection.send_data(Note(number), number + 1)
            connection.flush()
            await until(lambda: len(there.notes) == 20_000)
            assert there.notes == [Note(number) for number in range(20_000)]
            accepted = there.accepted[0]
            assert (accepted.peer, accepted.peer_incarnation) == ("worker-0", 1)
            assert accepted.session == connection.session != 0
            back: list[Message] = []
            connection.on_system = back.append
            accepted.send_system(system.Proceed())
            accepted.flush()
            await until(lambda: back)
            assert back == [system.Proceed()]

    drive(work())


def test_sessions_differ() -> None:
    async def work() -> set[int]:
        async with port() as there:
            dialled = [await dial(there.listener.address, worker(), "server-0") for _ in range(5)]
            for connection in dialled:
                connection.abort("enough")
            return {connection.session for connection in dialled}

    assert len(drive(work())) == 5


def test_nothing_leaves_before_flush() -> None:
    async def work() -> None:
        async with linked() as (there, connection):
            connection.send_data(Note(1), 1)
            # A control frame is sent at once; when its answer is here, the note would have been there.
            heard: list[None] = []
            connection.on_heard = lambda: heard.append(None)
            connection.ping()
            await until(lambda: heard)
            assert there.notes == []
            connection.flush()
            await until(lambda: there.notes)

    drive(work())


def test_a_large_array_arrives_whole() -> None:
    value = np.arange(8 << 20, dtype=np.float64)

    async def work() -> None:
        async with linked() as (there, connection):
            connection.send_data(Bulk(value), 1)
            connection.send_data(Note(7), 2)
            connection.flush()
            await until(lambda: len(there.notes) == 2)
            received = there.notes[0]
            assert isinstance(received, Bulk)
            assert not received.value.flags.writeable
            np.testing.assert_array_equal(received.value, value)

    drive(work())


@pytest.mark.parametrize(
    ("dialer", "facts"),
    [
        (worker(secret="cd" * 20), ["auth", "secret"]),
        (worker(run="run2"), ["run", "'run1'", "'run2'"]),
        (worker(messages=(Bulk, OtherNote)), ["schema", "'Note'", "different"]),
        (worker(messages=(Bulk,)), ["schema", "'Note'"]),
    ],
)
def test_a_refusal_that_will_stand_is_told_once(dialer: Security, facts: list[str]) -> None:
    async def work() -> None:
        async with port() as there:
            error = await raises(NoConnection, dial(there.listener.address, dialer, "server-0"))
            assert error.final
            for fact in ["server-0", *facts]:
                assert fact in str(error)
            assert there.accepted == there.asked == []
            await until(lambda: there.listener.refusals)
            assert len(there.listener.refusals) == 1

    drive(work())


def test_an_acceptor_without_the_secret_is_not_believed() -> None:
    async def work() -> None:
        async with port(security(secret="cd" * 20)) as there:
            error = await raises(NoConnection, dial(there.listener.address, worker(), "server-0"))
            assert "auth" in str(error)
            assert there.accepted == []

    drive(work())


def test_versions_without_a_common_one() -> None:
    async def work() -> None:
        async with port() as there:
            side = Dialer(worker().credentials, _hello(worker()), versions=(8, 9))
            reader, writer = await asyncio.open_connection(*there.listener.address)
            writer.write(side.start())
            side.receive(await reader.read())
            writer.close()
            assert isinstance(side.outcome, Refused)
            assert side.outcome.code == "version"
            assert "8 to 9" in there.listener.refusals[0]
            assert there.accepted == []

    drive(work())


@pytest.mark.parametrize("code", ["fenced", "node"])
def test_who_is_not_admitted_does_not_ask_again(code: str) -> None:
    async def work() -> None:
        async with port() as there:
            there.answers = [code, None]
            error = await raises(NoConnection, dial(there.listener.address, worker(), "server-0"))
            assert code in str(error)
            assert there.asked == [("worker-0", 1)]

    drive(work())


def test_a_duplicate_tries_again() -> None:
    async def work() -> None:
        async with port() as there:
            there.answers = ["duplicate", "duplicate"]
            connection = await dial(there.listener.address, worker(), "server-0")
            assert len(there.asked) == 3
            connection.abort("enough")

    drive(work())


def test_a_browser_is_told_where_it_is() -> None:
    async def work() -> None:
        async with port() as there:
            answer = await answer_to(there, b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert answer.startswith(b"HTTP/1.1 400 ")
            assert b"emuml" in answer
            assert "HTTP" in there.listener.refusals[0]

    drive(work())


@pytest.mark.parametrize(
    ("start", "fact"),
    [
        (b"SSH-2.0-OpenSSH_9.6\r\n", "SSH"),
        (bytes(range(255, 155, -1)), "unknown bytes"),
        (preamble() + b"\x81\x00\xff\xff", "too_large"),
        (preamble() + b"\x81\x00\x02\x00hi\0\0\0\0", "checksum"),
        (preamble()[:15] + b"\0", "checksum"),
    ],
)
def test_strangers_are_closed_and_described(start: bytes, fact: str) -> None:
    async def work() -> None:
        async with port() as there:
            await answer_to(there, start)
            await until(lambda: there.listener.refusals)
            assert fact in there.listener.refusals[0]
            assert there.accepted == []
            assert not there.listener.strangers

    drive(work())


@pytest.mark.parametrize("start", [b"", b"E", preamble(), preamble() + b"\x81\x00\x10\x00abc"])
def test_silence_ends_a_handshake(start: bytes) -> None:
    async def work() -> None:
        async with port(security(handshake_s=0.05)) as there:
            answer = await answer_to(there, start)
            assert b"timeout" in answer
            assert "within 0.05 s" in there.listener.refusals[0]
            assert not there.listener.strangers

    drive(work())


def test_a_listener_that_never_answers() -> None:
    async def work() -> None:
        silent = await asyncio.start_server(lambda reader, writer: writers.append(writer), "127.0.0.1", 0)
        writers: list[asyncio.StreamWriter] = []
        address = silent.sockets[0].getsockname()
        error = await raises(NoConnection, dial(address, worker(handshake_s=0.02, dial_deadline_s=0.1), "server-0"))
        assert "handshake" in str(error)
        assert not error.final
        assert len(writers) > 1
        for writer in writers:
            writer.close()
        silent.close()

    drive(work())


def test_a_port_where_nobody_listens() -> None:
    async def work() -> None:
        async with port() as there:
            address = there.listener.address
        error = await raises(NoConnection, dial(address, worker(dial_deadline_s=0.05), "server-0"))
        assert "ConnectionRefusedError" in str(error)
        answers = iter([False, False, True])
        await raises(NoConnection, dial(address, worker(), "server-0", gone=lambda: next(answers)))
        assert list(answers) == []

    drive(work())


def test_strangers_are_bounded_and_friends_come_through() -> None:
    async def work() -> None:
        async with port() as there:
            silent = [await asyncio.open_connection(*there.listener.address) for _ in range(UNAUTHENTICATED_MAX)]
            await until(lambda: len(there.listener.strangers) == UNAUTHENTICATED_MAX)
            assert await answer_to(there, b"") == b""  # closed at once, not after a timeout
            assert "too many" in there.listener.refusals[-1]
            friend = asyncio.create_task(dial(there.listener.address, worker(), "server-0"))
            await until(lambda: len(there.listener.refusals) >= 2)
            assert there.accepted == []
            silent[0][1].close()
            (await friend).abort("enough")
            for _, writer in silent:
                writer.close()
            await until(lambda: not there.listener.strangers)

    drive(work())


def test_a_gap_in_the_numbers_ends_the_session() -> None:
    async def work() -> None:
        async with linked() as (there, connection):
            reasons: list[str] = []
            connection.on_closed = reasons.append
            connection.send_data(Note(1), 1)
            connection.send_data(Note(3), 3)
            connection.flush()
            await until(lambda: there.closed and reasons)
            assert there.notes == [Note(1)]
            assert there.closed == ["protocol: message 3 where 2 was due"]
            assert connection.ended_by_peer
            assert reasons == ["goodbye: protocol"]

    drive(work())


def test_a_message_that_claims_to_be_huge_takes_no_memory() -> None:
    async def work() -> None:
        async with linked() as (there, connection):
            whole = b"".join(wire.encode_frame(wire.FrameType.DATA, b"\x92\xa4Bulk\xc0", (), 1))
            kind, flags, _, meta, seq, ack, _, stream = HEADER_FIELDS.unpack(whole[:36])
            fields = HEADER_FIELDS.pack(kind, flags, 1, meta, seq, ack, 1 << 40, stream)
            checksum = wire.crc32c(whole[40:], wire.crc32c(fields)).to_bytes(4, "little")
            tracemalloc.start()
            assert connection._transport is not None
            connection._transport.write(fields + checksum + whole[40:])
            await until(lambda: there.closed)
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
            assert there.closed[0].startswith("protocol: ")
            assert str(1 << 40) in there.closed[0]
            assert peak < 1 << 20

    drive(work())


def test_a_changed_byte_ends_the_session() -> None:
    async def work() -> None:
        async with linked() as (there, connection):
            frame = bytearray(b"".join(wire.encode_frame(wire.FrameType.DATA, b"\x92\xa4Note\x05", (), 1)))
            frame[-1] ^= 1
            assert connection._transport is not None
            connection._transport.write(frame)
            await until(lambda: there.closed)
            assert there.notes == []
            assert "checksum" in there.closed[0]

    drive(work())


def test_goodbye_is_told_apart_from_a_reset() -> None:
    async def work() -> None:
        async with linked() as (there, connection):
            connection.send_data(Note(1), 1)
            connection.close("finished")
            await until(lambda: there.closed)
            assert there.notes == [Note(1)]
            assert there.accepted[0].ended_by_peer
            assert there.closed == ["goodbye: finished"]
        async with linked() as (there, connection):
            connection.abort("reset")
            await until(lambda: there.closed)
            assert not there.accepted[0].ended_by_peer

    drive(work())
