"""Connections of a TCP run: a handshake with the run's secret, then frames, on one lane.

One ``Connection`` is one session between two incarnations. What is queued leaves at ``flush``, so that a node can write
its journal before. Nothing is decoded, and nothing larger than 4 KiB is allocated, before the peer has proved that it
belongs to the run.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Callable
from dataclasses import dataclass, replace

import emuml
from emuml.errors import RunFailed
from emuml.message import Decoder, Message, encode
from emuml.runtime import records, wire
from emuml.runtime.handshake import NO_SCHEMA, Acceptor, Agreed, Dialer, Grant, Refused
from emuml.runtime.proof import Credentials
from emuml.runtime.settings import RuntimeSettings
from emuml.runtime.system import SYSTEM_MESSAGES

HANDSHAKE_S = 5.0
DIAL_DEADLINE_S = 20.0
UNAUTHENTICATED_MAX = 64
_HANDSHAKE_BYTES = 4096
_JOIN_BYTES_MAX = 1 << 16

Admit = Callable[[str, int], str | None]
"""Why (node, incarnation) may not connect, as a REJECT code, or ``None``."""


@dataclass(frozen=True)
class Security:
    """What one end of every connection needs: the run, its secret, who this is, and the messages it understands."""

    run: str
    secret: str
    node: str
    incarnation: int
    decoder: Decoder
    settings: RuntimeSettings
    carries_messages: bool = True

    def without_messages(self) -> Security:
        """Return the same for a connection that carries no protocol messages."""
        return replace(self, carries_messages=False)

    @property
    def credentials(self) -> Credentials:
        """The proof of membership."""
        return Credentials(self.run, bytes.fromhex(self.secret))

    @property
    def schema(self) -> tuple[bytes, dict[str, bytes]]:
        """Digest of all protocol messages, and of each."""
        if not self.carries_messages or self.node == "coordinator":
            return NO_SCHEMA, {}
        return self.decoder.schema, dict(self.decoder.message_digests)


class Connection(asyncio.BufferedProtocol):
    """One session; ``agreed`` is done once both ends have proved themselves.

    Attributes
    ----------
    peer : str
        Node id of the other end, or ``"coordinator"``.
    peer_incarnation : int
    session : int
        Equal at both ends, chosen at random by the dialer.
    on_data, on_system, on_closed, on_heard : callables
        To be set by the owner before the loop turns again.
    """

    def __init__(self, side: Dialer | Acceptor, security: Security, dialed: bool, peer: str) -> None:
        self._loop = asyncio.get_running_loop()
        self._side: Dialer | Acceptor | None = side
        self._security, self.dialed, self.peer = security, dialed, peer
        self.peer_incarnation = 0
        self.session = 0
        self.agreed: asyncio.Future[None] = self._loop.create_future()
        self.ended_by_peer = False
        self.last_heard_s = self.last_sent_s = self._loop.time()
        self.on_data: Callable[[Message, int, int], None] = lambda message, size_bytes, seq: None
        self.on_system: Callable[[Message], None] = lambda message: None
        self.on_closed: Callable[[str], None] = lambda reason: None
        self.on_heard: Callable[[], None] = lambda: None
        self.on_open: Callable[[Connection], None] = lambda connection: None
        self._transport: asyncio.Transport | None = None
        self._buffer = bytearray(_HANDSHAKE_BYTES)
        self._reader: wire.FrameReader | None = None
        self._out: list[bytes | bytearray | memoryview] = []
        self._reason = ""
        self._received = 0
        self.closed: asyncio.Future[None] = self._loop.create_future()
        self._timeout = self._loop.call_later(HANDSHAKE_S, self.abort, "the handshake took too long")

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin the handshake."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if isinstance(self._side, Dialer):
            transport.write(self._side.start())

    def get_buffer(self, sizehint: int) -> memoryview:
        """Return where the next bytes go."""
        return memoryview(self._buffer) if self._reader is None else self._reader.get_buffer(sizehint)

    def buffer_updated(self, nbytes: int) -> None:
        """Take bytes that arrived."""
        self.last_heard_s = self._loop.time()
        if self._reader is None:
            self._shake(memoryview(self._buffer)[:nbytes])
        else:
            self._events(self._reader.buffer_updated(nbytes))
            self.on_heard()

    def _shake(self, data: memoryview) -> None:
        side = self._side
        assert side is not None
        assert self._transport is not None
        answer = side.receive(data)
        if answer:
            self._transport.write(answer)
        outcome = side.outcome
        if isinstance(outcome, Refused):
            self._refused(f"{outcome.code}: {outcome.text}" + (f" ({outcome.hint})" if outcome.hint else ""))
        elif isinstance(outcome, Agreed):
            self._agree(outcome)

    def _refused(self, reason: str) -> None:
        self._reason = reason
        if not self.agreed.done():
            self.agreed.set_exception(RunFailed(f"connection with {self.peer or 'a dialer'} refused: {reason}"))
            self.agreed.exception()
        if self._transport is not None:
            self._transport.close()

    def _agree(self, outcome: Agreed) -> None:
        self._timeout.cancel()
        self._side = None
        session = outcome.hello.session if outcome.hello.session is not None else bytes(16)
        self.session = int.from_bytes(session[:8], "little") >> 1
        if not self.dialed:
            self.peer, self.peer_incarnation = outcome.hello.node, outcome.hello.incarnation
        self._reader = wire.FrameReader(
            self._security.decoder if self._security.carries_messages else None,
            Decoder(SYSTEM_MESSAGES),
            message_bytes_max=self._security.settings.message_bytes_max,
        )
        self.on_open(self)
        self.agreed.set_result(None)
        if outcome.rest:
            self._events(self._reader.feed(outcome.rest))

    def _events(self, events: list[wire.Event]) -> None:
        for event in events:
            match event:
                case wire.DataFrame(seq, _, message, size_bytes):
                    self._received += 1
                    if seq != self._received:
                        self._fault(f"message {seq} where {self._received} was due")
                        return
                    self.on_data(message, size_bytes, seq)
                case wire.ControlFrame(_, _, Message() as message):
                    self.on_system(message)
                case wire.ControlFrame(_, _, records.Ping(t_ns)):
                    now_ns = int(self._loop.time() * 1e9)
                    self._write(wire.control_frame(records.Pong(t_ns, now_ns, now_ns)))
                case wire.ControlFrame(_, _, records.Goodbye(reason, _)):
                    self.ended_by_peer = True
                    self._reason = f"goodbye: {reason}"
                case wire.WireError():
                    self._fault(str(event))
                    return
                case _:
                    pass

    def _fault(self, reason: str) -> None:
        """End the session because the peer sent what it must not."""
        self._write(wire.control_frame(records.Goodbye("protocol", reason[:200])))
        self.abort(f"protocol: {reason}")

    def send_data(self, message: Message, seq: int) -> None:
        """Queue a protocol message."""
        encoded = encode(message)
        self._out += wire.encode_frame(wire.FrameType.DATA, encoded.meta, encoded.segments, seq)

    def send_system(self, message: Message) -> None:
        """Queue a system message."""
        self._out.append(wire.control_frame(encode(message)))

    def ping(self) -> None:
        """Send a sign of life that asks for one."""
        self._write(wire.control_frame(records.Ping(int(self._loop.time() * 1e9))))

    def flush(self) -> None:
        """Let what was queued leave."""
        out, self._out = self._out, []
        if not out:
            return
        if sum(map(len, out)) <= _JOIN_BYTES_MAX:
            self._write(b"".join(out))
        else:
            for piece in out:
                self._write(piece)

    def _write(self, data: bytes | bytearray | memoryview) -> None:
        transport = self._transport
        if transport is not None and not transport.is_closing():
            self.last_sent_s = self._loop.time()
            transport.write(data)

    def close(self, reason: str) -> None:
        """Say goodbye and close when all has left."""
        self.flush()
        self._reason = self._reason or reason
        if self._reader is not None:
            self._write(wire.control_frame(records.Goodbye(reason[:60], "")))
        if self._transport is not None:
            self._transport.close()

    def abort(self, reason: str) -> None:
        """Close at once; what is queued is lost."""
        self._reason = self._reason or reason
        if self._transport is not None:
            self._transport.abort()
        elif not self.agreed.done():
            self._refused(reason)

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell the owner that the session is over."""
        self._timeout.cancel()
        if not self.closed.done():
            self.closed.set_result(None)
        reason = self._reason or (f"{type(exc).__name__}: {exc}" if exc is not None else "the peer closed")
        if not self.agreed.done():
            self._refused(reason)
            return
        if self.agreed.exception() is None:
            self.on_closed(reason)


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
    """The listening port of one node or of the coordinator, on loopback."""

    def __init__(self, server: asyncio.Server) -> None:
        self._server = server
        host, port = server.sockets[0].getsockname()[:2]
        self.address: tuple[str, int] = (host, port)

    @classmethod
    async def open(
        cls, security: Security, accepted: Callable[[Connection], None], admit: Admit, what: str
    ) -> Listener:
        """Listen on an ephemeral port; ``accepted`` gets each connection that has proved itself.

        Raises
        ------
        RunFailed
            If this host gives no port.
        """
        strangers: set[Connection] = set()

        def connect() -> Connection:
            connection = Connection(_acceptor(security, admit), security, dialed=False, peer="")
            connection.on_open = accepted
            if len(strangers) >= UNAUTHENTICATED_MAX:
                asyncio.get_running_loop().call_soon(connection.abort, "too many unauthenticated connections")
            strangers.add(connection)
            connection.agreed.add_done_callback(lambda _: strangers.discard(connection))
            return connection

        try:
            server = await asyncio.get_running_loop().create_server(connect, "127.0.0.1", 0, backlog=128)
        except OSError as error:
            raise RunFailed(f"the {what} cannot listen on 127.0.0.1: {error}") from error
        return cls(server)

    async def close(self) -> None:
        """Stop listening."""
        self._server.close()
        await asyncio.sleep(0)


