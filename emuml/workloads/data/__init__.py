"""Tables of numbers for regressions: arrays, files, named data sets, and synthetic ones.

A file or a named set is looked for where the caller says, then in the folder that ``EMUML_DATA`` names, then in an
installed loader; the source that was taken is kept in words, and nothing is ever downloaded or replaced by something
else. Only launchers come here: scikit-learn is imported inside the function that needs it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from emuml.errors import UserError, did_you_mean
from emuml.workloads.data import dense, originals, twins
from emuml.workloads.data.dense import two_gaussians
from emuml.workloads.data.encoding import one_hot
from emuml.workloads.data.facts import ORIGINALS
from emuml.workloads.data.table import Table, table_arrays

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from emuml.workloads.csr import CsrMatrix

__all__ = ["Table", "is_file", "load", "one_hot", "table_arrays", "two_gaussians"]

NAMES = (*dense.NAMED, dense.SYNTHETIC, *ORIGINALS, *twins.NAMES)


def load(data: str | tuple[ArrayLike | CsrMatrix, ArrayLike], seed: int, where: str) -> Table:
    """Load a table.

    Parameters
    ----------
    data : str or (X, y)
        A name, a name with what it allows (``two-gaussians:ROWSxCOLUMNS``, ``covertype:PATH``,
        ``covertype-twin:ROWS``), a path that ends with ``.npz``, or arrays, of which X may be sparse.
    seed : int
        Of the synthetic sets.
    where : str
        Path of the setting, for errors.

    Raises
    ------
    UserError
        If there is no such data, they are not finite numbers of fitting shapes, or more than fit into memory.
    """
    try:
        return _load(data, seed, where)
    except MemoryError as error:
        raise UserError(f"the data do not fit into the memory of this process ({error})", where) from error


def _load(data: str | tuple[ArrayLike | CsrMatrix, ArrayLike], seed: int, where: str) -> Table:
    if not isinstance(data, str):
        return Table(*table_arrays(*data, where), "arrays given by the caller")
    name, colon, rest = data.partition(":")
    if name in ORIGINALS:
        return originals.load(name, rest if colon else None, where)
    if name in twins.NAMES:
        return twins.load(name, rest if colon else None, seed, where)
    if name == dense.SYNTHETIC:
        return dense.synthetic(data, seed, where)
    if data.endswith(".npz"):
        return dense.from_file(data, where)
    if data not in dense.NAMED:
        allowed = ", ".join((*NAMES, "a path that ends with .npz", "(X, y)"))
        raise UserError(f"{data!r} is unknown", where, allowed, did_you_mean(data, NAMES))
    return dense.named(data, where)


def is_file(data: str) -> bool:
    """Tell whether a setting names a file, which may be gone or changed when a run is repeated."""
    name, colon, _ = data.partition(":")
    return data.endswith(".npz") or (bool(colon) and name in ORIGINALS)
