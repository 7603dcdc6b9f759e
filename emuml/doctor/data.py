"""Checks of data sets: which are at hand without any download."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path

from emuml.doctor.finding import Finding

WHY = "experiments name real data sets; emuml downloads nothing"


def data_folder() -> Finding:
    """What the folder that EMUML_DATA names holds."""
    named = os.environ.get("EMUML_DATA")
    if not named:
        return Finding("ok", "EMUML_DATA is not set", WHY)
    folder = Path(named)
    if not folder.is_dir():
        return Finding(
            "failed", f"EMUML_DATA names {named!r}, which is no folder", WHY, "create it, or unset EMUML_DATA"
        )
    if not os.access(folder, os.R_OK | os.X_OK):
        return Finding("failed", f"{folder} cannot be read", WHY, f"chmod u+rx {folder}")
    known = {name: [folder / file for file in files] for name, files in _files().items()}
    held = [name for name, paths in known.items() if any(path.is_file() for path in paths)]
    closed = [str(p) for paths in known.values() for p in paths if p.is_file() and not os.access(p, os.R_OK)]
    if closed:
        return Finding("failed", f"cannot be read: {', '.join(closed)}", WHY, f"chmod u+r {' '.join(closed)}")
    if not held:
        names = ", ".join(paths[0].name for paths in known.values())
        return Finding("warning", f"{folder} holds no data set that emuml knows", WHY, f"it looks for {names}")
    return Finding("ok", f"{folder} holds {', '.join(held)}", WHY)


def scikit_learn() -> Finding:
    """What scikit-learn brings, and what it has kept of what it fetched."""
    from emuml.workloads.data.dense import NAMED

    home = Path(os.environ.get("SCIKIT_LEARN_DATA", "~/scikit_learn_data")).expanduser()
    if find_spec("sklearn") is None:
        fix = "pip install 'emuml[data]'"
        return Finding("warning", f"not installed, so {', '.join(NAMED)} are only taken from EMUML_DATA", WHY, fix)
    kept = [name for name, paths in _kept(home).items() if any(path.is_file() for path in paths)]
    if home.is_dir() and not os.access(home, os.R_OK | os.X_OK):
        return Finding("failed", f"{home} cannot be read", WHY, f"chmod u+rx {home}")
    cache = f"{home} holds {', '.join(kept)}" if kept else f"nothing that emuml knows is kept in {home}"
    return Finding("ok", f"brings {', '.join(NAMED)}; {cache}", WHY)


def _files() -> dict[str, tuple[str, ...]]:
    """Return where each data set is looked for beneath ``EMUML_DATA``."""
    from emuml.workloads.data.dense import NAMED
    from emuml.workloads.data.facts import ORIGINALS

    return {name: (f"{name}.npz",) for name in NAMED} | {name: known.files for name, known in ORIGINALS.items()}


def _kept(home: Path) -> dict[str, list[Path]]:
    """Return the files by which one sees that scikit-learn has kept a data set."""
    from emuml.workloads.data.facts import ORIGINALS

    described = home / "openml" / "openml.org" / "api" / "v1" / "json" / "data"
    return {
        name: [described / f"{number}.gz" for number in known.openml] or [home / "covertype" / "samples_py3"]
        for name, known in ORIGINALS.items()
    }
