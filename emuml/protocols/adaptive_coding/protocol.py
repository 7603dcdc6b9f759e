"""Adaptive coding as a protocol: before each round the server chooses redundancy and collect count from a menu.

The menu is the product of codes and counts of answers at which a round may close early. Every worker can reach all of
the data, so a question says which code its round uses and the worker takes its assignment from it. Work on a closed
round ends when the next parameters arrive, as with ``stragglers="cancel"`` of gradient coding; so the times of those
who have not answered are known only to be longer than the round, and the server counts them as that.

The objective, with ``seconds`` and ``progress`` of a round as expected from the window of observed rounds:

- ``"progress"``: least ``E[seconds] / E[progress]``, progress ``max(0, 1 - ||a^T B - 1||^2 / partitions)``. For plain
  sums of groups, this is the share of the gradient that is decoded, ``1 - p`` on average (Wang et al. 2019).
- ``"balanced"``: the same with progress times the balance of the data: the harmonic over the arithmetic mean of the
  shares of rounds in which each group is decoded. Where the same workers are always late, their data hardly count, and
  training settles at another point; this objective weighs that. For workers that are alike it is ``"progress"``.
- ``"exact"``: least ``E[seconds] / Pr[decode error = 0]``, of codes that never close early.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, ClassVar

from annotated_types import Ge, Gt, Lt
from numpy.typing import NDArray

from emuml.errors import UserError
from emuml.node import Factory, NodeId
from emuml.protocol import Outcome, Problem, Promise
from emuml.protocols.adaptive_coding.chooser import Objective, Settings
from emuml.protocols.adaptive_coding.menu import Menu
from emuml.protocols.adaptive_coding.server import Server
from emuml.protocols.adaptive_coding.worker import Worker
from emuml.protocols.gradient_coding.codes import Code, FractionalRepetition
from emuml.roster import Roster
from emuml.spec import check

SERVER = NodeId("server", 0)


@dataclass(frozen=True)
class AdaptiveCoding:
    """Synchronous training whose redundancy and collect count follow the delays that are observed.

    Parameters
    ----------
    codes : list of codes
        What may be chosen, such as ``FractionalRepetition``; their rounds close at a count of answers or when groups
        have answered. The first one is where training begins.
    collect_shares : list of float
        Shares of the workers, in (0, 1), at which rounds of each code may also close early. Beside them each code is
        on the menu without an early end. None with ``objective="exact"``.
    objective : {"balanced", "progress", "exact"}
        ``"progress"``: least expected seconds per share of the gradient that is decoded. ``"balanced"``: the same where
        each part of the data has to count alike. ``"exact"``: least expected seconds of a round that decodes exactly.
    window : int
        Rounds that the choice is based on, the newest ones: after a change of delays all older ones are forgotten, at
        the latest, once so many rounds have passed. At least 4.
    every : int
        Rounds between two choices.
    first : int
        Rounds in which each of two loads is tried at the start, without an early end.
    probe : int
        One round in so many tries, in turn, the best candidate of another load or the next higher count.

    Examples
    --------
    >>> protocol = AdaptiveCoding(collect_shares=(0.5, 0.8))
    >>> [(one.load, one.collect) for one in protocol.menu(workers=10)][:4]
    [(1.0, 10), (1.0, 8), (1.0, 5), (2.0, 10)]
    """

    survives: ClassVar[frozenset[str]] = frozenset({"worker"})
    """Roles of which all nodes may be lost for good without that nobody can go on."""

    codes: tuple[Code, ...] = (FractionalRepetition(1), FractionalRepetition(2), FractionalRepetition(3))
    collect_shares: tuple[Annotated[float, Gt(0), Lt(1)], ...] = ()
    objective: Objective = "balanced"
    window: Annotated[int, Ge(4)] = 64
    every: Annotated[int, Ge(1)] = 1
    first: Annotated[int, Ge(1)] = 1
    probe: Annotated[int, Ge(2)] = 64

    def __post_init__(self) -> None:
        check(self)
        if not self.codes:
            raise UserError("got no code", "AdaptiveCoding.codes", "at least one")
        for name in ("codes", "collect_shares"):
            given = getattr(self, name)
            if len(set(given)) < len(given):
                raise UserError(f"got {given!r:.200}", f"AdaptiveCoding.{name}", "each once")
        if self.objective == "exact" and self.collect_shares:
            raise UserError(
                f"rounds that close early at {self.collect_shares} are not exact",
                "AdaptiveCoding.collect_shares",
                "nothing with objective='exact'",
                "objective='progress' weighs them",
            )

    def menu(self, workers: int, seed: int = 0) -> Menu:
        """Return the candidates for so many workers.

        Raises
        ------
        UserError
            If a code does not fit the number of workers, or closes rounds by more than counts and groups.
        """
        return Menu.of(self.codes, self.collect_shares, workers, seed)

    @property
    def settings(self) -> Settings:
        """How the server learns."""
        return Settings(self.objective, self.window, self.every, self.first, self.probe)

    def _menu(self, roster: Roster) -> Menu:
        if tuple(roster.of("server")) != (SERVER,):
            raise UserError(f"got {len(roster.of('server'))} servers", "cluster.servers", "1 for adaptive coding")
        return self.menu(len(roster.of("worker")), roster.seed)

    def nodes(self, workload: Problem, roster: Roster) -> dict[NodeId, tuple[str, Factory]]:
        """Return one server and the workers of the roster.

        Raises
        ------
        UserError
            If the roster has no single server, or a code does not fit the number of workers or of rows.
        """
        menu = self._menu(roster)
        for family in menu.families:
            workload.partition_bounds(family[0].code.partitions)  # refuses more partitions than rows
        found: dict[NodeId, tuple[str, Factory]] = {
            SERVER: ("server", partial(Server, menu, workload, roster, self.settings))
        }
        for worker in roster.of("worker"):
            found[worker] = ("worker", partial(Worker, menu, workload, worker.index))
        return found

    def parameters(self, result: Outcome) -> NDArray[Any]:
        """Return the parameters that were published last."""
        return result.published[-1][1]

    def shape(self, roster: Roster, problem: Problem | None = None) -> None:
        """Return None: what a round costs depends on the rounds before it."""
        self._menu(roster)  # refuses what does not fit

    def oracles(self) -> tuple[Promise, ...]:
        """Return nothing: rounds are as long as what is chosen, which no closed form knows."""
        return ()

    def redo(self, lost: frozenset[NodeId]) -> tuple[str, ...]:
        """Return what is done again after a loss: the open round of a worker, everything of the server."""
        return tuple("training from the start" if n == SERVER else f"the open round of {n}" for n in sorted(lost))
