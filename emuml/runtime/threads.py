"""Work of a node in threads of its own; the ends come back to its loop, and to nobody once the loop is closed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor, Future
from contextlib import suppress
from typing import Any

Ended = Callable[["Future[Any]"], None]


def submit(loop: asyncio.AbstractEventLoop, pool: Executor, work: Callable[[], Any], ended: Ended) -> None:
    """Run ``work`` in a thread of ``pool`` and call ``ended`` with its future on the loop.

    Unlike ``loop.run_in_executor`` it is silent when work outlives the loop, as a task does that cannot be cancelled.
    """

    def hand_back(future: Future[Any]) -> None:
        with suppress(RuntimeError):  # the loop is closed: the run is over
            loop.call_soon_threadsafe(ended, future)

    pool.submit(work).add_done_callback(hand_back)
