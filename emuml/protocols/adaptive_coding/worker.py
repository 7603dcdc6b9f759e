"""The worker of adaptive coding: that of gradient coding, with the code that each question names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from emuml.protocol import Problem
from emuml.protocols.adaptive_coding.menu import Menu
from emuml.protocols.adaptive_coding.messages import Gradient, Parameters
from emuml.protocols.gradient_coding import worker

if TYPE_CHECKING:
    from emuml.context import Context


class Worker(worker.Worker):
    """Computes coded sums of the newest parameters, by the code of their round."""

    messages = (Gradient, Parameters)

    def __init__(self, menu: Menu, workload: Problem, index: int) -> None:
        super().__init__(menu[0].code, workload, index)
        self.menu = menu

    def begin(self, ctx: Context) -> None:
        """Compute the oldest question that is kept, by its code."""
        asked = self.mailbox[0]
        assert isinstance(asked, Parameters)
        self.code = self.menu[asked.choice].code
        super().begin(ctx)
