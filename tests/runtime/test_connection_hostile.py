"""Connections under strangers, silence, floods and damage: bounded, described, and never believed."""

from __future__ import annotations

import asyncio
import tracemalloc

import pytest

from emuml.runtime import wire
from emuml.runtime.connection import NoConnection
from emuml.runtime.dialing import UNAUTHENTICATED_MAX, dial
from emuml.runtime.frames import HEADER_FIELDS
from emuml.runtime.greeting import preamble
from tests.runtime.asynchronous import drive, raises, until
from tests.runtime.ports import Note, answer_to, linked, port, security, worker


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
