from typing import Any

from emuml._kernels.requests import BaseResource, Get, Put

def bind(store_put: type[Any], store_get: type[Any]) -> None: ...

class StorePut(Put):
    item: Any
    def __init__(self, store: Any, item: Any) -> None: ...

class StoreGet(Get): ...

class Store(BaseResource):
    items: list[Any]
    def __init__(self, env: Any, capacity: float = ...) -> None: ...
    put: Any
    get: Any
