"""The answers of one round, counted by their bits: a value of a group is accepted when enough members sent the same.

Votes are over whole messages: a hash of the bytes tells most values apart, then the bytes themselves do, so that 0.0
and -0.0 differ and equal NaNs are equal. Nothing is ever accepted without its votes counted.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from crc32c import crc32c
from numpy.typing import NDArray

from emuml.lazy import array_of
from emuml.message import Array
from emuml.protocols.gradient_coding.codes.groups import GroupCode
from emuml.shapes import Tracker

Bytes = NDArray[np.uint8]


@dataclass
class _Value:
    """What some members of a group sent, all the same."""

    checksum: int
    data: Bytes
    voters: list[int] = field(default_factory=list)


class Votes(Tracker):
    """The votes of one round; closed when each group has a value or can have none any more.

    Parameters
    ----------
    code : GroupCode
        Who is in which group.
    needed : int
        Equal answers that make a value of a group, ``b + 1`` with ``b`` adversaries.
    """

    def __init__(self, code: GroupCode, needed: int) -> None:
        super().__init__(code.workers, None, None)
        self._code, self._needed = code, needed
        self._silent = list(code.group_sizes)
        self._values: list[list[_Value]] = [[] for _ in code.group_sizes]
        self._accepted: list[_Value | None] = [None] * code.n_groups
        self._unsettled = set(range(code.n_groups))

    @property
    def closed(self) -> bool:
        """Whether the round may close."""
        return not self._unsettled

    def has_voted(self, worker: int) -> bool:
        """Tell whether a worker has voted."""
        return bool(self._has_arrived[worker])

    def cast(self, worker: int, value: Array | None) -> int:
        """Count the one vote of a worker, ``None`` for what is no value; return its group."""
        self.arrived(worker)
        group = self._code.group_of(worker)
        self._silent[group] -= 1
        if value is not None:
            same = self._same(group, bytes_of(value))
            same.voters.append(worker)
            if len(same.voters) == self._needed and self._accepted[group] is None:
                self._accepted[group] = same
        if self._accepted[group] is not None or self._most(group) + self._silent[group] < self._needed:
            self._unsettled.discard(group)
        return group

    def verified(self) -> dict[int, int]:
        """Return the groups that have a value, ascending, each with the lowest worker that sent it."""
        found = {}
        for group, value in enumerate(self._accepted):
            if value is not None and not self.doubt(group):
                found[group] = min(value.voters)
        return found

    def dissenters(self) -> list[int]:
        """Return the workers that sent another value than the one that their group has, ascending."""
        return sorted(
            worker
            for group, value in enumerate(self._accepted)
            if value is not None
            for other in self._values[group]
            if other is not value
            for worker in other.voters
        )

    def doubt(self, group: int) -> str:
        """Return why a group can have no value whatever else arrives, or an empty string."""
        members, most = len(self._code.groups[group]), self._most(group)
        if most + self._silent[group] < self._needed:
            return f"at most {most} of {members - self._silent[group]} answers are equal, and {self._needed} must be"
        others = members - self._silent[group] - most
        if self._accepted[group] is not None and others >= self._needed:
            return f"{others} answers differ from the value that {most} sent, more than {self._needed - 1} adversaries"
        return ""

    def _most(self, group: int) -> int:
        return max((len(value.voters) for value in self._values[group]), default=0)

    def _same(self, group: int, data: Bytes) -> _Value:
        """Return the value of these bytes, a new one if nobody has sent them before."""
        checksum = crc32c(data.data)
        for value in self._values[group]:
            if value.checksum == checksum and np.array_equal(value.data, data):
                return value
        self._values[group].append(_Value(checksum, data))
        return self._values[group][-1]


def bytes_of(value: Any) -> Bytes:
    """Return the bytes of an answer, shape (n_bytes,)."""
    return np.ascontiguousarray(array_of(value)).reshape(-1).view(np.uint8)
