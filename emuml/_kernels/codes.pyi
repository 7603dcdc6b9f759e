import numpy as np
from numpy.typing import NDArray

# A graph by its vertices: those next to vertex ``v`` are ``neighbours[starts[v]:starts[v + 1]]``, by the edges
# ``workers`` of the same places; every edge stands at both of its ends. ``received`` is distinct and of the shape of
# ``weights``. Returned are the error in partitions, and the sum of the squares of the weights.

def component_weights(
    starts: NDArray[np.int32],
    neighbours: NDArray[np.int32],
    workers: NDArray[np.int32],
    received: NDArray[np.int64],
    weights: NDArray[np.float64],
) -> tuple[float, float]: ...

# ``order`` are arrivals, maybe repeated; ``limit`` is in units of ``2**-shift`` partitions; ``count`` 0: no number of
# answers closes a round. Returned is 0 if the round does not close.

def error_index(
    edges: NDArray[np.int32], vertices: int, order: NDArray[np.int64], shift: int, limit: int, count: int
) -> int: ...

# Worker ``w`` holds the interval ``starts[w]..stops[w]``, which is not empty; ``by_stop`` sorts workers by ``stops``,
# then by themselves.

def tiling(
    starts: NDArray[np.int32],
    stops: NDArray[np.int32],
    by_stop: NDArray[np.int32],
    length: int,
    received: NDArray[np.int64],
    weights: NDArray[np.float64],
) -> int: ...
def tiling_index(
    starts: NDArray[np.int32],
    stops: NDArray[np.int32],
    by_stop: NDArray[np.int32],
    length: int,
    order: NDArray[np.int64],
    count: int,
) -> int: ...
