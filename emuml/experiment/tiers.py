"""Which tier of the emulator serves a run: event by event, or whole rounds and pushes as arrays.

Both give the same times, decode sets, parameters and rows of metrics, bit for bit. The array tiers are faster by orders
of magnitude and keep neither a trace of messages nor journals, so runs that the event tier does in about a minute stay
with it unless somebody asks otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar

from emuml.errors import UserError, did_you_mean
from emuml.pushes import InPushes, PushNodes
from emuml.rounds import InRounds, RoundNodes
from emuml.switches import checking, eager
from emuml.trace import Records, Trace

if TYPE_CHECKING:
    from emuml.experiment.experiment import Experiment
    from emuml.experiment.observing import Observatory
    from emuml.outcome import Run
    from emuml.protocol import Problem

Tier = Literal["auto", "event", "array"]
TIERS = ("auto", "event", "array")

EVENT_MESSAGES = 1_000_000
"""Up to so many messages a run that nobody has chosen a tier for is served event by event."""

_ROUNDS = 100
"""As many rounds are expected where nothing says how many there will be."""

T = TypeVar("T")


class Choice(NamedTuple):
    """The tier that serves, ``"event"`` or ``"array"``, and why."""

    tier: str
    reason: str


def choose(
    experiment: Experiment,
    problem: Problem,
    tier: Tier = "auto",
    journal: bool = False,
    beside: Iterable[Callable[..., Any]] = (),
) -> Choice:
    """Return which tier serves a run.

    Parameters
    ----------
    experiment : Experiment
    problem : Problem
    tier : {"auto", "event", "array"}
        ``"auto"`` takes the array tier where it can serve and the run has more than a million messages.
    journal : bool
        Whether journals are asked for.
    beside : iterable of callables
        Users' own processes.

    Raises
    ------
    UserError
        If there is no such tier, or the array tier is asked for and cannot serve.
    """
    check_tier(tier)
    if tier == "event":
        return Choice("event", "as asked for")
    refusal = _why_no_arrays(experiment, problem, journal, tuple(beside))
    if tier == "array":
        if refusal:
            raise UserError(f"the array tier cannot serve this run: {refusal}", "tier", "'event' or 'auto'")
        return Choice("array", "as asked for")
    if refusal:
        return Choice("event", refusal)
    messages = _messages(experiment)
    if messages <= EVENT_MESSAGES:
        return Choice("event", f"about {messages:,} messages")
    return Choice("array", f"about {messages:,} messages are more than {EVENT_MESSAGES:,}")


def check_tier(tier: object, where: str = "tier", engine: str = "des") -> None:
    """Refuse what is no tier, and a choice of one for an engine that has none.

    Raises
    ------
    UserError
        With the nearest one.
    """
    if tier not in TIERS:
        raise UserError(f"got {tier!r}", where, ", ".join(TIERS), did_you_mean(str(tier), TIERS))
    if engine != "des" and tier != "auto":
        raise UserError(
            f"got {tier!r}, but tiers are ways to emulate", where, f"engine='des', or 'auto' for {engine!r}"
        )


def _why_no_arrays(
    experiment: Experiment, problem: Problem, journal: bool, beside: tuple[Callable[..., Any], ...]
) -> str:
    if experiment.faults:
        return "faults are planned"
    if journal:
        return "a journal is asked for"
    if beside:
        return "other processes run beside the nodes"
    if checking() or eager():
        return "EMUML_CHECK or EMUML_EAGER asks for every event"
    nodes = _nodes(experiment, problem)
    if nodes is None:
        return "the protocol does not offer its steps as arrays"
    from emuml.des import pushes, rounds

    if isinstance(nodes, PushNodes):
        return pushes.why_not(experiment.cluster)
    return rounds.why_not(nodes, experiment.cluster)


def _nodes(experiment: Experiment, problem: Problem) -> RoundNodes | PushNodes | None:
    protocol, roster = experiment.protocol, experiment.roster()
    if isinstance(protocol, InRounds):
        return protocol.in_rounds(problem, roster)
    return protocol.in_pushes(problem, roster) if isinstance(protocol, InPushes) else None


def is_large(experiment: Experiment) -> bool:
    """Tell whether a run has more messages than are served event by event, and traced in memory, unless asked for."""
    return _messages(experiment) > EVENT_MESSAGES


def _messages(experiment: Experiment) -> int:
    """Return about how many messages a run has: a question and an answer of each worker and round."""
    rounds = experiment.stop_condition().steps_max() or _ROUNDS
    return 2 * experiment.cluster.workers * rounds


def emulate_arrays(
    experiment: Experiment, problem: Problem, observatory: Observatory, trace: Trace
) -> tuple[Run, bool]:
    """Run an experiment on the array tier; what it keeps goes to ``trace``, too.

    Returns
    -------
    run : Run
    is_whole : bool
        Whether it came to its end. Where the order of events of one instant matters and is not known it did not: what
        it has published and logged until then is right, and has been observed.
    """
    from emuml.des.array_tier import Unordered
    from emuml.des.pushes import PushTier
    from emuml.des.rounds import RoundTier

    nodes, cluster, roster = _nodes(experiment, problem), experiment.cluster, experiment.roster()
    unit_cost, sinks = problem.full_cost / cluster.workers, ((observatory.on_publish,), (observatory.on_log,))
    tier: RoundTier | PushTier
    if isinstance(nodes, PushNodes):
        tier = PushTier(nodes, cluster, roster, unit_cost, *sinks)
    else:
        assert nodes is not None
        tier = RoundTier(nodes, cluster, roster, unit_cost, *sinks)
    tier.result.trace = Records(copy=trace)
    observatory.peek = tier.peek
    try:
        return tier.run(), True
    except Unordered:
        return tier.result, False


def after(count: int, sink: Callable[[T], Any]) -> Callable[[T], Any]:
    """Return what hands over all but the first ``count`` things, which have been handed over before."""
    left = count

    def hand(item: T) -> Any:
        nonlocal left
        if left:
            left -= 1
            return None
        return sink(item)

    return hand
