"""Both ends of making a connection: the listening port of a node, and dialling until a deadline.

A listener holds a bounded number of strangers, each with a deadline. A dialer tries again after what may pass (a
full listener, a reset), never after a refusal that will stand.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections import deque
from collections.abc import Callable
from functools import partial

import emuml
from emuml.errors import RunFailed
from emuml.runtime import records
from emuml.runtime.connection import Connection, NoConnection, Security
from emuml.runtime.handshake import Acceptor, Dialer, Grant

BACKLOG = 128
ACCEPT_AGAIN_S = 0.2
UNAUTHENTICATED_MAX = 64
"""Connections of one listener that have not proved themselves; more are closed at once."""

Admit = Callable[[str, int], str | None]
"""Why (node, incarnation) may not connect, as a REJECT code, or ``None``."""


def _acceptor(security: Security, admit: Admit) -> Acceptor:
    """Return the accepting side of a handshake, which asks ``admit`` once the dialer is authenticated."""
    schema, messages = security.schema

    def decide(hello: records.DialerHello) -> Grant | records.Reject:
        code = admit(hello.node, hello.incarnation)
        if code is not None:
            text = f"{hello.node} (life {hello.incarnation}) is not expected by {security.node}"
            return records.Reject(code, text)
        return Grant(hello.incarnation, os.urandom(16), hello.session or os.urandom(16))

    hello = records.AcceptorHello(os.urandom(32), emuml.__version__, schema, messages, [])
    return Acceptor(security.credentials, hello, decide)


class Listener:
    """The listening port of one node or of the coordinator, on loopback.

    Attributes
    ----------
    address : (str, int)
    connections : set of Connection
        All that came here and are not closed.
    strangers : set of Connection
        Those that have not proved themselves yet.
    refusals : deque of str
        Why the last of them were refused.
    """

    def __init__(self, security: Security, accepted: Callable[[Connection], None], admit: Admit, what: str) -> None:
        """Listen on an ephemeral port; ``accepted`` gets each connection that has proved itself.

        Raises
        ------
        RunFailed
            If this host gives no port.
        """
        self._security, self._accepted, self._admit = security, accepted, admit
        self._loop = asyncio.get_running_loop()
        self._closing = False
        self._entering: set[asyncio.Task[None]] = set()
        self.connections: set[Connection] = set()
        self.strangers: set[Connection] = set()
        self.refusals: deque[str] = deque(maxlen=64)
        try:
            self._socket = socket.create_server(("127.0.0.1", 0), backlog=BACKLOG)
        except OSError as error:
            raise RunFailed(f"the {what} cannot listen on 127.0.0.1: {error}") from error
        self._socket.setblocking(False)
        self.address: tuple[str, int] = self._socket.getsockname()[:2]
        self._listen()

    # Not loop.create_server: in CPython 3.11 it loses a connection that comes while it is being closed.
    def _listen(self) -> None:
        if not self._closing:
            self._loop.add_reader(self._socket, self._readable)

    def _readable(self) -> None:
        for _ in range(BACKLOG):
            try:
                accepted, _ = self._socket.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError:  # out of descriptors: those who wait can wait a little longer
                self._loop.remove_reader(self._socket)
                self._loop.call_later(ACCEPT_AGAIN_S, self._listen)
                return
            task = self._loop.create_task(self._enter(accepted))
            self._entering.add(task)
            task.add_done_callback(self._entering.discard)

    async def _enter(self, accepted: socket.socket) -> None:
        try:
            await self._loop.connect_accepted_socket(self._connect, accepted)
        except OSError:
            accepted.close()

    def _connect(self) -> Connection:
        turned_away = "closing" if self._closing else ""
        if len(self.strangers) >= UNAUTHENTICATED_MAX:
            turned_away = "too many unauthenticated connections"
        side = _acceptor(self._security, self._admit)
        connection = Connection(side, self._security, dialed=False, peer="", turned_away=turned_away)
        connection.on_open = self._accepted
        self.connections.add(connection)
        if not turned_away:
            self.strangers.add(connection)
        connection.agreed.add_done_callback(partial(self._settled, connection))
        connection.closed.add_done_callback(lambda _: self.connections.discard(connection))
        return connection

    def _settled(self, connection: Connection, agreed: asyncio.Future[None]) -> None:
        self.strangers.discard(connection)
        error = agreed.exception()
        if error is not None:
            self.refusals.append(str(error))

    async def close(self) -> None:
        """Stop listening, and close all that came here at once."""
        self._closing = True
        self._loop.remove_reader(self._socket)
        self._socket.close()
        if self._entering:
            await asyncio.wait(self._entering)
        for connection in list(self.connections):
            connection.abort("closing")
        if self.connections:
            await asyncio.wait([connection.closed for connection in self.connections])


def _hello(security: Security) -> records.DialerHello:
    schema, messages = security.schema
    return records.DialerHello(
        run=security.run,
        node=security.node,
        role="node",
        incarnation=security.incarnation,
        boot=os.urandom(16),
        nonce=os.urandom(32),
        lane="bulk",
        session=os.urandom(16),
        received=0,
        window=64 << 20,
        message_max=security.settings.message_bytes_max,
        schema=schema,
        messages=messages,
        software=records.Software(emuml=emuml.__version__),
        features=[],
    )


async def dial(
    address: tuple[str, int],
    security: Security,
    peer: str,
    incarnation: int = 1,
    opened: Callable[[Connection], None] = lambda connection: None,
    gone: Callable[[], bool] = lambda: False,
) -> Connection:
    """Connect to a peer of the run; tries again until the deadline, or until the peer is known to be ``gone``.

    ``opened`` is called as soon as both ends have proved themselves, before anything that the peer sends is looked at.

    Raises
    ------
    NoConnection
        With the last reason.
    """
    loop = asyncio.get_running_loop()
    deadline, delay_s = loop.time() + security.settings.dial_deadline_s, 0.02
    reason, final = "it has ended", False
    while loop.time() < deadline and not gone() and not final:
        connection = Connection(Dialer(security.credentials, _hello(security)), security, dialed=True, peer=peer)
        connection.peer_incarnation, connection.on_open = incarnation, opened
        try:
            await loop.create_connection(partial(_identity, connection), *address)
            await asyncio.shield(connection.agreed)
            return connection
        except asyncio.CancelledError:
            connection.abort("nobody waits for it any more")
            raise
        except OSError as error:
            connection.abort("not connected")
            reason = f"{type(error).__name__}: {error}"
        except NoConnection as error:
            reason, final = error.reason, error.final
        if not final:
            await asyncio.sleep(delay_s)
            delay_s = min(2 * delay_s, 1.0)
    raise NoConnection(f"{peer} at {address[0]}:{address[1]}", reason, final)


def _identity(connection: Connection) -> Connection:
    return connection
