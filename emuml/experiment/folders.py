"""What folders of runs are called, and what a folder is that is no run."""

from __future__ import annotations

import json
import re
from pathlib import Path

from emuml.errors import UserError

_NAMED = 4
_DEEP = ("*", "*/*")


def plain_name(name: str) -> str:
    """Return a name as a folder may bear it.

    Examples
    --------
    >>> plain_name("a b/../c")
    'a-b-..-c'
    """
    return re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-.")[:60] or "run"


def no_run(folder: Path, allowed: str = "a run directory, such as runs/latest") -> UserError:
    """Return the error for a folder without a run's configuration: it says what the folder is and names runs in it.

    Parameters
    ----------
    folder : Path
    allowed : str
        What would do.
    """
    where = str(folder)
    if folder.name == "latest" and not folder.exists():
        what = "no single run has finished here; it points to the newest one, never to a comparison or a demo"
        return UserError(what, where, allowed, "name the run")
    runs = _runs(folder)
    if (folder / "comparison.json").is_file():
        what, hint = "this is a comparison", f"its page is {folder / 'report.html'}"
        return UserError(f"{what}{_of(folder)}", where, "one of its runs" if runs else allowed, _named(runs) or hint)
    if runs:
        return UserError(f"this is a folder of {len(runs)} run{'s' * (len(runs) > 1)}", where, "one run", _named(runs))
    return UserError("there is no config.yaml", where, allowed)


def _runs(folder: Path) -> list[Path]:
    """Return the runs at most two folders down, without names that only point to others."""
    found = (path.parent for pattern in _DEEP for path in sorted(folder.glob(f"{pattern}/config.yaml")))
    return [path for path in found if not any(part.is_symlink() for part in (path, path.parent) if part != folder)]


def _named(runs: list[Path]) -> str:
    more = f" and {len(runs) - _NAMED} more" if len(runs) > _NAMED else ""
    return f"there are {', '.join(map(str, runs[:_NAMED]))}{more}" if runs else ""


def _of(folder: Path) -> str:
    try:
        contestants = json.loads((folder / "comparison.json").read_text())["contestants"]
        return f" of {', '.join(str(one['name']) for one in contestants)}"
    except (OSError, ValueError, KeyError, TypeError):
        return ""
