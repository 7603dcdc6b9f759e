"""From the tree of a configuration to declarations, noting everything that is wrong on the way.

A mapping has a ``kind``, which is a registered name, and the fields of that class; text is a kind without parameters.
Which class a field takes follows from the family of its name, and what it accepts from its type hint.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import is_dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Final, get_args, get_origin

import numpy as np
import yaml

from emuml import names
from emuml.cluster.faults import FaultPlan
from emuml.errors import EmumlError, UserError, did_you_mean
from emuml.experiment.experiment import Experiment
from emuml.experiment.fitting import Misfit, Unfit
from emuml.experiment.hints import field_hints, holds, meant, parts, words
from emuml.experiment.models import Refused, fields_of, refused
from emuml.experiment.places import Places, said
from emuml.experiment.run_dir import FORMAT
from emuml.experiment.yaml_tree import Pair, Problem, is_file, is_null, pairs, place, read, scalar, shortened, shown
from emuml.roster import Ids
from emuml.spec import InputFolder

ENGINES = ("des", "tcp")
FAMILIES_OF_LISTS = {"codes": "code", "faults": "fault", "conditions": "stop", "links": "link", "routes": "route"}
FAMILIES_BY_FIELD = {"of": "protocol", "base": "compute", "outlier": "compute"}
_NAME_MAX, _NAMES_MAX = 100, 1_000
_TOPOLOGY = "a topology is written {kind: topology-network, topology: ...}"
_WRITTEN = {
    ("faults", "fault"): "write a list of faults, with a dash before each",
    ("network", "topology"): _TOPOLOGY,
    ("network", ""): _TOPOLOGY,
}
"""How to write what stands in the place of another family, or of nothing that is known."""
_BESIDE = ("format", "engine", "runtime")
HINTS_MAX = 50
"""Names that are looked for in a file with many problems: the first ones are told, and each takes its time."""
WRONG: Final = object()
"""Stands for a value whose problems are already noted."""


class Reader:
    """Builds declarations from a tree.

    Parameters
    ----------
    folder : Path
        Of the file: where paths in it begin, and where ``inputs/`` is.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.problems: list[Problem] = []
        self.places = Places(folder)
        self._inputs = InputFolder(folder / "inputs", verify=True)
        self._unknown: list[tuple[int, str, str, yaml.Node]] = []

    def wrong(self, node: yaml.Node, path: str, what: str, allowed: str = "", hint: str = "") -> Any:
        """Note a problem of a value, and return what stands for it."""
        self.problems.append(Problem(place(node), said(path, what, allowed, hint)))
        return WRONG

    def near(self, name: str, known: Iterable[str]) -> str:
        """Return the nearest known name, as :func:`did_you_mean`, unless there are many names or problems already."""
        some = list(islice(known, _NAMES_MAX))
        is_worth_it = len(self.problems) < HINTS_MAX and len(name) < _NAME_MAX and len(some) < _NAMES_MAX
        return did_you_mean(name, some) if is_worth_it else ""

    def experiment(self, root: yaml.Node) -> Any:
        """Build the experiment; what can be told of parts that are right is told even if others are wrong."""
        before = len(self.problems)
        values = self.read_fields(root, Experiment, "", _BESIDE)
        if values is not None:
            self._check_nodes(values.get("cluster"))
            if len(self.problems) == before:
                return self.build(root, Experiment, "", values)
            self._check_parts(root, values)
        self._say_where_unknown_keys_belong()
        return WRONG

    def beside(self, root: yaml.Node) -> dict[str, Any]:
        """Return the engine and its settings, which are no part of the experiment."""
        found: dict[str, Any] = {}
        given = pairs(root, "", []) if isinstance(root, yaml.MappingNode) else {}
        for name, allowed in (("format", (FORMAT,)), ("engine", ENGINES)):
            if name in given:
                self.places.note(name, given[name].value)
                found[name] = self.one_of(given[name].value, name, allowed)
        if "runtime" in given and not is_null(given["runtime"].value):
            from emuml.runtime.settings import RuntimeSettings

            found["runtime"] = self.fields(given["runtime"].value, RuntimeSettings, "runtime")
        return found

    def one_of(self, node: yaml.Node, path: str, allowed: tuple[Any, ...]) -> Any:
        """Return a scalar that is one of those allowed."""
        value = scalar(node) if isinstance(node, yaml.ScalarNode) else None
        if any(value == one and type(value) is type(one) for one in allowed):
            return value
        words = list(map(str, allowed))
        hint = "write it without quotes" if str(value) in words else self.near(str(value), words)
        return self.wrong(node, path, f"got {shown(node)}", ", ".join(words), hint)

    def _check_nodes(self, cluster: Any) -> None:
        """Note faults of nodes that the cluster does not have."""
        if not hasattr(cluster, "workers"):
            return
        ids, told = Ids({"server": cluster.servers, "worker": cluster.workers}), {each.place for each in self.problems}
        for path, value in self.places.written.items():
            is_node = re.match(r"faults\[\d+\]\.(node|nodes|first|second)(\[\d+\])?$", path)
            if is_node and value.text is not None and not ids.names(value.text) and value.place not in told:
                what, hint = f"{value.shown} is not in the cluster", self.near(value.text, map(str, ids))
                allowed = f"{_names('server', cluster.servers)}, {_names('worker', cluster.workers)}"
                self.problems.append(Problem(value.place, said(path, what, allowed, hint)))

    def _check_parts(self, root: yaml.Node, values: Mapping[str, Any]) -> None:
        """Note what right parts have against each other: wrong ones are replaced by ones that fit everything."""
        instead = {"workload": _AnyWorkload(), "rounds": 1, "seed": 0, "stop": None, "faults": FaultPlan(), "name": ""}
        right = {name: value for name, value in values.items() if value is not WRONG}
        right = {name: value for name, value in right.items() if name not in self._refused_fields(values)}
        if {"protocol", "cluster"} <= right.keys():
            self.build(root, Experiment, "", {**instead, **right})

    def _refused_fields(self, values: Mapping[str, Any]) -> set[str]:
        return {item.name for item in refused(Experiment, values)}

    def _say_where_unknown_keys_belong(self) -> None:
        """Give unknown keys the hint that another declaration of this file has such a key."""
        for index, name, path, node in self._unknown[:HINTS_MAX]:
            where = f"{path}.{name}" if path else name
            if hint := self.places.elsewhere(name, path):
                self.problems[index] = Problem(place(node), said(where, "unknown key", hint=hint))

    def pairs(self, node: yaml.Node, path: str) -> dict[str, Pair] | None:
        """Return the pairs of a mapping, or None, which is noted."""
        if isinstance(node, yaml.MappingNode):
            return pairs(node, path, self.problems)
        no_space = isinstance(node, yaml.ScalarNode) and re.match(r"\w+:\S", str(node.value))
        hint = "write a space after the colon" if no_space else ""
        self.wrong(node, path, f"got {shown(node)}", "a mapping of keys to values", hint)
        return None

    def declaration(self, node: yaml.Node, family: str, path: str) -> Any:
        """Build a declaration of a family: text is a kind, a mapping has its kind and its fields."""
        known = names.REGISTRY.get(family, {})
        self.places.note(path, node)
        if isinstance(node, yaml.ScalarNode):
            cls = self.kind(node, family, path)
            empty = yaml.MappingNode("tag:yaml.org,2002:map", [], node.start_mark, node.end_mark)
            return cls if cls is WRONG else self.fields(empty, cls, path)
        given = self.pairs(node, path)
        if given is None:
            return WRONG
        if "kind" in given:
            self.places.note(f"{path}.kind", given["kind"].value)
            cls = self.kind(given["kind"].value, family, f"{path}.kind")
        elif family.replace("_", "-") in known or family == "faults":  # families of one kind, which needs no name
            cls = self.loaded(node, path, lambda: names.resolve(family, next(iter(known))))
        else:
            cls = self.wrong(node, path, "kind is missing", ", ".join(sorted(known)))
        return cls if cls is WRONG else self.fields(node, cls, path, ("kind",))

    def kind(self, node: yaml.Node, family: str, path: str) -> Any:
        """Return the class that a kind names: a registered name, or ``module:Class`` of an installed module."""
        known = names.REGISTRY.get(family, {})
        kind = node.value if isinstance(node, yaml.ScalarNode) else None
        if isinstance(kind, str) and kind in known:
            return self.loaded(node, path, lambda: names.resolve(family, kind))
        if not isinstance(kind, str) or ":" not in kind:
            allowed = f"{', '.join(sorted(known))}, or module:Class"
            other = names.family_of(str(kind)) or ""
            hint = f"{kind!r} is a {other}" if other else self.near(str(kind), known)
            how = "" if hint and not other else _WRITTEN.get((family, other), "")
            hint = "; ".join(filter(None, (hint, how)))
            return self.wrong(node, path, f"{shown(node)} is unknown", allowed, hint)
        cls = self.loaded(node, path, lambda: names.load(kind))
        if cls is not WRONG and not (isinstance(cls, type) and is_dataclass(cls)):
            return self.wrong(node, path, f"{shown(node)} is no declaration", "a frozen dataclass")
        return cls

    def loaded(self, node: yaml.Node, path: str, load: Callable[[], Any]) -> Any:
        """Return a class of a module, which may be the user's own and raise whatever it likes when it is imported."""
        try:
            cls = load()
            if isinstance(cls, type) and is_dataclass(cls):
                field_hints(cls)  # which may name what is not there
            return cls
        except ModuleNotFoundError as error:
            why, hint = str(error), "is its folder in PYTHONPATH?"
        except (Exception, SystemExit) as error:
            why, hint = ": ".join(filter(None, (type(error).__name__, str(error)))), ""
        return self.wrong(node, path, f"{shown(node)} cannot be loaded ({shortened(why, 200)})", hint=hint)

    def fields(self, node: yaml.Node, cls: type, path: str, beside: tuple[str, ...] = ()) -> Any:
        """Build a dataclass from a mapping of its fields; ``beside`` are keys that are read elsewhere."""
        before = len(self.problems)
        values = self.read_fields(node, cls, path, beside)
        return WRONG if values is None or len(self.problems) > before else self.build(node, cls, path, values)

    def read_fields(self, node: yaml.Node, cls: type, path: str, beside: tuple[str, ...]) -> dict[str, Any] | None:
        """Return the values of the fields that are given, or None if there is no mapping of them."""
        given = self.pairs(node, path)
        if given is None:
            return None
        known, hints = fields_of(cls), field_hints(cls)
        self.places.classes[path] = cls
        self.places.written.setdefault(path, self.places.of(node))
        values: dict[str, Any] = {}
        meant_fields: set[str] = set()
        for name, (key, value) in given.items():
            where = f"{path}.{name}" if path else name
            if name in known:
                self.places.note(where, value)
                values[name] = self.value(value, name, hints[name], where)
            elif name not in beside:
                near = self.near(name, (*known, *beside))
                meant_fields.update(other for other in known if near and near == did_you_mean(name, [other]))
                self._unknown.append((len(self.problems), name, path, key))
                self.wrong(key, where, "unknown key", "" if near else ", ".join((*known, *beside)) or "none", near)
        self.validate(node, cls, path, values, meant_fields)
        return values

    def validate(self, node: yaml.Node, cls: type, path: str, values: Mapping[str, Any], meant: set[str]) -> None:
        """Note what a class has against the values; what was ``meant`` by a wrong key is not missing."""
        for item in refused(cls, values):
            where = f"{path}.{item.name}" if path else item.name
            if item.is_missing and item.name not in meant:
                self.wrong(node, where, "missing", words(field_hints(cls)[item.name]))
            elif not item.is_missing and values[item.name] is not WRONG:
                self._refuse(item, where, field_hints(cls)[item.name])

    def _refuse(self, item: Refused, path: str, hint: Any) -> None:
        of_item = f"{path}[{item.item}]"
        where = of_item if item.item is not None and of_item in self.places.written else path
        value = self.places.written[where]
        text = said(where, f"got {value.shown}", words(hint), meant(value.value, hint))
        self.problems.append(Problem(value.place, text))

    def build(self, node: yaml.Node, cls: type, path: str, values: Mapping[str, Any]) -> Any:
        """Make the object; what it refuses is noted where the field stands that it names."""
        try:
            return cls(**values)
        except UserError as error:
            misfits = error.misfits if isinstance(error, Unfit) else (Misfit(path, error),)
            for misfit in misfits:
                pointed = self.places.point(misfit.error, misfit.part or path)
                self.problems.append(pointed or Problem(place(node), said(path, str(misfit.error))))
            return WRONG
        except Exception as error:  # a class of the user's may refuse in its own way
            text = str(error) if isinstance(error, EmumlError | TypeError | ValueError) else repr(error)
            return self.wrong(node, path, f"{cls.__name__}: {shortened(text, 200)}")

    def value(self, node: yaml.Node, name: str, hint: Any, path: str) -> Any:
        """Return the value of one field, whatever its sort."""
        is_list = get_origin(hint) is tuple
        family = FAMILIES_OF_LISTS.get(name) if is_list else FAMILIES_BY_FIELD.get(name, name)
        if family not in names.REGISTRY or (is_null(node) and type(None) in get_args(hint)):
            return self.plain(node, hint, path)
        if isinstance(node, yaml.ScalarNode) and Path in parts(hint) and node.value not in names.REGISTRY[family]:
            return self.plain(node, hint, path)  # the name or the file of a declaration
        if is_list:
            return self.items(node, family, path)
        return self.faults(node, path) if family == "faults" else self.declaration(node, family, path)

    def items(self, node: yaml.Node, family: str, path: str) -> Any:
        """Build a list of declarations."""
        if not isinstance(node, yaml.SequenceNode):
            return self.wrong(node, path, f"got {shown(node)}", "a list")
        path = "faults" if path == "faults.faults" else path  # a plan written out: its faults are called the same
        found = tuple(self.declaration(item, family, f"{path}[{i}]") for i, item in enumerate(node.value))
        return WRONG if any(item is WRONG for item in found) else found

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
        return found if found is WRONG else FaultPlan(found)

    def plain(self, node: yaml.Node, hint: Any, path: str) -> Any:
        """Return a value that is no declaration: scalars, tuples, arrays; matrices may be among its items."""
        if isinstance(node, yaml.SequenceNode):
            for i, item in enumerate(node.value if not holds(hint, np.ndarray) else ()):
                self.places.note(f"{path}[{i}]", item)
            return tuple(self.plain(item, hint, f"{path}[{i}]") for i, item in enumerate(node.value))
        if isinstance(node, yaml.MappingNode):
            given = {str(key.value): value for key, value in node.value}
            if holds(hint, np.ndarray) and list(given) == ["input"]:
                try:
                    return self._inputs.get(str(given["input"].value))
                except (UserError, OSError, ValueError) as error:
                    return self.wrong(node, f"{path}.input", str(error))
            if "kind" in given and names.family_of(str(given["kind"].value)) == "matrix":
                return self.declaration(node, "matrix", path)
            return given
        assert isinstance(node, yaml.ScalarNode)
        value = scalar(node)
        if isinstance(value, (int, float)) and holds(hint, str) and not holds(hint, int, float, np.ndarray):
            value = str(node.value)  # a name such as 1e5
        return self.whole_path(value) if isinstance(value, str) and holds(hint, Path) else value

    def whole_path(self, value: str) -> str:
        """Return ``path`` or ``name:path`` with the whole path of the file, if it is beside the configuration."""
        name, colon, path = value.rpartition(":")
        for before, relative in (("", value), (name + colon, path)):
            if is_file(self.folder / relative):
                return f"{before}{(self.folder / relative).resolve()}"
        return value


class _AnyWorkload:
    """Stands for a workload that is wrong, where only the other parts are asked."""

    def problem(self, seed: int) -> Any:
        """Never asked."""
        raise NotImplementedError


def _names(role: str, count: int) -> str:
    return f"{role}-0" if count == 1 else f"{role}-0 to {role}-{count - 1}"
