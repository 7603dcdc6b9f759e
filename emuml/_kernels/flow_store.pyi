from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

class FlowStore:
    now: float
    fillings: int
    def __init__(self, capacities: Sequence[float] | NDArray[np.float64]) -> None: ...
    def __len__(self) -> int: ...
