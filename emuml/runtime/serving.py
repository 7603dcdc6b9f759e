"""A node as a whole process: its lifeline, its exit status, and what it took."""

from __future__ import annotations

import asyncio
import os
import resource
from collections.abc import Callable

from emuml.errors import RunFailed
from emuml.node import Node
from emuml.runtime.member import Member
from emuml.runtime.node_spec import NodeSpec


def serve(spec: NodeSpec, factory: Callable[[], Node], lifeline: int) -> int:
    """Run one node in this process until the run ends or the lifeline breaks; return the exit status."""

    async def main() -> None:
        loop = asyncio.get_running_loop()
        member = Member(spec, factory, statistics=used)

        def lifeline_news() -> None:
            if not os.read(lifeline, 4096):
                loop.remove_reader(lifeline)
                os._exit(3)

        loop.add_reader(lifeline, lifeline_news)
        await member.run()

    try:
        asyncio.run(main())
    except RunFailed as error:
        print(f"{spec.node}: {error}", flush=True)
        return 3
    return 0


def used() -> dict[str, float]:
    """Return what this process took so far: CPU seconds, and its peak resident size in bytes."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return {"cpu_s": usage.ru_utime + usage.ru_stime, "max_rss_bytes": float(_peak_bytes())}


def _peak_bytes() -> int:
    """Return the peak resident size of this process; getrusage would count what it was before exec as well."""
    try:
        with open("/proc/self/status") as stream:
            found = [line.split()[1] for line in stream if line.startswith("VmHWM")]
        return int(found[0]) * 1024
    except (OSError, IndexError):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
