"""Messages arrive equal by value and type, whatever the sender does afterwards (contract 3.1, 5.1-5.4)."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np

from emuml.blocks import Saved
from emuml.context import Context
from emuml.message import Array, Message
from emuml.node import Node, NodeId
from emuml.streams import generator
from emuml.testing.conformance.engine import WORKERS, RunNodes, canonical, equal, expect, stopped

DTYPES = ("?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16", "V5")
SHAPES: tuple[tuple[int, ...], ...] = ((), (0,), (1,), (7,), (3, 4), (2, 0, 3), (2, 3, 2), (40, 50))
COUNT = 60


class Part(msgspec.Struct, frozen=True):
    """A struct inside of a message."""

    name: str
    values: Array


class Cargo(Message):
    """A field of every kind."""

    number: int
    ratio: float
    text: str
    flag: bool
    data: bytes
    array: Array
    arrays: list[Array]
    pair: tuple[int, Array]
    many: tuple[float, ...]
    table: dict[str, list[int]]
    maybe: Array | None
    part: Part


class Enough(Message):
    """A receiver has everything."""


def array(random: np.random.Generator) -> Array:
    """Return an array of random dtype, shape and bytes; sliced, reversed, transposed, big-endian, or of a table."""
    dtype = np.dtype(DTYPES[int(random.integers(len(DTYPES)))])
    shape = SHAPES[int(random.integers(len(SHAPES)))]
    wide = tuple(2 * size for size in shape)
    count = int(np.prod(wide, dtype=np.int64))
    if dtype.kind == "b":
        values = random.integers(0, 2, wide, np.uint8).astype("?")
    else:
        values = np.frombuffer(random.bytes(count * dtype.itemsize), dtype).reshape(wide).copy()
    form = int(random.integers(7))
    step = 2 if form == 1 else None
    values = values[(..., *[slice(None, None if step else size, step) for size in shape])]
    if form != 1:
        values = values.copy()
    if form == 2 and shape:
        values = values[::-1]
    elif form == 3:
        values = values.T
    elif form == 4 and dtype.kind != "V":
        values = values.astype(dtype.newbyteorder(">"))
    elif form == 5 and shape:
        values = np.concatenate([values, values])[: len(values)]
    return values


def cargo(number: int) -> Cargo:
    """Return message ``number``: the same at the sender and at every receiver, in memory of its own."""
    random = generator(0, "", f"conformance/cargo/{number}")
    return Cargo(
        number=number,
        ratio=(float("inf"), -0.0, 5e-324, float(random.random()))[number % 4],
        text="wörker \U0001f600"[: number % 9],
        flag=bool(number % 2),
        data=random.bytes(number % 5),
        array=array(random),
        arrays=[array(random) for _ in range(number % 4)],
        pair=(2**63 + number if number % 2 else -number, array(random)),
        many=tuple(float(value) for value in random.random(number % 3)),
        table={f"key {i}": list(range(i)) for i in range(number % 4)},
        maybe=None if number % 3 else array(random),
        part=Part("" if number % 2 else "part", array(random)),
    )


def arrays_of(message: Cargo) -> list[Array]:
    """Return all arrays of a message."""
    maybe = [] if message.maybe is None else [message.maybe]
    return [message.array, *message.arrays, message.pair[1], *maybe, message.part.values]


class Shipper(Node):
    """Sends every message to two receivers and itself, and changes at once what it may still change."""

    def __init__(self) -> None:
        self.missing = 3

    def on_start(self, ctx: Context, saved: Saved) -> None:
        """Send."""
        for number in range(COUNT):
            message = cargo(number)
            if number % 2:
                ctx.broadcast("receiver", message)
            else:
                for peer in ctx.peers("receiver"):
                    ctx.send_latest(peer, message, f"key {number}")
            ctx.send(ctx.id, message)
            self._change(message)
        self.receiver = Receiver()

    def _change(self, message: Cargo) -> None:
        for sent in arrays_of(message):
            owner = sent.base is None
            refused = not sent.flags.writeable
            plain = sent.flags.c_contiguous and sent.dtype.byteorder != ">"
            expect(refused or not (owner and plain), f"an array of {message.number} can still be written by its owner")
            # What had to be copied, and tables that a view was sent of, are the sender's again.
            for mine in (sent, sent.base):
                if isinstance(mine, np.ndarray) and mine.flags.writeable and mine.dtype.kind != "V":
                    mine[...] = 1
        message.arrays.clear()
        message.table["late"] = [1]

    def on_message(self, ctx: Context, sender: NodeId, message: Cargo | Enough) -> None:
        """Judge one's own copy; end when everybody has everything."""
        if isinstance(message, Cargo):
            self.receiver.judge(ctx, message)
            self.missing -= message.number == COUNT - 1
        else:
            self.missing -= 1
        if self.missing == 0:
            ctx.stop("done")


class Receiver(Node):
    """Compares every message with what it should be."""

    def __init__(self) -> None:
        self.received = 0

    def on_message(self, ctx: Context, sender: NodeId, message: Cargo) -> None:
        """Judge it, and report the last one."""
        self.judge(ctx, message)
        if self.received == COUNT:
            ctx.send(sender, Enough())

    def judge(self, ctx: Context, message: Cargo) -> None:
        """Raise unless this is exactly the next message."""
        equal(message.number, self.received, f"{ctx.id}: number of the message")
        self.received += 1
        expected: Any = canonical(cargo(message.number))
        for field, found, wanted in zip(Cargo.__struct_fields__, canonical(message)[1], expected[1], strict=True):
            equal(found, wanted, f"{ctx.id}: {field} of message {message.number}")
        for got in arrays_of(message):
            flags = got.flags
            expect(not flags.writeable and flags.c_contiguous, f"{ctx.id}: an array of {message.number}: {flags}")
            expect(got.dtype.isnative, f"{ctx.id}: an array of {message.number} is {got.dtype}")


def messages_arrive_equal_by_value_and_type(run: RunNodes) -> None:
    """K8 (3.1, 3.8, 4.4, 5.1-5.4): every field kind, dtype, shape and layout; changes after the send are not seen."""
    nodes = {"shipper-0": ("shipper", Shipper), **{f"receiver-{i}": ("receiver", Receiver) for i in range(2)}}
    stopped(run(nodes, cluster=WORKERS))


class Large(Message):
    """Several MiB."""

    number: int
    values: Array


class Hoarder(Node):
    """Sends one array of many chunks to a peer and compares the echo."""

    def on_start(self, ctx: Context, saved: Saved) -> None:
        """Send it, with a small message behind it."""
        for peer in ctx.peers("mirror"):
            ctx.send(peer, Large(0, self._values()))
            ctx.send(peer, Large(1, np.zeros(1)))

    def _values(self) -> Array:
        return np.arange(700_001, dtype=np.float64)

    def on_message(self, ctx: Context, sender: NodeId, message: Large) -> None:
        """Compare; the small one comes second."""
        if message.number == 0:
            expect(np.array_equal(message.values, self._values()), "a large array came back changed")
            self.large = True
        else:
            expect(getattr(self, "large", False), "a small message overtook a large one")
            ctx.stop("done")


class Mirror(Node):
    """Sends back what it gets."""

    def on_message(self, ctx: Context, sender: NodeId, message: Large) -> None:
        """Echo."""
        ctx.send(sender, message)


def large_messages_arrive_whole_and_in_order(run: RunNodes) -> None:
    """K8 (3.1): arrays of several chunks, and what is sent behind them."""
    stopped(run({"hoarder-0": ("hoarder", Hoarder), "mirror-0": ("mirror", Mirror)}, cluster=WORKERS))
