"""Coroutines that are driven step by step, out of reach of event loops, and that die as a killed process dies.

1. While one runs, there is no event loop for it, and no async generator can begin (contract 17.1, 17.6).
2. One that is never resumed runs no ``finally`` block and no handler, neither when its run is over nor when the program
   ends (contract 17.9). It is kept as long as its run, and then made to unwind with no room for a frame.
"""

from __future__ import annotations

import atexit
import gc
import sys
from functools import cache
from types import CoroutineType, FrameType
from typing import Any, TypeAlias
from weakref import WeakKeyDictionary, finalize

from emuml.waits import ALLOWED

Main: TypeAlias = "CoroutineType[Any, Any, Any]"


# Steps


def resume(coroutine: Main, error: BaseException | None = None) -> object:
    """Run a coroutine to its next suspension and return what it awaits; ``error`` is raised where it is suspended.

    Raises
    ------
    StopIteration
        If it returned.
    """
    hooks = sys.get_asyncgen_hooks()
    asyncio = sys.modules.get("asyncio.events")  # who has not imported it cannot await its sleep
    loop = None if asyncio is None else asyncio._get_running_loop()
    sys.set_asyncgen_hooks(_refuse_generator, None)
    if asyncio is not None:
        asyncio._set_running_loop(_NO_LOOP)
    try:
        return coroutine.send(None) if error is None else coroutine.throw(error)
    finally:
        if asyncio is not None:
            asyncio._set_running_loop(loop)
        sys.set_asyncgen_hooks(*hooks)


def _refuse_generator(generator: Any) -> None:
    raise TypeError(f"a script iterates over the async generator {_name_of(generator)}; allowed: await {ALLOWED}")


class _NoLoop:
    """Stands where asyncio looks for its event loop: no timer, task or future of it can be made."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # asked by the language, not by asyncio
            raise AttributeError(name)
        frame: FrameType | None = sys._getframe(1)
        what = f"the event loop's {name}"
        while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "asyncio":
            what = f"{frame.f_globals['__name__']}.{frame.f_code.co_qualname}"
            frame = frame.f_back
        raise TypeError(refused(what, "" if frame is None else _place_of(frame)))


_NO_LOOP = _NoLoop()


def refusal(coroutine: Main, awaited: object) -> TypeError:
    """Return the error for something that a coroutine awaits and nobody here can wait for."""
    inner: Any = coroutine
    while _is_of_the_author(inner.cr_await):
        inner = inner.cr_await
    is_named = awaited is None or getattr(inner.cr_await, "cr_frame", None) is not None
    return TypeError(refused(_name_of(inner.cr_await if is_named else awaited), _place_of(inner.cr_frame)))


def refused(what: str, place: str) -> str:
    """Return the sentence: what was awaited and where, and what is allowed."""
    return f"a script awaits {what}{f' ({place})' if place else ''}; allowed: {ALLOWED}"


def place(coroutine: Main) -> str:
    """Return function, file and line where a suspended coroutine awaits something, innermost."""
    inner: Any = coroutine
    while getattr(getattr(inner, "cr_await", None), "cr_frame", None) is not None:
        inner = inner.cr_await
    return "" if inner.cr_frame is None else f"{inner.__name__} ({_place_of(inner.cr_frame)})"


_FRAMES = ("cr_frame", "gi_frame", "ag_frame")


def _is_of_the_author(awaited: Any) -> bool:
    frame = getattr(awaited, "cr_frame", None)
    return frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] not in sys.stdlib_module_names


def _name_of(awaited: Any) -> str:
    name = getattr(awaited, "__qualname__", None)
    frame = (
        getattr(awaited, "cr_frame", None) or getattr(awaited, "gi_frame", None) or getattr(awaited, "ag_frame", None)
    )
    if name is not None and frame is not None:
        return f"{frame.f_globals.get('__name__', '')}.{name}".lstrip(".")
    return f"an object of type {type(awaited).__module__}.{type(awaited).__qualname__}"


def _place_of(frame: FrameType) -> str:
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


# Ends

_suspended: WeakKeyDictionary[object, set[Main]] = WeakKeyDictionary()
_dead: list[Main] = []
_for_ever: list[Main] = []


def keep(coroutine: Main, run: object) -> set[Main]:
    """Keep a coroutine as long as ``run`` is there, whoever forgets it; those whose run has gone end without a word.

    Returns
    -------
    set of coroutines
        Those that are kept for this run. Take one out when it has come to its end by itself.
    """
    bury(_dead)
    if run not in _suspended:
        held: set[Main] = set()
        _suspended[run] = held
        finalize(run, _dead.extend, held).atexit = False
    _suspended[run].add(coroutine)
    return _suspended[run]


@atexit.register
def _bury_all() -> None:
    bury([*_dead, *(one for held in _suspended.values() for one in held)])


def bury(coroutines: list[Main]) -> None:
    """End suspended coroutines such that none of their code runs, no ``finally`` and no handler either; forget them.

    Closing a coroutine raises GeneratorExit where it is suspended. Where the interpreter has no room left for a frame,
    it unwinds instead. Should an interpreter behave otherwise, coroutines are kept until the program ends.

    Never call this from a finalizer: one may run while an exception is being made, and CPython 3.11 ends the program
    if the stack is used up then.
    """
    if coroutines:
        dead = [coroutine for coroutine in coroutines if not coroutine.cr_running]
        coroutines.clear()
        if _unwinds_silently():
            _end(dead)
        else:
            _for_ever.extend(dead)


def _end(coroutines: list[Main]) -> None:
    # Locals outlive the unwinding: their destructors and weak references need room for frames.
    local = [dict(frame.f_locals) for coroutine in coroutines for frame in _frames(coroutine)]
    collects = gc.isenabled()
    gc.disable()  # others' finalizers need it, too
    try:
        _descend(coroutines)
    finally:
        if collects:
            gc.enable()
        del local


def _descend(coroutines: list[Main]) -> None:
    """Close all at the bottom of the stack: in the last frame that can still call ``close``, but nothing below it."""
    try:
        _descend(coroutines)
    except RecursionError:
        while coroutines:
            last = coroutines[-1]
            try:
                last.close()
            except RecursionError:
                if last.cr_frame is not None:
                    raise  # no room to call close: one frame up there is
            coroutines.pop()


def _frames(coroutine: Any) -> list[FrameType]:
    found = []
    while coroutine is not None:
        frame = getattr(coroutine, "cr_frame", None) or getattr(coroutine, "gi_frame", None)
        found += [] if frame is None else [frame]
        coroutine = getattr(coroutine, "cr_await", None) or getattr(coroutine, "gi_yieldfrom", None)
    return found


@cache
def _unwinds_silently() -> bool:
    """Try it once."""
    told: list[str] = []
    canary: Any = _canary(told)
    canary.send(None)
    _end([canary])
    return not told and canary.cr_frame is None


class _Pause:
    def __await__(self) -> Any:
        yield


async def _canary(told: list[str]) -> None:
    try:
        await _Pause()
    finally:
        told.append("ran")
