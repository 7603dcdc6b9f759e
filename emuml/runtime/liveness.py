"""Judging the silence of peers: signs of life out, the detector's verdicts in, with time as an argument.

Time in which this process itself stood still counts for nobody: it could not have listened.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Protocol

from emuml.cluster.detector import PhiAccrual, Verdict
from emuml.node import NodeId, PeerState

TICK_S = 0.25
STALL_S = 0.5
"""A tick that is late by more than this was no tick: the process did not run."""


class Watchable(Protocol):
    """What is asked of a connection."""

    session: int
    last_sent_s: float
    last_heard_s: float
    on_heard: Callable[[], None]

    def ping(self) -> None:
        """Send a sign of life that asks for one."""

    def abort(self, reason: str) -> None:
        """Close at once."""


@dataclass
class _Watched:
    connection: Watchable
    detector: PhiAccrual
    verdict: Verdict = Verdict.ALIVE


class Liveness:
    """The detectors of one node, one for each living session.

    Parameters
    ----------
    preset : {"lan", "wan"}
    tell : callable(peer, session, state)
        Called with ``SUSPECT``, and with ``UP`` when a suspected peer is heard again. A dead peer's connection is
        aborted instead.
    """

    def __init__(self, preset: Literal["lan", "wan"], tell: Callable[[NodeId, int, PeerState], None]) -> None:
        self._detector = PhiAccrual.lan if preset == "lan" else PhiAccrual.wan
        self._tell = tell
        self._watched: dict[NodeId, _Watched] = {}
        self._last_s: float | None = None

    def watch(self, peer: NodeId, connection: Watchable) -> None:
        """Begin to judge a session, in place of an earlier one with the same peer."""
        detector = self._detector()
        detector.heard(connection.last_heard_s)
        self._watched[peer] = _Watched(connection, detector)
        connection.on_heard = lambda: detector.heard(connection.last_heard_s)

    def forget(self, peer: NodeId, connection: Watchable) -> None:
        """Judge a session no longer."""
        found = self._watched.get(peer)
        if found is not None and found.connection is connection:
            del self._watched[peer]

    def tick(self, now: float) -> None:
        """Send what is due and judge; to be called every ``TICK_S``."""
        gap_s = 0.0 if self._last_s is None else now - self._last_s
        self._last_s = now
        for peer, watched in list(self._watched.items()):
            if gap_s > TICK_S + STALL_S:
                watched.detector.resumed(gap_s - TICK_S)
            if now - watched.connection.last_sent_s >= watched.detector.interval_s - TICK_S:
                watched.connection.ping()
            self._judge(peer, watched, now)

    def _judge(self, peer: NodeId, watched: _Watched, now: float) -> None:
        verdict, connection = watched.detector.verdict(now), watched.connection
        if verdict is watched.verdict:
            return
        watched.verdict = verdict
        if verdict is Verdict.DEAD:
            connection.abort(f"silent since {now - connection.last_heard_s:.1f} s")
        else:
            state = PeerState.SUSPECT if verdict is Verdict.SUSPECT else PeerState.UP
            self._tell(peer, connection.session, state)
