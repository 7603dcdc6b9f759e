"""When jobs of sequential gradient coding are decoded on given delays: rounds with a soft deadline, by recursion.

With ``m`` the seconds of the fastest worker in a round, whoever needs more than ``(1 + wait) m`` is late. If the code's
model tolerates the pattern of late workers so far, the round ends at that deadline, or with the last worker if nobody
is late; else it ends when the last one is done (Krishnan, Ebrahimi and Khisti, arXiv:2211.13802).

Times are added as the event-driven engine adds them: on the same delays, and with messages that take no time, ends of
rounds are those of :func:`emuml.run` bit for bit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from emuml import _kernels
from emuml.errors import UserError
from emuml.theory import arguments

Floats = NDArray[np.float64]

_KINDS = {"plain": 0, "sr-sgc": 1, "m-sgc": 2}
_WINDOW_MAX = 64
"""The compiled recursion keeps what a worker did in a word."""


class _Schedule(Protocol):
    """One run of a sequential code; see :mod:`emuml.protocols.sequential_coding.seam`."""

    round: int

    @property
    def is_done(self) -> bool:
        """Whether all jobs are decoded."""
        ...

    def work(self) -> list[tuple[Any, ...]]:
        """Return the chunks of each worker in the open round."""
        ...

    def tolerates(self, late: NDArray[np.bool_]) -> bool:
        """Tell whether the round may end without these workers."""
        ...

    def close(self, late: NDArray[np.bool_]) -> list[int]:
        """End the round without these workers, and return the jobs that can be decoded now."""
        ...


@runtime_checkable
class Sequence(Protocol):
    """A sequential code for a known number of workers."""

    @property
    def workers(self) -> int:
        """Number of workers."""
        ...

    @property
    def delay(self) -> int:
        """Rounds after its own in which a job is decoded at the latest."""
        ...

    @property
    def slots(self) -> int:
        """Chunks that a worker does in a round at most."""
        ...

    @property
    def chunk_load(self) -> float:
        """Load of each, in units of ``1/workers`` of the data."""
        ...

    @property
    def timing(self) -> Any:
        """What the compiled recursion needs; None where only the schedule itself knows."""
        ...

    def schedule(self, jobs: int) -> _Schedule:
        """Return the schedule of a new run."""
        ...


@dataclass(frozen=True, eq=False)
class SequentialRounds:
    """The rounds of one run.

    Attributes
    ----------
    ended_s : ndarray of float64, shape (rounds,)
        When each round ended, in seconds from the start; the last one ends the run.
    late : ndarray of int64, shape (rounds,)
        How many workers did not deliver.
    waited : ndarray of bool, shape (rounds,)
        Whether the round waited for everybody after its deadline, because the code would not have stood it.
    decoded : ndarray of int64, shape (jobs,)
        The round at whose end each job could be decoded.
    """

    ended_s: Floats
    late: NDArray[np.int64]
    waited: NDArray[np.bool_]
    decoded: NDArray[np.int64]

    @property
    def seconds(self) -> float:
        """Seconds of the whole run."""
        return float(self.ended_s[-1])


def sequential_rounds(
    delays: ArrayLike,
    code: Sequence,
    jobs: int,
    *,
    wait: float = 1.0,
    base_load: float = 1.0,
    slope_s: float = 0.0,
) -> SequentialRounds:
    """Return when the rounds of a sequential code end, and its jobs are decoded, if workers take these times.

    Parameters
    ----------
    delays : array_like, shape (rounds, workers)
        Seconds of each worker for each round at ``base_load``, finite and >= 0; ``jobs + code.delay`` rounds suffice.
    code : Sequence
        Such as ``SelectiveRepetition(2, 3, 4).sequence(workers)`` or ``Plain(Uncoded().build(workers))``.
    jobs : int
        How many gradients, > 0.
    wait : float
        ``mu``: beyond ``1 + wait`` times the fastest worker's time others are late, >= 0.
    base_load : float
        Load of the delays, in units of ``1/workers`` of the data.
    slope_s : float
        Seconds for each unit of load beyond it, >= 0; chunks that a worker does not have, as in the first and last
        rounds of M-SGC, are no load.

    Raises
    ------
    UserError
        If an argument is none, there are too few delays, or one of them and its load give a negative time.

    Examples
    --------
    >>> from emuml.protocols.sequential_coding import SelectiveRepetition
    >>> code = SelectiveRepetition(burst=1, window=2, stragglers=2).sequence(4)
    >>> found = sequential_rounds([[1, 1, 9, 9], [1, 1, 1, 1], [1, 1, 1, 1]], code, jobs=2)
    >>> found.ended_s, found.decoded
    (array([2., 3.]), array([1, 1]))
    """
    times = np.ascontiguousarray(delays, np.float64)
    arguments.check_integer(jobs, "jobs", 1)
    for value, where in ((wait, "wait"), (base_load, "base_load"), (slope_s, "slope_s")):
        arguments.check_number(value, where, least=0.0)
    if times.ndim != 2 or times.shape[1] != code.workers or len(times) < jobs + code.delay:
        allowed = f"shape (rounds, {code.workers}) with at least {jobs} + {code.delay} rounds"
        raise UserError(f"got shape {times.shape}", "delays", allowed)
    extra_s: Floats = np.array([(chunks * code.chunk_load - base_load) * slope_s for chunks in range(code.slots + 1)])
    least_s = float(times.min())
    if not (least_s >= 0 and float(times.max()) < np.inf):  # two passes, where the general check takes four
        arguments.seconds(times, "delays")
    if least_s + float(extra_s[1]) < 0:
        raise UserError("a delay minus what its load takes off is negative", "delays", "more seconds, or less slope_s")
    timing = code.timing
    if _kernels.IMPLEMENTATION != "compiled" or timing is None or timing.window > _WINDOW_MAX:
        return followed(times, code, jobs, wait, extra_s)
    from emuml._kernels import sequential

    ended_s, late = np.empty(len(times)), np.empty(len(times), np.int64)
    waited, decoded = np.empty(len(times), np.uint8), np.empty(jobs, np.int64)
    given = _KINDS[timing.kind], timing.burst, timing.window, timing.stragglers, timing.tolerance, timing.slots
    n = sequential.sequential_rounds(*given, times, extra_s, wait, ended_s, late, waited, decoded)
    return SequentialRounds(ended_s[:n], late[:n], waited[:n].astype(np.bool_), decoded)


def followed(times: Floats, code: Sequence, jobs: int, wait: float, extra_s: Floats) -> SequentialRounds:
    """Return the same by the schedule itself, round by round; ``extra_s[c]`` is added for ``c`` chunks."""
    schedule, now = code.schedule(jobs), 0.0
    rounds: list[tuple[float, int, bool]] = []
    decoded = np.full(jobs, -1)
    while not schedule.is_done:
        chunks = np.array([len(work) for work in schedule.work()])
        arrive = now + (times[schedule.round] + extra_s[chunks])
        asked, late, waited = chunks > 0, np.zeros(code.workers, np.bool_), False
        if asked.any():
            first, last = float(arrive[asked].min()), float(arrive[asked].max())
            deadline, now = first + wait * (first - now), last
            if last > deadline:
                late = asked & (arrive > deadline)
                waited = not schedule.tolerates(late)
                if waited:
                    late = np.zeros(code.workers, np.bool_)
                else:
                    now = deadline
        rounds.append((now, int(np.count_nonzero(late)), waited))
        decoded[schedule.close(late)] = len(rounds) - 1
    ended_s, n_late, has_waited = zip(*rounds, strict=True)
    return SequentialRounds(np.array(ended_s), np.array(n_late, np.int64), np.array(has_waited, np.bool_), decoded)
