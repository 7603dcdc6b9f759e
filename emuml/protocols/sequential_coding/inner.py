"""The gradient codes that sequential codes are made of: any so many of the workers may be missing, at least load."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from emuml.errors import UserError
from emuml.protocols.gradient_coding import CyclicMDS, CyclicRepetition, Decoding, FractionalRepetition, Uncoded
from emuml.protocols.sequential_coding.seam import Sum


class Inner(Protocol):
    """What is asked of a built gradient code."""

    def assignment(self, worker: int) -> tuple[int, ...]:
        """Return the partitions of a worker, ascending."""
        ...

    def coefficients(self, worker: int) -> tuple[float, ...]:
        """Return the factor of each of them."""
        ...

    def decode(self, received: Iterable[int]) -> Decoding:
        """Combine the answers of some workers."""
        ...


def check_model(burst: int, window: int) -> None:
    """Refuse bursts that are as long as the window over which stragglers are counted.

    Raises
    ------
    UserError
        With the nearest window.
    """
    if window <= burst:
        raise UserError(f"got window {window} for bursts of {burst}", "window", f"an integer > {burst}", f"{burst + 1}")


def tolerant_code(workers: int, tolerance: int, seed: int) -> Inner:
    """Return a gradient code of load ``tolerance + 1`` that any ``workers - tolerance`` answers decode.

    Fractional repetition where it divides the workers, because it adds no noise; else a cyclic code.

    Raises
    ------
    UserError
        If decoding it would leave nothing of the gradient in double precision.
    """
    if tolerance == 0:
        return Uncoded().build(workers)
    if workers % (tolerance + 1) == 0:
        return FractionalRepetition(tolerance + 1).build(workers)
    if (workers - tolerance) % 2:
        return CyclicMDS(tolerance).build(workers)
    return CyclicRepetition(tolerance).build(workers, seed)


def decoded(code: Inner, part: int, results: Mapping[tuple[int, int], Any]) -> Sum:
    """Return how a gradient code adds the results of one part; those of weight 0 are left out."""
    received = sorted(worker for worker, of in results if of == part)
    found = code.decode(received)
    weights = zip(received, found.weights.tolist(), strict=True)
    return Sum([((worker, part), weight) for worker, weight in weights if weight], found.error)
