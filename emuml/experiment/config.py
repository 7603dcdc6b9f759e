"""Experiments in YAML: every problem of a file at once, each with its line, column and the nearest right name.

The file has the shape of the declarations: a mapping whose ``kind`` is a registered name and whose other keys are the
fields of that class; plain text is a kind without parameters. Plain fields are checked by pydantic models made from
the dataclasses, so no rule is written twice. Nothing else of the package knows pydantic, and nothing is run here.
"""

from __future__ import annotations

import types
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, NamedTuple, Union, get_args, get_origin

import numpy as np
import yaml
from pydantic import BaseModel, ConfigDict, ValidationError, create_model

from emuml import names
from emuml.errors import EmumlError, UserError, did_you_mean
from emuml.experiment.experiment import Experiment
from emuml.experiment.hints import field_hints, holds, words
from emuml.experiment.run_dir import FORMAT
from emuml.experiment.yaml_tree import Pair, Problem, compose, is_null, override, pairs, place, read, scalar
from emuml.spec import InputFolder

if TYPE_CHECKING:
    from emuml.runtime.settings import RuntimeSettings

ENGINES = ("des", "tcp")
_BESIDE = ("format", "engine", "runtime")
_FAMILIES_OF_LISTS = {"faults": "fault", "conditions": "stop"}
_FAMILIES_BY_FIELD = {"of": "protocol"}
_WRONG: Final = object()
"""Stands for a value whose problems are already noted."""


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


class Loaded(NamedTuple):
    """What a configuration says: the experiment, and how to run it."""

    experiment: Experiment
    engine: Literal["des", "tcp"]
    runtime: RuntimeSettings | None


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
        raise ConfigError((str(problem),)) from None
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
        raise ConfigError((str(problem),)) from None
    return _loaded(root, overrides, Path(folder))


def _loaded(root: yaml.Node, overrides: Iterable[str], folder: Path) -> Loaded:
    reader = _Reader(folder)
    for argument in overrides:
        try:
            override(root, argument)
        except Problem as problem:
            reader.problems.append(problem)
    beside = reader.beside(root)
    experiment = reader.fields(root, Experiment, "", _BESIDE)
    if experiment is not _WRONG:
        reader.check_nodes(experiment)
    if reader.problems:
        unique = dict.fromkeys(sorted(reader.problems, key=_in_order_of_the_file))
        raise ConfigError(tuple(dict.fromkeys(str(problem) for problem in unique)))
    return Loaded(experiment, beside.get("engine", "des"), beside.get("runtime"))


def _in_order_of_the_file(problem: Problem) -> tuple[str, tuple[int, ...]]:
    name, _, position = problem.place.partition(":")
    return name, tuple(int(part) for part in position.split(":") if part.isdigit())


