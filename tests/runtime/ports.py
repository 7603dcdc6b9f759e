"""Listening ports and connections between two ends, for tests of connections."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from emuml.message import Array, Decoder, Message
from emuml.runtime.connection import Connection, Security
from emuml.runtime.dialing import Listener, dial
from emuml.runtime.settings import RuntimeSettings
from tests.runtime.asynchronous import until

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
