"""Verified repetition: groups of workers whose equal answers confirm each other, against workers that lie.

Source: Chen, Wang, Charles and Papailiopoulos, "DRACO: Byzantine-resilient distributed training via redundant
gradients", arXiv:1803.09877 (the repetition code). Accepting a value at its ``b + 1``-th identical copy, before all
have answered, follows: one of so many members is honest, and honest members send equal bits.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np
from annotated_types import Ge

from emuml.cover_times import CoverTimes
from emuml.errors import UserError
from emuml.protocols.gradient_coding.codes.groups import GroupCode
from emuml.protocols.gradient_coding.codes.seam import Decoding, check_workers, checked
from emuml.shapes import StopRule
from emuml.spec import check

if TYPE_CHECKING:
    from emuml.protocols.gradient_coding.server import Server
    from emuml.protocols.gradient_coding.worker import Worker


@dataclass(frozen=True)
class VerifiedRepetition:
    """Groups of at least ``replication`` workers; a group's sum is taken when ``adversaries + 1`` sent the same bits.

    The result is the honest one, bit for bit, with any ``adversaries`` workers of each group sending whatever they
    like, also in agreement. With ``e`` members of a group that never answer, ``replication >= 2 adversaries + e + 1``
    is enough. Placement and load are those of :class:`FractionalRepetition`.

    Parameters
    ----------
    replication : int
        Least number of workers per partition, at least ``2 adversaries + 1``.
    adversaries : int
        Workers of each group that may lie, ``b``.
    on_unresolved : {"stop", "drop"}
        What happens when no value of a group can have ``b + 1`` votes, or more than ``b`` members contradict the value
        that has: only more than ``b`` adversaries bring that about. ``"stop"``: the run fails, and names the group.
        ``"drop"``: the round goes on without the group, as without one that nobody of answered, and logs it.

    Raises
    ------
    UserError
        If so few workers cannot outvote so many adversaries.

    Examples
    --------
    >>> VerifiedRepetition(replication=3, adversaries=1).build(6).stop_rule().times
    2
    """

    replication: Annotated[int, Ge(1)]
    adversaries: Annotated[int, Ge(0)] = 1
    on_unresolved: Literal["stop", "drop"] = "stop"

    def __post_init__(self) -> None:
        check(self)
        least, most = 2 * self.adversaries + 1, (self.replication - 1) // 2
        if self.replication < least:
            raise UserError(
                f"{self.replication} replicas cannot outvote {self.adversaries} adversaries among them",
                "VerifiedRepetition.replication",
                f"an integer >= 2 * adversaries + 1 = {least}",
                f"the nearest are replication={least} and adversaries={most}",
            )

    def build(self, workers: int, seed: int = 0, collect: int | None = None) -> VerifiedCode:
        """Return the code for ``workers`` workers; ``seed`` is not used, the placement is fixed.

        Raises
        ------
        UserError
            If there are fewer workers than replicas, or fewer than all answers are to be collected.
        """
        check_workers(workers)
        if self.replication > workers:
            most = (workers - 1) // 2
            raise UserError(
                f"{self.replication} replicas need as many workers, got {workers}",
                "VerifiedRepetition.replication",
                f"an integer in 1..{workers}",
                f"the nearest is {workers}, for at most {most} adversaries",
            )
        if collect not in (None, workers):
            raise UserError(
                f"each group is waited for until it is verified, got {collect}",
                "collect",
                f"{workers} or nothing",
                "deadline_s closes rounds before that",
            )
        block = self.replication if workers % self.replication == 0 else 1
        return VerifiedCode(
            workers,
            workers // self.replication,
            block,
            scale="none",
            collect=None,
            needed=self.adversaries + 1,
            on_unresolved=self.on_unresolved,
        )


@dataclass(frozen=True)
class VerifiedCode(GroupCode):
    """The code for a known number of workers.

    ``decode`` combines sums that are verified: one worker stands for its group.

    Parameters
    ----------
    needed : int
        Equal answers that verify the sum of a group.
    on_unresolved : str
        See :class:`VerifiedRepetition`.
    """

    needed: int = 1
    on_unresolved: Literal["stop", "drop"] = "stop"

    @property
    def remarks(self) -> tuple[str, ...]:
        """What plans and reports say: who may lie, and who may be silent beside them."""
        liars, least = self.needed - 1, min(self.group_sizes)
        silent = least - 2 * liars - 1
        return (
            f"{liars} of each group may lie, and {silent} more be silent, and the result is the honest one: "
            f"{self.needed} equal answers of each of {self.n_groups} groups are asked for",
        )

    def stop_rule(self) -> StopRule:
        """Return when a round of honest workers closes: with so many answers of each group."""
        return self._times_rule

    @cached_property
    def _times_rule(self) -> CoverTimes:
        return CoverTimes(self.groups, self.needed)

    def decode_honest(self, received: Iterable[int]) -> Decoding:
        """Combine the sums of groups of which ``needed`` members answered."""
        workers = checked(received, self.workers)
        groups = self._group_of[workers]
        is_verified = np.bincount(groups, minlength=self.n_groups)[groups] >= self.needed
        decoding, weights = self.decode(workers[is_verified]), np.zeros(workers.size)
        weights[is_verified] = decoding.weights
        return replace(decoding, weights=weights)

    def roles(self) -> tuple[type[Server], type[Worker]]:
        """Return a server that counts votes, and workers as usual."""
        from emuml.protocols.gradient_coding.verifying import VerifyingServer
        from emuml.protocols.gradient_coding.worker import Worker

        return VerifyingServer, Worker
