"""Read frames: bytes of one lane in, events out. No sockets, no clock.

Invariants:

1. Any split of a byte stream into reads gives the same events.
2. Everything is checked before an array is allocated; bodies are received straight into the arrays.
3. No input makes an exception escape: what is wrong arrives as the last event, a :class:`Corruption` (bytes changed on
   the way: close and resume) or a :class:`ProtocolError` (the peer is wrong: end the session).

The format, and how to write it, is in ``emuml.runtime.frames``; its names are reachable here too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np
from crc32c import crc32c

from emuml.message import (
    CHUNK_BYTES,
    HEADER_BYTES,
    META_BYTES_MAX,
    SEGMENTS_MAX,
    Array,
    DecodeError,
    Decoder,
    Message,
    Outline,
    chunks,
    seal,
    wire_bytes,
)
from emuml.runtime import records
from emuml.runtime.frames import (
    BULK,
    CHECKSUM,
    CONTROL,
    CONTROL_KINDS,
    HEADER_FIELDS,
    ControlFrame,
    Corruption,
    DataFrame,
    Event,
    FrameType,
    Header,
    ProtocolError,
    WireError,
    control_frame,
    encode_frame,
    frame_pieces,
)

__all__ = ["BULK", "CONTROL", "ControlFrame", "Corruption", "DataFrame", "Event", "FrameReader", "FrameType", "Header",
           "ProtocolError", "WireError", "control_frame", "encode_frame", "frame_pieces"]  # fmt: skip

Admit: TypeAlias = Callable[[Header, int], str | None]

MESSAGE_BYTES_MAX = 4 << 30

# One read fills many small frames.
_SCRATCH_BYTES = 128 << 10
# Below this a copy out of the scratch buffer costs less than a read of its own.
_DIRECT_BYTES_MIN = 16 << 10


class FrameReader:
    """Turn the bytes of one lane into events.

    Parameters
    ----------
    data, system : Decoder, optional
        For the messages of DATA and SYSTEM frames; without it such a frame is a protocol error.
    accepts : frozenset of FrameType
        ``BULK``, ``CONTROL`` or, with one lane, their union (default).
    message_bytes_max : int
        Largest body accepted, in bytes.
    admit : callable, optional
        ``admit(header, size_bytes)`` is asked about each DATA and SYSTEM message before its arrays are allocated; a
        returned text refuses it (flow control).
    allocate : callable, optional
        ``allocate(shape, dtype)`` gives the memory of an array. Default ``numpy.empty``.

    Attributes
    ----------
    bytes_received : int
        All bytes taken so far; grows with every sign of life.
    error : Corruption or ProtocolError or None
        Once set, everything that follows is ignored.

    Examples
    --------
    >>> reader = FrameReader()
    >>> reader.feed(control_frame(records.Ping(7)))
    [ControlFrame(type=<FrameType.PING: 3>, ack=0, body=Ping(t_ns=7))]
    """

    def __init__(
        self,
        data: Decoder | None = None,
        system: Decoder | None = None,
        *,
        accepts: frozenset[FrameType] = BULK | CONTROL,
        message_bytes_max: int = MESSAGE_BYTES_MAX,
        admit: Admit | None = None,
        allocate: Callable[[tuple[int, ...], np.dtype[Any]], Array] = np.empty,
    ) -> None:
        self._decoders = {FrameType.DATA: data, FrameType.SYSTEM: system}
        self._accepts, self._message_bytes_max = accepts, message_bytes_max
        self._admit, self._allocate = admit, allocate
        self.bytes_received = 0
        self.error: Corruption | ProtocolError | None = None
        self._closed = False
        self._scratch = memoryview(bytearray(_SCRATCH_BYTES))
        # Unread bytes of the scratch buffer, and what is to be filled directly before it.
        self._start = self._end = 0
        self._direct: memoryview | None = None
        self._after_direct_bytes = _SCRATCH_BYTES
        # Where the current frame began in the stream, and whether there is one.
        self._frame_offset, self._inside = 0, False
        self._events: list[Event] = []
        self._parser = self._parse()
        next(self._parser)

    @property
    def inside_frame(self) -> bool:
        """Whether a frame has begun and not ended, so that the progress rule applies and an end would cut it."""
        return self._inside or self._end > self._start

    def get_buffers(self) -> list[memoryview]:
        """Return where the next bytes go, in order, for a vectored read; none is empty."""
        if self._direct is None:
            return [self.get_buffer()]
        return [self._direct, self._scratch[: self._after_direct_bytes]]

    def get_buffer(self, hint: int = -1) -> memoryview:
        """Return where the next bytes go, never empty (``hint`` is ignored)."""
        if self._direct is not None:
            return self._direct
        if self._start == self._end:
            self._start = self._end = 0
        elif self._start and _SCRATCH_BYTES - self._end < _DIRECT_BYTES_MIN:
            unread = bytes(self._scratch[self._start : self._end])
            self._start, self._end = 0, len(unread)
            self._scratch[: self._end] = unread
        return self._scratch[self._end :]

    def buffer_updated(self, n_bytes: int) -> list[Event]:
        """Take ``n_bytes`` that were written into the buffers, in order; return what they complete."""
        self.bytes_received += n_bytes
        if self._closed:
            return []
        if self._direct is not None:
            direct_bytes = min(n_bytes, len(self._direct))
            self._direct = self._direct[direct_bytes:]
            n_bytes -= direct_bytes
        self._end += n_bytes
        events: list[Event] = []
        self._events = events
        try:
            next(self._parser)
        except (Corruption, ProtocolError) as error:
            self.error = error
            self.close()
            events.append(error)
        return events

    def feed(self, data: bytes | bytearray | memoryview) -> list[Event]:
        """Take bytes that were read elsewhere (after a handshake, from a TLS layer); return what they complete."""
        events: list[Event] = []
        view = memoryview(data)
        while view:
            buffer = self.get_buffer()
            n_bytes = min(len(buffer), len(view))
            buffer[:n_bytes] = view[:n_bytes]
            view = view[n_bytes:]
            events += self.buffer_updated(n_bytes)
        return events

    def close(self) -> None:
        """Let go of an unfinished message at once, when its lane ends; bytes that still come are ignored."""
        # The suspended parser refers to this reader: without this the cycle would wait for the garbage collector.
        self._parser.close()
        self._direct = None
        self._start = self._end = 0
        self._closed = True

    def _parse(self) -> Generator[None, None, None]:
        """Read frame after frame; yields when more bytes are needed."""
        while True:
            while self._end - self._start < HEADER_BYTES:
                yield
            self._frame_offset = self.bytes_received - (self._end - self._start)
            self._inside = True
            header = self._read_header()
            frame_bytes = HEADER_BYTES + header.meta_bytes
            if frame_bytes > _SCRATCH_BYTES:
                frame = memoryview(bytearray(frame_bytes))
                yield from self._fill(frame, _SCRATCH_BYTES)
            else:
                while self._end - self._start < frame_bytes:
                    yield
                frame = self._scratch[self._start : self._start + frame_bytes]
                self._start += frame_bytes
            self._check_frame(header, frame)
            body, arrays, size_bytes = self._decode(header, frame[HEADER_BYTES:])
            if arrays:
                yield from self._fill_arrays(arrays)
                seal(arrays)
            self._inside = False
            if header.type is FrameType.DATA:
                self._events.append(DataFrame(header.seq, header.ack, body, size_bytes))
            else:
                self._events.append(ControlFrame(header.type, header.ack, body))

    def _fill(self, target: memoryview, after_bytes: int) -> Iterator[None]:
        """Fill ``target`` from the scratch buffer, and directly where that saves a copy."""
        while True:
            n_bytes = min(len(target), self._end - self._start)
            target[:n_bytes] = self._scratch[self._start : self._start + n_bytes]
            self._start += n_bytes
            target = target[n_bytes:]
            if not target:
                return
            if len(target) >= _DIRECT_BYTES_MIN:
                # Nothing is unread here, so the scratch buffer takes what comes after the target.
                self._start = self._end = 0
                self._direct, self._after_direct_bytes = target, after_bytes
                yield
                target, self._direct = self._direct, None
            else:
                yield

    def _fill_arrays(self, arrays: Sequence[Array]) -> Iterator[None]:
        """Receive the body; raise Corruption at the first chunk whose checksum is wrong."""
        for segment, array in enumerate(arrays):
            for position, chunk in enumerate(chunks(array)):
                if self._end - self._start >= len(chunk) + 4:
                    chunk[:] = self._scratch[self._start : self._start + len(chunk)]
                    self._start += len(chunk)
                else:
                    # After a full chunk read its checksum only, so that the next one does not pass through scratch.
                    yield from self._fill(chunk, 4 if len(chunk) == CHUNK_BYTES else _SCRATCH_BYTES)
                    while self._end - self._start < 4:
                        yield
                (announced,) = CHECKSUM.unpack_from(self._scratch, self._start)
                self._start += 4
                if announced != (found := crc32c(chunk)):
                    values = {"segment": segment, "offset": position * CHUNK_BYTES}
                    raise self._corrupt("chunk checksum", **values, announced=f"{announced:08x}", found=f"{found:08x}")

    def _read_header(self) -> Header:
        """Return the header at the start of the scratch buffer; raise Corruption if it cannot be one."""
        fields = HEADER_FIELDS.unpack_from(self._scratch, self._start)
        type_, _, n_segments, meta_bytes, seq, ack, body_bytes, _ = fields
        if not FrameType.DATA <= type_ <= FrameType.SYSTEM:
            raise self._corrupt("unknown frame type", type=type_)
        if meta_bytes > META_BYTES_MAX:
            raise self._corrupt("meta too large", meta_bytes=meta_bytes, allowed=META_BYTES_MAX)
        if n_segments > SEGMENTS_MAX:
            raise self._corrupt("too many segments", n_segments=n_segments, allowed=SEGMENTS_MAX)
        return Header(FrameType(type_), n_segments, meta_bytes, seq, ack, body_bytes)

    def _check_frame(self, header: Header, frame: memoryview) -> None:
        """Check header and meta together: first that they are what was sent, then that they may be sent."""
        (announced,) = CHECKSUM.unpack_from(frame, HEADER_BYTES - 4)
        found = crc32c(frame[HEADER_BYTES:], crc32c(frame[: HEADER_BYTES - 4]))
        if announced != found:
            raise self._corrupt("header checksum", announced=f"{announced:08x}", found=f"{found:08x}")
        if frame[1] or any(frame[32:36]):
            raise self._wrong("reserved field is not 0", flags=frame[1], stream=bytes(frame[32:36]).hex())
        if header.type not in self._accepts:
            raise self._wrong("frame type not allowed on this lane", type=header.type.name)
        if (header.seq > 0) is not (header.type is FrameType.DATA):
            raise self._wrong("seq does not fit the type", type=header.type.name, seq=header.seq)
        if header.body_bytes > self._message_bytes_max:
            values = {"body_bytes": header.body_bytes, "message_bytes_max": self._message_bytes_max}
            raise self._wrong("message larger than the setting message_bytes_max", **values)

    def _decode(self, header: Header, meta: memoryview) -> tuple[Any, list[Array], int]:
        """Return body, arrays still to be filled, and size on the wire; raise ProtocolError for what is not valid."""
        decoder = self._decoders.get(header.type)
        try:
            if decoder is not None:
                return self._decode_message(decoder, header, meta)
            if header.type in self._decoders:
                raise self._wrong("no messages are expected in such frames", type=header.type.name)
            if header.n_segments or header.body_bytes:
                values = {"n_segments": header.n_segments, "body_bytes": header.body_bytes}
                raise self._wrong("control frame with a body", type=header.type.name, **values)
            kind = CONTROL_KINDS.get(header.type)
            body = records.decode_plain(meta) if kind is None else records.decode_control(meta, kind)
            return body, [], HEADER_BYTES + header.meta_bytes
        except (DecodeError, records.RecordError) as error:
            raise self._wrong(f"meta: {error}", type=header.type.name) from None

    def _decode_message(self, decoder: Decoder, header: Header, meta: memoryview) -> tuple[Message, list[Array], int]:
        size_bytes = HEADER_BYTES + header.meta_bytes

        def allocate(outlines: Sequence[Outline]) -> list[Array]:
            nonlocal size_bytes
            segment_bytes = [math.prod(shape) * dtype.itemsize for shape, dtype in outlines]
            size_bytes = wire_bytes(header.meta_bytes, segment_bytes)
            self._ask(header, size_bytes)
            try:
                return [self._allocate(shape, dtype) for shape, dtype in outlines]
            except MemoryError:
                raise self._wrong("no memory for the message", body_bytes=header.body_bytes) from None

        message, arrays = decoder.decode_meta(meta, header.n_segments, header.body_bytes, allocate)
        if not arrays:
            self._ask(header, size_bytes)
        return message, arrays, size_bytes

    def _ask(self, header: Header, size_bytes: int) -> None:
        refusal = self._admit(header, size_bytes) if self._admit else None
        if refusal:
            raise self._wrong(refusal, type=header.type.name, seq=header.seq, size_bytes=size_bytes)

    def _corrupt(self, reason: str, **values: int | str) -> Corruption:
        return Corruption(reason, self._frame_offset, values)

    def _wrong(self, reason: str, **values: int | str) -> ProtocolError:
        return ProtocolError(reason, self._frame_offset, values)
