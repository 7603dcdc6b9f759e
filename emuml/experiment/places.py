"""Where each setting of a configuration stands, so that an error that shows later still points to a line.

Errors name what they are about in the words of the declarations: ``LogisticRegression.data``, ``cluster.servers``,
``collect``. Here those words are traced to what the file says, or to the nearest thing around it that is written.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

import yaml

from emuml import names
from emuml.errors import UserError
from emuml.experiment.models import fields_of
from emuml.experiment.yaml_tree import Problem, is_file, near_file, place, scalar, shortened, shown

_PATH = re.compile(r"[\w-]+(\[\d+\])?(\.[\w-]+(\[\d+\])?)*")
_PATH_MAX = 200
_SET_BY = {"partitions": "cluster.workers"}
"""Quantities that no setting is called like, and the setting that they follow from."""


class Written(NamedTuple):
    """One value of a configuration: where it stands, and what it says."""

    place: str
    shown: str
    value: bool | int | float | str | None

    @property
    def text(self) -> str | None:
        """The value, if it is text."""
        return self.value if isinstance(self.value, str) else None


class Places:
    """What a configuration says, by path (``protocol.code.replication``), and which class each declaration is of.

    Parameters
    ----------
    folder : Path
        Of the file: where relative paths in it begin.
    """

    def __init__(self, folder: Path = Path()) -> None:
        self.folder = folder
        self.written: dict[str, Written] = {}
        self.classes: dict[str, type] = {}

    def note(self, path: str, node: yaml.Node) -> None:
        """Note a value."""
        self.written[path] = self.of(node)

    @staticmethod
    def of(node: yaml.Node) -> Written:
        """Return a value with its place."""
        return Written(place(node), shown(node), scalar(node) if isinstance(node, yaml.ScalarNode) else None)

    def point(self, error: UserError, part: str = "") -> Problem | None:
        """Return an error with its place and the path of the setting, or None if no setting is meant.

        Parameters
        ----------
        error : UserError
        part : str
            Path of what was asked when the error showed.
        """
        if path := self._naming_file_of(error):
            value = self.written[path]
            place_in_file = error.where.rpartition(str(value.text))[2]
            text = said(f"{path}: {value.text}{place_in_file}", error.what, error.allowed, error.hint)
            return Problem(value.place, text)
        path = self._path_of(error, part)
        stands = self._longest(path)
        if stands not in self.written:
            return None
        value = self.written[stands]
        whole = repr(value.value)
        what = error.what.replace(whole, value.shown) if len(whole) > len(value.shown) else error.what
        says_value = value.shown in what or (value.text is not None and value.text in what)
        given = "" if stands != path or says_value or not path or not _is_plain(value) else f"given: {value.shown}"
        hint = error.hint or (self._near_file(value) if stands == path else "")
        return Problem(value.place, said(path, what, error.allowed, hint, given))

    def _naming_file_of(self, error: UserError) -> str:
        """Return the setting that names the file that the error is about, or an empty string."""
        for path, value in self.written.items():
            if value.text and Path(value.text).suffix:
                files = (value.text, str(self.folder / value.text), str((self.folder / value.text).absolute()))
                if any(error.where == file or error.where.startswith(f"{file}:") for file in files):
                    return path
        return ""

    def _path_of(self, error: UserError, part: str) -> str:
        match = _PATH.match(error.where)
        wanted = match[0].removeprefix("experiment.").removeprefix("Experiment.") if match else ""
        wanted = _SET_BY.get(wanted, wanted)
        head, _, rest = wanted.partition(".")
        owners = [path for path, cls in self.classes.items() if _within(path, part) and _is_called(cls, head)]
        if owners:
            field = rest.partition(".")[0].partition("[")[0]
            found = [_join(owner, field if field in fields_of(self.classes[owner]) else "") for owner in owners]
        elif wanted in self.written:
            found = [wanted]
        else:
            found = self._ending_with(wanted, part) or [self._longest(wanted) or self._having(wanted, part)]
        says = (path for path in found if path in self.written and self.written[path].shown in error.what)
        return next(says, found[-1])

    def _ending_with(self, wanted: str, part: str) -> list[str]:
        """Return the settings of the part, or of what ``wanted`` begins with, that have its last name."""
        head, last = wanted.partition(".")[0], wanted.rpartition(".")[2].partition("[")[0]
        named = [path for path in self.written if path.rpartition(".")[2] == last]
        for under in dict.fromkeys((part, head, "")):
            if found := [path for path in named if _within(path, under)]:
                return found
        return []

    def _longest(self, path: str) -> str:
        """Return the path, or that of the innermost thing around it that is written."""
        while path and path not in self.written:
            path = _parent(path)
        return path

    def _having(self, name: str, part: str) -> str:
        """Return the path that a setting would have that is not written, or the part itself."""
        owners = (path for path, cls in self.classes.items() if _within(path, part) and name in fields_of(cls))
        return next((_join(owner, name) for owner in owners), part)

    def _near_file(self, value: Written) -> str:
        """Return the nearest file beside a missing one, if the value looks like a file."""
        if value.text is None or not Path(value.text).suffix:
            return ""
        path = self.folder / value.text
        return "" if is_file(path) else near_file(path)

    def elsewhere(self, name: str, path: str) -> str:
        """Return which declaration has a key that is unknown at ``path``, the nearest one, or an empty string."""
        known = {**self._unwritten(), **self.classes}
        owners = [owner for owner, cls in known.items() if owner != path and name in fields_of(cls)]
        if not owners:
            return ""
        nearest = min(owners, key=lambda owner: (_join(owner, name) in self.written, _distance(owner, path), owner))
        return f"did you mean {shortened(_join(nearest, name), _PATH_MAX)!r}{'' if nearest else ' at the top level'}?"

    def _unwritten(self) -> dict[str, type]:
        """Return the declarations that may be left out, whose kind needs no name, such as networks."""
        found: dict[str, type] = {}
        for path, cls in self.classes.items():
            for field in fields_of(cls):
                kinds = list(names.REGISTRY.get(field, {}))
                if (len(kinds) == 1 or field in kinds) and _join(path, field) not in self.written:
                    found[_join(path, field)] = names.resolve(field, kinds[0])
        return found


def said(path: str, what: str, allowed: str = "", hint: str = "", given: str = "") -> str:
    """Return one line: the path, what is wrong, what was given, what is allowed, what was probably meant."""
    text = "; ".join(filter(None, (what, given, f"allowed: {allowed}" if allowed else "", hint)))
    return f"{shortened(path, _PATH_MAX)}: {text}" if path else text


def _is_plain(value: Written) -> bool:
    return value.shown not in ("a list", "a mapping", "nothing")


def _is_called(cls: type, name: str) -> bool:
    return name in (cls.__name__, names.kind_of(cls))


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path and name else path or name


def _parent(path: str) -> str:
    """Return the path of what a value or an item stands in."""
    return path[: path.rindex("[")] if path.endswith("]") else path.rpartition(".")[0]


def _within(path: str, part: str) -> bool:
    return not part or path == part or path.startswith((f"{part}.", f"{part}["))


def _distance(one: str, other: str) -> int:
    """Return how many steps up and down lead from one path to another."""
    first, second = (path.split(".") if path else [] for path in (one, other))
    common = next(
        (i for i, (a, b) in enumerate(zip(first, second, strict=False)) if a != b), min(len(first), len(second))
    )
    return len(first) + len(second) - 2 * common
