"""Explorers: how scenarios are proposed. No strategy wins everywhere, so the default takes turns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, get_args

from emuml.errors import UserError, did_you_mean
from emuml.testing.explorers.fifo import Fifo
from emuml.testing.explorers.ground import Explorer, Ground, Proposal
from emuml.testing.explorers.random import Random
from emuml.testing.explorers.sparse import Sparse
from emuml.testing.explorers.swarm import Swarm

Name = Literal["portfolio", "fifo", "random", "swarm", "sparse"]

_EXPLORERS: dict[str, Callable[[Ground], Explorer]] = {
    "fifo": Fifo,
    "random": Random,
    "swarm": Swarm,
    "sparse": Sparse,
}

_BEYOND = 10**9
"""Added to the numbers of random runs that take the place of others, so that none is made twice."""


class Portfolio:
    """Plain runs first, then all explorers in turn; one that has no more runs leaves its turns to the others."""

    def __init__(self, ground: Ground) -> None:
        self._parts = [make(ground) for make in _EXPLORERS.values()]

    def propose(self, index: int) -> Proposal | None:
        """See :class:`Explorer`."""
        if index == 0:
            return self._parts[0].propose(0)
        turn, part = divmod(index - 1, len(self._parts))
        proposal = self._parts[part].propose(turn + (part == 0))
        return self._parts[1].propose(_BEYOND + index) if proposal is None else proposal


def check_name(name: object) -> None:
    """Refuse a name that no explorer has."""
    known = get_args(Name)
    if name not in known:
        raise UserError(f"got {name!r}", "explorer", ", ".join(known), did_you_mean(str(name), known))


def explorer(name: str, ground: Ground) -> Explorer:
    """Return an explorer by its name.

    Raises
    ------
    UserError
        If there is none of this name.
    """
    check_name(name)
    return Portfolio(ground) if name == "portfolio" else _EXPLORERS[name](ground)


__all__ = ["Explorer", "Ground", "Name", "Portfolio", "Proposal", "check_name", "explorer"]
