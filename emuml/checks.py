"""Check mode (``EMUML_CHECK=1``): contract violations are raised where they happen. Slower; on in the tests.

Tripwires on clocks, ambient randomness and threads act only inside a handler, in the thread that runs it, and not for
calls that the standard library makes for itself.
"""

from __future__ import annotations

import os
import random
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from emuml.errors import ForbiddenCall, HiddenState, MutatedAfterSend
from emuml.message import Message, digest

if TYPE_CHECKING:
    from emuml.life import Life

_inside = threading.local()
_IN_SECONDS = ("time", "monotonic", "perf_counter", "process_time", "thread_time", "clock_gettime")
_CLOCKS = (*_IN_SECONDS, *(f"{name}_ns" for name in _IN_SECONDS), "sleep")


def _ambient(owner: Any, kind: type) -> tuple[str, ...]:
    """Return the public functions of a module that act on its hidden generator of this kind."""
    return tuple(name for name, value in vars(owner).items() if isinstance(getattr(value, "__self__", None), kind))


_RANDOM = _ambient(random, random.Random)
_NUMPY = (*_ambient(np.random, np.random.RandomState), "seed")
_installed = False


def _guard(owner: Any, name: str, label: str) -> None:
    original: Callable[..., Any] = getattr(owner, name)

    def guarded(*args: Any, **kwargs: Any) -> Any:
        node = getattr(_inside, "node", None)
        if node is not None and _caller_is_foreign():
            raise ForbiddenCall(node, f"{label}.{name}")
        return original(*args, **kwargs)

    guarded.__name__ = name
    guarded.__doc__ = original.__doc__
    setattr(owner, name, guarded)


def _caller_is_foreign() -> bool:
    module = sys._getframe(2).f_globals.get("__name__", "")
    return module.partition(".")[0] not in sys.stdlib_module_names


def install_tripwires() -> None:
    """Put the tripwires in place, once a process."""
    global _installed
    if _installed:
        return
    _installed = True
    for names, owner, label in (
        (_CLOCKS, time, "time"),
        (_RANDOM, random, "random"),
        (_NUMPY, np.random, "numpy.random"),
        (("urandom",), os, "os"),
        (("uuid1", "uuid4"), uuid, "uuid"),
        (("start",), threading.Thread, "threading.Thread"),
    ):
        for name in names:
            _guard(owner, name, label)


class Checker:
    """Surrounds the handlers of a run with checks; one object serves all nodes of an engine."""

    def __init__(self) -> None:
        install_tripwires()
        self._state: dict[type, dict[str, str]] = {}
        self._sent: list[tuple[Message, int]] = []

    def sent(self, message: Message) -> None:
        """Remember what a message held when it was sent, to find later changes through an earlier view."""
        self._sent.append((message, digest(message)))

    @contextmanager
    def around(self, life: Life) -> Iterator[None]:
        """Run one handler with tripwires on, and compare the class's own attributes afterwards."""
        cls = type(life.node)
        before = self._state.setdefault(cls, _class_state(cls))
        _inside.node = str(life.id)
        try:
            yield
        finally:
            _inside.node = None
            sent, self._sent = self._sent, []
        for message, before_handler_ended in sent:
            if digest(message) != before_handler_ended:
                raise MutatedAfterSend(str(life.id), type(message).__name__, "an array")
        after = _class_state(cls)
        if after != before:
            changed = sorted(name for name in after.keys() | before.keys() if after.get(name) != before.get(name))
            raise HiddenState(str(life.id), f"{cls.__name__}.{changed[0]}")


def _class_state(cls: type) -> dict[str, str]:
    found: dict[str, str] = {}
    for base in cls.__mro__[:-1]:
        for name, value in vars(base).items():
            if not name.startswith("__") and not name.startswith("_abc") and not callable(value):
                found.setdefault(name, repr(value))
    return found
