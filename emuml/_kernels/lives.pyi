from collections.abc import Sequence
from types import ModuleType
from typing import Any

def configure(module: ModuleType) -> None: ...

class Desk:
    def __init__(self, emulator: Any, roles: Sequence[str], linked: bytearray) -> None: ...
    def append(self, effect: Any) -> None: ...
    def enrol(self, nodes: dict[Any, Any]) -> dict[Any, Any]: ...

class Machine:
    id: Any
    name: str
    incarnation: int
    life: Any

class Handlers:
    def __init__(self, on_message: Any, on_computed: Any, on_timer: Any) -> None: ...

class Life:
    node: Any
    incarnation: int
    def __init__(self, machine: Machine, node: Any, incarnation: int) -> None: ...
