"""The kernels behind random draws, decoding and sparse rows: compiled, or their readable twins, with the same bits.

The compiled ones are taken unless ``EMUML_REFERENCE=1`` or one of them was not built; ``IMPLEMENTATION`` says which.
A kernel that is there but cannot be loaded is an error, never a silent fallback. This is the lowest floor: it imports
numpy and nothing of the package. ``weighted_sum`` says what is wrong with its arguments; the draws leave that to
``emuml.streams``, and the sparse rows to ``emuml.workloads.csr``.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from importlib import import_module
from types import ModuleType
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from emuml._kernels.reference import misfit

KERNELS = (
    "draws",
    "decode",
    "csr",
    "times",
    "queue",
    "events",
    "messages",
    "timing",
    "sequential",
    "lives",
    "contexts",
    "durations",
    "effects",
    "delivery",
    "flow_store",
    "flow_groups",
    "flow_filling",
    "flows",
    "pushes",
    "occurrences",
    "processes",
    "conditions",
    "environments",
    "requests",
    "stores",
    "resources",
    "codes",
)
"""Modules of this package that are compiled."""

EVENT_KERNELS = (
    "times",
    "queue",
    "events",
    "occurrences",
    "processes",
    "conditions",
    "environments",
    "requests",
    "stores",
    "resources",
)
"""Those of them that the compiled event core is made of."""


def built(name: str) -> bool:
    """Tell whether a compiled kernel is there, loading it.

    Raises
    ------
    ImportError
        If it is there but cannot be loaded: built for another interpreter, damaged, or missing a library.
    """
    module = f"{__name__}.{name}"
    try:
        import_module(module)
    except ModuleNotFoundError as error:
        if error.name == module:
            return False
        raise
    except ImportError as error:
        raise ImportError(
            f"the compiled kernel {module} is there but cannot be loaded ({error}); rebuild it with "
            "`python setup.py build_ext --inplace --force`, or set EMUML_REFERENCE=1 to run without it",
            name=module,
        ) from error
    return True


def choose() -> Literal["compiled", "reference"]:
    """Return which implementation the environment and the build ask for: all compiled, or all twins."""
    if os.environ.get("EMUML_REFERENCE", "0") not in ("", "0"):
        return "reference"
    # Each one is tried, so that a broken kernel is reported even where another one is absent.
    missing = [name for name in KERNELS if not built(name)]
    return "reference" if missing else "compiled"


def event_core(pure: bool) -> Literal["compiled", "pure"]:
    """Return which event core serves: the compiled one, unless the pure one is asked for or kernels are missing."""
    return "pure" if pure or not all(built(name) for name in EVENT_KERNELS) else "compiled"


IMPLEMENTATION = choose()
"""``"compiled"`` or ``"reference"``; provenance records it."""

if IMPLEMENTATION == "compiled":
    from emuml._kernels.codes import component_weights, error_index, tiling, tiling_index
    from emuml._kernels.csr import csr_accumulate, csr_predict
    from emuml._kernels.decode import weighted_sum as _weighted_sum
    from emuml._kernels.draws import (
        exponentials_of,
        subset,
        uniform,
        uniforms,
        unit_exponential,
        unit_exponentials,
        unit_tail,
        word,
        words,
    )
    from emuml._kernels.flows import FlowSystem
    from emuml._kernels.timing import (
        cover_time,
        exponential_rounds,
        key_exponentials,
        key_tails,
        key_words,
        mark_used,
        word_round,
    )
else:
    from emuml._kernels.reference import (
        cover_time,
        csr_accumulate,
        csr_predict,
        exponential_rounds,
        exponentials_of,
        key_exponentials,
        key_words,
        mark_used,
        subset,
        uniform,
        uniforms,
        unit_exponential,
        unit_exponentials,
        word,
        word_round,
        words,
    )
    from emuml._kernels.reference import weighted_sum as _weighted_sum
    from emuml._kernels.reference_codes import component_weights, error_index, tiling, tiling_index
    from emuml._kernels.reference_flows import FlowSystem  # type: ignore[assignment]  # another class, with the same face
    from emuml._kernels.reference_tails import key_tails, unit_tail

message_checks: ModuleType | None = import_module(f"{__name__}.messages") if IMPLEMENTATION == "compiled" else None
"""Checks and sizes of messages, if they are compiled; their twin is the Python code of ``emuml.message``."""

__all__ = [
    "EVENT_KERNELS",
    "FlowSystem",
    "IMPLEMENTATION",
    "KERNELS",
    "built",
    "choose",
    "component_weights",
    "cover_time",
    "csr_accumulate",
    "csr_predict",
    "error_index",
    "event_core",
    "exponential_rounds",
    "exponentials_of",
    "key_exponentials",
    "key_tails",
    "key_words",
    "mark_used",
    "message_checks",
    "subset",
    "tiling",
    "tiling_index",
    "uniform",
    "uniforms",
    "unit_exponential",
    "unit_exponentials",
    "unit_tail",
    "weighted_sum",
    "word",
    "word_round",
    "words",
]


def weighted_sum(
    weights: Sequence[float] | NDArray[np.float64], arrays: Sequence[NDArray[Any]], out: NDArray[Any]
) -> None:
    """Write ``sum_j weights[j] * arrays[j]`` to ``out``, added in the order given.

    Per element ``out = weights[0] * arrays[0]``, then ``out += weights[j] * arrays[j]``, each product and sum rounded
    once. Every row is read, also with weight 0 (0 * NaN is NaN): leave out the rows that are not wanted.

    Parameters
    ----------
    weights : sequence of float, length k
        Dimensionless; rounded to the type of the arrays first.
    arrays : sequence of ndarray, length k >= 1
        Separate buffers, float64 or float32, C-contiguous, of one shape; read-only ones are fine, and unaligned ones
        are copied.
    out : ndarray
        Of the arrays' type and shape, C-contiguous, writable, and sharing memory with none of them.

    Raises
    ------
    ValueError
        If counts, shapes, types or layouts do not fit; the message says which array and how.

    Examples
    --------
    >>> total = np.empty(2)
    >>> weighted_sum([1.0, 2.0], [np.array([1.0, 2.0]), np.array([10.0, 0.5])], total)
    >>> total
    array([21.,  3.])
    """
    factors = np.ascontiguousarray(weights, out.dtype)
    rows = list(arrays)
    if _weighted_sum(factors, rows, out):
        return
    reason = misfit(factors, rows, out)
    # What is right but was not taken lies at an odd address, as a slice of received bytes may.
    if reason or not _weighted_sum(factors, [np.require(row, requirements="A") for row in rows], out):
        raise ValueError(reason or "the arrays cannot be read as buffers")
