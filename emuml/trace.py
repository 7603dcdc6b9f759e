"""Trace records, the same kinds on both engines; every report, metric and comparison reads only these.

A record is a tuple ``(time_s, node, kind, *details)``; ``KINDS`` names the details. In memory a trace is a list of
tuples; on disk it is a sequence of length-prefixed msgpack arrays behind a header with the format version.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import msgspec

from emuml.errors import Diverged, FormatError, RecordEnds, UserError

FORMAT = 1
MAGIC = b"EMUMLTRC"
KINDS: dict[str, tuple[str, ...]] = {
    "start": ("incarnation",),
    "crash": ("incarnation",),
    "exit": ("incarnation", "reason"),
    "peer": ("peer", "state"),
    "send": ("peer", "type", "size_bytes"),
    "discarded": ("peer", "type", "size_bytes"),
    "receive": ("peer", "type", "size_bytes"),
    "timer": ("name",),
    "set_timer": ("name", "after_s"),
    "cancel_timer": ("name",),
    "compute": ("tag", "draw", "load"),
    "begin": ("tag", "draw"),
    "computed": ("tag", "draw"),
    "cancel": ("tag",),
    "freed": ("tag",),
    "save": ("tag", "size_bytes"),
    "saved": ("tag",),
    "load": ("tag",),
    "loaded": ("tag",),
    "log": ("metrics",),
    "publish": ("version",),
    "fault": ("what",),
    "healed": ("what",),
    "stop": ("reason",),
}
"""Kind of record -> names of its details."""

OF_STEPS = frozenset(
    ("start", "send", "discarded", "receive", "set_timer", "timer", "cancel_timer", "compute", "begin", "computed",
     "cancel", "freed")
)  # fmt: skip
"""Kinds of which nearly every step makes some; a run without a trace keeps the others."""

_HEADER = struct.Struct("<8sI")
_LENGTH = struct.Struct("<I")


class Record(NamedTuple):
    """One trace record, read back."""

    time_s: float
    node: str
    kind: str
    details: dict[str, Any]


class Trace:
    """Records in the order in which an engine made them, kept in memory and streamed to a file if one is given.

    Parameters
    ----------
    stream : binary file, optional
        Records are written as they are made, so that an interrupted run keeps what it did.
    keep : bool
        Whether records also stay in memory.

    Attributes
    ----------
    rows : list of tuple
        What is kept.
    on : bool
        Whether records go anywhere: making them is most of the work.
    """

    def __init__(self, stream: BinaryIO | None = None, keep: bool = True) -> None:
        self.rows: list[tuple[Any, ...]] = []
        self._keep = keep
        self._stream = stream
        self.on = keep or stream is not None
        self._encode = msgspec.msgpack.Encoder(enc_hook=str).encode
        self._write_header()

    def _write_header(self) -> None:
        if self._stream is not None:
            self._stream.write(_HEADER.pack(MAGIC, FORMAT))

    def add(self, time_s: float, node: str, kind: str, *details: Any) -> None:
        """Append one record."""
        if not self.on:
            return
        row = (time_s, node, kind, *details)
        if self._keep:
            self.rows.append(row)
        if self._stream is not None:
            data = self._encode(row)
            self._stream.write(_LENGTH.pack(len(data)) + data)

    @property
    def plain(self) -> bool:
        """Whether all that :meth:`add` does is to append to ``rows``."""
        return type(self) is Trace and self._keep and self._stream is None

    def flush(self) -> None:
        """Let buffered records reach the file, so that a killed process keeps what it did."""
        if self._stream is not None:
            self._stream.flush()

    def restart(self) -> bool:
        """Forget all records, for a run that begins anew; return whether it shall."""
        self.rows.clear()
        if self._stream is not None:
            self._stream.seek(0)
            self._stream.truncate()
        self._write_header()
        return True

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Record]:
        return (as_record(row) for row in self.rows)

    def of(self, *kinds: str) -> list[Record]:
        """Return the records of some kinds, in order."""
        return [as_record(row) for row in self.rows if row[2] in kinds]

    def digest(self) -> str:
        """Return the SHA-256 over all records: equal runs have equal digests."""
        digest = hashlib.sha256()
        for row in self.rows:
            digest.update(self._encode(row))
        return digest.hexdigest()


def as_record(row: tuple[Any, ...]) -> Record:
    """Name the details of a row."""
    time_s, node, kind, *details = row
    return Record(time_s, str(node), kind, dict(zip(KINDS[kind], details, strict=True)))


def read_encoded(path: str | Path) -> Iterator[bytes]:
    """Yield the records of a trace file as they are encoded; a tail cut by an interruption is left out.

    Raises
    ------
    FormatError
        If the file is no trace, or of another version.
    """
    with Path(path).open("rb") as stream:
        header = stream.read(_HEADER.size)
        if len(header) < _HEADER.size or header[:8] != MAGIC:
            raise FormatError("this is no trace file", str(path))
        version = _HEADER.unpack(header)[1]
        if version != FORMAT:
            raise FormatError(f"trace format {version}", str(path), f"format {FORMAT}")
        while len(prefix := stream.read(_LENGTH.size)) == _LENGTH.size:
            data = stream.read(_LENGTH.unpack(prefix)[0])
            if len(data) < _LENGTH.unpack(prefix)[0]:
                return
            yield data


def read_rows(path: str | Path) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of a trace file; see :func:`read_encoded`."""
    return (tuple(msgspec.msgpack.decode(data)) for data in read_encoded(path))


