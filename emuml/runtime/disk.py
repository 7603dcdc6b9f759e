"""Saves and loads of a real node, one at a time, in a thread of their own."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any

from emuml import effects as fx
from emuml.blocks import size_of
from emuml.errors import NodeFailed
from emuml.journal import blocks_digest
from emuml.runtime.store import LogStore
from emuml.runtime.threads import submit

if TYPE_CHECKING:
    from emuml.runtime.host import Handed, Host


class Disk:
    """Stable storage of one incarnation."""

    def __init__(self, host: Host, store: LogStore) -> None:
        self._host, self.store = host, store
        self.pending = 0
        self._pool = ThreadPoolExecutor(1, "storage")

    def save(self, effect: fx.Save) -> None:
        """Begin a commit; its end is handed over once it is durable."""
        host = self._host
        host.note("save", effect.tag, size_of(effect.blocks))
        if host.journal is not None:
            host.journal.settle()  # else a kill could leave a block whose step no journal has
        self._work(lambda: self.store.commit(effect.blocks), partial(self._saved, effect))

    def _saved(self, effect: fx.Save, _: Any) -> Handed:
        self._host.note("saved", effect.tag)
        return fx.SaveDone(effect.tag), "saved", lambda: [effect.tag]

    def load(self, effect: fx.Load) -> None:
        """Begin reading blocks; what was saved before is seen."""
        self._host.note("load", effect.tag)
        self._work(lambda: self.store.read(effect.ids), partial(self._loaded, effect))

    def _loaded(self, effect: fx.Load, blocks: Any) -> Handed:
        self._host.note("loaded", effect.tag)
        return fx.LoadDone(effect.tag, blocks), "loaded", lambda: [effect.tag, blocks_digest(blocks)]

    def _work(self, work: Callable[[], Any], entry: Callable[[Any], Any]) -> None:
        host = self._host
        self.pending += 1

        def ended(future: Future[Any]) -> None:
            self.pending -= 1
            if future.cancelled() or host.ended:
                return
            error = future.exception()
            if error is None:
                host.put(partial(entry, future.result()))
                return
            failed = NodeFailed(host.name, host.incarnation, host.now, "storage")
            failed.__cause__ = error
            host.fail(failed)

        submit(host.loop, self._pool, work, ended)

    def close(self, lose_pending: bool) -> None:
        """Take no more work; what waits is done, or lost as at a crash."""
        self._pool.shutdown(wait=False, cancel_futures=lose_pending)

    async def finish(self) -> None:
        """Close the store once the operation in progress is over: until then its lock keeps a next life out."""
        await self._host.loop.run_in_executor(None, self._pool.shutdown)
        self.store.close()
