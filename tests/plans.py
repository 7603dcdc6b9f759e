"""Fault plans for tests that draw them: what cannot come to pass is left out."""

from collections.abc import Iterable
from typing import Any

from emuml.cluster import timeline
from emuml.cluster.faults import Fault


def possible(faults: Iterable[Any]) -> list[Fault]:
    """Return the faults without those of nodes that are not there then because of the ones before."""
    kept: list[Fault] = []
    for fault in faults:
        if not timeline.problems((*kept, fault)):
            kept.append(fault)
    return kept
