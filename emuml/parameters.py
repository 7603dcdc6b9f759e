"""Parameters in blocks: value, version, optimizer state, and distance to the last saved value, per block.

This is the seam at which checkpointing meets training: servers step parameters through it, and whoever saves reads
snapshots from it and restores into it. It computes nothing but distances.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from emuml.errors import ContractError


class ParameterBlocks:
    """A flat parameter vector cut into blocks.

    Parameters
    ----------
    values : ndarray, shape (n_parameters,)
        Initial parameters. Steps replace the array, never change it, so published versions stay valid.
    bounds : sequence of int, optional
        Block ``b`` is ``values[bounds[b]:bounds[b + 1]]``; default: one block.
    """

    def __init__(self, values: NDArray[Any], bounds: Iterable[int] | None = None) -> None:
        self.bounds = tuple(bounds) if bounds is not None else (0, len(values))
        if self.bounds[0] != 0 or self.bounds[-1] != len(values) or any(np.diff(self.bounds) < 0):
            raise ContractError(f"block bounds {self.bounds} do not cut {len(values)} parameters")
        self.values = values
        self.state: Any = None
        self.version = 0
        self._versions = np.zeros(len(self.bounds) - 1, np.int64)  # what a block's version is beyond that of all
        self._saved: list[NDArray[Any]] = [self.block(b) for b in range(len(self))]

    def __len__(self) -> int:
        return len(self.bounds) - 1

    def block(self, block: int) -> NDArray[Any]:
        """Return the current value of a block."""
        return self.values[self.bounds[block] : self.bounds[block + 1]]

    def on_step(self, values: NDArray[Any], state: Any = None) -> None:
        """Take the parameters and optimizer state after one more step."""
        if values.shape != self.values.shape:
            raise ContractError(f"a step changed the shape of the parameters: {self.values.shape} to {values.shape}")
        self.values, self.state = values, state
        self.version += 1

    def versions(self) -> NDArray[np.int64]:
        """Return the version of each block: how many steps its value has seen."""
        return self._versions + self.version

    def distances(self) -> NDArray[np.float64]:
        """Return, per block, the Euclidean distance to the value saved last (to the initial one before any save)."""
        return np.array([float(np.linalg.norm(self.block(b) - self._saved[b])) for b in range(len(self))])

    def snapshot(self, blocks: Iterable[int]) -> dict[int, NDArray[Any]]:
        """Return copies of some blocks, and remember them as saved."""
        taken = {b: np.array(self.block(b)) for b in blocks}
        for b, value in taken.items():
            self._saved[b] = value
        return taken

    def restore(self, blocks: Mapping[int, NDArray[Any]], versions: Mapping[int, int] | None = None) -> None:
        """Put saved values back into some blocks; the others stay as they are."""
        values = np.array(self.values)
        for b, value in blocks.items():
            values[self.bounds[b] : self.bounds[b + 1]] = value
            self._saved[b] = np.array(value)
            self._versions[b] = (versions or {}).get(b, 0) - self.version
        self.values = values
