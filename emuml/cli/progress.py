"""One line that moves while a run goes on: on a terminal, on stderr, and only when the run takes over a second.

It moves between two rows of metrics, too, and before the first one: a round of a large cluster takes minutes.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from emuml.errors import printable

QUIET_S = 1.0
EVERY_S = 0.1
BETWEEN_S = 0.5
"""How often the line moves by itself."""


@contextmanager
def progress(rounds: int | None, clock: str) -> Iterator[Progress | None]:
    """Yield what takes each row of metrics, or None where nobody would see the line.

    Parameters
    ----------
    rounds : int or None
        How many there will be, if that is known.
    clock : str
        What the engine's seconds are: ``"emulated"`` or ``"real"``.
    """
    if not sys.stderr.isatty():
        yield None
        return
    shown = Progress(rounds, clock)
    ticker = threading.Thread(target=shown.tick, name="progress", daemon=True)
    ticker.start()
    try:
        yield shown
    finally:
        shown.ended.set()
        ticker.join()
        if shown.live.is_started:
            shown.live.stop()


class Progress:
    """Shows rows of metrics as they come, and how far the engine is between them.

    Parameters
    ----------
    rounds, clock
        See :func:`progress`.
    """

    def __init__(self, rounds: int | None, clock: str) -> None:
        from rich.console import Console
        from rich.live import Live

        self.live = Live(console=Console(stderr=True), auto_refresh=False, transient=True)
        self.ended = threading.Event()
        self._rounds, self._clock = rounds, clock
        self._began = self._shown = time.monotonic()
        self._first: tuple[float, dict[str, Any]] | None = None
        self._row: dict[str, Any] = {}
        self._peek: Callable[[], Mapping[str, float]] = dict
        self._lock = threading.Lock()

    def __call__(self, row: dict[str, Any]) -> None:
        """Show a row, unless another one has been shown just now."""
        now = time.monotonic()
        self._first, self._row = self._first or (now - self._began, row), row
        if now - self._began >= QUIET_S and now - self._shown >= EVERY_S:
            self._show(row, now)

    def watch(self, peek: Callable[[], Mapping[str, float]]) -> None:
        """Ask how far a run is whenever no row comes."""
        self._peek = peek

    def tick(self) -> None:
        """Let the line move until the end."""
        while not self.ended.wait(BETWEEN_S):
            now = time.monotonic()
            if now - self._began >= QUIET_S and now - self._shown >= BETWEEN_S:
                self._show({**self._row, **self._peek()}, now)

    def _show(self, row: Mapping[str, Any], now: float) -> None:
        from rich.text import Text

        text = line(row, now - self._began, self._rounds, self._clock, self._first or (0.0, {}))
        with self._lock:
            self._shown = now
            if not self.live.is_started:
                self.live.start()
            self.live.update(Text(printable(text), no_wrap=True, overflow="ellipsis"), refresh=True)


def line(
    row: Mapping[str, Any],
    wall_s: float,
    rounds: int | None,
    clock: str,
    first: tuple[float, dict[str, Any]] = (0.0, {}),
) -> str:
    """Return the line for one row of metrics after ``wall_s`` seconds: what matters most stands first.

    Parameters
    ----------
    row : dict
        Without a time: the data, keys and nodes are being made.
    wall_s : float
    rounds : int or None
    clock : str
    first : tuple of float and dict
        When the first row came, and what it said: rates count from there, not from the start of the processes.

    Examples
    --------
    >>> line({"time_s": 24.2, "round": 50, "train_loss": 0.0946, "events": 4000}, 2.0, 100, "emulated")
    'round 50 of 100 · about 2 s left · 24.2 s emulated · train loss 0.0946 · 2,000 events/s · 2.0 s wall'
    >>> line({}, 2.0, 100, "emulated")
    'preparing data and nodes · 2.0 s wall'
    """
    if "time_s" not in row:
        return f"preparing data and nodes · {wall_s:.1f} s wall"
    since_s, then = first
    done, going_s = int(row.get("round", 0)), wall_s - since_s
    made, events = done - int(then.get("round", 0)), row.get("events", 0) - then.get("events", 0)
    parts = [f"round {done} of {rounds}" if rounds else f"round {done}"]
    parts += [f"about {(rounds - done) * going_s / made:.0f} s left"] if rounds and made > 0 and going_s > 0 else []
    if "run" in row:  # which one of several
        return " · ".join([*parts, str(row["run"]), f"{wall_s:.1f} s wall"])
    parts += [f"{row['time_s']:.1f} s {clock}"]
    parts += [f"train loss {row['train_loss']:.4g}"] if "train_loss" in row else []
    parts += [f"{row['down']:g} down"] if row.get("down") else []
    if going_s > 0 and (made > 0 or events > 0):
        parts.append(f"{events / going_s:,.0f} events/s" if events > 0 else f"{made / going_s:.3g} rounds/s")
    return " · ".join([*parts, f"{wall_s:.1f} s wall"])
