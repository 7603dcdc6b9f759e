"""A chooser fed with rounds whose times a test gives, and what each candidate would have come to on them."""

from typing import NamedTuple

import numpy as np

from emuml.protocols.adaptive_coding.chooser import Chooser, Settings
from emuml.protocols.adaptive_coding.menu import Menu, judge
from emuml.protocols.gradient_coding import FractionalRepetition


class Fed(NamedTuple):
    """What a chooser did: per round its choice, seconds and progress."""

    chooser: Chooser
    choices: list
    seconds: np.ndarray
    progress: np.ndarray

    @property
    def value(self):
        """Seconds per progress."""
        return self.seconds.sum() / self.progress.sum()

    def indices(self, reason="best"):
        """Return the candidates that were chosen for a reason."""
        return [choice.candidate.index for choice in self.choices if choice.reason == reason]


def menu_of(workers, replications=(1, 2, 3), shares=()):
    return Menu.of([FractionalRepetition(r) for r in replications], shares, workers, 0)


def feed(menu, times_of, rounds, settings=None, seed=0):
    """Let a chooser choose, and tell it what a server sees: arrivals until the round closes, and nothing else.

    ``times_of(round, load)`` gives the seconds of all workers.
    """
    chooser = Chooser(menu, settings or Settings(), seed)
    choices, seconds, progress = [], np.zeros(rounds), np.zeros(rounds)
    for i in range(rounds):
        choice = chooser.choose()
        times = np.asarray(times_of(i, choice.candidate.load), float)
        judged = judge([choice.candidate], times[None])[0]
        closed_s = judged.seconds[0]
        chooser.observe(choice, np.minimum(times, closed_s), times <= closed_s, np.ones(times.size, bool))
        choices.append(choice)
        seconds[i], progress[i] = closed_s, judged.progress[0]
    return Fed(chooser, choices, seconds, progress)


def fixed(menu, times_of, rounds):
    """Return the seconds per progress of each candidate if it is always chosen, on the same times."""
    found = np.zeros(len(menu))
    for family in menu.families:
        times = np.array([times_of(i, family[0].load) for i in range(rounds)], float)
        for one, judged in zip(family, judge(family, times), strict=True):
            found[one.index] = judged.seconds.sum() / judged.progress.sum()
    return found


def exponential(workers, rounds, shift_s, mean_s, tail="fixed", seed=0):
    """Return shifted exponential times: the load multiplies the shift, or all of it."""
    drawn = np.random.default_rng(seed).exponential(mean_s, (rounds, workers))
    if tail == "fixed":
        return lambda i, load: load * shift_s + drawn[i]
    return lambda i, load: load * (shift_s + drawn[i])
