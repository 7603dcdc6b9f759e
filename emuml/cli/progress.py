"""One line that moves while a run goes on: on a terminal, on stderr, and only when the run takes over a second."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from emuml.errors import printable

QUIET_S = 1.0
EVERY_S = 0.1


@contextmanager
def progress(rounds: int | None, clock: str) -> Iterator[Callable[[dict[str, Any]], None] | None]:
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
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    began = shown = time.monotonic()
    first: tuple[float, dict[str, Any]] | None = None
    live = Live(console=Console(stderr=True), auto_refresh=False, transient=True)

    def show(row: dict[str, Any]) -> None:
        nonlocal shown, first
        now = time.monotonic()
        first = first or (now - began, row)
        if now - began < QUIET_S or now - shown < EVERY_S:
            return
        shown = now
        if not live.is_started:
            live.start()
        text = Text(printable(line(row, now - began, rounds, clock, first)), no_wrap=True, overflow="ellipsis")
        live.update(text, refresh=True)

    try:
        yield show
    finally:
        if live.is_started:
            live.stop()


def line(
    row: dict[str, Any],
    wall_s: float,
    rounds: int | None,
    clock: str,
    first: tuple[float, dict[str, Any]] = (0.0, {}),
) -> str:
    """Return the line for one row of metrics after ``wall_s`` seconds: what matters most stands first.

    Parameters
    ----------
    row : dict
    wall_s : float
    rounds : int or None
    clock : str
    first : tuple of float and dict
        When the first row came, and what it said: rates count from there, not from the start of the processes.

    Examples
    --------
    >>> line({"time_s": 24.2, "round": 50, "train_loss": 0.0946, "events": 4000}, 2.0, 100, "emulated")
    'round 50 of 100 · about 2 s left · 24.2 s emulated · train loss 0.0946 · 2,000 events/s · 2.0 s wall'
    """
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
    if made > 0 and going_s > 0:
        parts.append(f"{events / going_s:,.0f} events/s" if events > 0 else f"{made / going_s:.3g} rounds/s")
    return " · ".join([*parts, f"{wall_s:.1f} s wall"])
