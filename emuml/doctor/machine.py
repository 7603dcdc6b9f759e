"""Checks of the machine that try the thing itself: sockets, node processes, files, clocks, linear algebra."""

from __future__ import annotations

import os
import shutil
import socket
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path

from emuml.doctor.finding import Finding, size

FREE_BYTES = 1 << 30
ANSWER_S = 10.0
LATE_S = 5e-3


def loopback() -> Finding:
    """Whether 127.0.0.1 carries bytes."""
    why = "local runs over TCP connect their nodes by it"
    error = _echo(socket.AF_INET, "127.0.0.1")
    if error:
        return Finding("failed", f"127.0.0.1: {error}", why, "bring it up: ip link set lo up; look at the firewall")
    return Finding("ok", "127.0.0.1 carries bytes", why)


def loopback_6() -> Finding:
    """Whether ::1 carries bytes."""
    why = "needed only for hosts that are named by IPv6 addresses"
    error = _echo(socket.AF_INET6, "::1")
    if error:
        return Finding("warning", f"::1: {error}", why, "nothing, unless you want IPv6: sysctl net.ipv6.conf.lo")
    return Finding("ok", "::1 carries bytes", why)


def _echo(family: socket.AddressFamily, address: str) -> str:
    """Send a byte over a new connection, and return what went wrong."""
    try:
        with socket.socket(family) as listener:
            listener.settimeout(1.0)
            listener.bind((address, 0))
            listener.listen()
            with socket.create_connection(listener.getsockname()[:2], timeout=1.0) as one:
                other, _ = listener.accept()
                with other:
                    other.settimeout(1.0)
                    one.sendall(b"?")
                    return "" if other.recv(1) == b"?" else "another byte came out"
    except OSError as error:
        return str(error)


def node_processes() -> Finding:
    """Whether node processes start, reach each other and answer."""
    from emuml.doctor import probe
    from emuml.runtime.settings import RuntimeSettings
    from emuml.testing.running import run_nodes

    why = "runs over TCP start a process for each node; this one started two, and one greeted the other"
    if _echo(socket.AF_INET, "127.0.0.1"):
        return Finding("failed", "not tried: 127.0.0.1 carries no bytes", why, "see loopback")
    settings = RuntimeSettings(start_deadline_s=ANSWER_S, drain_s=1.0, trace=False)
    began = time.perf_counter()
    run = run_nodes(
        {"asker-0": ("asker", probe.Asker), "answerer-0": ("answerer", probe.Answerer)}, "tcp", runtime=settings
    )
    took_s = time.perf_counter() - began
    if run.stopped != probe.ANSWERED:
        lines = str(run.error or run.stopped).strip().splitlines()
        fix = f"{sys.executable} -m emuml.launch.node - </dev/null shows what happens"
        return Finding("failed", lines[-1] if lines else "no answer", why, fix)
    return Finding("ok", f"two started and answered within {took_s:.2f} s", why)


def temporary_files() -> Finding:
    """Whether the folder of temporary files can be written, with room left."""
    why = "runs over TCP without --out keep their journals there; emuml demo and the tests use it, too"
    wanted = next((os.environ[name] for name in ("TMPDIR", "TEMP", "TMP") if os.environ.get(name)), None)
    try:
        folder = tempfile.gettempdir()
        with tempfile.NamedTemporaryFile(prefix="emuml-doctor-") as file:
            file.write(bytes(1 << 16))
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        return Finding("failed", str(error), why, "set TMPDIR to a folder that you may write")
    free = shutil.disk_usage(folder).free
    found = f"{folder} can be written, {size(free)} free"
    if wanted is not None and Path(wanted).resolve() != Path(folder).resolve():
        return Finding(
            "failed", f"TMPDIR={wanted} cannot be written; {folder} is taken", why, "create it, or unset TMPDIR"
        )
    if free < FREE_BYTES:
        return Finding(
            "warning" if free > FREE_BYTES / 20 else "failed", found, why, f"make room, or set TMPDIR: {folder}"
        )
    return Finding("ok", found, why)


def clocks() -> Finding:
    """Whether the clock only goes forward, in small steps."""
    why = "the runtime measures with it how long nodes compute and how long they are silent"
    info, times = time.get_clock_info("monotonic"), [time.monotonic() for _ in range(20_000)]
    steps = [later - earlier for earlier, later in pairwise(times)]
    step_s = min((step for step in steps if step > 0), default=float("inf"))
    found = f"steps of {step_s * 1e6:.3g} us seen, resolution {info.resolution * 1e9:.3g} ns ({info.implementation})"
    if not info.monotonic or min(steps) < 0:
        return Finding("failed", f"the clock went back by {-min(steps):.3g} s", why, "repair the clock of the machine")
    if step_s > 1e-3:
        return Finding("warning", found, why, "choose a better clock source of the kernel or of the virtual machine")
    return Finding("ok", found, why)


def linear_algebra() -> Finding:
    """Which BLAS numpy has, and whether it can be held to one thread."""
    import numpy as np
    from threadpoolctl import threadpool_info

    from emuml.blas import single_threaded

    why = "sums depend on the number of threads in the last bits, so emuml computes with one"
    libraries = [found for found in threadpool_info() if found["user_api"] == "blas"]
    with single_threaded():
        held = all(found["num_threads"] == 1 for found in threadpool_info() if found["user_api"] == "blas")
    found = ", ".join(f"{item['internal_api']} {item['version']}, {item['num_threads']} threads" for item in libraries)
    if not libraries:
        fix = "set OMP_NUM_THREADS=1 and VECLIB_MAXIMUM_THREADS=1, or install numpy from PyPI"
        return Finding("warning", f"numpy {np.__version__} has a BLAS that threadpoolctl does not know", why, fix)
    if not held:
        return Finding("failed", f"{found}; it does not obey a limit", why, "install numpy from PyPI")
    return Finding("ok", f"{found}, of which emuml uses one", why)


def timers() -> Finding:
    """How late the event loop wakes up."""
    import asyncio

    why = "for information: injected delays of real runs are late by as much"

    async def lateness() -> list[float]:
        late: list[float] = []
        for _ in range(20):
            began = time.perf_counter()
            await asyncio.sleep(1e-3)
            late.append(time.perf_counter() - began - 1e-3)
        return sorted(late)

    late = asyncio.run(lateness())
    median_s = late[len(late) // 2]
    found = f"sleeps of 1 ms end {median_s * 1e3:.2f} ms late (median of 20; at most {late[-1] * 1e3:.2f} ms)"
    fix = "end what else uses the cores; read real times with care"
    return Finding("ok", found, why) if median_s < LATE_S else Finding("warning", found, why, fix)
