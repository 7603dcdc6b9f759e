"""What a node process is told when it starts: plain data, over its standard input, never in its arguments."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from emuml.node import NodeId
from emuml.roster import Roster
from emuml.runtime.settings import RuntimeSettings
from emuml.spec import InputFolder, Inputs, from_spec, to_spec
from emuml.stopping import StopCondition


class NodeSpec(msgspec.Struct, frozen=True):
    """One incarnation of a node.

    ``build`` says how its node object is made: ``{"experiment": ...}`` or ``{"call": ...}``; ``compute`` is the spec of
    the law that tasks on workers follow, ``triggers`` the logged counters at which the fault plan acts.
    """

    run: str
    node: str
    incarnation: int
    secret: str
    coordinator: tuple[str, int]
    folder: str
    ids: list[str]
    seed: int
    stop: dict[str, Any]
    settings: RuntimeSettings
    cores: int
    unit_cost: float
    compute: dict[str, Any]
    triggers: list[tuple[str, int]]
    build: dict[str, Any]
    versions: dict[str, str]

    @property
    def id(self) -> NodeId:
        """The node's id."""
        return NodeId.parse(self.node)

    @property
    def own_folder(self) -> Path:
        """Folder of this incarnation: journal, trace, log."""
        return Path(self.folder) / "nodes" / f"{self.node}.{self.incarnation}"

    @property
    def store_folder(self) -> Path:
        """Folder of the node id's stable storage."""
        return Path(self.folder) / "nodes" / f"{self.node}.store"

    def inputs(self) -> Inputs:
        """Return the arrays of the run, mapped from its folder."""
        return InputFolder(Path(self.folder) / "inputs")

    def roster(self) -> Roster:
        """Return the ids, seed and stop condition of the run."""
        stop: StopCondition = from_spec(self.stop, Inputs())
        return Roster(tuple(NodeId.parse(node) for node in self.ids), self.seed, stop)


def encode_spec(spec: NodeSpec) -> bytes:
    """Return the line that starts a node process."""
    return msgspec.json.encode(spec, enc_hook=lambda value: to_spec(value, Inputs())) + b"\n"


def decode_spec(line: bytes) -> NodeSpec:
    """Read that line."""
    return msgspec.json.decode(line, type=NodeSpec, dec_hook=lambda kind, value: from_spec(value, Inputs()))
