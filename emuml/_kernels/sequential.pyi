import numpy as np
from numpy.typing import NDArray

def sequential_rounds(
    kind: int,
    burst: int,
    window: int,
    stragglers: int,
    tolerance: int,
    slots: int,
    delays: NDArray[np.float64],
    extra_s: NDArray[np.float64],
    wait: float,
    ended_s: NDArray[np.float64],
    late: NDArray[np.int64],
    waited: NDArray[np.uint8],
    decoded: NDArray[np.int64],
) -> int: ...
