import numpy as np
from numpy.typing import NDArray

def key_words(
    lows: NDArray[np.uint64], highs: NDArray[np.uint64], position: int, out: NDArray[np.uint64], plain: bool = False
) -> None: ...
def key_exponentials(
    lows: NDArray[np.uint64],
    highs: NDArray[np.uint64],
    position: int,
    shift: float,
    scale: float,
    out: NDArray[np.float64],
) -> None: ...
