"""Local node processes: started with a lifeline, watched through pidfds, killed for real.

A node reads its spec from standard input and keeps it open: end of file means that whoever started it is gone. On Linux
the kernel also signals it when the starting thread ends, so that nothing is left behind whatever dies.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from contextlib import suppress
from typing import BinaryIO

from emuml.runtime.node_spec import NodeSpec, encode_spec

THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS")
"""One BLAS thread per node: for equal sums on both engines, and because hosts are shared."""


class ProcessHandle:
    """One node process."""

    def __init__(self, process: subprocess.Popen[bytes], log: BinaryIO, spec: NodeSpec) -> None:
        self.spec, self.pid = spec, process.pid
        self._process, self._log = process, log
        self.exited: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._watch()

    def _watch(self) -> None:
        loop = asyncio.get_running_loop()
        descriptor = os.pidfd_open(self.pid)

        def ended() -> None:
            loop.remove_reader(descriptor)
            os.close(descriptor)
            code = self._process.wait()
            self._log.close()
            if self._process.stdin is not None:
                with suppress(OSError):
                    self._process.stdin.close()
            if not self.exited.done():
                self.exited.set_result(_reason(code))

        loop.add_reader(descriptor, ended)

    def kill(self) -> None:
        """Send SIGKILL; ``exited`` says when it is gone."""
        if not self.exited.done():
            self._process.send_signal(signal.SIGKILL)

    def last_lines(self, count: int = 12) -> str:
        """Return the end of what the process printed."""
        path = self.spec.own_folder / "log"
        return "\n".join(path.read_text(errors="replace").splitlines()[-count:]) if path.is_file() else ""


def start_process(spec: NodeSpec) -> ProcessHandle:
    """Start one node process on this host; call it on the loop's own thread, which must outlive the process.

    Raises
    ------
    OSError
        If this host gives no process.
    """
    spec.own_folder.mkdir(parents=True, exist_ok=True)
    log = (spec.own_folder / "log").open("wb")
    own = {"EMUML_RUN": spec.run, "EMUML_PARENT": str(os.getpid())}
    environment = {**os.environ, **dict.fromkeys(THREAD_VARIABLES, "1"), **own}
    command = [sys.executable, "-m", "emuml.launch.node", "-"]
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=subprocess.STDOUT,
            env=environment,
            start_new_session=True,
        )
    except OSError:
        log.close()
        raise
    assert process.stdin is not None
    with suppress(BrokenPipeError):  # it is gone already; its exit says so
        process.stdin.write(encode_spec(spec))
        process.stdin.flush()
    (spec.own_folder / "pid").write_text(f"{process.pid}\n")
    return ProcessHandle(process, log, spec)


def _reason(code: int) -> str:
    if code < 0:
        return f"killed by {signal.Signals(-code).name}"
    return "finished" if code == 0 else f"exit status {code}"