class Records(Trace):
    """What is kept of a run without a trace: logs, published versions, faults, its end.

    It is no trace: whoever asks for one is told how to get it. ``kept`` has the rows that there are.

    Parameters
    ----------
    why, instead : str
        Said to who asks: why there is no trace, and what gives one.
    copy : Trace, optional
        Takes each record that is kept, too, as it is made, so that an interrupted run keeps what it did.
    """

    on: bool = False

    def __init__(
        self,
        why: str = "the array tier served this run, and keeps no trace",
        instead: str = "a run with tier='event'",
        copy: Trace | None = None,
    ) -> None:
        self.why, self.instead, self._copy = why, instead, copy
        self.kept: list[tuple[Any, ...]] = []

    def add(self, time_s: float, node: str, kind: str, *details: Any) -> None:
        """Append one record, unless it is of the many that this is without."""
        if kind in OF_STEPS:
            return
        self.kept.append((time_s, node, kind, *details))
        if self._copy is not None:
            self._copy.add(time_s, node, kind, *details)

    def restart(self) -> bool:
        """See :class:`Trace`."""
        self.kept.clear()
        return True

    def flush(self) -> None:
        """Do nothing: there is no file."""

    @property
    def rows(self) -> list[tuple[Any, ...]]:  # type: ignore[override]
        """Refuse: messages, timers and tasks left no records.

        Raises
        ------
        UserError
            Always.
        """
        raise UserError(self.why, "trace", self.instead)


class OnDisk(Records):
    """A trace that is in its file only, because it would not fit into memory; what is kept of it is what steps are not.

    Parameters
    ----------
    stream : binary file
        Takes all records as they are made.
    """

    def __init__(self, stream: BinaryIO) -> None:
        super().__init__("the trace of so large a run is on disk only", "emuml.trace.read_rows('RUN/trace')")
        self.file = Trace(stream, keep=False)
        self.on = True

    def add(self, time_s: float, node: str, kind: str, *details: Any) -> None:
        """Append one record."""
        self.file.add(time_s, node, kind, *details)
        super().add(time_s, node, kind, *details)

    def restart(self) -> bool:
        """See :class:`Trace`."""
        return super().restart() and self.file.restart()

    def flush(self) -> None:
        """See :class:`Trace`."""
        self.file.flush()


class ComparedTrace(Trace):
    """A trace that must come out as it was recorded.

    Parameters
    ----------
    recorded : iterator of bytes
        Encoded records.
    complete : bool
        Whether the recorded run came to its end; otherwise :class:`RecordEnds` is raised where the records end.
    """

    def __init__(self, recorded: Iterator[bytes], complete: bool) -> None:
        super().__init__()
        self._recorded, self._complete = recorded, complete

    def add(self, time_s: float, node: str, kind: str, *details: Any) -> None:
        """Append one record.

        Raises
        ------
        Diverged
            If it is not the recorded one.
        RecordEnds
            If the recorded run was cut here.
        """
        expected = next(self._recorded, None)
        if expected is None and not self._complete:
            raise RecordEnds(time_s)
        if expected != self._encode((time_s, node, kind, *details)):
            was = "nothing more" if expected is None else str(tuple(msgspec.msgpack.decode(expected)))
            raise Diverged(str(node), len(self.rows), "trace", was, str((time_s, node, kind, *details)))
        super().add(time_s, node, kind, *details)

    def restart(self) -> bool:
        """See :class:`Trace`: a recorded run that begins anew is that of the events, unless it was cut before."""
        return False

    def check_end(self) -> None:
        """Make sure that nothing recorded is left.

        Raises
        ------
        Diverged
            If there is.
        """
        left = next(self._recorded, None)
        if left is not None:
            raise Diverged("emulator", len(self.rows), "trace", str(tuple(msgspec.msgpack.decode(left))), "the end")


def kept(trace: Trace) -> list[tuple[Any, ...]]:
    """Return the rows that there are: all of a trace, or what is kept without one."""
    return trace.kept if isinstance(trace, Records) else trace.rows


def merge(traces: Iterable[Iterable[tuple[Any, ...]]]) -> Trace:
    """Merge the rows of several nodes by time; equal times keep the order of the traces given."""
    merged = Trace()
    merged.rows = sorted((row for rows in traces for row in rows), key=lambda row: row[0])
    return merged
