"""What the nodes of gradient coding say to each other."""

from __future__ import annotations

from emuml.message import Array, Message


class Parameters(Message):
    """The parameters of one round; they cancel whatever a worker was still computing.

    ``life`` is the incarnation of the server that asked, so that an answer to a former life is told apart.
    """

    life: int
    round: int
    value: Array


class Gradient(Message):
    """A worker's coded sum for one round."""

    life: int
    round: int
    value: Array
