"""The toys as asyncio tasks, with the logic of ``nodes.py``: mailboxes, sleeps, and a disk that may lose saves.

They ask ``pick(a, b)`` for an integer from a to b, a being the default, wherever the emulator asks its explorer: how
many base delays a message, a task or a save is late; when a crash strikes; which pending saves it keeps; how many
messages it loses on the way.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from benchmarks.toys.nodes import LAST, ROUNDS, SLACK, WORKERS

Pick = Callable[[int, int], int]
NETWORK_S, COMPUTE_S, STORAGE_S, DETECTOR_S = 0.3, 1.0, 0.3, 0.5
LATE = 5
CRASH_TENTHS, BACK_TENTHS = 60, 50


class World:
    """Links that keep order, and the fields that invariants read."""

    def __init__(self, pick: Pick) -> None:
        self.pick = pick
        self.boxes: dict[str, asyncio.Queue[tuple[str, Any]]] = {}
        self.done = asyncio.Event()
        self.seen: dict[str, Any] = {}
        self.sessions: dict[str, int] = {}
        self._links: dict[tuple[str, str], deque[tuple[Any, int]]] = {}
        self._arrives_s: dict[tuple[str, str], float] = {}

    def box(self, name: str) -> asyncio.Queue[tuple[str, Any]]:
        """Give a node an empty mailbox."""
        box = self.boxes[name] = asyncio.Queue()
        return box

    def late(self, base_s: float) -> float:
        """Return a duration: the base, and up to five times it more."""
        return base_s * (1 + self.pick(0, LATE))

    def send(self, sender: str, to: str, message: Any) -> None:
        """Send a message; it arrives after what was sent before on the link."""
        loop, link = asyncio.get_running_loop(), (sender, to)
        at = max(loop.time() + self.late(NETWORK_S), self._arrives_s.get(link, 0.0))
        self._arrives_s[link] = at
        self._links.setdefault(link, deque()).append((message, self.sessions.get(sender, 0)))
        loop.call_at(at, self._arrive, link)

    def _arrive(self, link: tuple[str, str]) -> None:
        message, session = self._links[link].popleft()
        if session == self.sessions.get(link[1], 0) and message is not None and link[1] in self.boxes:
            self.boxes[link[1]].put_nowait((link[0], message))

    def lose_end(self, link: tuple[str, str]) -> None:
        """Lose some of the last messages on a link."""
        left = self._links.get(link, deque())
        for i in range(len(left) - self.pick(0, len(left)), len(left)):
            left[i] = None, left[i][1]


async def master(world: World, any_round: bool = False) -> None:
    """Close rounds on the answers of all workers but one."""
    box, seen = world.boxes["master"], world.seen
    seen["closed"] = []
    for round in range(ROUNDS):
        for i in range(WORKERS):
            world.send("master", f"worker-{i}", round)
        answers: dict[str, int] = {}
        while len(answers) < WORKERS - 1:
            sender, number = await box.get()
            if number == round or any_round:
                answers[sender] = number
        seen["closed"].append(list(answers.values()))
    world.done.set()


async def labourer(world: World, name: str) -> None:
    """Work off one round after the other."""
    while True:
        _, number = await world.boxes[name].get()
        await asyncio.sleep(world.late(COMPUTE_S))
        world.send(name, "master", number)


async def server(world: World, behind: int = SLACK) -> None:
    """Let workers read that are not too far ahead."""
    completed = world.seen["completed"] = [0] * WORKERS
    waiting: dict[str, int] = {}
    while True:
        sender, (kind, number) = await world.boxes["server"].get()
        if kind == "read":
            waiting[sender] = number
        else:
            completed[int(sender[-1])] = number + 1
        if min(completed) == ROUNDS:
            world.done.set()
        for worker, clock in sorted(waiting.items()):
            if min(completed) >= clock - behind:
                del waiting[worker]
                world.send("server", worker, clock)


async def learner(world: World, name: str) -> None:
    """Read, compute, push."""
    for clock in range(ROUNDS):
        world.send(name, "server", ("read", clock))
        await world.boxes[name].get()
        await asyncio.sleep(world.late(COMPUTE_S))
        world.send(name, "server", ("update", clock))


async def client(world: World) -> None:
    """Have numbers kept, one after the other; ask again when the keeper is back."""
    world.seen["kept"] = 0
    world.send("client", "keeper", 1)
    while world.seen["kept"] < LAST:
        _, message = await world.boxes["client"].get()
        if message == "back":
            world.send("client", "keeper", world.seen["kept"] + 1)
        elif message == world.seen["kept"] + 1:
            world.seen["kept"] += 1
            if world.seen["kept"] < LAST:
                world.send("client", "keeper", world.seen["kept"] + 1)
    world.done.set()


class Disk:
    """Saves one after the other; a crash keeps some of those that are pending."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.blocks: dict[str, int] = {}
        self.pending: deque[dict[str, int]] = deque()
        self._free_s = 0.0

    def save(self, blocks: dict[str, int], then: Callable[[], None]) -> None:
        """Save blocks, and call back."""
        loop = asyncio.get_running_loop()
        self._free_s = max(self._free_s, loop.time()) + self._world.late(STORAGE_S)
        self.pending.append(blocks)
        loop.call_at(self._free_s, self._end, blocks, then)

    def _end(self, blocks: dict[str, int], then: Callable[[], None]) -> None:
        if any(blocks is item for item in self.pending):
            self.pending = deque(item for item in self.pending if item is not blocks)
            self.blocks |= blocks
            then()

    def crash(self) -> None:
        """Keep a choice of what is pending."""
        for blocks in self.pending:
            if self._world.pick(0, 1):
                self.blocks |= blocks
        self.pending.clear()
        self._free_s = 0.0


