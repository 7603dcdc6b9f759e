"""What a run was made from: versions, sources, seed, inputs, kernels. Written beside every result."""

from __future__ import annotations

import hashlib
import platform
import sys
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

import emuml
from emuml import _kernels
from emuml.switches import pure


def versions() -> dict[str, str]:
    """Return the versions that decide numbers and formats."""
    return {
        "emuml": emuml.__version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "msgspec": msgspec.__version__,
        "kernels": _kernels.IMPLEMENTATION,
        "event core": _kernels.event_core(pure()),
        "machine": platform.machine(),
        "system": platform.system(),
        "byteorder": sys.byteorder,
    }


@cache
def sources_sha256() -> str:
    """Return the SHA-256 over the package's modules and kernels: programs of one version may still differ."""
    root = Path(emuml.__file__).parent
    digest = hashlib.sha256()
    for path in sorted(path for ending in ("py", "so", "pyd") for path in root.rglob(f"*.{ending}")):
        digest.update(f"{path.relative_to(root).as_posix()} {hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    return digest.hexdigest()


def provenance(seed: int, engine: str, problem: Any) -> dict[str, Any]:
    """Return the provenance of one run; ``problem`` says where its data came from and what their digests are."""
    return {
        "engine": engine,
        "seed": seed,
        "versions": versions(),
        "sources_sha256": sources_sha256(),
        "data": getattr(problem, "source", ""),
        "inputs_sha256": list(getattr(problem, "inputs_sha256", ())),
        "command": " ".join(sys.argv),
    }
