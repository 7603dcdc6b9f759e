"""A Chromium of one's own for tests, spoken to over its DevTools pipe: the standard library is enough.

Commands and events are JSON that ends with a zero byte, on descriptors 3 (to the browser) and 4 (from it).
"""

from __future__ import annotations

import fcntl
import json
import os
import select
import shutil
import signal
import time
from pathlib import Path
from types import TracebackType
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome")
PATIENCE_S = 60.0
SWITCHES = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --disable-dev-shm-usage --hide-scrollbars --remote-debugging-pipe"
)


def find() -> str | None:
    """Return the path of a browser, if there is one."""
    return next(filter(None, map(shutil.which, NAMES)), None)


class Chromium:
    """A running browser with one page; a context manager that ends what it started.

    Parameters
    ----------
    path : str
        Of the program.
    folder : Path
        Empty; for the profile and for what the browser prints.
    """

    def __init__(self, path: str, folder: Path) -> None:
        to_browser, self._out = _high_pipe()
        self._in, from_browser = _high_pipe()
        log = str(folder / "log")
        actions = [
            (os.POSIX_SPAWN_DUP2, to_browser, 3),
            (os.POSIX_SPAWN_DUP2, from_browser, 4),
            (os.POSIX_SPAWN_OPEN, 1, log, os.O_WRONLY | os.O_CREAT, 0o600),
            (os.POSIX_SPAWN_DUP2, 1, 2),
        ]
        command = [path, *SWITCHES.split(), f"--user-data-dir={folder / 'profile'}"]
        self._pid = os.posix_spawn(path, command, os.environ, file_actions=actions, setpgroup=0)
        os.close(to_browser)
        os.close(from_browser)
        self._received = b""
        self._sent = 0
        self.events: list[dict[str, Any]] = []
        self._session: str | None = None

    def __enter__(self) -> Chromium:
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        os.killpg(self._pid, signal.SIGKILL)
        os.waitpid(self._pid, 0)
        os.close(self._out)
        os.close(self._in)

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send a command and return its result; events that come before it are kept."""
        self._sent += 1
        command: dict[str, Any] = {"id": self._sent, "method": method, "params": parameters}
        if self._session is not None:
            command["sessionId"] = self._session
        os.write(self._out, json.dumps(command).encode() + b"\0")
        while (message := self._next()).get("id") != self._sent:
            self.events.append(message)
        if "error" in message:
            raise RuntimeError(f"{method}: {message['error']}")
        return dict(message["result"])

    def wait_for(self, event: str) -> None:
        """Wait until an event has come since :meth:`open` began."""
        while not any(one["method"] == event for one in self.events):
            self.events.append(self._next())

    def open(self, url: str, width: int, scheme: str = "light", medium: str = "screen") -> None:
        """Show a page at a width, for readers who like it ``"light"`` or ``"dark"``, on ``"screen"`` or ``"print"``."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
        feature = {"name": "prefers-color-scheme", "value": scheme}
        self.call("Emulation.setEmulatedMedia", media=medium, features=[feature])
        self.events.clear()
        self.call("Page.navigate", url=url)
        self.wait_for("Page.loadEventFired")

    def evaluate(self, expression: str) -> Any:
        """Return what a JavaScript expression is worth on the page, as plain data."""
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        if "exceptionDetails" in result:
            raise RuntimeError(str(result["exceptionDetails"]))
        return result["result"].get("value")

    def requests(self) -> list[str]:
        """Return the addresses that were asked for since the page was opened."""
        return [one["params"]["request"]["url"] for one in self._of("Network.requestWillBeSent")]

    def complaints(self) -> list[str]:
        """Return what came to the console since the page was opened."""
        found = [
            *self._of("Log.entryAdded"),
            *self._of("Runtime.consoleAPICalled"),
            *self._of("Runtime.exceptionThrown"),
        ]
        return [json.dumps(one["params"]) for one in found]

    def _of(self, method: str) -> list[dict[str, Any]]:
        return [one for one in self.events if one["method"] == method]

    def _next(self) -> dict[str, Any]:
        until = time.monotonic() + PATIENCE_S
        while b"\0" not in self._received:
            ready, _, _ = select.select([self._in], [], [], max(until - time.monotonic(), 0.0))
            data = os.read(self._in, 1 << 16) if ready else b""
            if not data:
                raise RuntimeError("the browser is silent")
            self._received += data
        message, _, self._received = self._received.partition(b"\0")
        return dict(json.loads(message))


def _high_pipe() -> tuple[int, int]:
    """Return a pipe whose ends are not descriptors 3 and 4, which the browser gets."""
    low = os.pipe()
    high = tuple(fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in low)
    for end in low:
        os.close(end)
    return high[0], high[1]
