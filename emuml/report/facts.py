"""The facts of a run as rows of words, the same in the terminal and on the page."""

from __future__ import annotations

import math

import numpy as np

from emuml.cluster.cluster import Cluster
from emuml.cluster.failure_laws import FailureLaw
from emuml.cluster.faults import FaultPlan
from emuml.protocols.gradient_coding.codes.seam import ROUNDING
from emuml.report.statistics import standard_error
from emuml.report.view import View, brief

LOST_MAX = 4
"""Ends of nodes that the top of a page names."""
CLOCKS = {"des": "emulated", "tcp": "real", "replay": "replayed"}


def headline(view: View) -> str:
    """Return one sentence: what was done, how long it took, how good it is."""
    clock = f"{CLOCKS.get(view.engine, view.engine)} time"
    text = f"{view.rounds} rounds in {seconds(view.duration_s)} of {clock}"
    losses = [f"{name.replace('_', ' ')} {number(view.metrics.final[name])}" for name in view.losses[:1]]
    return ", ".join([text, *([] if diverged(view) else losses)]) + "."


def troubles(view: View) -> list[str]:
    """Return what to know of a run before reading its numbers, a sentence each: it failed, was cut, or diverged."""
    first = view.failure.partition("\n")[0].rstrip(":. ")
    said = [f"The run failed: {first}.{_lost_before(view)}"] if first and first != "interrupted" else []
    said += ["The run was interrupted."] if first == "interrupted" else []
    if view.is_cut:
        said.append("summary.json stops in the middle, as on a full disk: shown like a run that did not finish.")
    elif not said and not view.summary:
        said.append("The run did not finish.")
    return [*said, *filter(None, [diverged(view)])]


def _lost_before(view: View) -> str:
    more = f" and {len(view.lost) - LOST_MAX} more" if len(view.lost) > LOST_MAX else ""
    return f" Before that {'; '.join(view.lost[:LOST_MAX])}{more}." if view.lost else ""


def diverged(view: View) -> str:
    """Say in which round a loss stopped being a number, if the last one is none; else return nothing."""
    for name in view.losses:
        logged = [(row["round"], row[name]) for row in view.metrics.rows if row.get(name) is not None]
        last = next((i for i in reversed(range(len(logged))) if math.isfinite(logged[i][1])), -1)
        if last + 1 < len(logged):
            before = f"; before it was {number(logged[last][1])}" if last >= 0 else ""
            return (
                f"The training diverged: the {name.replace('_', ' ')} of round {logged[last + 1][0]:g} is no finite "
                f"number, nor is any after it{before}. A smaller optimizer.rate may help."
            )
    return ""


def _faults(given: FaultPlan | FailureLaw) -> str:
    return "; ".join(map(brief, given.faults)) if isinstance(given, FaultPlan) else brief(given)


def facts(view: View) -> list[tuple[str, str]]:
    """Return what there is to know of a run, as name and value."""
    rows = [
        ("engine", engine(view)),
        ("workload", brief(view.experiment.workload)),
        ("protocol", brief(view.experiment.protocol)),
        ("cluster", brief(view.experiment.cluster)),
        ("rounds", f"{view.rounds} ({view.stopped})" if view.stopped else str(view.rounds)),
        ("duration", f"{seconds(view.duration_s)} {CLOCKS.get(view.engine, '')}".strip()),
        ("seconds per round", seconds_per_round(view)),
    ]
    if view.engine != "tcp":
        rows.insert(4, ("messages", network(view.experiment.cluster)))
    if view.experiment.faults:
        rows.insert(4, ("faults", _faults(view.experiment.faults)))
    if view.stragglers != "cancel":
        rows.append(("stragglers", view.stragglers + logged_and_elapsed(view)))
    if view.drain_s is not None:
        rows.append(("drain", f"{seconds(view.drain_s)} after the last round"))
    expected = view.expected_round_s()
    if expected is not None:
        rows.append(("closed form", f"{expected:.4g} s per round, for equal shares and free messages"))
    rows += [(name.replace("_", " "), number(value)) for name, value in view.metrics.final.items() if is_quality(name)]
    if "decode_error" in view.metrics:
        rows.append(("decoding", decoding(view)))
    if "overdue" in view.metrics:
        rows.append(("deadline", overdue(view)))
    if "dissent" in view.metrics:
        rows.append(("votes", votes(view)))
    if "staleness_mean" in view.metrics:
        rows.append(("staleness", staleness(view)))
    rows.append(("lost", "; ".join(view.lost) or "no node"))
    rows += [("warning", text) for text in [" ".join(troubles(view))] if text]
    if view.summary:
        rows.append(("events", f"{view.summary['events']:,}"))
        rows.append(("parameters", f"sha256 {view.summary['parameters_sha256'][:16]}"))
    return rows


