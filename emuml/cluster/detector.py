"""Tell a silent peer from a dead one: the phi-accrual failure detector.

Both engines use this class, one feeding it virtual and the other monotonic time, so false alarms and detection times
of a setting can be measured in the emulator before a deployment. It reads no clock, opens nothing and decides about
nobody: `now` is always an argument, in seconds on one axis that never goes back, and the caller acts on the verdict.

References: Hayashibara et al., "The phi accrual failure detector", SRDS 2004 (the normal form, not Akka's logistic
approximation, which differs by 0.75 at five standard deviations).
"""

from __future__ import annotations

import enum
import math
from collections import deque

__all__ = ["PhiAccrual", "Verdict", "phi_of"]

# Standard deviations at which the normal tail is 1e-3 (phi = 3) and, after the acceptable pause, 1e-8 (phi = 8).
_SUSPECT_DEVIATIONS = 3.0902
_DEAD_DEVIATIONS = 5.6120

# erfc underflows near y = 38; the tail series is accurate to 1e-5 in phi from y = 30 on.
_SERIES_FROM = 30.0


class Verdict(enum.Enum):
    """What silence says about a peer: ``ALIVE``, ``SUSPECT`` (phi >= 3) or ``DEAD`` (phi >= 8 after the pause)."""

    ALIVE = "alive"
    SUSPECT = "suspect"
    DEAD = "dead"


def phi_of(deviations: float) -> float:
    """Return the suspicion level of a silence.

    Parameters
    ----------
    deviations : float
        Length of the silence beyond the mean gap, in standard deviations of the gaps.

    Returns
    -------
    float
        ``-log10(1 - Phi(deviations))`` of the standard normal distribution, dimensionless, finite for every finite
        argument.

    Examples
    --------
    >>> round(phi_of(0.0), 4), round(phi_of(5.6120), 3), round(phi_of(40.0), 2)
    (0.301, 8.0, 349.44)
    """
    y = deviations
    if y < _SERIES_FROM:
        return -math.log10(0.5 * math.erfc(y / math.sqrt(2.0)))
    # log of y*y/2 would overflow only beyond y = 1e154, far outside any run.
    return (y * y / 2.0 + math.log(y * math.sqrt(2.0 * math.pi)) - math.log1p(-1.0 / (y * y))) / math.log(10.0)


