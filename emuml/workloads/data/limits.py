"""What a setting or a file may ask for: whole numbers as users write them, and tables that fit into memory."""

from __future__ import annotations

import os

from emuml.errors import UserError

UNPACKED_MAX_BYTES = 2**29
"""Of a packed file; the largest of the known ones, Covertype as text, has 75 MB."""

_GIB = 2**30


def whole_number(text: str) -> int | None:
    """Return the number that ASCII digits spell, or None if they do not or are more than 18.

    Examples
    --------
    >>> whole_number("30"), whole_number("-3"), whole_number("\u0663")
    (30, None, None)
    """
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= 18 else None


def check_fits(size_bytes: int, what: str, where: str) -> None:
    """Refuse what needs more memory than this machine has, before any is taken.

    Raises
    ------
    UserError
        If ``size_bytes`` is more; ``what`` says of what.
    """
    machine_bytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if size_bytes > machine_bytes:
        needs = f"{what} takes {size_bytes / _GIB:.1f} GiB"
        raise UserError(needs, where, f"what fits into the {machine_bytes / _GIB:.1f} GiB of this machine")
