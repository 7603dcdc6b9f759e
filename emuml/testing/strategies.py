"""The bridge to Hypothesis: scenarios as a strategy of few structured draws, simpler ones first, the seed last."""

from __future__ import annotations

from contextlib import suppress
from typing import Annotated, Any

from annotated_types import Ge
from hypothesis import strategies as st
from hypothesis import target
from hypothesis.control import currently_in_test_context
from hypothesis.errors import InvalidArgument

from emuml.errors import UserError
from emuml.spec import checked
from emuml.testing.budget import Clusters
from emuml.testing.mishaps import AnyMishap, CrashFault, CutFault, PauseFault
from emuml.testing.scenario import Delays, Deviation, Scenario, base_of
from emuml.testing.trial import Trial, Trier

_LEVELS = 5


def scenarios(
    workers: tuple[int, int] = (2, 4),
    rounds: tuple[int, int] = (1, 4),
    servers: tuple[int, int] = (1, 1),
    crash: int = 2,
    cut: int = 0,
    pause: int = 0,
    deviations: int = 4,
    messages: tuple[str, ...] = (),
    tag: str = "gradient",
    roles: tuple[str, ...] = ("worker",),
    horizon_s: float = 20.0,
) -> st.SearchStrategy[Scenario]:
    """Return a strategy of scenarios: numbers of nodes and rounds, crashes, deviations by name, then the seed.

    Parameters
    ----------
    workers, rounds, servers : (least, most)
    crash, cut, pause, deviations : int
        How many at most; anybody may be cut off from all others, or stand still.
    messages : tuple of str
        Names of message types whose delay may deviate, besides tasks.
    tag : str
        Of the tasks whose duration may deviate.
    roles : tuple of str
        Which roles may crash.
    horizon_s : float
        Crashes come before it.

    Raises
    ------
    UserError
        If an argument cannot be meant.
    """
    ranges = Clusters(workers, rounds, servers=servers)
    for name, most in {"crash": crash, "cut": cut, "pause": pause, "deviations": deviations}.items():
        checked(most, Annotated[int, Ge(0)], f"scenarios.{name}")
    named: dict[str, Any] = {"messages": messages, "roles": roles}
    for name, names in named.items():
        if isinstance(names, str) or not all(isinstance(item, str) for item in names):
            raise UserError(f"got {names!r}", f"scenarios.{name}", "a tuple of names, such as ('worker',)")
    checked(horizon_s, Annotated[float, Ge(0)], "scenarios.horizon_s")
    return _scenarios(ranges, (crash, cut, pause, deviations), messages, tag, roles, horizon_s)


@st.composite
def _scenarios(
    draw: st.DrawFn,
    ranges: Clusters,
    most: tuple[int, int, int, int],
    messages: tuple[str, ...],
    tag: str,
    roles: tuple[str, ...],
    horizon_s: float,
) -> Scenario:
    crash, cut, pause, deviations = most
    workers, servers, rounds = (draw(st.integers(*ends)) for ends in (ranges.workers, ranges.servers, ranges.rounds))
    plain = Scenario(workers=workers, servers=servers, rounds=rounds)
    faults: list[AnyMishap] = [*draw(st.lists(_crashes(plain, roles, horizon_s), max_size=crash))]
    for limit, kind in ((cut, _cuts), (pause, _pauses)):
        faults += draw(st.lists(kind(plain, horizon_s), max_size=limit)) if limit else []
    deviating = draw(st.lists(_deviations(plain, messages, tag), max_size=deviations, unique_by=lambda item: item.name))
    changes: dict[str, Any] = {"faults": tuple(faults), "deviations": tuple(deviating)}
    return plain.model_copy(update={**changes, "seed": draw(st.integers(0, 3))})


def aimed(trier: Trier, scenario: Scenario) -> Trial:
    """Run a scenario; inside a test of Hypothesis its search is led to runs with many coverage points.

    Of several runs of one example the first counts.
    """
    if not currently_in_test_context():
        return trier.run(scenario)
    trial = trier.run(scenario, covers=True)
    with suppress(InvalidArgument):  # an observation is made once for each example
        target(float(len(trial.points)), label="coverage points")
    return trial


def _counts(plain: Scenario) -> dict[str, int]:
    return {"worker": plain.workers, "server": plain.servers}


def _tenths(least: int, most: int) -> st.SearchStrategy[float]:
    return st.integers(least, most).map(lambda n: n / 10)


def _crashes(plain: Scenario, roles: tuple[str, ...], horizon_s: float) -> st.SearchStrategy[CrashFault]:
    counts = _counts(plain)
    names = [f"{role}-{i}" for role in sorted(roles, key="worker".__ne__) for i in range(counts.get(role, 1))]
    at_s, back_s = _tenths(0, int(10 * horizon_s)), _tenths(1, 50)
    return st.builds(CrashFault, node=st.sampled_from(names), at_s=at_s, restart_after_s=back_s)


def _nodes(plain: Scenario) -> st.SearchStrategy[str]:
    workers, servers = ([f"{role}-{i}" for i in range(n)] for role, n in _counts(plain).items())
    return st.sampled_from([*workers, *servers])


def _cuts(plain: Scenario, horizon_s: float) -> st.SearchStrategy[CutFault]:
    between = st.tuples(st.tuples(_nodes(plain)), st.just(()))
    at_s, for_s = _tenths(0, int(10 * horizon_s)), _tenths(1, 50)
    return st.builds(CutFault, between=between, at_s=at_s, for_s=for_s, one_way=st.booleans())


def _pauses(plain: Scenario, horizon_s: float) -> st.SearchStrategy[PauseFault]:
    return st.builds(PauseFault, node=_nodes(plain), at_s=_tenths(0, int(10 * horizon_s)), for_s=_tenths(1, 50))


def _deviations(plain: Scenario, messages: tuple[str, ...], tag: str) -> st.SearchStrategy[Deviation]:
    worker, server = st.integers(0, plain.workers - 1), st.integers(0, plain.servers - 1)
    kinds, n, level = st.sampled_from(["", *messages]), st.integers(0, 5), st.integers(1, _LEVELS)
    return st.builds(lambda *drawn: _deviation(tag, *drawn), kinds, worker, server, st.booleans(), n, level)


def _deviation(tag: str, message: str, worker: int, server: int, to_worker: bool, n: int, level: int) -> Deviation:
    delays, name = Delays(), f"worker-{worker}"
    if not message:
        late_s = level * base_of("compute", delays)
        return Deviation.model_validate({"compute": (name, tag, n), "late_s": late_s})
    peer = f"server-{server}"
    ends = (peer, name) if to_worker else (name, peer)
    return Deviation.model_validate({"message": (*ends, message, n), "late_s": level * base_of("message", delays)})
