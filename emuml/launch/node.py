"""Entry point of a node process: ``python -m emuml.launch.node -``, with its spec on standard input.

Standard input stays open as the lifeline. Exit status: 0 the run ended, 3 this node failed or was left alone.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

from emuml import names
from emuml.node import Node
from emuml.runtime.node_spec import NodeSpec, decode_spec
from emuml.spec import from_spec

PR_SET_PDEATHSIG = 1
PARENT = "EMUML_PARENT"
"""Environment variable: process id of whoever started the node, and without whom it must not live."""


def main() -> int:
    """Run one node until the run ends."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.environ.get(PARENT, str(os.getppid())) != str(os.getppid()):  # it died before the signal was asked for
            return 3
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    spec = decode_spec(sys.stdin.buffer.readline())

    from emuml.runtime.serving import serve

    return serve(spec, factory_of(spec), sys.stdin.fileno())


def factory_of(spec: NodeSpec) -> Callable[[], Node]:
    """Return the factory of this spec's node, rebuilt from plain data."""
    if "call" in spec.build:
        arguments = [from_spec(argument, spec.inputs()) for argument in spec.build["arguments"]]
        factory: Callable[[], Node] = partial(names.load(spec.build["call"]), *arguments)
        return factory
    experiment = spec.build["experiment"]
    inputs = spec.inputs()
    problem: Any = from_spec(experiment["problem"], inputs)
    protocol: Any = from_spec(experiment["protocol"], inputs)
    found: Callable[[], Node] = protocol.nodes(problem, spec.roster())[spec.id][1]
    return found


if __name__ == "__main__":
    sys.exit(main())