def engine(view: View) -> str:
    """Return what ran the nodes, and how; what is not there is said, too."""
    name = {"des": "emulator", "tcp": "TCP", "replay": "replay in the emulator"}.get(view.engine, view.engine)
    tiers = {"event": ", event tier", "array": ", array tier: no trace of messages and tasks (tier: event keeps one)"}
    if not view.traced and view.tier != "array":
        kept = "it is on disk" if view.run_dir is not None else "trace=True keeps one"
        return f"{name}, event tier: no trace of messages and tasks ({kept})"
    return name + tiers.get(view.tier, "")


def network(cluster: Cluster) -> str:
    """Say what messages cost in the emulator, loudly where it is nothing.

    Examples
    --------
    >>> from emuml.cluster import Cluster, Network
    >>> network(Cluster(workers=2))
    'FREE: no latency, no bandwidth, no work of servers; see cluster.network and cluster.server_costs'
    >>> network(Cluster(workers=2, network=Network(0.5)))
    'network(latency_s=0.5), each pair of nodes by itself; free for servers'
    """
    if cluster.has_free_messages:
        return "FREE: no latency, no bandwidth, no work of servers; see cluster.network and cluster.server_costs"
    shared = ", each pair of nodes by itself" if cluster.shares_nothing else ""
    costs = "free for servers" if cluster.server_costs.are_none else brief(cluster.server_costs)
    return f"{brief(cluster.network)}{shared}; {costs}"


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
    errors = view.metrics["decode_error"]
    errors = errors[np.isfinite(errors)]
    inexact = int((errors > ROUNDING).sum())
    if not inexact:
        return f"all {len(errors)} rounds exact"
    return f"{len(errors) - inexact} rounds exact, {inexact} not; mean error {number(float(errors.mean()))} partitions"


def overdue(view: View) -> str:
    """Say how many rounds the clock closed, and how many of them without an answer."""
    by_clock = view.metrics["overdue"] == 1.0
    rounds, empty = int(np.isfinite(view.metrics["overdue"]).sum()), view.metrics["arrivals"][by_clock] == 0.0
    nobody = f", {int(empty.sum())} of them without an answer" if empty.any() else ""
    return f"{int(by_clock.sum())} of {rounds} rounds closed by the clock{nobody}"


def votes(view: View) -> str:
    """Say what workers sent that was not believed."""
    dissent, rejected, unresolved = (int(np.nansum(view.metrics[n])) for n in ("dissent", "rejected", "unresolved"))
    if not dissent + rejected + unresolved:
        return "no answer differed from the value that its group has"
    return (
        f"{dissent} answers differed from the value that their group has, {rejected} were none; {unresolved} sums lost"
    )


def staleness(view: View) -> str:
    """Say how many versions lay between what updates were computed from and what they were applied to."""
    tally = view.tally("staleness")
    mean = sum(value * times for value, times in tally.items()) / max(tally.total(), 1)
    return f"on average {number(mean)} versions, at most {max(tally, default=0)}"


def logged_and_elapsed(view: View) -> str:
    """Say how long rounds took to be decided, and how long they took, where these differ; else return nothing."""
    if "decided_s" not in view.metrics or not len(view.round_times_s):
        return ""
    logged, elapsed = float(np.nanmean(view.decided_round_times_s)), float(view.round_times_s.mean())
    return f": the stop rule was met after {number(logged)} s per round, the next one started after {number(elapsed)} s"


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
    """Return a number with four digits, in words if it is none.

    Examples
    --------
    >>> number(0.123456), number(math.inf), number(math.nan)
    ('0.1235', '∞', 'not a number')
    """
    return "not a number" if math.isnan(value) else f"{value:.4g}".replace("inf", "∞")
