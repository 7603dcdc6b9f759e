"""What a run was made from: versions, seed, inputs, kernels. Written beside every result."""

from __future__ import annotations

import platform
import sys
from typing import Any

import msgspec
import numpy as np

import emuml
from emuml import _kernels


def versions() -> dict[str, str]:
    """Return the versions that decide numbers and formats."""
    return {
        "emuml": emuml.__version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "msgspec": msgspec.__version__,
        "kernels": _kernels.IMPLEMENTATION,
        "machine": platform.machine(),
        "system": platform.system(),
        "byteorder": sys.byteorder,
    }


def provenance(seed: int, engine: str, problem: Any) -> dict[str, Any]:
    """Return the provenance of one run; ``problem`` says where its data came from and what their digests are."""
    return {
        "engine": engine,
        "seed": seed,
        "versions": versions(),
        "data": getattr(problem, "source", ""),
        "inputs_sha256": list(getattr(problem, "inputs_sha256", ())),
        "command": " ".join(sys.argv),
    }
