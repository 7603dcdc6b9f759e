"""Scenarios: everything that makes one emulated run, as data that is small, readable and stays valid when it shrinks.

The empty scenario is the plain run with constant delays. Deviations name what they change, never by position in a run:
names are those of ``emuml/des/choices.py``, so that they point at the same thing when something else is dropped; what
does not occur is ignored.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, Field, ValidationError, model_validator

from emuml.cluster.cluster import Cluster, Detection, Network, Storage
from emuml.cluster.compute import Constant, Instant
from emuml.cluster.faults import FaultPlan
from emuml.errors import UserError
from emuml.testing.mishaps import STEP_S as STEP_S
from emuml.testing.mishaps import CrashFault as CrashFault
from emuml.testing.mishaps import CutFault as CutFault
from emuml.testing.mishaps import Mishap, Strict, Time
from emuml.testing.mishaps import PauseFault as PauseFault
from emuml.testing.mishaps import SlowFault as SlowFault
from emuml.testing.mishaps import tenths as tenths

FORMAT: Final = 3
"""The newest format of files; 1 has one server and names no test, 2 has crashes only. All of them are read."""
Name = tuple[str | int, ...]
Link = tuple[str, str, int]
Work = tuple[str, str, int]


class Delays(Strict):
    """Constant base delays in seconds: of a task of load 1, a message, an operation of a disk, noticing an exit.

    Who is silent as long as an exit takes to be noticed is suspected, and taken for dead after twice as long.
    """

    compute: Time = 1.0
    network: Time = 0.3
    storage: Time = 0.3
    detector: Time = 0.5


class Deviation(Strict):
    """One choice other than the default: exactly one of the names is given.

    Parameters
    ----------
    message : (sender, receiver, type, n), optional
        Arrives ``late_s`` late, and what follows on the link no sooner.
    compute, storage : (node, tag, n), optional
        A task, or a save or load, takes ``late_s`` longer.
    verdict : (node, peer, n), optional
        A crash of the peer is noticed ``late_s`` later, or its silence taken for one.
    lost : (sender, receiver, n), optional
        Of what the sender had sent at its n-th crash, the last ``count`` messages are lost.
    tie : (name, name), optional
        Of two events at one instant the first named goes first.
    """

    message: tuple[str, str, str, int] | None = None
    compute: Work | None = None
    storage: Work | None = None
    verdict: Link | None = None
    lost: Link | None = None
    tie: tuple[Name, Name] | None = None
    late_s: Time = 0.0
    count: Annotated[int, Field(ge=0)] = 0

    @model_validator(mode="after")
    def _one_name(self) -> Deviation:
        if len(self.model_fields_set & KINDS) != 1:
            raise ValueError(f"exactly one of {', '.join(sorted(KINDS))} names a choice")
        return self

    @property
    def kind(self) -> str:
        """Which of the names is given."""
        return next(iter(self.model_fields_set & KINDS))

    @property
    def name(self) -> str:
        """The name as the emulator asks for it; of a tie both, the first to go first."""
        if self.tie is not None:
            return "tie/" + "|".join(as_text(name) for name in self.tie)
        return as_text((self.kind, *getattr(self, self.kind)))

    def level(self, delays: Delays) -> int:
        """Return the emulator's choice: how many base delays late, or how many messages are lost."""
        if self.kind in ("tie", "lost"):
            return self.count or 1
        base_s = base_of(self.kind, delays)
        return round(self.late_s / base_s) if base_s else 0


KINDS = frozenset({"message", "compute", "storage", "verdict", "lost", "tie"})
_BASES = {"message": "network", "compute": "compute", "storage": "storage", "verdict": "detector"}


def base_of(kind: str, delays: Delays) -> float:
    """Return the base delay that choices of a kind are multiples of, in seconds."""
    return float(getattr(delays, _BASES[kind]))


def as_text(name: Iterable[object]) -> str:
    """Return a name as the emulator writes it."""
    return "/".join(map(str, name))


def as_name(text: str) -> Name:
    """Return a name as its parts; a tag that has slashes itself is one part.

    Examples
    --------
    >>> as_name("message/worker-1/server-0/Push/2"), as_name("compute/worker-3/a/b/1")
    (('message', 'worker-1', 'server-0', 'Push', 2), ('compute', 'worker-3', 'a/b', 1))
    """
    kind, _, rest = text.partition("/")
    front, _, n = rest.rpartition("/")
    if not n.isdecimal():
        return (text,)
    return (kind, *front.split("/", 2 if kind == "message" else 1), int(n))


def deviation(asked: str, pick: int, delays: Delays) -> Deviation:
    """Return the deviation that a pick other than 0 is."""
    if asked.startswith("tie/"):
        names = asked[4:].split("|")
        return Deviation(tie=(as_name(names[pick]), as_name(names[0])))
    kind, *name = as_name(asked)
    if kind == "lost":
        return Deviation.model_validate({"lost": name, "count": pick})
    return Deviation.model_validate({kind: name, "late_s": pick * base_of(str(kind), delays)})


