"""Checks of the installation: versions, kernels, switches, dependencies, other copies."""

from __future__ import annotations

import os
import platform
import re
import shutil
import sys
import sysconfig
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

import emuml
from emuml.doctor.finding import Finding
from emuml.errors import did_you_mean
from emuml.switches import pure

PACKAGE = Path(emuml.__file__).resolve().parent

SWITCHES = {
    "EMUML_CHECK": "violations of the node contract are looked for; slower",
    "EMUML_EAGER": "the emulator evaluates every result at once; slower",
    "EMUML_PURE": "the event core in plain Python; slower",
    "EMUML_REFERENCE": "readable twins instead of compiled kernels; slower",
    "EMUML_MEMORY_BYTES": "versions of parameters of an emulation may take so many bytes",
    "EMUML_DATA": "data sets are taken from this folder first",
    "EMUML_CHECKED": "the next build keeps bounds checks in the kernels",
    "EMUML_TRACE": "the next build traces lines of the kernels",
    "EMUML_REQUIRE_KERNELS": "the next build fails if a kernel does not compile",
    "EMUML_ET_RUNS": "checks of protocols explore so many runs",
    "EMUML_ET_SEED": "checks of protocols explore from this seed",
    "EMUML_RUN": "set by a run for its nodes",
    "EMUML_PARENT": "set by a run for its nodes",
}
"""Every variable that means something, and what."""


def versions() -> Finding:
    """Which emuml and which Python are examined."""
    found = (
        f"emuml {emuml.__version__} in {PACKAGE}; Python {platform.python_version()} ({sys.executable}); "
        f"{platform.system()} {platform.release()}, {platform.machine()}"
    )
    why = "results name these versions, and runs over TCP need the same ones on every host"
    installed = _installed_version("emuml")
    if installed not in (None, emuml.__version__):
        fix = "install the package again: pip install --force-reinstall emuml"
        return Finding("warning", f"{found}; but the installed metadata are of version {installed}", why, fix)
    return Finding("ok", found, why)


def kernels() -> Finding:
    """Which kernels are compiled, and why the others are not."""
    why = "compiled kernels give the same bits as their Python twins, many times faster"
    try:
        from emuml import _kernels

        missing = [name for name in _kernels.KERNELS if not _kernels.built(name)]
    except ImportError as error:
        return Finding("failed", str(error), "nothing runs with a kernel that cannot be loaded", build_command())
    if missing:
        reason = f"not compiled: {', '.join(missing)}{_why_not()}; the twins are used for all"
        return Finding("warning", reason, why, build_command())
    stale = [name for name in _kernels.KERNELS if _is_stale(name)]
    if stale:
        return Finding("warning", f"older than their source: {', '.join(stale)}", why, build_command())
    if _kernels.IMPLEMENTATION == "reference":
        found = f"compiled ({', '.join(_kernels.KERNELS)}), but EMUML_REFERENCE asks for the twins"
        return Finding("warning", found, why, "unset EMUML_REFERENCE")
    if pure():
        found = f"compiled ({', '.join(_kernels.KERNELS)}), but EMUML_PURE asks for the event core in plain Python"
        return Finding("warning", found, why, "unset EMUML_PURE")
    return Finding("ok", f"compiled: {', '.join(_kernels.KERNELS)}", why)


def build_command() -> str:
    """Return the command that compiles the kernels of this installation."""
    if (PACKAGE.parent / "setup.py").is_file():
        return f"cd {PACKAGE.parent} && {sys.executable} setup.py build_ext --inplace --force"
    return f"{sys.executable} -m pip install --force-reinstall --no-deps --no-binary emuml emuml"


