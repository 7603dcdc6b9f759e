from collections.abc import Callable, Iterable
from types import ModuleType
from typing import Any

from emuml._kernels.events import Core
from emuml._kernels.occurrences import Event

def bind(simpy_events: ModuleType) -> None: ...

class Condition(Event):
    def __init__(self, env: Core, evaluate: Callable[..., bool], events: Iterable[Any]) -> None: ...

class AllOf(Condition):
    def __init__(self, env: Core, events: Iterable[Any]) -> None: ...

class AnyOf(Condition):
    def __init__(self, env: Core, events: Iterable[Any]) -> None: ...
