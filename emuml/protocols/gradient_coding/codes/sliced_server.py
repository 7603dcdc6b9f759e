"""The server of codes with slices: it tells the code how many parameters there are."""

from __future__ import annotations

from emuml.protocol import Problem
from emuml.protocols.gradient_coding.codes.sliced import SlicedCode
from emuml.protocols.gradient_coding.server import Server
from emuml.roster import Roster
from emuml.shapes import Stragglers


class SlicedServer(Server):
    """Puts the slices of gradients together, and takes off what they were filled up with."""

    def __init__(self, code: SlicedCode, workload: Problem, roster: Roster, stragglers: Stragglers = "cancel") -> None:
        super().__init__(code.of(workload.initial.shape), workload, roster, stragglers)