class Scenario(Strict):
    """One run: how many take part, their delays, what fails, and which choices deviate from the default.

    Parameters
    ----------
    workers, servers, rounds : int
    seed : int
        Of the protocol's own streams only; it moves no delay.
    delays : Delays
    faults : tuple of CrashFault, CutFault, PauseFault and SlowFault
    deviations : tuple of Deviation
    links : {"stream"}
        Links keep order and lose nothing.
    """

    format: Annotated[Literal[1, 2, 3], AfterValidator(lambda _: FORMAT)] = FORMAT
    workers: Annotated[int, Field(ge=1)] = 2
    servers: Annotated[int, Field(ge=1)] = 1
    rounds: Annotated[int, Field(ge=1)] = 2
    seed: Annotated[int, Field(ge=0)] = 0
    delays: Delays = Delays()
    faults: tuple[Mishap, ...] = ()
    deviations: tuple[Deviation, ...] = ()
    links: Literal["stream"] = "stream"

    @property
    def levels(self) -> int:
        """Sum of the levels of all deviations."""
        return sum(item.level(self.delays) for item in self.deviations)

    def size(self) -> tuple[Any, ...]:
        """Return what scenarios are compared by: the smaller, the simpler."""
        times = sum(fault.at_s + (fault.lasts_s or 0.0) + fault.extent for fault in self.faults)
        nodes, changes = self.workers + self.servers, (len(self.faults), len(self.deviations))
        return nodes, self.servers, self.rounds, *changes, self.levels, times, self.seed

    def with_picks(self, picks: Iterable[tuple[str, int, float]]) -> Scenario:
        """Return the scenario with recorded picks (name, pick, time in seconds) as deviations and kept saves."""
        kept: dict[int, list[str]] = {}
        deviations = list(self.deviations)
        for asked, pick, now in picks:
            if asked.startswith("save/"):
                _, node, rest = asked.split("/", 2)
                kept.setdefault(self._crash_of(node, now), []).append(f"save/{rest}")
            else:
                deviations.append(deviation(asked, pick, self.delays))
        faults = list(self.faults)
        for i, names in kept.items():
            crash = faults[i]
            if isinstance(crash, CrashFault):
                faults[i] = crash.model_copy(update={"keep": (*crash.keep, *names)})
        return self.model_copy(update={"faults": tuple(faults), "deviations": tuple(deviations)})

    def _crash_of(self, node: str, now: float) -> int:
        crashes = ((i, fault) for i, fault in enumerate(self.faults) if isinstance(fault, CrashFault))
        before = [i for i, fault in crashes if fault.node == node and fault.at_s <= now + STEP_S / 2]
        return max(before, key=lambda i: self.faults[i].at_s, default=-1)

    def cluster(self) -> Cluster:
        """Return the emulated cluster."""
        return cluster_of(self.workers, self.servers, self.delays)

    def fault_plan(self) -> FaultPlan:
        """Return the faults in their clock form."""
        return FaultPlan(tuple(item.as_fault() for item in self.faults))

    def to_json(self, indent: int | None = None, test: str = "") -> str:
        """Return the JSON form, without what is as by default.

        Format and kinds of faults are always there. The format is the least that can say what is said, so that older
        versions read whatever they can.

        Parameters
        ----------
        test : str
            Which test the scenario is of, as ``FILE.py::NAME``.
        """
        form: dict[str, Any] = {
            "format": self._least_format(test),
            **({"test": test} if test else {}),
        }
        form |= self.model_dump(mode="json", exclude_defaults=True, exclude_none=True)
        for fault, item in zip(self.faults, form.get("faults", ()), strict=True):
            item["kind"] = fault.kind
        return json.dumps(form, indent=indent)

    def _least_format(self, test: str) -> int:
        if any(fault.kind != "crash" for fault in self.faults):
            return 3
        return 1 if self.servers == 1 and not test else 2

    def to_file(self, path: str | Path, test: str = "") -> None:
        """Write the JSON form."""
        Path(path).write_text(self.to_json(1, test) + "\n")


@lru_cache(256)
def cluster_of(workers: int, servers: int, delays: Delays) -> Cluster:
    """Return the emulated cluster of so many nodes; all runs of one size share it."""
    return Cluster(
        workers=workers,
        servers=servers,
        compute=Constant(delays.compute) if delays.compute else Instant(),
        network=Network(delays.network),
        storage=Storage(latency_s=delays.storage),
        detection=Detection(exit_s=delays.detector, suspect_s=delays.detector, down_s=2 * delays.detector),
    )


class _Stored(Scenario):
    """A scenario as it is in a file."""

    test: str = ""


def load(path: str | Path) -> Scenario:
    """Read a scenario.

    Raises
    ------
    UserError
        Naming the file, the field and what is allowed.
    """
    return load_stored(path)[0]


def load_stored(path: str | Path) -> tuple[Scenario, str]:
    """Read a scenario, and which test it is of, as ``FILE.py::NAME``; empty where the file does not say it."""
    try:
        text = Path(path).read_text()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no text"
        raise UserError(f"cannot be read: {why}", str(path), "the scenario of a failed test") from None
    return _read(text, str(path))


def parsed(text: str, where: str = "scenario") -> Scenario:
    """Return the scenario of a JSON text."""
    return _read(text, where)[0]


def _read(text: str, where: str) -> tuple[Scenario, str]:
    try:
        stored = _Stored.model_validate_json(text)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(map(str, first["loc"]))
        raise UserError(first["msg"], f"{where}: {field}" if field else where) from None
    return Scenario.model_construct(**{name: getattr(stored, name) for name in Scenario.model_fields}), stored.test