def _why_not() -> str:
    """Return what keeps kernels from being compiled here, if that can be told."""
    compiler = (os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc").split()[0]
    if shutil.which(compiler) is None:
        return f" (there is no C compiler {compiler!r})"
    if not Path(sysconfig.get_path("include"), "Python.h").is_file():
        return " (Python.h is missing: install Python's development files)"
    if find_spec("Cython") is None and (PACKAGE.parent / "setup.py").is_file():
        return " (Cython is not installed)"
    return ""


def _is_stale(name: str) -> bool:
    """Tell whether a kernel is older than its source, or than a header: setup.py compiles all anew when one changes."""
    source, spec = PACKAGE / "_kernels" / f"{name}.pyx", find_spec(f"emuml._kernels.{name}")
    built = Path(spec.origin) if spec is not None and spec.origin else None
    if built is None or not source.is_file():
        return False
    sources = [source, *source.parent.glob("*.pxd"), *source.parent.glob("*.h")]
    return built.stat().st_mtime < max(path.stat().st_mtime for path in sources)


def switches() -> Finding:
    """Which EMUML_ variables are set, and which of them mean nothing."""
    why = "a switch that is set by mistake slows everything down; one that is misspelt does nothing, silently"
    given = {name: value for name, value in sorted(os.environ.items()) if name.startswith("EMUML_")}
    unknown = [name for name in given if name not in SWITCHES]
    if unknown:
        told = "; ".join(f"{name} is unknown; {did_you_mean(name, SWITCHES)}".rstrip("; ") for name in unknown)
        return Finding("warning", told, why, f"unset it, or write one of {', '.join(list(SWITCHES)[:4])}")
    in_effect = [f"{name}={value}: {SWITCHES[name]}" for name, value in given.items() if value not in ("", "0")]
    return Finding("ok", "; ".join(in_effect) or "none is set", why)


def dependencies() -> Finding:
    """Whether what emuml needs is installed, new enough."""
    why = "older versions lack what is used, and may give other results"
    found, wrong = _compared(extra=None)
    if wrong:
        needed = " ".join(f"'{name}>={minimum}'" for name, minimum, _ in wrong)
        told = ", ".join(f"{name} {version or 'is missing'} (needs {minimum})" for name, minimum, version in wrong)
        return Finding("failed", told, why, f"{sys.executable} -m pip install --upgrade {needed}")
    if not found:
        fix = f"{sys.executable} -m pip install --editable ."
        return Finding("warning", "emuml is not installed, so its needs are not known", why, fix)
    return Finding("ok", ", ".join(f"{name} {version}" for name, version in found), why)


def extras() -> Finding:
    """Whether the optional parts are installed."""
    why = "the real data sets breast-cancer, digits and diabetes come with scikit-learn"
    found, wrong = _compared(extra="data")
    if wrong:
        told = ", ".join(f"{name} {version or 'is not installed'}" for name, _, version in wrong)
        return Finding("warning", f"data: {told}", why, f"{sys.executable} -m pip install 'emuml[data]'")
    return Finding("ok", f"data: {', '.join(f'{name} {version}' for name, version in found) or 'nothing'}", why)


def _compared(extra: str | None) -> tuple[list[tuple[str, str]], list[tuple[str, str, str | None]]]:
    """Return what is right as (name, version), and what is not as (name, least version, version or None)."""
    found: list[tuple[str, str]] = []
    wrong: list[tuple[str, str, str | None]] = []
    try:
        declared = metadata.requires("emuml") or []
    except metadata.PackageNotFoundError:
        declared = []
    for line in declared:
        requirement, _, marker = line.partition(";")
        match = re.match(r"\s*([\w.-]+).*?>=\s*([\w.]+)", requirement)
        of_extra = re.search(r"extra\s*==\s*['\"](\w+)", marker)
        if match is None or (of_extra[1] if of_extra else None) != extra:
            continue
        name, minimum = match[1], match[2]
        version = _installed_version(name)
        if version is None or _numbers(version) < _numbers(minimum):
            wrong.append((name, minimum, version))
        else:
            found.append((name, version))
    return found, wrong


def _installed_version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _numbers(version: str) -> tuple[int, ...]:
    """Return the release of a version as numbers, trailing zeros left out, so that 6.0 equals 6."""
    match = re.match(r"\d+(\.\d+)*", version)
    numbers = [int(part) for part in match[0].split(".")] if match else []
    while numbers and numbers[-1] == 0:
        numbers.pop()
    return tuple(numbers)


def copies() -> Finding:
    """Whether another emuml lies on the path."""
    why = "node processes look for emuml on their own path, the current folder first, and may take another copy"
    found: list[Path] = []
    for entry in (os.getcwd(), *sys.path):
        for path in (Path(entry) / "emuml" / "__init__.py", Path(entry) / "emuml.py"):
            if path.is_file() and path.resolve() not in found:
                found.append(path.resolve())
    others = [str(path) for path in found if path != PACKAGE / "__init__.py"]
    if others:
        return Finding("warning", f"also {', '.join(others)}", why, f"remove it from the path; {PACKAGE} is in use")
    return Finding("ok", "none beside the one in use", why)
