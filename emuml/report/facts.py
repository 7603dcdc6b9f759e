"""The facts of a run as rows of words, the same in the terminal and on the page."""

from __future__ import annotations

import math

import numpy as np

from emuml.report.statistics import standard_error
from emuml.report.view import View, brief

CLOCKS = {"des": "emulated", "tcp": "real", "replay": "replayed"}


def headline(view: View) -> str:
    """Return one sentence: what was done, how long it took, how good it is."""
    clock = f"{CLOCKS.get(view.engine, view.engine)} time"
    text = f"{view.rounds} rounds in {seconds(view.duration_s)} of {clock}"
    losses = [f"{name.replace('_', ' ')} {number(view.metrics.final[name])}" for name in view.losses[:1]]
    return ", ".join([text, *losses]) + "."


def facts(view: View) -> list[tuple[str, str]]:
    """Return what there is to know of a run, as name and value."""
    rows = [
        ("engine", {"des": "emulator", "tcp": "TCP", "replay": "replay in the emulator"}.get(view.engine, view.engine)),
        ("workload", brief(view.experiment.workload)),
        ("protocol", brief(view.experiment.protocol)),
        ("cluster", brief(view.experiment.cluster)),
        ("rounds", f"{view.rounds} ({view.stopped})" if view.stopped else str(view.rounds)),
        ("duration", f"{seconds(view.duration_s)} {CLOCKS.get(view.engine, '')}".strip()),
        ("seconds per round", seconds_per_round(view)),
    ]
    if view.experiment.faults:
        rows.insert(4, ("faults", "; ".join(map(brief, view.experiment.faults.faults))))
    if view.stragglers != "cancel":
        rows.append(("stragglers", view.stragglers))
    if view.drain_s is not None:
        rows.append(("drain", f"{seconds(view.drain_s)} after the last round"))
    expected = view.expected_round_s()
    if expected is not None:
        rows.append(("closed form", f"{expected:.4g} s per round, for equal shares and free messages"))
    rows += [(name.replace("_", " "), number(value)) for name, value in view.metrics.final.items() if is_quality(name)]
    rows += [("decoding", decoding(view)), ("lost", "; ".join(view.summary.get("lost", [])) or "no node")]
    if any(math.isnan(value) for name, value in view.metrics.final.items() if is_quality(name)):
        rows.append(("warning", "the loss is not a number: the training diverged; a smaller optimizer.rate may help"))
    if view.summary:
        rows.append(("events", f"{view.summary['events']:,}"))
        rows.append(("parameters", f"sha256 {view.summary['parameters_sha256'][:16]}"))
    return rows


def is_quality(name: str) -> bool:
    """Tell whether a metric says how good the parameters are."""
    return name.endswith(("_loss", "accuracy", "auc", "mse", "r2"))


def seconds_per_round(view: View) -> str:
    """Return the mean and its standard error."""
    times = view.round_times_s
    if not len(times):
        return "none"
    error = standard_error(times)
    return f"{times.mean():.4g} s ± {error:.2g} (standard error)" if error == error else f"{times.mean():.4g} s"


def decoding(view: View) -> str:
    """Say how many rounds were decoded exactly."""
    if "decode_error" not in view.metrics:
        return "none"
    errors = view.metrics["decode_error"]
    errors = errors[np.isfinite(errors)]
    inexact = int((errors > 0).sum())
    if not inexact:
        return f"all {len(errors)} rounds exact"
    return f"{len(errors) - inexact} rounds exact, {inexact} not; mean error ‖aB - 1‖² {number(float(errors.mean()))}"


def seconds(value: float) -> str:
    """Return a duration for people.

    Examples
    --------
    >>> seconds(48.4456), seconds(0.0123), seconds(7384.0)
    ('48.4 s', '12.3 ms', '2 h 3 min')
    """
    if value < 1:
        return f"{1000 * value:.3g} ms"
    if value < 3600:
        return f"{value:.3g} s" if value < 1000 else f"{value:.0f} s"
    return f"{int(value // 3600)} h {int(value % 3600 // 60)} min"


def number(value: float) -> str:
    """Return a number with four digits."""
    return f"{value:.4g}"
