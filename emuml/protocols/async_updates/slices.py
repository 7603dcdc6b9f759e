"""Parameters cut into contiguous slices, one for each server, and gathered from them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from emuml.message import Array


def slice_of(server: int, servers: int, n_parameters: int) -> slice:
    """Return which parameters a server holds; sizes differ by at most one.

    Examples
    --------
    >>> [slice_of(server, 3, 10) for server in range(3)]
    [slice(0, 3, None), slice(3, 6, None), slice(6, 10, None)]
    """
    return slice(server * n_parameters // servers, (server + 1) * n_parameters // servers)


def joined(slices: Sequence[Array]) -> Array:
    """Return the whole of slices in the order of servers; of one slice, itself."""
    return slices[0] if len(slices) == 1 else np.concatenate(slices)


def cut(whole: Array, servers: int) -> list[Array]:
    """Return the slices of a whole in the order of servers; of one server, the whole itself."""
    if servers == 1:
        return [whole]
    return [np.array(whole[slice_of(server, servers, whole.shape[0])]) for server in range(servers)]
