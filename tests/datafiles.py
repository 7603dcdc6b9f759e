"""Optional data for tests: the folder EMUML_DATA, else shared/data beside the project; a test without its file skips.

A wrong EMUML_DATA fails, because whoever set it meant it. Nothing is written there.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

NAMED = os.environ.get("EMUML_DATA")
"""As it was when the tests began: some tests change the variable before they ask for a file."""


def data_root() -> Path | None:
    """Return the folder with the data, or None."""
    if NAMED and not Path(NAMED).is_dir():
        pytest.fail(f"EMUML_DATA names {NAMED!r}, which is no folder", pytrace=False)
    folder = Path(NAMED) if NAMED else Path(__file__).resolve().parents[2] / "shared" / "data"
    return folder if folder.is_dir() else None


def data_file(name: str) -> Path:
    """Return the path of a file of the data folder; without it, the test skips."""
    root = data_root()
    if root is None or not (root / name).is_file():
        pytest.skip(f"needs {name}: set EMUML_DATA to a folder that has it (sources: docs/data.md)")
    return root / name
