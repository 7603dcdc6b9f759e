import numpy as np
from numpy.typing import NDArray

# What closes a round: ``count`` answers (0: no number does), or an answer of each of ``groups`` groups (0: no cover
# does), worker ``w`` being of group ``group_of[w]`` (of length 0 without groups). Ties go by worker. Times in seconds.

def key_words(
    lows: NDArray[np.uint64], highs: NDArray[np.uint64], position: int, out: NDArray[np.uint64], plain: bool = False
) -> None: ...
def key_exponentials(
    lows: NDArray[np.uint64],
    highs: NDArray[np.uint64],
    position: int,
    shift: float,
    scale: float,
    out: NDArray[np.float64],
) -> None: ...
def key_tails(
    kind: int,
    parameter: float,
    lows: NDArray[np.uint64],
    highs: NDArray[np.uint64],
    position: int,
    shift: float,
    scale: float,
    out: NDArray[np.float64],
) -> None: ...

# Arrivals of one round as an array of times, by worker: when the groups are covered, and who is used by the time ``at``
# at which the round closes. ``numpy.partition`` finds the time of a count.

def cover_time(times: NDArray[np.float64], group_of: NDArray[np.int64], groups: int) -> float: ...
def mark_used(
    times: NDArray[np.float64],
    at: float,
    count: int,
    group_of: NDArray[np.int64],
    groups: int,
    used: NDArray[np.uint8],
) -> None: ...

# Rounds of times ``start + (shift + scale * e)`` by selection among the words of ``e``. Of ``exponential_rounds``,
# round ``i`` uses draw ``first + i``, all workers begin when the round before ends, and ``used`` is of shape
# (rounds, workers), or (0, workers) if nobody asks. One round at a time: arrays of length 1 and its ``start``.

def exponential_rounds(
    lows: NDArray[np.uint64],
    highs: NDArray[np.uint64],
    first: int,
    start: float,
    shift: float,
    scale: float,
    count: int,
    group_of: NDArray[np.int64],
    groups: int,
    to_all: bool,
    decided: NDArray[np.float64],
    ended: NDArray[np.float64],
    used: NDArray[np.uint8],
) -> None: ...
def word_round(
    words: NDArray[np.uint64],
    start: float,
    shift: float,
    scale: float,
    count: int,
    group_of: NDArray[np.int64],
    groups: int,
    used: NDArray[np.uint8],
) -> tuple[float, float]: ...
