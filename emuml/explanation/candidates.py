"""Which codes to set beside the one of an experiment: all that cost the same work, and those without redundancy."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from emuml.protocols.gradient_coding import (
    BalancedRepetition,
    Bernoulli,
    CyclicMDS,
    CyclicRepetition,
    FractionalRepetition,
    GraphCode,
    IgnoreStragglers,
    Uncoded,
)
from emuml.protocols.gradient_coding.codes import Code
from emuml.protocols.gradient_coding.codes.graphs import RandomRegular

OPTIMAL = 300
"""Workers up to which decodings by least squares take no more than some milliseconds."""


@dataclass(frozen=True)
class Candidate:
    """A code, and after how many answers its rounds close at the latest."""

    code: Code
    collect: int | None = None


def candidates(own: Candidate, workers: int, load: float) -> Iterator[Candidate]:
    """Yield the experiment's own code, then others; not all of them can be built for every number of workers.

    Parameters
    ----------
    own : Candidate
        Of the experiment.
    workers : int
        How many.
    load : float
        Work of a worker in a round that the others should cost, in equal shares of the data; rounded to a whole number.
    """
    replication = max(round(load), 1)
    half = own.collect if own.collect is not None and own.collect < workers else max(workers // 2, 1)
    seen = [own]
    yield own
    for one in _others(replication, half, max(workers - replication + 1, 1), workers):
        if one not in seen:
            seen.append(one)
            yield one


def _others(replication: int, half: int, tolerant: int, workers: int) -> Iterator[Candidate]:
    """Yield codes of a load; some stop early at ``half`` answers, and one when as many miss as the exact ones stand."""
    yield Candidate(Uncoded())
    yield Candidate(IgnoreStragglers(), tolerant)
    yield Candidate(IgnoreStragglers(), half)
    if replication == 1:
        return
    yield Candidate(FractionalRepetition(replication))
    yield Candidate(FractionalRepetition(replication, scale="covered"), half)
    yield Candidate(BalancedRepetition(replication - 1))
    yield Candidate(CyclicRepetition(replication - 1))
    yield Candidate(CyclicMDS(replication - 1))
    yield Candidate(GraphCode(RandomRegular(replication)))
    yield Candidate(GraphCode(RandomRegular(replication)), half)
    yield Candidate(Bernoulli(float(replication), decoder="optimal" if workers <= OPTIMAL else "one-step"), half)
