from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from emuml._kernels.flow_filling import FlowFilling

class FlowSystem(FlowFilling):
    def add(
        self, now: float, start_s: float, route: Iterable[int], weight: float, most: float, size_bytes: float
    ) -> int: ...
    def remove(self, now: float, slot: int) -> None: ...
    def rate(self, slot: int) -> float: ...
    def next_time(self) -> float: ...
    def advance(self, to: float) -> list[int]: ...
    def finish(
        self,
        starts: NDArray[np.float64],
        first: NDArray[np.intc],
        route: NDArray[np.intc],
        weights: NDArray[np.float64],
        most: NDArray[np.float64],
        sizes: NDArray[np.float64],
        out: NDArray[np.float64],
        until_s: float = ...,
    ) -> None: ...
