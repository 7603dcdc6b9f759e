"""Expected decoding errors ``||a^T B - 1||^2``, in partitions, when so many of the workers answer.

Workers equal partitions in number and the responders are a uniformly random set. Sources: Charles, Papailiopoulos and
Ellenberg, arXiv:1711.06771 (the question and the one-step decoder); the forms are checked against all subsets.
"""

from __future__ import annotations

from typing import Literal

from emuml.errors import UserError
from emuml.shapes import miss_probability


def repetition_error(
    partitions: int, replication: int, responders: int, decoder: Literal["optimal", "one-step"] = "optimal"
) -> float:
    """Return the expected error of fractional repetition.

    Parameters
    ----------
    partitions : int
        Partitions and workers ``k``, a multiple of ``replication``.
    replication : int
        Partitions per worker ``s``.
    responders : int
        Workers that answer, ``c``.
    decoder : str
        ``"optimal"``: one answer per group, ``k C(k-s,c)/C(k,c)``. ``"one-step"``: every answer with weight
        ``k/(c s)``, ``k(k-s)(k-c)/(c s (k-1))``.

    Returns
    -------
    float
        Partitions.

    Examples
    --------
    >>> round(repetition_error(30, 3, 15), 4), round(repetition_error(30, 3, 15, "one-step"), 4)
    (3.3621, 9.3103)
    """
    k, s, c = partitions, replication, responders
    _check_responders(c, k)
    if s < 1 or k % s:
        raise UserError(f"got {s}", "replication", f"a divisor of {k}")
    if decoder == "optimal":
        return k * miss_probability(k, s, c)
    return 0.0 if c == k else k * (k - s) * (k - c) / (c * s * (k - 1))


def repetition_error_under_absence(partitions: int, replication: int, absence: float) -> float:
    """Return the expected optimal error of fractional repetition when each worker is absent by itself.

    ``k absence^s``; a code of replication ``s`` on the same workers has no smaller one.
    """
    return partitions * absence**replication


def ignore_error(partitions: int, responders: int, scale: Literal["none", "covered"] = "covered") -> float:
    """Return the error of ignoring stragglers, the same for every set of responders.

    ``k - c`` without scaling and ``k (k-c) / c`` with it: scaling trades bias for a larger distance.
    """
    _check_responders(responders, partitions)
    lost = float(partitions - responders)
    return lost if scale == "none" else partitions * lost / responders


def _check_responders(responders: int, partitions: int) -> None:
    if not 1 <= responders <= partitions:
        nearest = min(max(responders, 1), max(partitions, 1))
        raise UserError(f"got {responders}", "responders", f"1..{partitions}", f"the nearest is {nearest}")