async def dial(
    address: tuple[str, int],
    security: Security,
    peer: str,
    incarnation: int = 1,
    opened: Callable[[Connection], None] = lambda connection: None,
) -> Connection:
    """Connect to a peer of the run; tries again until the deadline.

    ``opened`` is called as soon as both ends have proved themselves, before anything that the peer sends is looked at.

    Raises
    ------
    RunFailed
        With the last reason.
    """
    loop = asyncio.get_running_loop()
    deadline, delay_s, reason = loop.time() + DIAL_DEADLINE_S, 0.02, ""
    while loop.time() < deadline:
        schema, messages = security.schema
        settings = security.settings
        hello = records.DialerHello(
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
            message_max=settings.message_bytes_max,
            schema=schema,
            messages=messages,
            software=records.Software(emuml=emuml.__version__),
            features=[],
        )
        connection = Connection(Dialer(security.credentials, hello), security, dialed=True, peer=peer)
        connection.peer_incarnation = incarnation
        connection.on_open = opened
        try:
            await loop.create_connection(lambda connection=connection: connection, *address)  # type: ignore[misc]
            await connection.agreed
            return connection
        except OSError as error:
            reason = f"{type(error).__name__}: {error}"
        except RunFailed as error:
            reason = str(error)
            if "refused: " in reason and not reason.endswith("closed the connection during the handshake"):
                break
        await asyncio.sleep(delay_s)
        delay_s = min(2 * delay_s, 1.0)
    raise RunFailed(f"cannot reach {peer} at {address[0]}:{address[1]}: {reason}")
