"""Run a coroutine of a test to its end, with a deadline that only fails."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

DEADLINE_S = 60.0


def drive(work: Coroutine[Any, Any, T]) -> T:
    async def bounded() -> T:
        async with asyncio.timeout(DEADLINE_S):
            return await work

    return asyncio.run(bounded())


async def until(condition: Callable[[], object]) -> None:
    """Let the loop turn until something is true."""
    while not condition():
        await asyncio.sleep(0.001)


async def raises(kind: type[Exception], work: Awaitable[Any]) -> Any:
    try:
        await work
    except kind as error:
        return error
    raise AssertionError(f"no {kind.__name__}")
