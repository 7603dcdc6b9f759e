"""Files with data: where they are looked for, and their content as arrays. Nothing is written or unpacked on disk."""

from __future__ import annotations

import gzip
import io
import lzma
import os
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import file_digest
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from emuml.errors import UserError
from emuml.workloads.data.limits import UNPACKED_MAX_BYTES, check_fits

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

Arrays = dict[str, NDArray[Any]]


def data_folder(where: str) -> Path | None:
    """Return the folder that ``EMUML_DATA`` names, if it names one.

    Raises
    ------
    UserError
        If it names something else: who set it meant it.
    """
    named = os.environ.get("EMUML_DATA")
    if named and not Path(named).is_dir():
        raise UserError(f"EMUML_DATA names {named!r}, which is no folder", where, "a folder, or EMUML_DATA unset")
    return Path(named) if named else None


def find(name: str, where: str, kinds: str) -> Path:
    """Return the path of a file that a user names, also beneath ``EMUML_DATA``; ``kinds`` is what may be named.

    Raises
    ------
    UserError
        If there is none.
    """
    folder = data_folder(where)
    path = Path(name) if _is_file(Path(name)) or folder is None else folder / name
    if not _is_file(path):
        raise UserError(f"there is no file {name!r}", where, f"{kinds}, also in the folder EMUML_DATA names")
    return path


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # a name that is too long for any file
        return False


def sha256(path: Path) -> str:
    """Return the SHA-256 of a file, in hexadecimal digits."""
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()


def plain_suffix(path: Path) -> str:
    """Return the suffix below that of the compression.

    Examples
    --------
    >>> plain_suffix(Path("houses.csv.xz"))
    '.csv'
    """
    return Path(path.stem).suffix if path.suffix in (".gz", ".xz") else path.suffix


def arrays(path: Path, where: str, wanted: str) -> Arrays:
    """Return all arrays of an ``.npz`` or ``.npz.xz`` file; ``wanted`` says which ones it should hold.

    Raises
    ------
    UserError
        If it cannot be read, holds objects, or is a single array.
    """
    with refusing(path, where, f"an .npz file with {wanted}"), opened(path) as file:
        # Opened here, because numpy leaves a file that is no archive open.
        stored = np.load(file, allow_pickle=False)
        if isinstance(stored, np.ndarray):
            raise UserError(f"{path} holds a single array", where, wanted)
        size_bytes = sum(member.file_size for member in stored.zip.infolist())
        check_fits(size_bytes, f"the content of {path}", where)
        members = {name: stored[name] for name in stored.files}
        return {name: array for name, array in members.items() if isinstance(array, np.ndarray)}


def opened(path: Path) -> IO[bytes]:
    """Open a file, unpacked if it ends with ``.gz`` or ``.xz``, of which no more than a limit is read."""
    if path.suffix not in (".gz", ".xz"):
        return path.open("rb")
    unpacked = io.BufferedReader(_Limited(_unpacking(path)))
    if plain_suffix(path) != ".npz":
        return unpacked
    with unpacked:  # numpy goes back and forth in an archive, which a compressed stream does slowly.
        return io.BytesIO(unpacked.read())


@contextmanager
def refusing(path: Path, where: str, allowed: str) -> Iterator[None]:
    """Turn what goes wrong while a file is read into one sentence."""
    try:
        yield
    except UserError:
        raise
    except Exception as error:  # whatever damaged bytes make numpy, an archive or a packer raise
        raise UserError(f"{path} cannot be read: {str(error) or type(error).__name__}", where, allowed) from error


def _unpacking(path: Path) -> lzma.LZMAFile | gzip.GzipFile:
    return lzma.open(path) if path.suffix == ".xz" else gzip.open(path)


class _Limited(io.RawIOBase):
    """What a packed file holds, until it is more than the limit: a few bytes may unpack to any number of them."""

    def __init__(self, packed: lzma.LZMAFile | gzip.GzipFile) -> None:
        self._packed, self._left = packed, UNPACKED_MAX_BYTES

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        with memoryview(buffer) as room:
            part = self._packed.read(len(room))
            room[: len(part)] = part
        self._left -= len(part)
        if self._left < 0:
            raise ValueError(f"it unpacks to more than {UNPACKED_MAX_BYTES // 2**20} MiB")
        return len(part)

    def close(self) -> None:
        self._packed.close()
        super().close()
