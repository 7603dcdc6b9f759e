"""Connections of a TCP run: a handshake with the run's secret, then frames, on one lane.

One ``Connection`` is one session between two incarnations. What is queued leaves at ``flush``, so that a node can write
its journal before. Nothing is decoded, and nothing larger than 4 KiB is allocated, before the peer has proved that it
belongs to the run.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from dataclasses import dataclass, replace

from emuml.errors import RunFailed
from emuml.message import Decoder, Message, encode
from emuml.runtime import records, wire
from emuml.runtime.handshake import NO_SCHEMA, Acceptor, Agreed, Dialer, Refused
from emuml.runtime.proof import Credentials
from emuml.runtime.settings import RuntimeSettings
from emuml.runtime.system import SYSTEM_MESSAGES

_HANDSHAKE_BYTES = 4096
_JOIN_BYTES_MAX = 1 << 16
_PASSING = frozenset({"busy", "closed", "closing", "duplicate", "timeout"})
"""REJECT codes after which another attempt may succeed."""


class NoConnection(RunFailed):
    """A connection did not come about; ``final`` says that another attempt cannot succeed either."""

    def __init__(self, peer: str, reason: str, final: bool = False) -> None:
        super().__init__(peer, reason, final)
        self.peer, self.reason, self.final = peer, reason, final

    def __str__(self) -> str:
        return f"no connection with {self.peer or 'a stranger'}: {self.reason}"


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
        To be set by the owner when ``on_open`` is called, which is before anything that the peer sends is looked at.

    Parameters
    ----------
    turned_away : str
        If not empty: why the connection is closed before anything is read.
    """

    def __init__(
        self, side: Dialer | Acceptor, security: Security, dialed: bool, peer: str, turned_away: str = ""
    ) -> None:
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
        self._reason, self._final, self._turned_away = "", False, turned_away
        self._received = 0
        self.closed: asyncio.Future[None] = self._loop.create_future()
        self._timeout = self._loop.call_later(security.settings.handshake_s, self._too_late)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin the handshake."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        if self._turned_away or self.agreed.done():  # the latter if it was aborted before it was made
            self.abort(self._turned_away)
            return
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
            self._final = outcome.code not in _PASSING
            self._refused(str(outcome))
        elif isinstance(outcome, Agreed):
            self._agree(outcome)

    def _too_late(self) -> None:
        """Give up on a handshake; a dialer is told why."""
        reason = f"no complete handshake within {self._security.settings.handshake_s:g} s"
        if isinstance(self._side, Acceptor) and self._transport is not None:
            self._transport.write(self._side.refuse("timeout", reason))
        self._refused(reason)

    def _refused(self, reason: str) -> None:
        self._reason = self._reason or reason
        self._timeout.cancel()
        if not self.agreed.done():
            self.agreed.set_exception(NoConnection(self.peer, self._reason, self._final))
            self.agreed.exception()
        if self._transport is not None:
            self._transport.close()

    def _agree(self, outcome: Agreed) -> None:
        if self.agreed.done():  # given up a moment ago
            return
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
