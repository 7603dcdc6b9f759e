"""Two nodes that say hello to each other, to see whether processes start here and reach one another."""

from __future__ import annotations

from typing import TYPE_CHECKING

from emuml.message import Message
from emuml.node import Node, NodeId

if TYPE_CHECKING:
    from emuml.blocks import Saved
    from emuml.context import Context

ANSWERED = "answered"


class Hello(Message):
    """A greeting, and the answer to it."""


class Asker(Node):
    """Greets everybody and stops at the first answer."""

    messages = (Hello,)

    def on_start(self, ctx: Context, saved: Saved) -> None:
        """Greet."""
        ctx.broadcast("answerer", Hello())

    def on_message(self, ctx: Context, sender: NodeId, message: Hello) -> None:
        """End the run."""
        ctx.stop(ANSWERED)


class Answerer(Node):
    """Greets back."""

    messages = (Hello,)

    def on_message(self, ctx: Context, sender: NodeId, message: Hello) -> None:
        """Greet back."""
        ctx.send(sender, Hello())
