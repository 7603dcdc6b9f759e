"""The code of Ye and Abbe: shorter messages for more work, exact for any ``s`` stragglers.

See ``decoders/interpolation.py`` for how, and ``sliced.py`` for the code once it is built.

Source: Ye and Abbe, "Communication-computation efficient gradient coding", arXiv:1802.03475.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated

from annotated_types import Ge

from emuml.errors import UserError
from emuml.protocols.gradient_coding.codes.seam import check_collect, check_workers
from emuml.protocols.gradient_coding.codes.sliced import SlicedCode
from emuml.protocols.gradient_coding.decoders.conditioning import refuse_hopeless
from emuml.protocols.gradient_coding.decoders.interpolation import Interpolation, nodes_of
from emuml.spec import check

WORKERS_MAX = 20
"""More workers only on demand: published nodes lose half of all digits there."""


@dataclass(frozen=True)
class YeAbbe:
    """Every worker holds ``stragglers + blocks`` partitions and sends ``1/blocks`` of a gradient's length.

    The load is ``stragglers + blocks``. A round closes at ``workers - stragglers`` answers, or at ``collect`` if that
    is fewer; then the decoding has the least error that is possible.

    Parameters
    ----------
    stragglers : int
        How many answers may be missing.
    blocks : int
        By how much messages are shorter; with the stragglers at most as many as workers.
    allow_large : bool
        Whether there may be more than 20 workers.

    Examples
    --------
    >>> code = YeAbbe(stragglers=1, blocks=2).build(5)
    >>> code.load, code.answer_shape((31,)), code.assignment(4)
    (3.0, (16,), (0, 1, 4))
    """

    stragglers: Annotated[int, Ge(0)]
    blocks: Annotated[int, Ge(1)]
    allow_large: bool = False

    def __post_init__(self) -> None:
        check(self)

    def build(self, workers: int, seed: int = 0, collect: int | None = None) -> SlicedCode:
        """Return the code for ``workers`` workers; ``seed`` is not used.

        Raises
        ------
        UserError
            If stragglers and blocks are more than workers, ``collect`` is not in ``1..workers``, or there are more than
            20 workers without ``allow_large``.
        """
        check_workers(workers)
        check_collect(collect, workers)
        if self.stragglers + self.blocks > workers:
            nearest = max(workers - self.blocks, 0)
            raise UserError(
                f"{self.stragglers} stragglers and {self.blocks} blocks need as many workers together, got {workers}",
                "YeAbbe.stragglers",
                f"an integer in 0..{nearest}" if self.blocks <= workers else f"at most {workers} blocks",
                f"the nearest is {nearest}" if self.blocks <= workers else f"the nearest number of blocks is {workers}",
            )
        if workers > WORKERS_MAX and not self.allow_large:
            raise UserError(
                f"got {workers} workers, and the decoding of many is sensitive to rounding",
                "workers",
                f"1..{WORKERS_MAX}",
                "YeAbbe(allow_large=True) lets you try; the plan says what rounding does",
            )
        return _built(workers, self.stragglers, self.blocks, collect)


@lru_cache(maxsize=8)
def _built(workers: int, stragglers: int, blocks: int, collect: int | None) -> SlicedCode:
    decoder = Interpolation(nodes_of(workers), stragglers, blocks)
    code = SlicedCode(decoder, collect)
    refuse_hopeless(code.contiguous_gain, f"this code of {workers} workers", stragglers, "YeAbbe.stragglers")
    return code
