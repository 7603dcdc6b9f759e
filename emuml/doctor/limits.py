"""Checks of what this process may use: cores, memory, open files, processes. Limits of groups and users count.

What a run over TCP needs was measured with 31 node processes (30 workers and a server) on Linux, CPython 3.11: 134 open
files in the coordinator and 69 in the server, 62 processes and threads, 840 MB of memory that nobody else shares.
"""

from __future__ import annotations

import math
import os
from contextlib import suppress
from pathlib import Path

from emuml.doctor.finding import Finding, size

NODES = 31
"""As in the examples: 30 workers and a server."""
FILES = 200
TASKS = 80
MEMORY_BYTES = 1 << 30

_GROUPS = Path("/sys/fs/cgroup")


def cores() -> Finding:
    """How many cores this process may use."""
    why = "over TCP every node is a process; nodes that share a core take turns, and real times are longer for it"
    affinity = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quota = _quota()
    usable = min(affinity, quota)
    found = f"{usable:g} of {os.cpu_count()}" + ("" if quota == math.inf else f" (its group may use {quota:g})")
    if usable < 2:
        return Finding("warning", found, why, "give it two cores or more (taskset, docker --cpus), or emulate")
    return Finding("ok", found, why)


def memory() -> Finding:
    """How much memory is free for this process."""
    why = f"{NODES} node processes need about {size(MEMORY_BYTES)}, and each more for its data"
    if not Path("/proc/meminfo").is_file():
        return Finding("ok", "not known on this system", why)
    rows = (line.split() for line in Path("/proc/meminfo").read_text().splitlines())
    known = {row[0].rstrip(":"): int(row[1]) * 1024 for row in rows}
    limits = {
        "free": float(known["MemAvailable"]),
        "left in its group": _left(
            ("memory.max", "memory.current"), ("memory.limit_in_bytes", "memory.usage_in_bytes")
        ),
        "allowed as address space": _soft("RLIMIT_AS"),
    }
    found = f"{size(known['MemTotal'])}; " + ", ".join(
        f"{size(value)} {name}" for name, value in limits.items() if value < known["MemTotal"]
    )
    least = min(limits.values())
    if least < MEMORY_BYTES / 4:
        return Finding("failed", found, why, "end what uses it, or raise the limit (ulimit -v, docker --memory)")
    if least < MEMORY_BYTES:
        return Finding("warning", found, why, "fewer workers over TCP, runtime.processes=shared, or emulate")
    return Finding("ok", found, why)


def open_files() -> Finding:
    """Whether enough files may be open at once."""
    why = f"a run with {NODES} node processes has about {FILES} files and connections open in one process"
    limit, open_now = _soft("RLIMIT_NOFILE"), len(os.listdir("/dev/fd"))
    found = f"{limit:g} allowed, {open_now} open now"
    if limit - open_now < FILES:
        return Finding("failed", found, why, f"ulimit -n {4 * FILES}; permanently in /etc/security/limits.conf")
    return Finding("ok", found, why)


def processes() -> Finding:
    """Whether enough processes may be started."""
    why = f"a run with {NODES} nodes starts as many processes, about {TASKS} threads in all"
    # The superuser is not held to the limit of users.
    of_user = math.inf if os.geteuid() == 0 else _soft("RLIMIT_NPROC")
    left = of_user - _tasks_of_user() if of_user < math.inf else math.inf
    left = min(left, _left(("pids.max", "pids.current")))
    found = "no limit" if left == math.inf else f"{left:g} more allowed"
    if left < TASKS:
        return Finding("failed", found, why, "ulimit -u, docker --pids-limit; or runtime.processes=shared")
    return Finding("ok", found, why)


def _soft(name: str) -> float:
    """Return a limit of this process; infinite if there is none."""
    import resource

    soft, _ = resource.getrlimit(getattr(resource, name))
    return math.inf if soft == resource.RLIM_INFINITY else float(soft)


def _tasks_of_user() -> int:
    """Return how many threads the user has."""
    count, me = 0, os.getuid()
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if folder.stat().st_uid == me:
                count += len(os.listdir(folder / "task"))
    return count


def _own_groups() -> list[Path]:
    """Return the folders of the control groups of this process, and of those around them; none where there are none."""
    found: list[Path] = []
    with suppress(OSError):
        for line in Path("/proc/self/cgroup").read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            for root in {_GROUPS / controller for controller in controllers.split(",")} or {_GROUPS}:
                inner = root / path.lstrip("/")
                found += [inner, *[folder for folder in inner.parents if folder.is_relative_to(root)]]
    return list(dict.fromkeys(found))


def _left(*names: tuple[str, str]) -> float:
    """Return how much the tightest group leaves, by the names of its files for the limit and for what is used."""
    left = math.inf
    for folder in _own_groups():
        for limit, used in names:
            with suppress(OSError, ValueError):  # "max", or a group that does not count this
                left = min(left, int((folder / limit).read_text()) - int((folder / used).read_text()))
    return left


def _quota() -> float:
    """Return how many cores the tightest group may use; infinite if none is limited."""
    least = math.inf
    for folder in _own_groups():
        with suppress(OSError, ValueError):
            quota, period = (folder / "cpu.max").read_text().split()
            least = min(least, int(quota) / int(period))
        with suppress(OSError, ValueError):
            quota, period = ((folder / f"cpu.cfs_{name}_us").read_text() for name in ("quota", "period"))
            least = min(least, int(quota) / int(period)) if int(quota) > 0 else least
    return least
