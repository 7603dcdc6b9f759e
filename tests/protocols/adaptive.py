"""Menus and delays of tests of adaptive coding."""

import numpy as np

from emuml.protocols.adaptive_coding import following
from emuml.protocols.adaptive_coding.menu import Menu
from emuml.protocols.gradient_coding import FractionalRepetition


def menu_of(workers, replications=(1, 2, 3), shares=()):
    return Menu.of([FractionalRepetition(r) for r in replications], shares, workers, 0)


def indices(followed, reason="best"):
    """Return the candidates that were chosen for a reason."""
    return [choice.candidate.index for choice in followed.choices if choice.reason == reason]


def value(judged):
    """Return seconds per progress."""
    return judged.seconds.sum() / judged.progress.sum()


def values(menu, times_of, rounds):
    """Return the seconds per progress of each candidate if it is always chosen, on the same times."""
    return np.array([value(judged) for judged in following.fixed(menu, times_of, rounds)])


def exponential(workers, rounds, shift_s, mean_s, tail="fixed", seed=0):
    """Return shifted exponential times: the load multiplies the shift, or all of it."""
    drawn = np.random.default_rng(seed).exponential(mean_s, (rounds, workers))
    if tail == "fixed":
        return lambda i, load: load * shift_s + drawn[i]
    return lambda i, load: load * (shift_s + drawn[i])
