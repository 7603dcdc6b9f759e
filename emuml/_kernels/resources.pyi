from typing import Any

from emuml._kernels.requests import BaseResource, Get, Put

def bind(request: type[Any], release: type[Any], container_put: type[Any], container_get: type[Any]) -> None: ...

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
