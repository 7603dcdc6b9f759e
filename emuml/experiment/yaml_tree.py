"""YAML as a tree that knows the line and column of every key and value, and ``key=value`` arguments laid over it.

Scalars are read by the core schema of YAML 1.2, because that of 1.1, which PyYAML follows, reads ``1e-4`` as text,
``no`` as false, ``010`` as eight and ``1:30`` as ninety. Repeated keys and aliases are refused. What a key means is not
known here.
"""

from __future__ import annotations

import re
import stat
from dataclasses import fields
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from emuml.errors import did_you_mean, printable
from emuml.spec import class_of

_TAG = "tag:yaml.org,2002:"
_LEVELS_MAX = 100
_DIGITS_MAX = 300
"""Of an integer: no float holds more."""
_SHOWN_MAX = 80
_PIPES = ("/dev/stdin", "/dev/fd/", "/proc/self/fd/")
"""What shells hand over, such as ``<(command)``."""


class Problem(Exception):
    """One thing that is wrong at one place.

    Parameters
    ----------
    place : str
        ``FILE:LINE:COLUMN`` or the argument.
    text : str
    """

    def __init__(self, place: str, text: str) -> None:
        super().__init__(place, text)
        self.place, self.text = place, text

    def __str__(self) -> str:
        return printable(f"{self.place}: {self.text}" if self.place else self.text)


class Pair(NamedTuple):
    """A key and its value, each with its place."""

    key: yaml.Node
    value: yaml.Node


class _Argument(str):
    """Name of a source that has neither lines nor columns."""

    __slots__ = ()


class _Loader(yaml.SafeLoader):
    yaml_implicit_resolvers: dict[str, list[Any]] = {}  # noqa: RUF012 (PyYAML's own attribute)

    levels = 0

    def compose_node(self, parent: Any, index: Any) -> Any:
        event: Any = self.peek_event()  # type: ignore[no-untyped-call]
        where = _place(event.start_mark)
        if isinstance(event, yaml.AliasEvent):
            raise Problem(where, "not supported: an alias; write the value again instead")
        if getattr(event, "tag", None) is not None:
            tag = str(event.tag).replace(_TAG, "!!")
            raise Problem(where, f"not supported: the tag {shortened(tag)}; leave it out")
        if self.levels > _LEVELS_MAX:
            raise Problem(where, f"nested too deeply; allowed: {_LEVELS_MAX} levels")
        self.levels += 1
        node: Any = super().compose_node(parent, index)
        self.levels -= 1
        if node.tag == _TAG + "int" and len(node.value) > _DIGITS_MAX:
            what = f"an integer of {len(node.value):,} characters; allowed: at most {_DIGITS_MAX}"
            raise Problem(where, what)
        return node


for _kind, _pattern, _first in (
    ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("bool", r"true|True|TRUE|false|False|FALSE", list("tTfF")),
    ("int", r"[-+]?[0-9]+", list("-+0123456789")),
    ("float", r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.inf|\.nan", list("-+.0123456789")),
):
    _Loader.add_implicit_resolver(_TAG + _kind, re.compile(f"(?:{_pattern})$"), _first)


def read(path: Path) -> yaml.Node:
    """Compose a file.

    Raises
    ------
    Problem
        If it cannot be read or is no YAML.
    """
    try:
        mode = path.stat().st_mode
        if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode) or (stat.S_ISFIFO(mode) and str(path).startswith(_PIPES))):
            raise Problem(str(path), "no regular file")  # to read it may take forever
        content = path.read_bytes()
        text = content.decode("utf-8").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        where = _position(content[: error.start].decode("utf-8"))
        what = f"not UTF-8 text: {error.reason} 0x{content[error.start]:02x}"
        raise Problem(f"{path}:{where}", f"{what}; save the file as UTF-8") from None
    except (OSError, ValueError) as error:  # the second for names with a null
        what = getattr(error, "strerror", None) or str(error)
        raise Problem(shortened(str(path)), "; ".join(filter(None, (what, _other_file(path))))) from None
    return compose(text, str(path))


