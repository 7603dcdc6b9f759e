"""Silence in the emulator: peers that are cut off or stand still are suspected, then taken for dead, though they live.

Signs of life are no events: while nothing is wrong they would say nothing. When a peer falls silent, the time of its
last sign is known, and with it the times of both verdicts; these are events, unless it is heard before. What counts as
a sign, and how long silence lasts, says :meth:`emuml.cluster.cluster.Detection.patience`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from emuml.des.environment import NORMAL, Call
from emuml.des.machine import Machine
from emuml.links import SUSPECT
from emuml.node import NodeId, PeerState

if TYPE_CHECKING:
    from emuml.des.emulator import Emulator


class Silence:
    """What one node knows of a peer that is silent: its last sign of life, and when it is judged next."""

    __slots__ = ("call", "last_s", "late_s", "name")

    def __init__(self, last_s: float, late_s: float, name: str) -> None:
        self.last_s, self.late_s, self.name = last_s, late_s, name
        self.call: Call | None = None


class Silences:
    """Judges silent peers; one object serves all links of a run."""

    def __init__(self, emulator: Emulator) -> None:
        self._emulator = emulator
        self._patience = emulator.cluster.detection.patience()
        self._silences: dict[tuple[NodeId, NodeId], Silence] = {}
        self._heard_s: dict[tuple[NodeId, NodeId], float] = {}

    def begins(self, observer: Machine, peer: Machine) -> None:
        """Let a peer fall silent for an observer now; what it has sent before is still heard."""
        emulator, key = self._emulator, (observer.id, peer.id)
        if observer.life is None or peer.life is None or not observer.links.of(peer.id).carries:
            return
        now = emulator.env._now
        last_s = self._patience.last_sign_s(now) + emulator.faults.latency_s(peer, observer)
        silence = self._silences.get(key)
        if silence is not None:  # it was about to be heard again
            self._hear_at(max(last_s, now), observer, peer, silence)
            return
        name, late_s = "", 0.0
        if emulator.choices is not None:
            name = emulator.choices.name("verdict", observer.name, peer.name)
            late_s = emulator.choices.late_s(name, emulator.cluster.detection.exit_s)
        silence = self._silences[key] = Silence(max(last_s, self._heard_s.get(key, 0.0)), late_s, name)
        self._judge_later(observer, peer, silence)

    def ends(self, observer: Machine, peer: Machine, at_next_sign: bool = False) -> None:
        """Let what a peer says leave it again: now, because it had to wait, or with its next sign of life."""
        silence, now = self._silences.get((observer.id, peer.id)), self._emulator.env._now
        if silence is not None:
            sent_s = self._patience.next_sign_s(now) if at_next_sign else now
            at = sent_s + self._emulator.faults.latency_s(peer, observer)
            self._hear_at(at, observer, peer, silence)

    def _hear_at(self, at: float, observer: Machine, peer: Machine, silence: Silence) -> None:
        self._emulator.call_at(at, NORMAL, ("heard", observer.name, peer.name), self._heard, observer, peer, silence)

    def hears(self, observer: Machine, peer: Machine) -> bool:
        """Take a message as a sign of life; tell whether it was news to the observer."""
        key = observer.id, peer.id
        self._heard_s[key] = self._emulator.env._now
        silence = self._silences.get(key)
        if silence is None or observer.links.of(peer.id).state is not SUSPECT:
            return False
        self._heard(observer, peer, silence)
        return True

    def resumed(self, observer: Machine, since_s: float) -> None:
        """Let a node that stood still judge nobody by that time; it has heard now what came meanwhile."""
        now = self._emulator.env._now
        for (id, peer), silence in list(self._silences.items()):
            if id == observer.id:
                last_s = silence.last_s
                silence.last_s = last_s if last_s > now else min(last_s + now - since_s, now)
                self._judge_later(observer, self._emulator.machines[peer], silence)

    def forget(self, first: Machine, second: Machine) -> None:
        """Begin anew with two nodes, because one is gone or they have a new session, which is a sign of life."""
        for key in ((first.id, second.id), (second.id, first.id)):
            self.drop(*key)
            self._heard_s[key] = self._emulator.env._now

    def drop(self, observer: NodeId, peer: NodeId) -> None:
        """Judge a peer no more."""
        silence = self._silences.pop((observer, peer), None)
        if silence is not None and silence.call is not None:
            self._emulator.env.cancel(silence.call)

    def _judge_later(self, observer: Machine, peer: Machine, silence: Silence) -> None:
        env = self._emulator.env
        if silence.call is not None:
            env.cancel(silence.call)
        is_suspect = observer.links.of(peer.id).state is SUSPECT
        patience_s = self._patience.down_s + silence.late_s if is_suspect else self._patience.suspect_s
        at = max(silence.last_s + patience_s, env._now)
        silence.call = env.call_at(at, NORMAL, self._judge, observer, peer, silence)
        silence.call.name = silence.name if is_suspect else silence.name.replace("verdict", "suspect", 1)

    def _judge(self, observer: Machine, peer: Machine, silence: Silence) -> None:
        silence.call = None
        key = observer.id, peer.id
        if observer.stall is not None:
            return  # it is judged when the observer goes on
        if self._heard_s.get(key, 0.0) > silence.last_s:
            silence.last_s = self._heard_s[key]
            self._judge_later(observer, peer, silence)
            return
        sessions = self._emulator.sessions
        session = observer.links.of(peer.id).session
        if observer.links.of(peer.id).state is not SUSPECT:
            sessions.tell(observer, peer.id, PeerState.SUSPECT, session)
            if self._silences.get(key) is silence and observer.stall is None:
                self._judge_later(observer, peer, silence)
            return
        sessions.tell(observer, peer.id, PeerState.DOWN, session)
        self._hang_up(observer, peer, session)

    def _hang_up(self, observer: Machine, peer: Machine, session: int) -> None:
        """Let the other end know that the session is over, if that can be told; begin a new one, if that can be."""
        faults, sessions = self._emulator.faults, self._emulator.sessions
        if observer.life is not None and not faults.is_silent(peer, observer):
            choices = self._emulator.choices
            name = "" if choices is None else choices.name("over", peer.name, observer.name)
            sessions.ends_later(peer, observer, session, faults.latency_s(observer, peer), name)
        if not faults.separate(observer, peer):
            sessions.reopen(observer, peer)

    def _heard(self, observer: Machine, peer: Machine, silence: Silence) -> None:
        """Take a sign of life of a peer that was silent."""
        key = observer.id, peer.id
        if self._silences.get(key) is not silence:
            return
        if observer.stall is not None:
            observer.stall.keep(self._heard, observer, peer, silence)
            return
        silence.last_s = self._emulator.env._now
        is_silent = self._emulator.faults.is_silent(observer, peer)
        if not is_silent:
            self.drop(*key)
        link = observer.links.of(peer.id)
        if link.state is SUSPECT:
            self._emulator.sessions.tell(observer, peer.id, PeerState.UP, link.session)
        if is_silent and self._silences.get(key) is silence:
            self._judge_later(observer, peer, silence)
