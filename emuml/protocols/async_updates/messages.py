"""What the nodes of asynchronous training say to each other.

``life`` is the incarnation of the server that a message belongs to: what a former life was told counts for nothing.
With several servers each holds a slice of the parameters, and values are slices.
"""

from __future__ import annotations

from emuml.message import Array, Message


class Read(Message):
    """A worker that has nothing to go on with asks for parameters for iteration ``clock``.

    -1 if it does not know where it was: one server answers with the view that is due, several with its :class:`Place`.
    """

    clock: int


class Place(Message):
    """Where a worker is for one of several servers: the number of its updates that were applied there."""

    clock: int


class View(Message):
    """Parameters for iteration ``clock``: they hold all updates of iterations before ``slowest``, of every worker.

    ``version`` is the number of updates in them.
    """

    life: int
    clock: int
    version: int
    slowest: int
    value: Array


class Update(Message):
    """What a worker computed in iteration ``clock`` from parameters of ``version``; ``reads``: it waits for a view."""

    life: int
    clock: int
    version: int
    reads: bool
    value: Array


class Slice(Message):
    """The part of a round's parameters that a server holds, for the one that publishes them."""

    round: int
    value: Array


class Finish(Message):
    """Training is over in the middle of a round: send what you have, as the parameters of ``round``."""

    round: int