def _position(before: str) -> str:
    """Return ``LINE:COLUMN`` of what follows a text."""
    return f"{before.count(chr(10)) + 1}:{len(before) - before.rfind(chr(10))}"


def _other_file(path: Path) -> str:
    """Return which file was probably meant by one that cannot be read."""
    inside = path / "config.yaml"
    return f"did you mean '{inside}'?" if is_file(inside) else near_file(path)


def is_file(path: Path) -> bool:
    """Tell whether there is a regular file; names that no file can have are none."""
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def near_file(path: Path) -> str:
    """Return ``did you mean ...?`` for the nearest file beside a missing one."""
    try:
        siblings = [entry.name for entry in path.parent.iterdir()] if path.parent.is_dir() else []
    except (OSError, ValueError):
        return ""
    return did_you_mean(path.name, sorted(name for name in siblings if name != path.name))


def compose(text: str, name: str) -> yaml.Node:
    """Compose text; ``name`` is what places call it.

    Raises
    ------
    Problem
        If it is no YAML; an empty document is the scalar ``null``.
    """
    try:
        loader = _Loader(text)
        loader.name = name
        node: yaml.Node | None = loader.get_single_node()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise Problem(_place(mark) if mark else name, _syntax(error)) from None
    except yaml.reader.ReaderError as error:
        where = name if isinstance(name, _Argument) else f"{name}:{_position(text[: error.position])}"
        raise Problem(where, f"not YAML: the character {chr(error.character)!r} is not allowed in text") from None
    return yaml.ScalarNode(_TAG + "null", "", _start(name), _start(name)) if node is None else node


def _syntax(error: yaml.MarkedYAMLError) -> str:
    """Say what the parser did not expect, what it was reading, and what to do about tabs."""
    text = f"not YAML: {error.problem or error.context}"
    began = error.context_mark
    if error.problem and str(error.context).startswith("while") and began and not isinstance(began.name, _Argument):
        text += f" {error.context} that begins in line {began.line + 1}"
    return f"{text}; indent with spaces" if "\\t" in text else text


def _start(name: str) -> yaml.Mark:
    return yaml.Mark(name, 0, 0, 0, None, 0)


def place(node: yaml.Node) -> str:
    """Return ``FILE:LINE:COLUMN`` of a node, counted from 1, or the argument that it came from."""
    return _place(node.start_mark)


def _place(mark: yaml.Mark) -> str:
    return mark.name if isinstance(mark.name, _Argument) else f"{mark.name}:{mark.line + 1}:{mark.column + 1}"


def is_null(node: yaml.Node) -> bool:
    """Tell whether a node says nothing."""
    return isinstance(node, yaml.ScalarNode) and node.tag == _TAG + "null"


def shown(node: yaml.Node) -> str:
    """Return a value as messages show it; what is long is cut, or called by its sort."""
    if isinstance(node, yaml.ScalarNode):
        value = scalar(node)
        return "nothing" if value is None else str(value).lower() if isinstance(value, bool) else shortened(repr(value))
    if isinstance(node, yaml.SequenceNode) and all(isinstance(item, yaml.ScalarNode) for item in node.value[:9]):
        text = f"[{', '.join(shown(item) for item in node.value[:9])}]"
        return text if len(node.value) < 9 and len(text) <= 40 else "a list"
    return "a list" if isinstance(node, yaml.SequenceNode) else "a mapping"


def shortened(text: str, most: int = _SHOWN_MAX) -> str:
    """Return a text, or its beginning and its end if it is long."""
    return text if len(text) <= most else f"{text[: most - 20]}...{text[-17:]}"


def scalar(node: yaml.ScalarNode) -> bool | int | float | str | None:
    """Return the value of a scalar."""
    if node.tag == _TAG + "null":
        return None
    if node.tag == _TAG + "bool":
        return str(node.value).lower() == "true"
    if node.tag == _TAG + "int":
        return int(node.value)
    if node.tag == _TAG + "float":
        return float(str(node.value).lower().replace(".inf", "inf").replace(".nan", "nan"))
    return str(node.value)


