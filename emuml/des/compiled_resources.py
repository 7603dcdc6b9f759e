"""Stores, resources and containers of SimPy, compiled; those with an order of their own are SimPy's on top of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from simpy.events import PENDING
from simpy.resources import container, resource, store

from emuml._kernels import requests, resources, stores
from emuml.des.compiled import Event


class StorePut(stores.StorePut, Event, store.StorePut):
    """SimPy's request to put an item into a store, compiled."""


class StoreGet(stores.StoreGet, Event, store.StoreGet):
    """SimPy's request to get an item from a store, compiled."""


class FilterStoreGet(StoreGet, store.FilterStoreGet):
    """A request to get an item that a function chooses."""

    def __init__(self, resource: Store, filter: Callable[[Any], bool] = lambda item: True) -> None:  # noqa: A002
        self.filter = filter
        super().__init__(resource)


class Store(stores.Store, store.Store):
    """SimPy's store, compiled: first in, first out."""


class PriorityStore(Store, store.PriorityStore):
    """SimPy's store of things in their order."""

    _do_put = store.PriorityStore._do_put
    _do_get = store.PriorityStore._do_get


class FilterStore(Store, store.FilterStore):
    """SimPy's store from which functions choose."""

    _do_get = store.FilterStore._do_get

    def get(self, filter: Callable[[Any], bool] = lambda item: True) -> FilterStoreGet:  # noqa: A002
        """Return a request to get an item for which ``filter`` returns true."""
        return FilterStoreGet(self, filter)


class Request(resources.Request, Event, resource.Request):
    """SimPy's request to use a resource, compiled."""


class Release(resources.Release, Event, resource.Release):
    """SimPy's release of a resource, compiled."""


class PriorityRequest(Request, resource.PriorityRequest):
    """A request that goes before those with a larger priority; it may take the place of one."""

    def __init__(self, resource: Resource, priority: int = 0, preempt: bool = True) -> None:
        self.priority, self.preempt, self.time = priority, preempt, resource._env.now
        self.key = (priority, self.time, not preempt)
        super().__init__(resource)


class Resource(resources.Resource, resource.Resource):
    """SimPy's resource, compiled: first come, first served."""


class PriorityResource(Resource, resource.PriorityResource):
    """SimPy's resource whose users have priorities."""

    PutQueue = resource.SortedQueue

    def request(self, priority: int = 0, preempt: bool = True) -> PriorityRequest:
        """Return a request to use the resource."""
        return PriorityRequest(self, priority, preempt)


class PreemptiveResource(PriorityResource, resource.PreemptiveResource):
    """SimPy's resource whose users may be driven out."""

    _do_put = resource.PreemptiveResource._do_put


class ContainerPut(resources.ContainerPut, Event, container.ContainerPut):
    """SimPy's request to put an amount, compiled."""


class ContainerGet(resources.ContainerGet, Event, container.ContainerGet):
    """SimPy's request to get an amount, compiled."""


class Container(resources.Container, container.Container):
    """SimPy's container, compiled."""


requests.bind(PENDING)
stores.bind(StorePut, StoreGet)
resources.bind(Request, Release, ContainerPut, ContainerGet)
