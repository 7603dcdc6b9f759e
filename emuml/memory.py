"""Who may still write to the memory of an array: what decides whether it is shared or copied.

numpy's flags are all that can be asked. An array that owns its memory can be made writable again, and a writable view
that was taken of it before it was sealed stays one: whoever does so means it.
"""

from __future__ import annotations

import mmap
from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import NDArray


def is_settled(array: NDArray[Any], mapped: bool = False) -> bool:
    """Return whether an array's memory keeps its content as soon as the array itself is read-only.

    Parameters
    ----------
    array : ndarray
    mapped : bool
        Whether files that are mapped read-only count, whose content others could change.

    Examples
    --------
    >>> table = np.zeros(4)
    >>> is_settled(table), is_settled(table[:2]), is_settled(np.frombuffer(b"abcd", np.uint8))
    (True, False, True)
    """
    owner, base = array, array.base
    while isinstance(base, np.ndarray):
        owner, base = base, base.base
    if base is not None:
        return type(base) is bytes or (mapped and _is_mapped_read_only(base))
    return owner.flags.owndata and (owner is array or not owner.flags.writeable)


def owned(array: NDArray[Any], dtype: Any = np.float64) -> NDArray[Any]:
    """Return a plain read-only contiguous array that nobody else writes to, without copying what is one already.

    Parameters
    ----------
    array : ndarray
        Shared if it is read-only and so is who owns its memory, such as a mapped file or ``bytes``; else copied.
    dtype : data-type
        Of the result.
    """
    flags, keeps = array.flags, array.dtype == dtype and not array.flags.writeable
    if keeps and flags.c_contiguous and flags.aligned and is_settled(array, mapped=True):
        return array if type(array) is np.ndarray else array.view(np.ndarray)
    return sealed(np.array(array, dtype, order="C", subok=False))


def sealed(array: NDArray[Any]) -> NDArray[Any]:
    """Return an array that was just made and that nobody else has, made read-only."""
    array.flags.writeable = False
    return array


def rebuilt(declaration: Any) -> tuple[type[Any], tuple[Any, ...]]:
    """Return what ``__reduce__`` returns for a frozen dataclass that owns arrays.

    Arrays come out of a pickle writable; building anew checks them, makes them read-only, and forgets cached digests.
    """
    values = tuple(getattr(declaration, field.name) for field in fields(declaration) if field.init)
    return type(declaration), values


def _is_mapped_read_only(base: object) -> bool:
    if not isinstance(base, mmap.mmap):
        return False
    with memoryview(base) as whole:
        return whole.readonly