def pairs(node: yaml.MappingNode, path: str, problems: list[Problem]) -> dict[str, Pair]:
    """Return the pairs of a mapping by key; repeated keys are problems, and the first one counts."""
    found: dict[str, Pair] = {}
    for key, value in node.value:
        name = str(key.value) if isinstance(key, yaml.ScalarNode) else "a key that is no text"
        if name in found:
            where = f"{path}.{shortened(name)}" if path else shortened(name)
            problems.append(Problem(place(key), f"{where}: given twice, first at {place(found[name].key)}"))
        else:
            found[name] = Pair(key, value)
    return found


def override(root: yaml.Node, argument: str) -> None:
    """Lay ``key=value`` over a tree; keys are joined by points, values are YAML.

    Another ``kind`` keeps the parameters that it has too, and drops the others.

    Raises
    ------
    Problem
        If the argument has another form.
    """
    path, equals, text = argument.partition("=")
    source = _Argument(f"argument {shortened(repr(argument))}")
    if not equals or not all(path.split(".")):
        raise Problem(source, "not of the form key=value; allowed: such as cluster.workers=50")
    if path == "tier":  # of a run, not of the experiment
        raise Problem(source, f"no setting of an experiment; did you mean 'emuml run --tier {shortened(text)}'?")
    value = compose(text, source)
    *parents, last = path.split(".")
    node = root
    for name in parents:
        node = _mapping(_Slot(node, name, source))
    slot = _Slot(node, last, source)
    old = slot.get()
    if last == "kind" and isinstance(node, yaml.MappingNode) and old is not None and old.value != value.value:
        known = _parameters(str(value.value))
        node.value = [(key, given) for key, given in node.value if key.value in known]
    slot.set(value)


def _parameters(kind: str) -> frozenset[str]:
    """Return the names of the parameters of a kind; none if there is no such kind, which is reported elsewhere."""
    try:
        return frozenset(field.name for field in fields(class_of(kind)))
    except (Exception, SystemExit):  # a module of the user's may raise whatever it likes
        return frozenset()


class _Slot:
    """Where a value stands in its mapping or list."""

    def __init__(self, parent: yaml.Node, name: str, source: _Argument) -> None:
        self.parent, self.name, self.source = parent, name, source
        if isinstance(parent, yaml.SequenceNode) and not (name.isdigit() and int(name) < len(parent.value)):
            raise Problem(source, f"{name!r} is no index of a list of {len(parent.value)}")
        if not isinstance(parent, yaml.CollectionNode):
            raise Problem(source, "the file is no mapping")

    def get(self) -> yaml.Node | None:
        if isinstance(self.parent, yaml.SequenceNode):
            return self.parent.value[int(self.name)]  # type: ignore[no-any-return]
        return next((value for key, value in self.parent.value if key.value == self.name), None)

    def set(self, value: yaml.Node) -> None:
        if isinstance(self.parent, yaml.SequenceNode):
            self.parent.value[int(self.name)] = value
            return
        kept = [(key, old) for key, old in self.parent.value if key.value != self.name]
        self.parent.value = [*kept, (_text(self.name, self.source), value)]


def _mapping(slot: _Slot) -> yaml.Node:
    """Return the mapping or list in a slot; a kind without parameters becomes a mapping, nothing an empty one."""
    old = slot.get()
    if isinstance(old, yaml.CollectionNode):
        return old
    given = [] if old is None or is_null(old) else [(_text("kind", slot.source), old)]
    made = yaml.MappingNode(_TAG + "map", given, _start(slot.source), _start(slot.source))
    slot.set(made)
    return made


def _text(text: str, source: _Argument) -> yaml.ScalarNode:
    return yaml.ScalarNode(_TAG + "str", text, _start(source), _start(source))
