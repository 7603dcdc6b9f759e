"""What an emulated run leaves open, by name: an explorer picks, and nobody is asked where there is none.

A name is ``kind/node.../what/n``: the n-th of its kind on that link or node, from 0, over all incarnations, so that it
stays the name of the same thing when something else in the run changes.

================================  =======================================  ======================================
name                              choices                                  0 means
================================  =======================================  ======================================
``message/FROM/TO/TYPE/n``        0 to 5 extra latencies                   none
``compute/NODE/TAG/n``            0 to 5 extra durations                   none
``storage/NODE/TAG/n``            0 to 5 extra durations                   none
``verdict/NODE/PEER/n``           0 to 5 extra times of noticing an exit,  none
                                  also until silence is taken for one
``save/NODE/TAG/n``               a save that is pending at a crash        lost
``lost/FROM/TO/n``                how many of a crashed node's messages    none: what had left arrives
                                  that are on the way are lost, from
                                  the last one
``tie/NAME|NAME...``              which of these events comes first        the first
================================  =======================================  ======================================

Events of a tie that have no choice of their own are named in the same way: ``timer/NODE/NAME/n``,
``connect/NODE/PEER/n``, ``unreachable/NODE/PEER/n``, ``reopen/NODE/PEER/n``, ``suspect/NODE/PEER/n``,
``heard/NODE/PEER/n``, ``over/NODE/PEER/n``, ``restart/NODE/n``, ``begin/NODE/n``, and faults that begin or end, as
``crash/NODE/n`` and ``end/partition/NODE.../n``.
"""

from __future__ import annotations

from emuml.des.environment import Choose

LEVELS = 6
"""Choices of a delay: 0 to 5 times the base beyond it."""


class _Stem:
    """A name without its number, and how many there were."""

    __slots__ = ("count", "text")

    def __init__(self, text: str) -> None:
        self.text, self.count = text, 0


class Choices:
    """Numbers names and asks for picks; one for each run that has an explorer."""

    def __init__(self, choose: Choose) -> None:
        self.choose = choose
        self._stems: dict[tuple[object, ...], _Stem] = {}
        self._by_text: dict[str, _Stem] = {}

    def name(self, *parts: object) -> str:
        """Return the name of the next thing of this kind: of ``kind, node, ...``, whose texts tell it from others."""
        stem = self._stems.get(parts)
        if stem is None:
            text = "/".join(map(str, parts)) + "/"
            stem = self._stems[parts] = self._by_text.setdefault(text, _Stem(text))
        count = stem.count
        stem.count = count + 1
        return stem.text + str(count)

    def late_s(self, name: str, base_s: float) -> float:
        """Return how many seconds something takes beyond ``base_s``; what takes no time has no choice."""
        return base_s * self.choose(name, LEVELS) if base_s > 0 else 0.0
