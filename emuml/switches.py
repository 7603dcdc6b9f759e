"""The environment switches, read in one place: pure paths, reference kernels, contract checks, eager evaluation."""

from __future__ import annotations

import os


def _is_set(name: str) -> bool:
    return os.environ.get(name, "0") not in ("", "0")


def checking() -> bool:
    """Whether contract violations are looked for where they happen (``EMUML_CHECK=1``); slower."""
    return _is_set("EMUML_CHECK")


def eager() -> bool:
    """Whether the emulator evaluates results when their task ends (``EMUML_EAGER=1``; check mode implies it)."""
    return _is_set("EMUML_EAGER") or checking()


def pure() -> bool:
    """Whether the event core in plain Python serves, with the same results (``EMUML_PURE=1``); slower."""
    return _is_set("EMUML_PURE")