async def keeper(world: World, disk: Disk, hasty: bool = False, torn: bool = False) -> None:
    """Keep numbers, acknowledge what is durable."""
    box, seen = world.boxes["keeper"], world.seen
    seen["number"] = durable = disk.blocks.get("number", 0)
    seen["proof"] = disk.blocks.get("proof", 0)
    while True:
        sender, number = await box.get()
        if sender == "disk":
            durable = number
            if not hasty:
                world.send("keeper", "client", number)
        elif number == seen["number"] + 1:
            seen["number"] = seen["proof"] = number
            saved = partial(box.put_nowait, ("disk", number))
            if torn:
                disk.save({"proof": number}, lambda: None)
                disk.save({"number": number}, saved)
            else:
                disk.save({"number": number, "proof": number}, saved)
            if hasty:
                world.send("keeper", "client", number)
        elif number <= durable:
            world.send("keeper", "client", number)


async def crash(world: World, disk: Disk, start: Callable[[], asyncio.Task[None]]) -> None:
    """Run the keeper, and crash it once or never: its task ends, it is noticed, and a new life begins."""
    life = start()
    if not world.pick(0, 1):
        return
    await asyncio.sleep(world.pick(0, CRASH_TENTHS) / 10)
    life.cancel()
    world.seen.pop("number", None)
    del world.boxes["keeper"]
    disk.crash()
    world.lose_end(("keeper", "client"))
    asyncio.get_running_loop().call_later(world.late(DETECTOR_S), world.sessions.update, {"client": 1})
    await asyncio.sleep((1 + world.pick(0, BACK_TENTHS - 1)) / 10)
    world.box("keeper")
    world.sessions["keeper"] = 1
    start()
    await asyncio.sleep(NETWORK_S)
    world.sessions["client"] = 1
    world.boxes["client"].put_nowait(("detector", "back"))


def check_rounds(seen: dict[str, Any]) -> bool:
    """Tell whether each round was closed by its own answers."""
    return all(set(answers) == {round} for round, answers in enumerate(seen.get("closed", ())))


def check_staleness(seen: dict[str, Any]) -> bool:
    """Tell whether clocks differ by SLACK + 1 at most."""
    completed = seen.get("completed", [0])
    return max(completed) - min(completed) <= SLACK + 1


def check_keeper(seen: dict[str, Any]) -> bool:
    """Tell whether what was acknowledged is there, and number and proof agree, while the keeper lives."""
    if "number" not in seen:
        return True
    return seen["number"] >= seen.get("kept", 0) and seen["number"] == seen["proof"]


def _workers(world: World, middle: str, first: Awaitable[None], worker: Callable[..., Any]) -> list[Any]:
    names = [f"worker-{i}" for i in range(WORKERS)]
    for name in (middle, *names):
        world.box(name)
    return [first, *(worker(world, name) for name in names)]


def rounds(world: World, **bug: Any) -> list[Any]:
    """Return the tasks of a master and its workers."""
    return _workers(world, "master", master(world, **bug), labourer)


def staleness(world: World, **bug: Any) -> list[Any]:
    """Return the tasks of a server and its workers."""
    return _workers(world, "server", server(world, **bug), learner)


def keeping(world: World, **bug: Any) -> list[Any]:
    """Return the tasks of a client and of what runs and crashes a keeper."""
    for name in ("client", "keeper"):
        world.box(name)
    disk = Disk(world)
    return [client(world), crash(world, disk, lambda: asyncio.ensure_future(keeper(world, disk, **bug)))]


TOYS = {
    "rounds": (rounds, check_rounds),
    "staleness": (staleness, check_staleness),
    "keeper": (keeping, check_keeper),
}


async def run(toy: str, pick: Pick, watch: Callable[[Callable[[], bool]], Any], bug: dict[str, Any]) -> None:
    """Run a toy until it is done, within 170 s; ``watch`` is given the invariant."""
    start, check = TOYS[toy]
    world = World(pick)
    watch(lambda: check(world.seen))
    tasks = [asyncio.ensure_future(item) for item in start(world, **bug)]
    try:
        await asyncio.wait_for(world.done.wait(), 170.0)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
