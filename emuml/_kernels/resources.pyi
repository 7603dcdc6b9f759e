from collections.abc import Mapping
from typing import Any

from emuml._kernels.processes import Event

def bind(classes: Mapping[str, type[Any]]) -> None: ...

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

class StorePut(Put):
    item: Any
    def __init__(self, store: Any, item: Any) -> None: ...

class StoreGet(Get): ...

class Store(BaseResource):
    items: list[Any]
    def __init__(self, env: Any, capacity: float = ...) -> None: ...
    put: Any
    get: Any

class Request(Put):
    usage_since: Any

class Release(Get):
    request: Any
    def __init__(self, resource: Any, request: Any) -> None: ...

class Resource(BaseResource):
    users: list[Any]
    queue: Any
    def __init__(self, env: Any, capacity: int = 1) -> None: ...
    @property
    def count(self) -> int: ...
    def request(self) -> Any: ...
    def release(self, request: Any) -> Any: ...

class ContainerPut(Put):
    amount: Any
    def __init__(self, container: Any, amount: float) -> None: ...

class ContainerGet(Get):
    amount: Any
    def __init__(self, container: Any, amount: float) -> None: ...

class Container(BaseResource):
    def __init__(self, env: Any, capacity: float = ..., init: float = 0) -> None: ...
    @property
    def level(self) -> Any: ...
    put: Any
    get: Any