class PhiAccrual:
    """Judge one peer by the gaps between its signs of life.

    Parameters
    ----------
    interval_s : float
        The peer sends something at least this often, in seconds. The estimated mean gap is never below it.
    std_min_s : float
        Lower bound of the estimated standard deviation, in seconds; keeps phi finite on regular beats.
    pause_s : float
        Pause of the peer that is acceptable before it is dead, in seconds (garbage collection, a slow disk).
    floor_s : float
        A peer is never dead sooner than this after its last sign of life, in seconds.
    ceiling_s : float
        A peer is always suspect and dead this long after its last sign of life, in seconds.
    window : int
        Number of gaps that are remembered.

    Raises
    ------
    ValueError
        If a duration is negative or not finite, the interval or the least deviation is 0, the ceiling is below the
        floor, or the window holds fewer than 2 gaps.

    Notes
    -----
    Invariants:

    1. Arrivals closer than half an interval move the last sign of life but are no samples, so a busy link does not
       pull the mean down to milliseconds and then suspect every ordinary gap.
    2. ``suspect_at <= dead_at`` always, and neither is later than the ceiling after the last sign of life.
    3. Before the first sign of life the verdict is ALIVE: waiting for a first contact is the dialer's deadline.

    Examples
    --------
    >>> detector = PhiAccrual.lan()
    >>> detector.heard(10.0)
    >>> detector.verdict(10.5), detector.verdict(11.0), detector.verdict(12.3)
    (<Verdict.ALIVE: 'alive'>, <Verdict.SUSPECT: 'suspect'>, <Verdict.DEAD: 'dead'>)
    """

    def __init__(
        self, interval_s: float, std_min_s: float, pause_s: float, floor_s: float, ceiling_s: float, window: int = 100
    ) -> None:
        _check(interval_s, std_min_s, pause_s, floor_s, ceiling_s, window)
        self.interval_s = interval_s
        self.std_min_s = std_min_s
        self.pause_s = pause_s
        self.floor_s = floor_s
        self.ceiling_s = ceiling_s
        # Gaps are kept minus the interval: the variance of nearly regular beats would else cancel away.
        self._excesses_s: deque[float] = deque(maxlen=window)
        self._last_s: float | None = None
        self._last_sample_s = 0.0
        self._estimate()

    @classmethod
    def lan(cls) -> PhiAccrual:
        """Return the detector for one rack or machine: suspect after 0.81 s, dead after 2.06 s of silence."""
        return cls(interval_s=0.5, std_min_s=0.1, pause_s=1.0, floor_s=1.0, ceiling_s=3.0)

    @classmethod
    def wan(cls) -> PhiAccrual:
        """Return the detector for distant or overloaded hosts: suspect after 1.77 s, dead after 6.40 s of silence."""
        return cls(interval_s=1.0, std_min_s=0.25, pause_s=4.0, floor_s=3.0, ceiling_s=10.0)

    def heard(self, now: float) -> None:
        """Take a sign of life: any frame or completed chunk from the peer, on any lane.

        Parameters
        ----------
        now : float
            When it came, in seconds.
        """
        if self._last_s is None:
            self._last_sample_s = now
        elif (gap_s := now - self._last_sample_s) >= self.interval_s / 2:
            self._excesses_s.append(gap_s - self.interval_s)
            self._last_sample_s = now
            self._estimate()
        self._last_s = now

    def resumed(self, gap_s: float) -> None:
        """Forget a stall of this process itself: nobody is judged by time in which we could not listen.

        Parameters
        ----------
        gap_s : float
            How long this process stood still, in seconds.
        """
        if self._last_s is not None:
            self._last_s += gap_s
            self._last_sample_s += gap_s

    def verdict(self, now: float) -> Verdict:
        """Return what the silence until ``now`` (seconds) says about the peer."""
        if now >= self.dead_at:
            return Verdict.DEAD
        return Verdict.SUSPECT if now >= self.suspect_at else Verdict.ALIVE

    def next_change(self, now: float) -> float:
        """Return when continued silence changes the verdict of ``now`` (seconds); infinite when it never will."""
        change_at = self.suspect_at if now < self.suspect_at else self.dead_at
        return change_at if now < change_at else math.inf

    def phi(self, now: float) -> float:
        """Return the suspicion level at ``now`` (seconds), dimensionless; 0 before the first sign of life."""
        return 0.0 if self._last_s is None else phi_of((now - self._last_s - self._mean_s) / self._std_s)

    @property
    def suspect_at(self) -> float:
        """Time in seconds from which silence makes the peer suspect; infinite before its first sign of life."""
        if self._last_s is None:
            return math.inf
        return self._last_s + min(self._mean_s + _SUSPECT_DEVIATIONS * self._std_s, self.ceiling_s)

    @property
    def dead_at(self) -> float:
        """Time in seconds from which silence makes the peer dead; infinite before its first sign of life."""
        if self._last_s is None:
            return math.inf
        silence_s = self._mean_s + self.pause_s + _DEAD_DEVIATIONS * self._std_s
        return self._last_s + min(max(silence_s, self.floor_s), self.ceiling_s)

    def _estimate(self) -> None:
        """Fit mean and (population) standard deviation of the remembered gaps, within their lower bounds."""
        excesses_s, count = self._excesses_s, len(self._excesses_s)
        if count < 2:
            self._mean_s, self._std_s = self.interval_s, max(self.interval_s / 4, self.std_min_s)
            return
        mean_excess_s = sum(excesses_s) / count
        variance = sum([excess_s * excess_s for excess_s in excesses_s]) / count - mean_excess_s * mean_excess_s
        self._mean_s = self.interval_s + max(mean_excess_s, 0.0)
        self._std_s = max(math.sqrt(max(variance, 0.0)), self.std_min_s)


def _check(interval_s: float, std_min_s: float, pause_s: float, floor_s: float, ceiling_s: float, window: int) -> None:
    """Refuse settings under which a verdict would be undefined or could come never."""
    named = {"interval_s": interval_s, "std_min_s": std_min_s, "pause_s": pause_s, "floor_s": floor_s}
    for name, value in {**named, "ceiling_s": ceiling_s}.items():
        least_is_allowed = name in ("pause_s", "floor_s")
        if not math.isfinite(value) or value < 0 or (value == 0 and not least_is_allowed):
            raise ValueError(f"{name}: expected finite seconds {'>=' if least_is_allowed else '>'} 0, got {value!r}")
    if ceiling_s < floor_s:
        raise ValueError(f"ceiling_s: expected at least floor_s = {floor_s!r}, got {ceiling_s!r}")
    if window < 2:
        raise ValueError(f"window: expected at least 2 gaps, got {window!r}")
