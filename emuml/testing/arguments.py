"""Arguments of tests, checked before anything runs: each mistake is one error that says what is wanted."""

from __future__ import annotations

from typing import Annotated, Any

from annotated_types import Ge, Le

from emuml.errors import UserError
from emuml.spec import checked
from emuml.testing.budget import Budget, Clusters
from emuml.testing.given import required
from emuml.testing.oracles import Description

_RUNS, _SEED = Annotated[int, Ge(1)], Annotated[int, Ge(0), Le(2**64 - 1)]


def check_campaign(make: Any, runs: Any, seed: Any, clusters: Any, faults: Any, workload: Any) -> None:
    """Refuse what no campaign can be made of.

    Raises
    ------
    UserError
        Naming the argument and what is allowed.
    """
    check_subject(make, faults, workload)
    checked(runs, _RUNS, "runs")
    checked(seed, _SEED, "seed")
    if not isinstance(clusters, Clusters):
        raise UserError(f"got {clusters!r}", "clusters", "ranges, such as et.clusters(workers=(2, 4))")


def check_subject(make: Any, faults: Any, workload: Any) -> None:
    """Refuse what no run can be made of."""
    allowed = "a function that returns a protocol or nodes, without arguments or of the scenario"
    if not callable(make):
        hint = f"pass lambda: {type(make).__name__}(...)" if hasattr(make, "nodes") else ""
        raise UserError(f"got {make!r}", "make", allowed, hint)
    if len(required(make)) > 1:
        raise UserError(f"it takes {', '.join(required(make))}", "make", allowed)
    if workload is not None and not callable(workload):
        raise UserError(f"got {workload!r}", "workload", "a function of the scenario that returns a problem")
    if not isinstance(faults, Budget):
        raise UserError(f"got {faults!r}", "faults", "a budget, such as et.faults(crash=2)")


def check_described(describe: Any, where: str = "describe") -> None:
    """Refuse what is no description, and no function of one."""
    if isinstance(describe, Description):
        return
    if not callable(describe) or isinstance(describe, type):
        raise UserError(f"got {describe!r}", where, "a function of one argument, the run that it describes")
    names = required(describe)
    if len(names) != 1:
        hint = "for fixtures and parameters call et.explore(...) in a test" if len(names) > 1 else ""
        if names[:1] == ["self"]:
            hint = "in a class leave self out, and write @staticmethod above @et.check"
        raise UserError(f"it takes {', '.join(names) or 'nothing'}", where, "one argument, the run", hint)
