"""Silence of peers, judged on a clock that the test turns."""

from __future__ import annotations

from collections.abc import Callable

from emuml.node import NodeId, PeerState
from emuml.runtime.liveness import STALL_S, TICK_S, Liveness

PEER, OTHER = NodeId("worker", 0), NodeId("worker", 1)


class Line:
    """A connection that only counts."""

    def __init__(self, session: int = 5, now: float = 0.0) -> None:
        self.session, self.last_sent_s, self.last_heard_s = session, now, now
        self.on_heard: Callable[[], None] = lambda: None
        self.pings = 0
        self.aborted: list[str] = []

    def ping(self) -> None:
        self.pings += 1

    def abort(self, reason: str) -> None:
        self.aborted.append(reason)

    def hear(self, now: float) -> None:
        self.last_heard_s = now
        self.on_heard()


class Clock:
    """Ticks of one node."""

    def __init__(self, preset: str = "lan") -> None:
        self.told: list[tuple[str, int, PeerState]] = []
        self.liveness = Liveness(preset, lambda peer, session, state: self.told.append((str(peer), session, state)))  # type: ignore[arg-type]
        self.now = 0.0

    def run(self, until_s: float, *living: Line) -> None:
        while self.now < until_s:
            self.now += TICK_S
            for line in living:
                line.hear(self.now)
            self.liveness.tick(self.now)


def test_a_peer_that_is_heard_is_not_judged() -> None:
    clock, line = Clock(), Line()
    clock.liveness.watch(PEER, line)
    clock.run(60.0, line)
    assert clock.told == []
    assert line.aborted == []


def test_silence_makes_suspect_then_aborts() -> None:
    clock, line = Clock(), Line(session=9)
    clock.liveness.watch(PEER, line)
    clock.run(1.0)
    assert clock.told == [("worker-0", 9, PeerState.SUSPECT)]
    assert line.aborted == []
    clock.run(2.5)
    assert line.aborted == ["silent since 2.2 s"]
    clock.run(9.0)
    assert len(line.aborted) == len(clock.told) == 1


def test_a_suspect_that_is_heard_again_is_up() -> None:
    clock, line = Clock(), Line()
    clock.liveness.watch(PEER, line)
    clock.run(1.0)
    clock.run(3.0, line)
    assert [state for _, _, state in clock.told] == [PeerState.SUSPECT, PeerState.UP]
    assert line.aborted == []


def test_the_patience_is_that_of_the_preset() -> None:
    clock, line = Clock("wan"), Line()
    clock.liveness.watch(PEER, line)
    clock.run(6.25)
    assert [state for _, _, state in clock.told] == [PeerState.SUSPECT]
    assert line.aborted == []
    clock.run(6.75)
    assert line.aborted


def test_own_standstill_counts_for_nobody() -> None:
    clock, line = Clock(), Line()
    clock.liveness.watch(PEER, line)
    clock.run(10.0, line)
    clock.now += 100.0  # this process was stopped; what the peer sent meanwhile is not read yet
    clock.liveness.tick(clock.now)
    assert clock.told == []
    clock.run(clock.now + 0.5)
    assert clock.told == []
    assert line.aborted == []
    clock.run(clock.now + 3.0)
    assert line.aborted, "but it is judged again afterwards"


def test_a_late_tick_is_no_standstill() -> None:
    clock, line = Clock(), Line()
    clock.liveness.watch(PEER, line)
    for _ in range(6):
        clock.now += TICK_S + STALL_S
        clock.liveness.tick(clock.now)
    assert line.aborted


def test_signs_of_life_are_sent_when_nothing_else_is() -> None:
    clock, quiet, busy = Clock(), Line(), Line()
    clock.liveness.watch(PEER, quiet)
    clock.liveness.watch(OTHER, busy)
    for _ in range(40):
        busy.last_sent_s = clock.now + TICK_S
        clock.run(clock.now + TICK_S, quiet, busy)
    assert quiet.pings >= 19  # every 0.5 s for 10 s
    assert busy.pings == 0


def test_each_session_is_judged_by_itself() -> None:
    clock, old, new = Clock(), Line(1), Line(2)
    clock.liveness.watch(PEER, old)
    clock.run(1.0)
    clock.told.clear()
    new.last_heard_s = new.last_sent_s = 1.0
    clock.liveness.watch(PEER, new)
    clock.liveness.forget(PEER, old)  # the end of the old one comes late, and is none of the new one
    clock.run(2.0)
    assert clock.told == [("worker-0", 2, PeerState.SUSPECT)]
    clock.liveness.forget(PEER, new)
    clock.run(9.0)
    assert old.aborted == new.aborted == []
