from typing import Any

class Entry: ...

class Queue:
    _active_proc: Any
    @property
    def live(self) -> int: ...
    @property
    def dead(self) -> int: ...
