"""Workers that lie over TCP, importable by node processes: in what they say, and in what they write to sockets."""

from __future__ import annotations

import gc
from dataclasses import dataclass
from functools import partial
from typing import Any

from emuml.node import NodeId
from emuml.protocols.gradient_coding.protocol import GradientCoding
from emuml.protocols.gradient_coding.worker import Worker
from emuml.runtime import wire
from emuml.runtime.connection import Connection
from tests.protocols.liars import Liar

BYTES = {
    "garbage": bytes(range(256)) * 8,
    "http": b"GET / HTTP/1.1\r\n\r\n",
    "zeros": bytes(4096),
    "no message": b"".join(wire.encode_frame(wire.FrameType.DATA, b"\x92\xa4Evil\x01", (), 1)),
    "cut": b"".join(wire.encode_frame(wire.FrameType.DATA, b"\x94\xa8Gradient\x01\x00", (), 1))[:40],
}


class Vandal(Worker):
    """Writes bytes of its own to its connection with the server, in the place of each answer."""

    written = 0

    def on_computed(self, ctx: Any, tag: Any, result: Any) -> None:
        kinds = list(BYTES)
        kind, self.written = kinds[self.written % len(kinds)], self.written + 1
        for found in gc.get_objects():
            if isinstance(found, Connection) and found.peer == "server-0" and not found.closed.done():
                found._write(BYTES[kind])
        self.open = None


@dataclass(frozen=True)
class WithLiars(GradientCoding):
    """Gradient coding in which some workers lie, in each round in another way, and others write to their sockets."""

    liars: tuple[int, ...] = ()
    vandals: tuple[int, ...] = ()

    def nodes(self, workload: Any, roster: Any) -> Any:
        found = dict(super().nodes(workload, roster))
        for kind, indices in ((Liar, self.liars), (Vandal, self.vandals)):
            for id in (NodeId("worker", index) for index in indices):
                role, factory = found[id]
                found[id] = role, partial(kind, *factory.args)
        return found
