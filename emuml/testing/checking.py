"""The face: ``@check`` turns a description of oracles into a test, ``run`` tries one scenario."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from shlex import quote
from typing import Any, Literal, Protocol, cast

from emuml.errors import UserError
from emuml.testing.arguments import check_described, check_subject
from emuml.testing.budget import DEFAULT_BUDGET, DEFAULT_CLUSTERS, Budget, Clusters
from emuml.testing.campaign import Campaign, check_options, described, explore
from emuml.testing.explorers import Name
from emuml.testing.oracles import Description
from emuml.testing.places import place_of
from emuml.testing.report import report
from emuml.testing.scenario import Scenario, load, parsed
from emuml.testing.store import FAILURES, Store
from emuml.testing.subject import Describe, Make, Subject, shipped
from emuml.testing.trial import Trial, Trier, fits, prepared


class CheckFailed(AssertionError):
    """An oracle objects, or something that must be reached sometimes never was."""


class Test(Protocol):
    """What ``@check`` makes of a function: a test without arguments."""

    check: Check
    replay: Callable[[Scenario | str | Path], None]

    def __call__(self) -> None:
        """Explore."""


class Check:
    """What a test does: explore, or replay a scenario.

    Attributes
    ----------
    last : Campaign or None
        What came of the last call.
    """

    def __init__(self, make: Make, describe: Describe, options: dict[str, Any], store: Path) -> None:
        self.name = getattr(describe, "__name__", "checked")
        check_described(describe, self.name)
        self.make, self.describe, self.options = make, describe, options
        self.last: Campaign | None = None
        self._store = Store(store, self.name)

    def explore(self) -> None:
        """Explore.

        Raises
        ------
        CheckFailed
            With the whole report.
        """
        __tracebackhide__ = True  # of pytest: the report says it all
        options = {**self.options, **_from_environment()}
        kept = self._store.scenarios(place_of(self))
        first = [scenario for scenario in kept if fits(Subject(self.make, self.options["workload"]), scenario)]
        campaign = self.last = explore(self.make, self.describe, first=first, **options)
        print(campaign.summary())
        if campaign.ok:
            for scenario in first:
                self._store.forget(scenario)
            return
        raise CheckFailed(self._failed(campaign))

    def _failed(self, campaign: Campaign) -> str:
        if campaign.failure is None and campaign.nondeterministic is not None:
            given = campaign.nondeterministic.to_json()
            return f"two runs of one scenario differ: {campaign.difference}\n\nscenario: {given}"
        if campaign.failure is None:
            return f"never reached in {campaign.runs} runs: {', '.join(campaign.missed)}"
        failure = campaign.failure
        scenario = failure.trial.recorded()
        place = place_of(self)
        path = self._store.keep(scenario, place)
        command = f"emuml replay {quote(str(path))}" if place else f"{self.name}.replay({str(path)!r})"
        text = report(failure.trial, failure.found_after, command, self.name)
        if failure.nondeterministic or failure.difference:
            again = "it does not fail in the same way again: not made small" if failure.nondeterministic else ""
            differ = f"two runs of the scenario differ: {failure.difference}" if failure.difference else ""
            text = "\n".join([*filter(None, (differ, again)), "", text])
        return text

    def replay(self, scenario: Scenario | str | Path) -> None:
        """Run one scenario, given as it is, as a path of a file, or as JSON.

        Raises
        ------
        CheckFailed
            If an oracle objects.
        """
        __tracebackhide__ = True
        trial = self.tried(scenario)
        if not trial.ok:
            raise CheckFailed(report(trial, test=self.name))

    def tried(self, scenario: Scenario | str | Path) -> Trial:
        """Run one scenario and return what came of it."""
        options = self.options
        return run(self.make, scenario, self.describe, faults=options["faults"], workload=options["workload"])


def _from_environment() -> dict[str, int]:
    """Return the overrides ``EMUML_ET_RUNS`` and ``EMUML_ET_SEED``."""
    found = {}
    for name in ("runs", "seed"):
        text = os.environ.get(f"EMUML_ET_{name.upper()}")
        if text is not None:
            least = 1 if name == "runs" else 0
            if not text.isdecimal() or int(text) < least:
                raise UserError(f"got {text!r}", f"EMUML_ET_{name.upper()}", f"a whole number >= {least}")
            found[name] = int(text)
    return found


def check(
    make: Make,
    *,
    runs: int = 1000,
    explorer: Name = "portfolio",
    seed: int = 0,
    clusters: Clusters = DEFAULT_CLUSTERS,
    faults: Budget = DEFAULT_BUDGET,
    workload: Callable[[Scenario], Any] | None = None,
    store: str | Path = FAILURES,
) -> Callable[[Describe], Test]:
    """Turn a function that describes oracles into a test that explores; see :func:`emuml.testing.explore`.

    Failures are kept in ``store`` and tried first the next time. ``EMUML_ET_RUNS`` and ``EMUML_ET_SEED`` override.

    Examples
    --------
    >>> import emuml.testing as et
    >>> from emuml.protocols.async_updates import SSP, AsyncUpdates
    >>> @et.check(lambda: AsyncUpdates(barrier=SSP(2)), runs=3)
    ... def test_ssp(run):
    ...     run.always(lambda nodes: len(nodes["server"].completed) > 0, "there are workers")
    ...     run.eventually("done")
    >>> test_ssp.check.last is None
    True
    """
    options: dict[str, Any] = {
        "runs": runs,
        "explorer": explorer,
        "seed": seed,
        "clusters": clusters,
        "faults": faults,
        "workload": workload,
    }
    if getattr(make, "__name__", "").startswith("test_"):
        raise UserError(f"got the test {make.__name__}", "et.check", "what is tested", "write @et.check(lambda: ...)")
    check_options(make, **options)
    return lambda describe: _test(Check(make, describe, options, Path(store)))


def _test(checked: Check) -> Test:
    """Return a plain function, which is what pytest collects."""

    def test() -> None:
        __tracebackhide__ = True
        checked.explore()

    test.__name__ = test.__qualname__ = checked.name
    test.__doc__, test.__module__ = checked.describe.__doc__, checked.describe.__module__
    vars(test).update(check=checked, replay=checked.replay)
    return cast(Test, test)


def run(
    make: Make,
    scenario: Scenario | str | Path,
    describe: Describe | Description | None = None,
    *,
    faults: Budget = DEFAULT_BUDGET,
    workload: Callable[[Scenario], Any] | None = None,
    engine: Literal["des", "tcp"] = "des",
) -> Trial:
    """Run one scenario and judge it.

    Parameters
    ----------
    scenario : Scenario, path or str
        Itself, a file, or JSON.
    describe : callable or Description, optional
        Oracles; by default those that come with the protocol.
    engine : {"des", "tcp"}
        Over TCP faults strike at the same logged counts, deviations cannot be forced, and only the oracles of finished
        runs judge; see :mod:`emuml.testing.tcp`.
    """
    if engine not in ("des", "tcp"):
        raise UserError(f"got {engine!r}", "engine", "'des' or 'tcp'")
    check_subject(make, faults, workload)
    given, subject = _scenario(scenario), Subject(make, workload)
    if describe is None:
        describe = shipped(subject.build(given).protocol)
    trier = Trier(subject, described(describe), faults)
    trier.check(given)
    if engine == "tcp":
        from emuml.testing.tcp import over_tcp

        return over_tcp(trier, given)
    with prepared():
        if "hypothesis" not in sys.modules:
            return trier.run(given)
        from emuml.testing.strategies import aimed

        return aimed(trier, given)


def _scenario(given: Scenario | str | Path) -> Scenario:
    if isinstance(given, Scenario):
        return given
    if not isinstance(given, (str, Path)):
        raise UserError(f"got {given!r}", "scenario", "an et.Scenario, the path of a file, or JSON text")
    return parsed(given) if isinstance(given, str) and given.lstrip().startswith("{") else load(given)


__all__ = ["Check", "CheckFailed", "check", "run"]
