"""What the nodes of sequential gradient coding say to each other."""

from __future__ import annotations

from emuml.message import Array, Message


class Job(Message):
    """The parameters at which a job's gradient is computed; workers keep them as long as the job may be worked on.

    ``life`` is the incarnation of the server, so that what a former life wanted is told apart.
    """

    life: int
    job: int
    value: Array


class Work(Message):
    """What a worker does in a round: part ``parts[i]`` of job ``jobs[i]``. It ends whatever it was still computing."""

    life: int
    round: int
    jobs: tuple[int, ...]
    parts: tuple[int, ...]


class Results(Message):
    """A worker's results of a round, one row for each part, in the order in which they were asked for."""

    life: int
    round: int
    value: Array
