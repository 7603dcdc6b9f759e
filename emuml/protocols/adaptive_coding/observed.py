"""What the server saw of past rounds: who answered after how long, and who was cancelled before.

A worker that was cancelled did not answer *yet*: its time is known to be longer than the round. Such times are
*censored*. To forget them takes fast workers for the whole; to take them for arrivals makes everybody fast.

How long they would have taken is completed by a law that all of the window tells: beyond the shortest time, answers
come at a constant rate, the number of answers over the time that was waited for them (the censored maximum likelihood
estimate for shifted exponentials). Each worker has its own rate as far as the window shows that workers differ; one
that does, and is slower than anybody waits for, is taken to be as slow as when it was last seen.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

LEAST_S = 1e-12
"""Delays that differ by less are equal."""


class Observed(NamedTuple):
    """One round as the server saw it; arrays of shape (workers,).

    Attributes
    ----------
    load : float
        Mean work of a worker.
    times : ndarray of float64
        Seconds from the question to the answer, or to the end of the round.
    answered : ndarray of bool
        Whose time ends with an answer.
    known : ndarray of bool
        Whose time means anything: of workers that were down or asked again, it does not.
    drawn : ndarray of float64
        Exponential numbers of mean 1, with which unknown times are completed.
    """

    load: float
    times: Floats
    answered: Flags
    known: Flags
    drawn: Floats


def completed(times: Floats, answered: Flags, known: Flags, drawn: Floats, last: Floats | None = None) -> Floats:
    """Return times of all workers in all rounds, those that nobody saw drawn; arrays of shape (rounds, workers).

    Parameters
    ----------
    times, answered, known, drawn : ndarray of shape (rounds, workers)
        See :class:`Observed`.
    last : ndarray of shape (workers,), optional
        How long each worker took when it was last seen to answer, maybe long ago; 0 if it never was. Workers that
        differ from the others take as long again, if that is longer than they were waited for.

    Examples
    --------
    >>> times = np.array([[1.0, 2.0, 2.0]])
    >>> answered = np.array([[True, True, False]])
    >>> completed(times, answered, np.ones((1, 3), bool), np.full((1, 3), 3.0))
    array([[1., 2., 5.]])
    """
    seen = answered & known
    if not seen.any():
        return times
    shift = float(times[seen].min())
    waited = np.where(known, np.maximum(times - shift, 0.0), 0.0).sum(axis=0)
    mean_s, own = mean_beyond(seen.sum(axis=0), waited)
    begun = np.where(known, times, shift)
    found = np.where(seen, times, begun + mean_s * drawn)
    if last is None:
        return found
    return np.where(~seen & (own > 0.5) & (last > begun), last, found)


def mean_beyond(answers: NDArray[np.int64], waited_s: Floats) -> tuple[Floats, Floats]:
    """Return for each worker the mean time between the shortest time and its answer, and how far that is its own.

    Parameters
    ----------
    answers : ndarray of int, shape (workers,)
        How often each was seen to answer; at least one answer in all.
    waited_s : ndarray of float64, shape (workers,)
        How long each was waited for beyond the shortest time, in all, answers or not.

    Returns
    -------
    mean_s : ndarray of float64, shape (workers,)
    own : ndarray of float64, shape (workers,)
        The weight of the worker's own times in its mean, from 0 (workers are alike) to 1.

    Notes
    -----
    Answers of a worker are about Poisson with mean ``rate * waited_s``, the rates of workers gamma with a variance that
    is estimated from how much counts vary beyond Poisson: none if they do not (then all rates are equal), all if they
    do (then each worker has its own): empirical Bayes.
    """
    common = float(waited_s.sum()) / float(answers.sum())
    if common < LEAST_S:
        return np.zeros(answers.size), np.zeros(answers.size)
    expected = waited_s / common
    beyond = float(np.sum((answers - expected) ** 2 - expected))
    variance = max(beyond, 0.0) / max(float(np.sum(expected**2)), 1e-300)
    own = variance * expected
    return (common + variance * waited_s) / (1.0 + variance * answers), own / (1.0 + own)
