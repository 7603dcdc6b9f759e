"""What the two sides of a handshake compare, and how it ends: agreed on terms, or refused for a reason.

Every refusal says the two values that disagree and what to do. Texts that came from a peer are made printable before
they can reach a terminal or a log.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

from emuml.runtime import greeting
from emuml.runtime.greeting import Misread, RecordKind
from emuml.runtime.records import AcceptorHello, DialerHello, Reject, Software, Welcome, encode_record

__all__ = ["NO_SCHEMA", "Agreed", "Grant", "Outcome", "Refused", "check_schema", "printable", "reject_record",
           "schema_difference", "software_warnings"]  # fmt: skip

NO_SCHEMA = bytes(16)
"""Schema of a side that exchanges no protocol messages; never compared."""

# Characters; at 4 bytes each both fit into one record.
_TEXT_MAX, _HINT_MAX = 500, 300


class Agreed(NamedTuple):
    """Both sides proved the secret. ``rest`` is what came after the handshake: the first bytes of frames."""

    version: int
    hello: DialerHello
    welcome: Welcome
    warnings: tuple[str, ...]
    rest: bytes


class Refused(NamedTuple):
    """The handshake failed: REJECT code, both values, what to do, and which side refused."""

    code: str
    text: str
    hint: str
    by: Literal["here", "peer"]

    def __str__(self) -> str:
        whose = "rejected by the peer" if self.by == "peer" else "handshake failed"
        return f"{whose} ({self.code}): {self.text}{'; ' if self.hint else ''}{self.hint}"


Outcome: TypeAlias = Agreed | Refused


@dataclass(frozen=True)
class Grant:
    """What the acceptor gives an authenticated dialer: the terms of the session.

    Parameters
    ----------
    incarnation : int
        Of the dialer, from now on.
    boot, session : bytes
        Of the acceptor's process and of the session, 16 bytes each.
    received : int
        Highest DATA frame of this session that arrived whole.
    window, message_max : int
        Bytes.
    software : Software
        The acceptor's.
    """

    incarnation: int
    boot: bytes
    session: bytes
    received: int = 0
    window: int = 64 << 20
    message_max: int = 4 << 30
    software: Software = Software()  # noqa: RUF009 (immutable)


def reject_record(code: str, text: str, hint: str = "") -> bytes:
    """Return a REJECT record; texts that do not fit are cut. For listeners that refuse before they read."""
    payload = encode_record(Reject(code, printable(text, _TEXT_MAX), printable(hint, _HINT_MAX)))
    return greeting.record_bytes(RecordKind.REJECT, payload)


def schema_difference(here: dict[str, bytes], there: dict[str, bytes]) -> str:
    """Return which message differs first, in order of tags, and how; empty if none does.

    Parameters
    ----------
    here, there : dict of str to bytes
        Digests of the messages by tag, of this side and of the peer.

    Examples
    --------
    >>> schema_difference({"A": b"1", "B": b"2"}, {"A": b"1", "B": b"3", "C": b"4"})
    "message 'B' is different here and at the peer"
    >>> schema_difference({}, {"C": b"4"})
    "message 'C' exists only at the peer"
    """
    for tag in sorted({*here, *there}):
        if tag not in here:
            return f"message {tag!r} exists only at the peer"
        if tag not in there:
            return f"message {tag!r} exists only here"
        if here[tag] != there[tag]:
            return f"message {tag!r} is different here and at the peer"
    return ""


def software_warnings(here: Software, there: Software) -> tuple[str, ...]:
    """Return a sentence for each of Python, numpy and msgspec whose major versions differ, with both versions.

    Examples
    --------
    >>> software_warnings(Software(numpy="2.4.6"), Software(numpy="1.26.4"))
    ('numpy 2.4.6 here, 1.26.4 at the peer',)
    """
    return tuple(
        f"{name} {getattr(here, name)} here, {printable(getattr(there, name))} at the peer"
        for name in ("python", "numpy", "msgspec")
        if getattr(here, name).partition(".")[0] != getattr(there, name).partition(".")[0]
    )


def check_schema(dialer: DialerHello, acceptor: AcceptorHello, here: DialerHello | AcceptorHello) -> None:
    """Compare the two sides' messages; only nodes exchange any."""
    if dialer.role != "node" or NO_SCHEMA in (dialer.schema, acceptor.schema) or dialer.schema == acceptor.schema:
        return
    there = acceptor if here is dialer else dialer
    text = f"schema {here.schema.hex()} here, {there.schema.hex()} at the peer"
    if here.messages and there.messages:
        text = f"{schema_difference(here.messages, there.messages) or 'no message differs'} ({text})"
    raise Misread("schema", text, "run the same version of the protocol on both sides")


def printable(text: str, n_max: int = _TEXT_MAX) -> str:
    """Return text of a stranger as it may go to a terminal or log."""
    return "".join([letter if letter.isprintable() else "?" for letter in text[:n_max]])
