from typing import Any

from numpy.typing import NDArray

def weighted_sum(weights: NDArray[Any], arrays: list[NDArray[Any]], out: NDArray[Any]) -> bool: ...
