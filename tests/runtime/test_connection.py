"""Connections over real sockets: who is let in, who is sent away and how, and what ends a session."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest

from emuml.message import Message
from emuml.runtime import system
from emuml.runtime.connection import NoConnection, Security
from emuml.runtime.dialing import _hello, dial
from emuml.runtime.handshake import Dialer, Refused
from tests.runtime.asynchronous import drive, raises, until
from tests.runtime.ports import Bulk, Note, OtherNote, linked, port, security, worker


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
