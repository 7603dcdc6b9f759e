"""What nodes and the coordinator say to each other; never part of a protocol, never seen by a handler."""

from __future__ import annotations

from emuml.message import Array, Message


class Join(Message):
    """A node is there: where it listens, whom its class talks to, and which messages it knows."""

    node: str
    incarnation: int
    pid: int
    address: tuple[str, int]
    talks_to: list[str] | None
    schema: bytes


class Roster(Message):
    """Where everybody listens, which nodes this one dials, who is absent.

    ``elapsed_s`` is how long ago the run began for a node that joins it late, and null before it began.
    """

    addresses: dict[str, tuple[str, int]]
    incarnations: dict[str, int]
    talks_to: dict[str, list[str] | None]
    dial: list[str]
    expect: list[str]
    absent: list[str]
    elapsed_s: float | None


class Ready(Message):
    """All links of a node are up."""

    node: str


class Begin(Message):
    """The run begins."""


class Logged(Message):
    """A ``log`` effect; ``metrics`` is a msgpack map of numbers and short texts."""

    time_s: float
    metrics: bytes


class Published(Message):
    """A ``publish`` effect."""

    time_s: float
    version: int
    parameters: Array
    events: int


class Reached(Message):
    """Counters of the fault plan were logged in one effect; the node waits for :class:`Proceed`."""

    counters: list[tuple[str, int]]


class Proceed(Message):
    """What was planned for the counter is done."""


class StopRequest(Message):
    """A node called ``stop``."""

    reason: str
    time_s: float


class Failed(Message):
    """A handler or task raised."""

    node: str
    incarnation: int
    time_s: float
    event: str
    error: str
    text: str
    traceback: str


class PeerExited(Message):
    """A process is gone; its neighbours need not wait for silence."""

    node: str
    incarnation: int
    reason: str


class StatusQuery(Message):
    """The coordinator asks what a node is doing."""


class Status(Message):
    """How many events a node has handled, how much is pending, and a line for reports."""

    node: str
    events: int
    pending: int
    text: str


class Shutdown(Message):
    """The run is over; drain and end."""

    reason: str


class Finished(Message):
    """The last word of a node: counts for the result."""

    node: str
    incarnation: int
    events: int
    statistics: dict[str, float]


SYSTEM_MESSAGES: tuple[type[Message], ...] = (
    Join,
    Roster,
    Ready,
    Begin,
    Logged,
    Published,
    Reached,
    Proceed,
    StopRequest,
    Failed,
    PeerExited,
    StatusQuery,
    Status,
    Shutdown,
    Finished,
)
