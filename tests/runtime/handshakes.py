"""Two sides of a handshake that talk without sockets, and what a test may do to their bytes."""

import struct
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import numpy as np
from crc32c import crc32c

from emuml.message import Decoder, Message
from emuml.runtime.handshake import (
    Acceptor,
    Agreed,
    Dialer,
    Grant,
    Refused,
)
from emuml.runtime.proof import Credentials
from emuml.runtime.records import (
    AcceptorHello,
    DialerHello,
    Reject,
    Software,
)

SECRET = bytes(range(20))
CREDENTIALS = Credentials("run1", SECRET)
PREAMBLE_HEX = "454d554d4c00010100000000a2894910"


class Push(Message):
    clock: int
    value: np.ndarray


class Pull(Message):
    clock: int


DECODER = Decoder([Push, Pull])
SOFTWARE = Software("0.1.0", "3.11.7", "2.4.6", "0.23.0", "Linux", "x86_64", "little")
DIALER = DialerHello(
    run="run1", node="worker-3", role="node", incarnation=0, boot=b"b" * 16, nonce=b"d" * 32, lane="control",
    session=None, received=0, window=1 << 26, message_max=1 << 32, schema=DECODER.schema,
    messages=DECODER.message_digests, software=SOFTWARE, features=["relay", "new"],
)  # fmt: skip
ACCEPTOR = AcceptorHello(b"a" * 32, "0.1.0", DECODER.schema, DECODER.message_digests, ["old", "relay"])
GRANT = Grant(incarnation=4, boot=b"B" * 16, session=b"S" * 16, received=17, window=1 << 20, software=SOFTWARE)


def grant(hello: DialerHello) -> Grant:
    return GRANT


def change(struct_: Any, **changes: Any) -> Any:
    return msgspec.structs.replace(struct_, **changes)


def sides(
    dialer: DialerHello = DIALER,
    acceptor: AcceptorHello = ACCEPTOR,
    *,
    dials: Credentials = CREDENTIALS,
    accepts: Credentials = CREDENTIALS,
    admit: Callable[[DialerHello], Grant | Reject] = grant,
    dialer_versions: tuple[int, int] = (1, 1),
    acceptor_versions: tuple[int, int] = (1, 1),
) -> tuple[Dialer, Acceptor]:
    return Dialer(dials, dialer, dialer_versions), Acceptor(accepts, acceptor, admit, acceptor_versions)


Tamper = Callable[[str, bytes], bytes]


def untouched(sender: str, data: bytes) -> bytes:
    return data


def talk(dialer: Dialer, acceptor: Acceptor, tamper: Tamper = untouched, step: int = 1 << 16) -> None:
    """Carry bytes between both sides, in reads of ``step`` bytes, until nobody has anything to say."""
    to_acceptor, to_dialer = tamper("dialer", dialer.start()), b""
    while to_acceptor or to_dialer:
        answer = b"".join([acceptor.receive(to_acceptor[i : i + step]) for i in range(0, len(to_acceptor), step)])
        to_dialer += tamper("acceptor", answer)
        answer = b"".join([dialer.receive(to_dialer[i : i + step]) for i in range(0, len(to_dialer), step)])
        to_acceptor, to_dialer = tamper("dialer", answer), b""


def refusal(side: Dialer | Acceptor) -> Refused:
    assert isinstance(side.outcome, Refused)
    return side.outcome


def agreement(side: Dialer | Acceptor) -> Agreed:
    assert isinstance(side.outcome, Agreed)
    return side.outcome


def records_of(stream: bytes) -> Iterator[bytes]:
    """The records of a stream after its preamble, found without the code under test."""
    while stream:
        (length,) = struct.unpack_from("<H", stream, 2)
        yield stream[: 8 + length]
        stream = stream[8 + length :]


def resealed(record: bytes) -> bytes:
    """The record (or preamble) with the checksum that fits its content: what an attacker would send."""
    return record[:-4] + struct.pack("<I", crc32c(record[:-4]))