class _Reader:
    """Builds declarations from a tree and notes what is wrong on the way."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.problems: list[Problem] = []
        self._inputs = InputFolder(folder / "inputs", verify=True)
        self._places: dict[str, yaml.Node] = {}

    def wrong(self, node: yaml.Node, path: str, what: str, allowed: str = "", hint: str = "") -> Any:
        text = "; ".join(filter(None, (what, f"allowed: {allowed}" if allowed else "", hint)))
        self.problems.append(Problem(place(node), f"{path}: {text}" if path else text))
        return _WRONG

    def pairs(self, node: yaml.Node, path: str) -> dict[str, Pair] | None:
        if isinstance(node, yaml.MappingNode):
            return pairs(node, path, self.problems)
        self.wrong(node, path, f"got {_shown(node)}", "a mapping of keys to values")
        return None

    def beside(self, root: yaml.Node) -> dict[str, Any]:
        """Return the engine and its settings, which are no part of the experiment."""
        found: dict[str, Any] = {}
        given = pairs(root, "", []) if isinstance(root, yaml.MappingNode) else {}
        for name, allowed in (("format", (FORMAT,)), ("engine", ENGINES)):
            if name in given:
                node = given[name].value
                found[name] = scalar(node) if isinstance(node, yaml.ScalarNode) else None
                if found[name] not in allowed:
                    hint = did_you_mean(str(found[name]), map(str, allowed))
                    self.wrong(node, name, f"got {_shown(node)}", ", ".join(map(str, allowed)), hint)
        if "runtime" in given and not is_null(given["runtime"].value):
            from emuml.runtime.settings import RuntimeSettings

            found["runtime"] = self.fields(given["runtime"].value, RuntimeSettings, "runtime")
        return found

    def check_nodes(self, experiment: Experiment) -> None:
        """Note faults of nodes that the cluster does not have."""
        known = [str(id) for id in experiment.roster().ids]
        for path, node in self._places.items():
            if path.startswith("faults") and path.endswith("].node") and node.value not in known:
                allowed = f"{known[0]} to {known[-1]}"
                self.wrong(
                    node, path, f"{_shown(node)} is not in the cluster", allowed, did_you_mean(node.value, known)
                )

    def declaration(self, node: yaml.Node, family: str, path: str) -> Any:
        """Build a declaration of a family: text is a kind, a mapping has its kind and its fields."""
        known = names.REGISTRY.get(family, {})
        if isinstance(node, yaml.ScalarNode):
            cls = self.kind(node, family, path)
            empty = yaml.MappingNode("tag:yaml.org,2002:map", [], node.start_mark, node.end_mark)
            return cls if cls is _WRONG else self.fields(empty, cls, path)
        given = self.pairs(node, path)
        if given is None:
            return _WRONG
        if "kind" in given:
            cls = self.kind(given["kind"].value, family, f"{path}.kind")
        elif family in known or family == "faults":  # families of one kind, which needs no name
            cls = names.resolve(family, next(iter(known)))
        else:
            cls = self.wrong(node, path, "kind is missing", ", ".join(sorted(known)))
        return cls if cls is _WRONG else self.fields(node, cls, path, ("kind",))

    def kind(self, node: yaml.Node, family: str, path: str) -> Any:
        """Return the class that a kind names: a registered name, or ``module:Class`` of an installed module."""
        known = names.REGISTRY.get(family, {})
        kind = node.value if isinstance(node, yaml.ScalarNode) else None
        if isinstance(kind, str) and kind in known:
            return names.resolve(family, kind)
        if not isinstance(kind, str) or ":" not in kind:
            allowed = f"{', '.join(sorted(known))}, or module:Class"
            return self.wrong(node, path, f"{_shown(node)} is unknown", allowed, did_you_mean(str(kind), known))
        try:
            cls = names.load(kind)
        except (ImportError, AttributeError, ValueError) as error:
            return self.wrong(node, path, f"{kind!r} cannot be loaded ({error})", hint="is its folder in PYTHONPATH?")
        if not (isinstance(cls, type) and is_dataclass(cls)):
            return self.wrong(node, path, f"{kind!r} is no declaration", "a frozen dataclass")
        return cls

    def fields(self, node: yaml.Node, cls: type, path: str, beside: tuple[str, ...] = ()) -> Any:
        """Build a dataclass from a mapping of its fields; ``beside`` are keys that are read elsewhere."""
        given = self.pairs(node, path)
        if given is None:
            return _WRONG
        before = len(self.problems)
        known, hints = _fields(cls), field_hints(cls)
        values: dict[str, Any] = {}
        meant: set[str] = set()
        for name, (key, value) in given.items():
            where = f"{path}.{name}" if path else name
            if name in known:
                self._places[where] = value
                values[name] = self.value(value, name, hints[name], where)
            elif name not in beside:
                near = did_you_mean(name, (*known, *beside))
                meant.update(other for other in known if near == did_you_mean(name, [other]))
                self.wrong(key, where, "unknown key", "" if near else ", ".join((*known, *beside)) or "none", near)
        self.validate(node, cls, path, values, meant)
        return _WRONG if len(self.problems) > before else self.build(node, cls, path, values)

    def validate(self, node: yaml.Node, cls: type, path: str, values: Mapping[str, Any], meant: set[str]) -> None:
        """Note what a model of the class has against the values; what was ``meant`` by a wrong key is not missing."""
        try:
            _model(cls).model_validate({f"{name}_": value for name, value in values.items()})
        except ValidationError as error:
            for name, kind in {str(item["loc"][0])[:-1]: item["type"] for item in error.errors()}.items():
                where, allowed = f"{path}.{name}" if path else name, words(field_hints(cls)[name])
                if kind == "missing":
                    if name not in meant:
                        self.wrong(node, where, "missing", allowed)
                elif values[name] is not _WRONG:
                    self.wrong(self._places[where], where, f"got {_shown(self._places[where])}", allowed)

    def build(self, node: yaml.Node, cls: type, path: str, values: Mapping[str, Any]) -> Any:
        """Make the object; what it refuses is noted where the field stands that it names."""
        try:
            return cls(**values)
        except UserError as error:
            named = [part.partition("[")[0] for part in error.where.split(".")]
            under = [p for p in self._places if p.startswith(path) and p.rpartition(".")[2] in named[-2:]]
            where = under[-1] if under else path
            return self.wrong(self._places.get(where, node), where, error.what, error.allowed, error.hint)
        except (EmumlError, TypeError, ValueError) as error:
            return self.wrong(node, path, f"{cls.__name__}: {error}")

    def value(self, node: yaml.Node, name: str, hint: Any, path: str) -> Any:
        """Return the value of one field, whatever its sort."""
        is_list = get_origin(hint) is tuple
        family = _FAMILIES_OF_LISTS.get(name) if is_list else _FAMILIES_BY_FIELD.get(name, name)
        if family not in names.REGISTRY or (is_null(node) and type(None) in get_args(hint)):
            return self.plain(node, hint)
        if is_list:
            return self.items(node, family, path)
        return self.faults(node, path) if family == "faults" else self.declaration(node, family, path)

    def items(self, node: yaml.Node, family: str, path: str) -> Any:
        if not isinstance(node, yaml.SequenceNode):
            return self.wrong(node, path, f"got {_shown(node)}", "a list")
        found = tuple(self.declaration(item, family, f"{path}[{i}]") for i, item in enumerate(node.value))
        return _WRONG if any(item is _WRONG for item in found) else found

    def faults(self, node: yaml.Node, path: str) -> Any:
        """Build a fault plan from a list of faults, a file of them, or a mapping."""
        if isinstance(node, yaml.ScalarNode) and not is_null(node):
            try:
                node = read(self.folder / str(node.value))
            except Problem as problem:
                return self.wrong(node, path, str(problem), "a list of faults, or a file of them")
        if not isinstance(node, yaml.SequenceNode):
            return self.declaration(node, "faults", path)
        found = self.items(node, "fault", path)
        return found if found is _WRONG else names.resolve("faults", "fault-plan")(found)

    def plain(self, node: yaml.Node, hint: Any) -> Any:
        """Return a value without declarations in it: scalars, tuples, arrays."""
        if isinstance(node, yaml.SequenceNode):
            return tuple(self.plain(item, hint) for item in node.value)
        if isinstance(node, yaml.MappingNode):
            given = {str(key.value): value for key, value in node.value}
            if holds(hint, np.ndarray) and list(given) == ["input"]:
                try:
                    return self._inputs.get(str(given["input"].value))
                except (UserError, OSError, ValueError) as error:
                    return self.wrong(node, "input", str(error))
            return given
        assert isinstance(node, yaml.ScalarNode)
        value = scalar(node)
        if isinstance(value, (int, float)) and holds(hint, str) and not holds(hint, int, float, np.ndarray):
            value = str(node.value)  # a name such as 1e5
        if isinstance(value, str) and holds(hint, Path) and (self.folder / value).is_file():
            return str((self.folder / value).resolve())  # files beside the configuration come first
        return value


def _shown(node: yaml.Node) -> str:
    if isinstance(node, yaml.ScalarNode):
        value = scalar(node)
        return "nothing" if value is None else str(value).lower() if isinstance(value, bool) else repr(value)
    return "a list" if isinstance(node, yaml.SequenceNode) else "a mapping"


@cache
def _fields(cls: type) -> dict[str, Field[Any]]:
    return {field.name: field for field in fields(cls) if field.init}


@cache
def _model(cls: type) -> type[BaseModel]:
    """Make the model of a dataclass: its plain fields with their bounds; declarations are checked on their own."""
    members: dict[str, Any] = {}
    for name, field in _fields(cls).items():
        required = field.default is MISSING and field.default_factory is MISSING
        # A field may be called like a method of models, hence the underscore.
        members[f"{name}_"] = (_plain_hint(field_hints(cls)[name]), ... if required else None)
    config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False, protected_namespaces=())
    return create_model(cls.__name__, __config__=config, **members)


def _plain_hint(hint: Any) -> Any:
    """Return a hint with ``Any`` for everything that is no plain value."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        base = _plain_hint(arguments[0])
        return hint if base is arguments[0] else Annotated[(base, *arguments[1:])]
    if origin in (Union, types.UnionType):
        return Union[tuple(_plain_hint(option) for option in arguments)]  # noqa: UP007 (made at run time)
    if origin is tuple:
        return tuple[tuple(item if item is Ellipsis else _plain_hint(item) for item in arguments)]  # type: ignore[misc]
    plain = origin is Literal or hint in (int, float, str, bool, type(None))
    return hint if plain else Any if hint is not Path else str
