"""Experiments in YAML: every problem of a file at once, each with its line, column and the nearest right name.

The file has the shape of the declarations: a mapping whose ``kind`` is a registered name and whose other keys are the
fields of that class; plain text is a kind without parameters. Nothing is run here; what a run finds wrong before it
starts is traced back to the file by :meth:`Loaded.pointing`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

import yaml

from emuml.errors import UserError
from emuml.experiment.experiment import Experiment
from emuml.experiment.fitting import Unfit
from emuml.experiment.places import Places
from emuml.experiment.reader import Reader
from emuml.experiment.yaml_tree import Problem, compose, override, read

if TYPE_CHECKING:
    from emuml.runtime.settings import RuntimeSettings


LINES_MAX = 50
"""Of more problems the rest is counted only."""


class ConfigError(UserError):
    """Everything that is wrong with a configuration.

    Parameters
    ----------
    problems : tuple of str
        One line each: place, path, what is wrong, what is allowed.
    """

    def __init__(self, problems: tuple[str, ...]) -> None:
        Exception.__init__(self, problems)
        self.problems = problems
        self.what, self.where, self.allowed, self.hint = "\n".join(problems), "", "", ""

    @classmethod
    def of(cls, problems: Iterable[Problem]) -> ConfigError:
        """Make the error of some problems: in the order of the file, each once, and of many the first ones."""
        lines = tuple(dict.fromkeys(str(problem) for problem in sorted(problems, key=_in_order_of_the_file)))
        more = len(lines) - LINES_MAX
        return cls(lines if more <= 1 else (*lines[:LINES_MAX], f"and {more:,} more problems"))


def _in_order_of_the_file(problem: Problem) -> tuple[str, tuple[int, ...]]:
    name, _, position = problem.place.partition(":")
    return name, tuple(int(part) for part in position.split(":") if part.isdigit())


class Loaded(NamedTuple):
    """What a configuration says: the experiment, how to run it, and where each setting stands."""

    experiment: Experiment
    engine: Literal["des", "tcp"]
    runtime: RuntimeSettings | None
    places: Places

    @contextmanager
    def pointing(self) -> Iterator[None]:
        """Let what does not fit name the lines of the configuration that it follows from.

        Put around whatever runs, compares or explains the experiment. Other errors pass as they are.

        Raises
        ------
        ConfigError
            In place of :class:`~emuml.experiment.fitting.Unfit`.
        """
        try:
            yield
        except Unfit as error:
            pointed = [self.places.point(misfit.error, misfit.part) for misfit in error.misfits]
            plain = (Problem("", str(misfit.error)) for misfit in error.misfits)
            raise ConfigError.of(one or other for one, other in zip(pointed, plain, strict=True)) from error


def load(path: str | Path, overrides: Iterable[str] = ()) -> Loaded:
    """Read an experiment from a YAML file; arrays come from ``inputs/`` beside it.

    Parameters
    ----------
    path : path
    overrides : iterable of str
        Such as ``"cluster.workers=50"``, applied in order; values are YAML.

    Raises
    ------
    ConfigError
        With every problem of the file and of the arguments.
    """
    path = Path(path)
    try:
        root = read(path)
    except Problem as problem:
        raise ConfigError.of([problem]) from None
    return _loaded(root, overrides, path.parent)


def loads(text: str, overrides: Iterable[str] = (), name: str = "<text>", folder: str | Path = ".") -> Loaded:
    """Read an experiment from YAML text; see :func:`load`.

    Examples
    --------
    >>> text = '''
    ... workload: {kind: logistic-regression, data: breast-cancer}
    ... protocol: gradient-coding
    ... cluster: {workers: 4, compute: {kind: shifted-exponential, shift_s: 0.05, mean_s: 0.5}}
    ... rounds: 10
    ... '''
    >>> loads(text, ["cluster.workers=6"]).experiment.cluster.workers
    6
    """
    try:
        root = compose(text, name)
    except Problem as problem:
        raise ConfigError.of([problem]) from None
    return _loaded(root, overrides, Path(folder))


def _loaded(root: yaml.Node, overrides: Iterable[str], folder: Path) -> Loaded:
    reader = Reader(folder)
    for argument in overrides:
        try:
            override(root, argument)
        except Problem as problem:
            reader.problems.append(problem)
    beside = reader.beside(root)
    experiment = reader.experiment(root)
    if reader.problems:
        raise ConfigError.of(reader.problems)
    return Loaded(experiment, beside.get("engine", "des"), beside.get("runtime"), reader.places)
