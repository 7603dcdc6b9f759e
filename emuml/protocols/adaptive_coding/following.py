"""What adaptive coding does on given delays, without nodes: for traces, and to compare with any fixed choice.

Latencies are 0 and nobody crashes: then a run of the emulator on the same delays takes the same times.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from emuml.protocols.adaptive_coding.chooser import Choice, Chooser, Settings
from emuml.protocols.adaptive_coding.menu import Floats, Judged, Menu, judge

Times = Callable[[int, float], ArrayLike]
"""Gives the seconds of all workers in a round at a load, shape (workers,)."""


class Followed(NamedTuple):
    """What was chosen, and what came of it; arrays of shape (rounds,).

    Attributes
    ----------
    chooser : Chooser
        As it is after the last round.
    choices : list of Choice
    seconds, progress : ndarray of float64
        See :class:`Judged`.
    """

    chooser: Chooser
    choices: list[Choice]
    seconds: Floats
    progress: Floats


def follow(menu: Menu, times_of: Times, rounds: int, settings: Settings | None = None, seed: int = 0) -> Followed:
    """Let a chooser choose round by round, and tell it what a server would see of the delays.

    Examples
    --------
    >>> from emuml.protocols.gradient_coding import FractionalRepetition
    >>> menu = Menu.of([FractionalRepetition(1), FractionalRepetition(2)], [], workers=4, seed=0)
    >>> found = follow(menu, lambda round, load: [load, load, load, 9 * load], 10)
    >>> [choice.candidate.load for choice in found.choices]
    [1.0, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0]
    """
    chooser = Chooser(menu, settings or Settings(), seed)
    choices: list[Choice] = []
    seconds, progress = np.zeros(rounds), np.zeros(rounds)
    for i in range(rounds):
        choice = chooser.choose()
        times = np.asarray(times_of(i, choice.candidate.load), np.float64)
        judged = judge([choice.candidate], times[None])[0]
        seconds[i], progress[i] = judged.seconds[0], judged.progress[0]
        chooser.observe(choice, np.minimum(times, seconds[i]), times <= seconds[i], np.ones(times.size, np.bool_))
        choices.append(choice)
    return Followed(chooser, choices, seconds, progress)


def fixed(menu: Menu, times_of: Times, rounds: int) -> list[Judged]:
    """Return what always choosing each candidate comes to on the same delays, in the order of the menu."""
    found: list[Judged] = []
    for family in menu.families:
        times = np.array([times_of(i, family[0].load) for i in range(rounds)], np.float64)
        found += judge(family, times)
    return found
