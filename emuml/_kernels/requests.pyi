from typing import Any

from emuml._kernels.occurrences import Event

def bind(pending: object) -> None: ...

class BaseRequest(Event):
    resource: Any
    proc: Any
    def __enter__(self) -> Any: ...
    def __exit__(self, kind: Any, error: Any, traceback: Any) -> Any: ...

class Put(BaseRequest):
    def __init__(self, resource: Any) -> None: ...
    def cancel(self) -> None: ...

class Get(BaseRequest):
    def __init__(self, resource: Any) -> None: ...
    def cancel(self) -> None: ...

class BaseResource:
    _env: Any
    _capacity: Any
    put_queue: Any
    get_queue: Any
    @property
    def capacity(self) -> Any: ...
