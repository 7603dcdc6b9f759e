"""Who is compared: experiments from files, still to be run, and runs that are done, under names of their own.

Run directories that differ in nothing but the seed are one contestant with several seeds. All problems of all files
are found before anything runs.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from emuml.errors import EmumlError, UserError
from emuml.experiment.config import ConfigError, Loaded, load
from emuml.experiment.experiment import Experiment
from emuml.experiment.folders import no_run
from emuml.spec import Inputs, to_spec

_NO_NAME = Experiment.name
"""What an experiment is called to which nobody gave a name."""
_SEED = re.compile(r"(seed)?[-_]?\d+")


@dataclass(frozen=True, eq=False)
class Contestant:
    """One way to do it.

    Attributes
    ----------
    name : str
        Distinct among the contestants, also as the name of a folder.
    source : Path
        File, or first run directory.
    loaded : Loaded
        The experiment, its engine, and the engine's settings.
    done : dict
        Run directory by seed; empty for a file.
    """

    name: str
    source: Path
    loaded: Loaded
    done: dict[int, Path] = field(default_factory=dict)

    def experiment(self, seed: int) -> Experiment:
        """Return the experiment with a seed, under the contestant's name."""
        return replace(self.loaded.experiment, seed=seed, name=self.name)


def gather(paths: Sequence[Path], overrides: Iterable[str] = (), engine: str | None = None) -> tuple[Contestant, ...]:
    """Read files and run directories.

    Parameters
    ----------
    paths : sequence of Path
        Experiment files or run directories.
    overrides : iterable of str
        ``key=value`` for every file; a run that is done keeps its settings.
    engine : {"des", "tcp"}, optional
        For every file; default: what each one says.

    Raises
    ------
    UserError
        With every problem: files that cannot be read, runs that did not finish, one run given twice, fewer than two.
    """
    overrides = tuple(overrides)
    problems: dict[str, None] = {}
    found: list[Contestant] = []
    for path in paths:
        try:
            _add(found, path, overrides, engine)
        except ConfigError as error:
            problems.update(dict.fromkeys(error.problems))
        except EmumlError as error:
            problems[str(error)] = None
    if not problems:
        problems.update(dict.fromkeys(_problems_of_all(found, overrides)))
    if problems:
        raise ConfigError(tuple(problems))
    return _named(found)


def _add(found: list[Contestant], path: Path, overrides: tuple[str, ...], engine: str | None) -> None:
    """Add a contestant, or a run directory to the contestant whose run it is."""
    if not path.is_dir():
        loaded = load(path, overrides)
        found.append(Contestant("", path, loaded._replace(engine=engine or loaded.engine)))  # type: ignore[arg-type]
        return
    loaded = _run_directory(path)
    seed, key = loaded.experiment.seed, _key(loaded)
    same = [one for one in found if one.done and _key(one.loaded) == key]
    if not same:
        found.append(Contestant("", path, loaded, {seed: path}))
    elif seed in same[0].done:
        other = same[0].done[seed]
        raise UserError(f"the same experiment and seed ({seed}) as {other}", str(path), "each run once")
    else:
        same[0].done[seed] = path


def _run_directory(path: Path) -> Loaded:
    where = str(path)
    if not (path / "config.yaml").is_file():
        raise no_run(path, "an experiment file, or a run directory such as runs/latest")
    if not (path / "summary.json").is_file():
        raise UserError("the run did not finish", where, "finished runs", f"run it again: emuml run {path}/config.yaml")
    return load(path / "config.yaml")


def _key(loaded: Loaded) -> str:
    """Return what decides a run, except for the seed."""
    spec = replace(loaded.experiment, seed=0).spec(Inputs())
    runtime = None if loaded.runtime is None else to_spec(loaded.runtime, Inputs())
    return json.dumps([loaded.engine, runtime, spec])


def _problems_of_all(found: Sequence[Contestant], overrides: tuple[str, ...]) -> Iterable[str]:
    if len(found) < 2:
        seeds = ", of one experiment with several seeds" if found and len(found[0].done) > 1 else ""
        what = f"got {len(found)} to compare{seeds}"
        yield str(UserError(what, "FILES", "two or more experiment files or run directories"))
    if overrides and found and all(one.done for one in found):
        yield str(UserError(f"got {overrides[0]!r}, but all runs are done", "FILES", "settings with experiment files"))


def _named(found: Sequence[Contestant]) -> tuple[Contestant, ...]:
    """Give names: those of the experiments, or of the files where these are equal or not given; then numbers."""
    names = [one.loaded.experiment.name for one in found]
    wanted = [
        name if name != _NO_NAME and (names.count(name) == 1 or one.done) else _name_of_source(one)
        for name, one in zip(names, found, strict=True)
    ]
    taken: set[str] = set()
    named = []
    for one, name in zip(found, wanted, strict=True):
        distinct = next(each for each in (name, *(f"{name}-{i}" for i in range(2, 1000))) if plain(each) not in taken)
        taken.add(plain(distinct))
        named.append(replace(one, name=distinct))
    return tuple(named)


def _name_of_source(one: Contestant) -> str:
    """Return the name of a file without its ending, or of a folder; that of a seed lies in that of its experiment."""
    if not one.done:
        return one.source.stem
    folder = one.source.resolve()
    return (folder.parent if _SEED.fullmatch(folder.name) else folder).name or _NO_NAME


def plain(name: str) -> str:
    """Return a name as that of a folder.

    Examples
    --------
    >>> plain("ErasureHead, c = 15")
    'erasurehead-c-15'
    """
    words = "".join(letter if letter.isalnum() or letter in "._" else " " for letter in name.lower()).split()
    return "-".join(words).strip(".")[:60] or "run"
