"""SimPy's names from each implementation: SimPy itself, and emuml's pure and compiled environments."""

from types import SimpleNamespace

import simpy
from simpy import events

from emuml._kernels import EVENT_KERNELS, built
from emuml.des import pure

STOCK = {name: getattr(simpy, name) for name in simpy.__all__} | {"Condition": events.Condition}
OURS = {"pure": SimpleNamespace(**STOCK | {"Environment": pure.Environment})}
if all(built(name) for name in EVENT_KERNELS):
    from emuml.des import compiled, compiled_resources

    NAMES = {name: getattr(compiled, name, getattr(compiled_resources, name, STOCK[name])) for name in STOCK}
    OURS["compiled"] = SimpleNamespace(**NAMES)
    # SimPy's own resources and conditions on our environment, processes and timeouts.
    OURS["compiled environment"] = SimpleNamespace(**STOCK | {"Environment": compiled.Environment})
ALL = {"simpy": SimpleNamespace(**STOCK)} | OURS
