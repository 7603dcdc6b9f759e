"""Where a test is, as ``FILE.py::NAME``: what a stored scenario says, so that a shell can replay it."""

from __future__ import annotations

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from emuml.errors import UserError, did_you_mean

if TYPE_CHECKING:
    from emuml.testing.checking import Check


def place_of(check: Check) -> str:
    """Return the place of a test, or nothing if it is not found there again: if it is no global of a file."""
    module = sys.modules.get(check.describe.__module__)
    file = getattr(module, "__file__", None)
    if file is None or getattr(vars(module).get(check.name), "check", None) is not check:
        return ""
    path, here = Path(file).resolve(), Path.cwd()
    return f"{(path.relative_to(here) if path.is_relative_to(here) else path).as_posix()}::{check.name}"


def check_at(place: str, near: Path) -> Check:
    """Import a file and return the test that is at a place.

    Parameters
    ----------
    place : str
        ``FILE.py::NAME``; a relative path is looked for in the working directory, then in those that ``near`` is in.
    near : Path
        The file of the scenario.

    Raises
    ------
    UserError
        If there is no such file or test, or the file cannot be imported.
    """
    file, colons, name = place.partition("::")
    if not colons:
        raise UserError(f"got {place!r}", "test", "FILE.py::NAME")
    folders = [Path.cwd(), *near.resolve().parents]
    path = next((found for folder in folders if (found := folder / file).is_file()), None)
    if path is None:
        raise UserError("there is no such file", file, hint="--test FILE.py::NAME says where the test is now")
    tests = _tests(_imported(path.resolve()))
    if name not in tests:
        known = f"tests made by et.check: {', '.join(tests) or 'none'}"
        raise UserError(f"there is no test {name!r}", str(file), known, did_you_mean(name, tests))
    return tests[name]


def _tests(module: ModuleType) -> dict[str, Check]:
    from emuml.testing.checking import Check

    checks = {name: getattr(value, "check", None) for name, value in vars(module).items()}
    return {name: check for name, check in checks.items() if isinstance(check, Check)}


def _imported(path: Path) -> ModuleType:
    """Import a file as pytest does: by its name in the packages that it is in, the folder above them on the path."""
    root, parts = path.parent, [path.stem]
    while (root / "__init__.py").is_file():
        parts.insert(0, root.name)
        root = root.parent
    sys.path[:0] = [folder for folder in dict.fromkeys((str(root), str(Path.cwd()))) if folder not in sys.path]
    name = ".".join(parts)
    if name in sys.modules:  # an installed module of this name
        name = f"_replayed_{path.stem}"
    spec = spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise UserError("this is no Python file", str(path))
    module = sys.modules[name] = module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[name]
        raise UserError(f"it cannot be imported: {type(error).__name__}: {error}", str(path)) from error
    return module
