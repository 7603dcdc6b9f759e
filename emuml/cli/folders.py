"""Where runs go: a new folder when nobody says so, else one that is new or empty."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

from emuml.errors import UserError
from emuml.experiment.folders import plain_name


def new_folder(name: str, parent: Path = Path("runs")) -> Path:
    """Return ``runs/<UTC date and time>-<name>``, not there yet; two runs in one second get different ones."""
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    base = parent / f"{stamp}-{plain_name(name)}"
    return next(
        path for path in (base, *(base.with_name(f"{base.name}-{i}") for i in range(2, 1000))) if not path.exists()
    )


def check_out(out: Path | None) -> None:
    """Refuse a folder for runs that is there and not empty, or cannot be made.

    Raises
    ------
    UserError
        Naming ``--out``.
    """
    if out is None:
        return
    try:
        wrong = _why_not(out)
    except OSError as error:  # too long a name, say
        wrong = f"{str(out)[:80]!r}: {error.strerror}"
    if wrong:
        raise UserError(wrong, "--out", "a new or an empty folder")


def _why_not(out: Path) -> str:
    nearest = next(path for path in (out, *out.absolute().parents) if path.exists() or path.is_symlink())
    if not nearest.is_dir():
        return f"{str(nearest)!r} is no folder"
    if nearest == out and (out / "config.yaml").exists():
        return f"{str(out)!r} already holds a run"
    if nearest == out and any(out.iterdir()):
        return f"{str(out)!r} is not empty"
    return "" if os.access(nearest, os.W_OK | os.X_OK) else f"{str(nearest)!r} cannot be written"
