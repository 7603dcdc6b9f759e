"""The server of adaptive coding: that of gradient coding, which before each round chooses its code from what it saw.

All that it learns from is when answers to the open round arrive, and who has not answered when the round closes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from emuml.node import NodeId, PeerState
from emuml.protocol import Problem
from emuml.protocols.adaptive_coding.chooser import Chooser, Settings
from emuml.protocols.adaptive_coding.menu import Menu
from emuml.protocols.adaptive_coding.messages import Gradient, Parameters
from emuml.protocols.gradient_coding import server
from emuml.roster import Roster

if TYPE_CHECKING:
    from emuml.blocks import Saved
    from emuml.context import Context


class Server(server.Server):
    """Chooses a code, asks all workers, decodes the answers, takes a step, learns from arrivals, and chooses again."""

    messages = (Gradient, Parameters)

    def __init__(self, menu: Menu, workload: Problem, roster: Roster, settings: Settings) -> None:
        super().__init__(menu[0].code, workload, roster)
        self.menu, self.settings, self.seed = menu, settings, roster.seed

    def on_start(self, ctx: Context, saved: Saved) -> None:
        """Begin with the initial parameters, and with no experience."""
        self.chooser = Chooser(self.menu, self.settings, self.seed)
        super().on_start(ctx, saved)

    def open(self, ctx: Context) -> None:
        """Choose, and ask everybody for the next round."""
        self.choice = self.chooser.choose(self.down)
        self.code = self.choice.candidate.code.of(self.workload.initial.shape)
        self.rule = self.code.stop_rule()
        self.arrived_s: dict[int, float] = {}
        self.disturbed = set(self.down)  # whose times mean nothing
        super().open(ctx)

    def question(self, ctx: Context) -> Parameters:
        """Return the question of the open round."""
        return Parameters(ctx.incarnation, self.round, self.parameters.values, self.choice.candidate.index)

    def on_message(self, ctx: Context, sender: NodeId, message: Gradient) -> None:
        """Note when an answer to the open round came, and take it."""
        if (message.life, message.round) == (ctx.incarnation, self.round) and not self.closed:
            self.arrived_s.setdefault(sender.index, ctx.now)
        super().on_message(ctx, sender, message)

    def on_peer(self, ctx: Context, peer: NodeId, state: PeerState) -> None:
        """Go on without a worker that is down; ask one that came back, which is late through no fault of its law."""
        self.disturbed.add(peer.index)
        super().on_peer(ctx, peer, state)

    def close(self, ctx: Context, by_clock: bool = False) -> None:
        """Learn from the round, decode and step."""
        self.learn(ctx)
        super().close(ctx, by_clock)

    def learn(self, ctx: Context) -> None:
        """Tell the chooser who answered after how long, and whom nobody waited for any more."""
        times = np.full(self.code.workers, ctx.now - self.opened_s)
        answered, known = np.zeros(times.size, np.bool_), np.ones(times.size, np.bool_)
        workers = list(self.arrived_s)
        times[workers] = np.array(list(self.arrived_s.values())) - self.opened_s
        answered[workers] = True
        known[list(self.disturbed)] = False
        self.chooser.observe(self.choice, times, answered, known)

    def notes(self) -> dict[str, float | str]:
        """Return what is logged of the closed round beside what gradient coding logs."""
        chosen, estimated_s = self.choice.candidate, self.choice.estimated_s
        found = super().notes() | {
            "choice": chosen.index,
            "redundancy": chosen.load,
            "collect": chosen.collect,
            "reason": self.choice.reason,
            "changes": self.chooser.changes,
        }
        return found if estimated_s is None else {**found, "estimated_s": estimated_s}
