import numpy as np
from numpy.typing import NDArray

def csr_predict(
    starts: NDArray[np.int64],
    stops: NDArray[np.int64],
    indices: NDArray[np.int32],
    values: NDArray[np.float64] | None,
    parameters: NDArray[np.float64],
    out: NDArray[np.float64],
) -> None: ...
def csr_accumulate(
    starts: NDArray[np.int64],
    stops: NDArray[np.int64],
    indices: NDArray[np.int32],
    values: NDArray[np.float64] | None,
    slopes: NDArray[np.float64],
    out: NDArray[np.float64],
) -> None: ...
