"""The bridge to Hypothesis: scenarios as a strategy of few structured draws, simpler ones first, the seed last."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from emuml.testing.scenario import CrashFault, Delays, Deviation, Scenario, base_of

_LEVELS = 5


@st.composite
def scenarios(
    draw: st.DrawFn,
    workers: tuple[int, int] = (2, 4),
    rounds: tuple[int, int] = (1, 4),
    crash: int = 2,
    deviations: int = 4,
    messages: tuple[str, ...] = (),
    tag: str = "gradient",
    roles: tuple[str, ...] = ("worker",),
    horizon_s: float = 20.0,
) -> Scenario:
    """Return a strategy of scenarios: numbers of workers and rounds, crashes, deviations by name, then the seed.

    Parameters
    ----------
    workers, rounds : (least, most)
    crash, deviations : int
        How many at most.
    messages : tuple of str
        Names of message types whose delay may deviate, besides tasks.
    tag : str
        Of the tasks whose duration may deviate.
    roles : tuple of str
        Which roles may crash.
    horizon_s : float
        Crashes come before it.
    """
    count = draw(st.integers(*workers))
    scenario = Scenario(workers=count, rounds=draw(st.integers(*rounds)))
    faults = draw(st.lists(_crashes(count, roles, horizon_s), max_size=crash))
    deviating = draw(st.lists(_deviations(count, messages, tag), max_size=deviations, unique_by=lambda item: item.name))
    changes: dict[str, Any] = {"faults": tuple(faults), "deviations": tuple(deviating)}
    return scenario.model_copy(update={**changes, "seed": draw(st.integers(0, 3))})


def _tenths(least: int, most: int) -> st.SearchStrategy[float]:
    return st.integers(least, most).map(lambda n: n / 10)


def _crashes(workers: int, roles: tuple[str, ...], horizon_s: float) -> st.SearchStrategy[CrashFault]:
    names = [f"worker-{i}" for i in range(workers)] if "worker" in roles else []
    names += [f"{role}-0" for role in roles if role != "worker"]
    at_s, back_s = _tenths(0, int(10 * horizon_s)), _tenths(1, 50)
    return st.builds(CrashFault, node=st.sampled_from(names), at_s=at_s, restart_after_s=back_s)


def _deviations(workers: int, messages: tuple[str, ...], tag: str) -> st.SearchStrategy[Deviation]:
    worker, n, level = st.integers(0, workers - 1), st.integers(0, 5), st.integers(1, _LEVELS)
    kinds = st.sampled_from(["", *messages])
    return st.builds(lambda *drawn: _deviation(tag, *drawn), kinds, worker, st.booleans(), n, level)


def _deviation(tag: str, message: str, worker: int, to_worker: bool, n: int, level: int) -> Deviation:
    delays, name = Delays(), f"worker-{worker}"
    if not message:
        late_s = level * base_of("compute", delays)
        return Deviation.model_validate({"compute": (name, tag, n), "late_s": late_s})
    ends = ("server-0", name) if to_worker else (name, "server-0")
    return Deviation.model_validate({"message": (*ends, message, n), "late_s": level * base_of("message", delays)})
