"""Expected decoding errors ``||a^T B - 1||^2``, in partitions, when so many of the workers answer.

The responders are a uniformly random set: so they are when workers have one law and rounds start afresh, or when a
round closes at a number of answers whoever gives them. Sources: Charles, Papailiopoulos and Ellenberg, arXiv:1711.06771
(the question, the one-step decoder, Bernoulli codes); the forms are checked against all subsets.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from emuml.errors import UserError
from emuml.shapes import miss_probability
from emuml.theory import arguments
from emuml.theory.coverage import covered_groups_distribution
from emuml.theory.seams import BuiltCode, Code, ExactCode, GroupedCode, NoClosedForm, OneStepDecoder
from emuml.theory.stragglers import answers_needed

Floats = NDArray[np.float64]


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
    arguments.check_divisor(s, "replication", k)
    arguments.check_name(decoder, "decoder", ("optimal", "one-step"))
    if decoder == "optimal":
        return k * miss_probability(k, s, c)
    return 0.0 if c == k else k * (k - s) * (k - c) / (c * s * (k - 1))


def repetition_error_under_absence(partitions: int, replication: int, absence: float) -> float:
    """Return the expected optimal error of fractional repetition when each worker is absent by itself.

    ``k absence^s``; a code of replication ``s`` on the same workers has no smaller one.
    """
    arguments.check_integer(partitions, "partitions", 1)
    arguments.check_divisor(replication, "replication", partitions)
    arguments.check_absence(absence)
    return partitions * absence**replication


def bernoulli_error(partitions: int, mean_load: float, responders: int) -> float:
    """Return the expected error of a Bernoulli code with the one-step decoder, ``k(k-s)/(c s)``.

    Every worker holds every of the ``k`` partitions with probability ``s/k``, independently, and each of ``c``
    responders gets the weight ``k/(c s)``.

    Examples
    --------
    >>> bernoulli_error(partitions=30, mean_load=3, responders=15)
    18.0
    """
    k, s, c = _bernoulli(partitions, mean_load, responders)
    return k * (k - s) / (c * s)


def bernoulli_uncovered(partitions: int, mean_load: float, responders: int) -> float:
    """Return the expected number of partitions that no responder of a Bernoulli code holds, ``k (1 - s/k)^c``.

    No decoder has a smaller expected error.
    """
    k, s, c = _bernoulli(partitions, mean_load, responders)
    return float(k * (1.0 - s / k) ** c)


def uniform_weights_error(matrix: Floats, responders: int, weight: float) -> float:
    """Return the expected error when the answers of ``c`` of ``n`` workers of a given code get the same weight.

    With ``s_i`` the sums of the columns of ``B``, ``F`` the sum of the squares of its entries and ``k`` columns:
    ``k - 2 a (c/n) sum s_i + a^2 ((c/n) F + c(c-1)/(n(n-1)) (sum s_i^2 - F))``.

    Parameters
    ----------
    matrix : ndarray of float64, shape (workers, partitions)
        The matrix ``B`` of the code.
    responders : int
        Workers that answer, ``c``.
    weight : float
        Of each answer, ``a``.

    Examples
    --------
    >>> uniform_weights_error(np.eye(4), responders=2, weight=2.0)  # as ignore_error(4, 2)
    4.0
    """
    workers, partitions = matrix.shape
    _check_responders(responders, workers)
    sums, squares = matrix.sum(axis=0), float((matrix**2).sum())
    single = responders / workers
    pair = single * (responders - 1) / max(workers - 1, 1)
    spread = single * squares + pair * (float(sums @ sums) - squares)
    return float(partitions - 2.0 * weight * single * sums.sum() + weight**2 * spread)


def cycle_error(workers: int, responders: int) -> float:
    """Return the expected optimal error of the graph code of a cycle, whose every path of odd length ``v`` costs 1/v.

    Parameters
    ----------
    workers : int
        Edges and vertices of the cycle, ``n``, at least 3.
    responders : int
        Workers that answer, ``c``: the others cut the cycle into paths.

    Returns
    -------
    float
        Partitions: ``sum over odd v of (n/v) C(n-v-1, n-c-2) / C(n, n-c)``, and ``1/n`` for one cut of an odd cycle.

    Examples
    --------
    >>> cycle_error(5, 4), cycle_error(6, 5), cycle_error(6, 0)
    (0.2, 0.0, 6.0)
    """
    arguments.check_integer(workers, "workers", 3)
    arguments.check_integer(responders, "responders", 0, workers)
    cuts = workers - responders
    if cuts < 2:
        return cuts * (workers % 2) / workers
    total, chance = 0.0, cuts * (cuts - 1) / (workers * (workers - 1))  # of a path of one vertex: two cuts beside it
    for vertices in range(1, responders + 2):
        if vertices % 2:
            total += workers / vertices * chance
        chance *= max(responders + 1 - vertices, 0) / max(workers - 1 - vertices, 1)
    return total


def cycle_error_under_absence(workers: int, absence: float) -> float:
    """Return the expected optimal error of the graph code of a cycle when each worker is absent by itself.

    ``sum over odd v < n of (n/v) p^2 (1-p)^(v-1)``, and for an odd cycle ``p (1-p)^(n-1)`` for a single cut.
    """
    arguments.check_integer(workers, "workers", 3)
    arguments.check_absence(absence)
    odd = np.arange(1, workers, 2)
    paths = float(np.sum(workers / odd * absence**2 * (1.0 - absence) ** (odd - 1)))
    return paths + (workers % 2) * absence * (1.0 - absence) ** (workers - 1)


def expected_decode_error(code: Code, workers: int, collect: int | None = None, seed: int = 0) -> float:
    """Return the expected error of a round of a group code, an exact or a one-step one, in partitions.

    Parameters
    ----------
    code : Code
        Declaration of a code.
    workers : int
        Number of workers.
    collect : int, optional
        Answers at which a round closes at the latest, as for the protocol.
    seed : int
        Draws a random code, as that of the experiment does: the mean is over the workers that answer.
        :func:`bernoulli_error` is the mean over codes, too.

    Raises
    ------
    NoClosedForm
        For other codes, and for ``scale="covered"`` with groups of different sizes.

    Examples
    --------
    >>> from emuml.protocols.gradient_coding import FractionalRepetition
    >>> round(expected_decode_error(FractionalRepetition(3), 30, collect=15), 4)
    3.3621
    """
    built: Any = code.build(workers, seed, collect)
    if isinstance(decoder := getattr(built, "decoder", None), OneStepDecoder):
        answers = workers if collect is None else collect
        return uniform_weights_error(built.encode_matrix, answers, decoder.weight(answers))
    if is_exact(built):
        return 0.0
    return decode_error_of(_with_groups(built, code))


def is_exact(built: object) -> bool:
    """Tell whether a built code says how many stragglers it stands, and waits for all answers but those."""
    if not isinstance(built, ExactCode):
        return False
    needed = answers_needed(built.stop_rule())
    return needed is not None and needed >= built.workers - built.stragglers


def decode_error_of(built: GroupedCode) -> float:
    """Return the expected error of a built code, in partitions; errors as for :func:`expected_decode_error`."""
    lost = 1.0 - covered_chances(built)
    if built.scale == "none" or not lost.any():
        return built.block * float(lost.sum())
    if built.scale == "unbiased":
        return built.block * float((lost / (1.0 - lost)).sum())
    if built.collect is None or len(set(built.group_sizes)) > 1:
        raise NoClosedForm("no closed form is known for scale='covered' and groups of different sizes", "decode error")
    groups, size = len(built.group_sizes), built.group_sizes[0]
    chances = covered_groups_distribution(groups, size, built.collect)
    return built.block * sum(chances[v] * groups * (groups - v) / v for v in range(1, groups))


def covered_fraction(code: Code, workers: int, collect: int | None = None) -> float:
    """Return the expected share of the data that a round's answers cover; parameters as for the error.

    Examples
    --------
    >>> from emuml.protocols.gradient_coding import FractionalRepetition
    >>> round(covered_fraction(FractionalRepetition(3), 30, collect=15), 6)
    0.887931
    """
    return float(covered_chances(_grouped(code, workers, collect)).mean())


def covered_chances(built: GroupedCode) -> Floats:
    """Return the chance of each group of a built code to have an answer when a round closes, shape (groups,)."""
    if built.collect is None:
        return np.ones(len(built.group_sizes))
    missed = {size: miss_probability(built.workers, size, built.collect) for size in set(built.group_sizes)}
    return np.array([1.0 - missed[size] for size in built.group_sizes])


def ignore_error(partitions: int, responders: int, scale: Literal["none", "covered"] = "covered") -> float:
    """Return the error of ignoring stragglers, the same for every set of responders.

    ``k - c`` without scaling and ``k (k-c) / c`` with it: scaling trades bias for a larger distance.
    """
    _check_responders(responders, partitions)
    arguments.check_name(scale, "scale", ("none", "covered"))
    lost = float(partitions - responders)
    return lost if scale == "none" else partitions * lost / responders


def _grouped(code: Code, workers: int, collect: int | None) -> GroupedCode:
    return _with_groups(code.build(workers, collect=collect), code)


def _with_groups(built: BuiltCode, code: Code) -> GroupedCode:
    if not isinstance(built, GroupedCode):
        raise NoClosedForm(f"{type(code).__name__} has no groups of workers", "decode error")
    return built


def _bernoulli(partitions: int, mean_load: float, responders: int) -> tuple[int, float, int]:
    arguments.check_integer(partitions, "partitions", 1)
    arguments.check_integer(responders, "responders", 1)
    if not 0.0 < mean_load <= partitions:
        raise UserError(f"got {mean_load}", "mean_load", f"a number above 0 and at most {partitions}")
    return partitions, mean_load, responders


def _check_responders(responders: int, partitions: int) -> None:
    arguments.check_integer(partitions, "partitions", 1)
    arguments.check_integer(responders, "responders", 1, partitions)
