"""Time against load, learned: location and spread of times are affine in the load, with an intercept.

``t(load) = location(load) + spread(load) * z``, with the law of ``z`` the same for all loads. That holds for delays
that do not depend on the load (``load * shift + X``), for those that grow with it (``load * (shift + X)``), and for
anything between, with latencies in the intercept. Both lines are fitted to quantiles of what was seen, censored times
counted as such (Kaplan and Meier), with neither a negative intercept nor a negative slope.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from emuml.protocols.adaptive_coding.observed import Floats, Observed

LEVELS = np.arange(1, 32) / 32
"""Quantiles that are compared, as far as all loads have shown them."""


class Line(NamedTuple):
    """An affine function of the load."""

    intercept: float
    slope: float

    def at(self, load: float) -> float:
        """Return its value."""
        return self.intercept + self.slope * load


class LoadLaw(NamedTuple):
    """How times change with the load: a location, the mean of the lower quantiles, and a spread above it."""

    location: Line
    spread: Line

    def moved(self, times: Floats, old: float, new: float) -> Floats:
        """Return times at a load as they would be at another one.

        They lie between the times themselves (the load does not matter) and times in proportion to the load.
        """
        if old == new:
            return times
        before, after = self.spread.at(old), self.spread.at(new)
        stretch = after / before if before > 1e-9 * self.location.at(old) else 1.0
        found = self.location.at(new) + stretch * (times - self.location.at(old))
        ends = times, times * (new / old)
        return np.clip(found, np.minimum(*ends), np.maximum(*ends))


PROPORTIONAL = LoadLaw(Line(0.0, 1.0), Line(0.0, 1.0))
"""What is assumed while only one load was seen: more work takes more time, in proportion."""


def learned(rounds: Sequence[Observed]) -> LoadLaw | None:
    """Return how times change with the load in some rounds; None if they are all of one load or tell too little."""
    by_load: dict[float, list[Observed]] = {}
    for one in rounds:
        by_load.setdefault(one.load, []).append(one)
    if len(by_load) < 2:
        return None
    loads = np.array(list(by_load))
    seen = [_joined(those) for those in by_load.values()]
    quantiles = np.stack([quantiles_of(times, answered, LEVELS) for times, answered in seen])
    usable = quantiles[:, np.isfinite(quantiles).all(axis=0)]
    if not usable.size:
        return None
    half = (usable.shape[1] + 1) // 2
    low, high = usable[:, :half].mean(axis=1), usable[:, -half:].mean(axis=1)
    weights = np.array([float(answered.sum()) for _, answered in seen])
    return LoadLaw(_line(loads, low, weights), _line(loads, high - low, weights))


def quantiles_of(times: Floats, answered: NDArray[np.bool_], levels: Floats) -> Floats:
    """Return quantiles of censored times by the estimate of Kaplan and Meier; infinity where none is known.

    Parameters
    ----------
    times : ndarray of shape (n,)
        Seconds until an answer or until nobody waited any more.
    answered : ndarray of bool, shape (n,)
    levels : ndarray of shape (n_levels,)
        In (0, 1), ascending.

    Examples
    --------
    >>> quantiles_of(np.array([1.0, 2.0, 2.0, 3.0]), np.array([True, True, False, True]), np.array([0.5, 0.75, 1.0]))
    array([2., 3., 3.])
    """
    order = np.lexsort((~answered, times))
    left = np.arange(times.size, 0, -1)
    reached = 1.0 - np.cumprod(1.0 - answered[order] / left)
    places = np.searchsorted(reached, levels - 1e-12)
    return np.append(times[order], np.inf)[places]


def _joined(rounds: Sequence[Observed]) -> tuple[Floats, NDArray[np.bool_]]:
    known = np.concatenate([one.known for one in rounds])
    times = np.concatenate([one.times for one in rounds])
    return times[known], np.concatenate([one.answered for one in rounds])[known]


def _line(loads: Floats, values: Floats, weights: Floats) -> Line:
    """Fit a line by weighted least squares under the condition that neither coefficient is negative."""
    total = max(float(weights.sum()), 1e-300)
    load, value = float(weights @ loads) / total, float(weights @ values) / total
    centred = loads - load
    spread = float(weights @ centred**2)
    slope = float(weights @ (centred * (values - value))) / spread if spread > 0 else 0.0
    slope = min(max(slope, 0.0), value / load)
    return Line(value - slope * load, slope)
