"""What the nodes of adaptive coding say to each other: a question says which code it is of."""

from __future__ import annotations

from emuml.protocols.gradient_coding import messages
from emuml.protocols.gradient_coding.messages import Gradient

__all__ = ["Parameters", "Gradient"]


class Parameters(messages.Parameters):
    """The parameters of one round, and the place in the menu of the code that it uses."""

    choice: int
