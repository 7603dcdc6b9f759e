"""The handshake of both sides, before anything else is believed: bytes in, bytes and one outcome out.

::

    1 dialer   -> preamble, HELLO
    2 acceptor -> preamble, HELLO     as soon as the dialer's preamble is valid: each side sees the other's versions
    3 dialer   -> AUTH
    4 acceptor -> WELCOME             or REJECT at any point, and close

Invariants:

1. Nothing is authenticated unless every byte of both preambles and HELLOs arrived as it was sent.
2. One record is held at a time: at most 4 KiB, whatever lengths are claimed.
3. No input makes an exception escape; whatever is wrong becomes a :class:`Refused`.

No sockets and no clock: deadlines, limits of connections and of REJECTs per second are the listener's.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import ClassVar, Literal, NoReturn, TypeAlias, TypeVar

import msgspec

from emuml.runtime import greeting
from emuml.runtime.greeting import VERSIONS, Greeting, Misread, RecordKind
from emuml.runtime.proof import Credentials, transcript
from emuml.runtime.records import (
    AcceptorHello,
    Auth,
    DialerHello,
    RecordError,
    Reject,
    Welcome,
    decode_record,
    encode_record,
)
from emuml.runtime.terms import (
    NO_SCHEMA,
    Agreed,
    Grant,
    Outcome,
    Refused,
    check_schema,
    printable,
    reject_record,
    schema_difference,
    software_warnings,
)

__all__ = ["NO_SCHEMA", "Acceptor", "Agreed", "Dialer", "Grant", "Outcome", "Refused", "reject_record",
           "schema_difference", "software_warnings"]  # fmt: skip

ROLES = ("node", "supervisor", "coordinator", "client")
LANES = ("control", "bulk")

_MESSAGES_MAX = 64

_Record = TypeVar("_Record", DialerHello, AcceptorHello, Auth, Welcome, Reject)
_Script: TypeAlias = Generator[int, bytes, Agreed]

Admit: TypeAlias = Callable[[DialerHello], Grant | Reject]


class _Stranger(Misread):
    """Somebody who does not speak the protocol at all, and would not understand a REJECT."""


class _PeerRejected(Misread):
    """The peer sent REJECT."""


class _Side:
    """Feeds a script, which asks for numbers of bytes, with exactly those bytes."""

    _hears_reject: ClassVar[bool] = False

    def __init__(self, credentials: Credentials, versions: tuple[int, int]) -> None:
        self._credentials, self._versions = credentials, versions
        self._preamble = greeting.preamble(versions)
        self.outcome: Outcome | None = None
        self._output = bytearray()
        self._held = bytearray()
        self._ahead: bytes | memoryview = b""
        self._script = self._run()
        self._wanted = next(self._script)

    def _run(self) -> _Script:
        raise NotImplementedError

    def receive(self, data: bytes | bytearray | memoryview) -> bytes:
        """Take bytes from the peer; return the bytes to send. Then look at ``outcome``."""
        view = memoryview(data)
        while self.outcome is None and view:
            n_bytes = self._wanted - len(self._held)
            self._held += view[:n_bytes]
            view = view[n_bytes:]
            if len(self._held) < self._wanted:
                break
            self._ahead, unit = view, bytes(self._held)
            self._held.clear()
            self._advance(unit)
        self._ahead = b""
        if isinstance(self.outcome, Agreed) and view:
            self.outcome = self.outcome._replace(rest=bytes(view))
        return self._taken()

    def closed(self) -> None:
        """Take the end of the connection."""
        if self.outcome is None:
            self.outcome = Refused("closed", "the peer closed the connection during the handshake", "", "here")

    def _advance(self, unit: bytes) -> None:
        try:
            self._wanted = self._script.send(unit)
        except StopIteration as stop:
            self.outcome = stop.value
        except Misread as misread:
            self._refuse(misread)
        except RecordError as error:
            self._refuse(Misread("malformed", str(error)))

    def _refuse(self, misread: Misread) -> None:
        by: Literal["here", "peer"] = "peer" if isinstance(misread, _PeerRejected) else "here"
        self.outcome = Refused(misread.code, misread.text, misread.hint, by)

    def _taken(self) -> bytes:
        output = bytes(self._output)
        self._output.clear()
        return output

    def _record(self, first: bytes = b"") -> Generator[int, bytes, tuple[int, bytes, bytes]]:
        """Read one record; return its kind, its payload and all of its bytes."""
        head = first + (yield 4 - len(first))
        kind, length = greeting.parse_record_head(head)
        record = head + (yield length + 4)
        greeting.check_record(record)
        return kind, record[4:-4], record

    def _expect(self, kind: RecordKind, type_: type[_Record]) -> Generator[int, bytes, tuple[_Record, bytes]]:
        """Read a record of one kind; return it decoded and as it was sent."""
        found, payload, record = yield from self._record()
        if found == RecordKind.REJECT and self._hears_reject:
            _raise_reject(payload)
        if found != kind:
            raise Misread("malformed", f"record {found:#x} in place of {kind.name}")
        return decode_record(payload, type_), record

    def _version(self, theirs: tuple[int, int]) -> int:
        version = greeting.common_version(self._versions, theirs)
        if version is None:
            mine = self._versions
            older = "here" if mine[1] < theirs[1] else "at the peer"
            text = f"wire versions {mine[0]} to {mine[1]} here, {theirs[0]} to {theirs[1]} at the peer"
            raise Misread("version", text, f"upgrade emuml {older}")
        return version


class Dialer(_Side):
    """The side that connects.

    Parameters
    ----------
    credentials : Credentials
    hello : DialerHello
        What this side says of itself; its ``nonce`` must be fresh.
    versions : tuple of int
        Least and greatest version of the wire format spoken here.

    Attributes
    ----------
    outcome : Agreed or Refused or None
    """

    _hears_reject = True

    def __init__(self, credentials: Credentials, hello: DialerHello, versions: tuple[int, int] = VERSIONS) -> None:
        self._hello = hello
        self._hello_record = _hello_record(hello)
        super().__init__(credentials, versions)

    def start(self) -> bytes:
        """Return the first bytes to send."""
        return self._preamble + self._hello_record

    def _run(self) -> _Script:
        first = yield 1
        match greeting.greeting_of(first[0]):
            case Greeting.REJECT:
                _, payload, _ = yield from self._record(first)
                return _raise_reject(payload)
            case Greeting.TLS:
                raise Misread("tls", "the peer speaks TLS, this side does not", "use the same security on both sides")
            case Greeting.HTTP | Greeting.OTHER:
                start = first + bytes(self._ahead[:64])
                raise Misread(
                    "not_emuml", f"the peer answers like {greeting.describe(start)}", "is this the right port?"
                )
        their_preamble = first + (yield greeting.PREAMBLE_BYTES - 1)
        version = self._version(greeting.parse_preamble(their_preamble))
        theirs, their_record = yield from self._expect(RecordKind.HELLO, AcceptorHello)
        check_schema(self._hello, theirs, self._hello)
        proof = transcript(
            self._preamble, self._hello_record, their_preamble, their_record, self._credentials.certificate
        )
        self._output += _record_of(RecordKind.AUTH, Auth(self._credentials.tag("dialer", proof)))
        welcome, _ = yield from self._expect(RecordKind.WELCOME, Welcome)
        if not self._credentials.proves(welcome.tag, "acceptor", proof):
            raise _auth_failed()
        self._check_terms(welcome, version)
        warnings = software_warnings(self._hello.software, welcome.software)
        return Agreed(version, self._hello, welcome, warnings, b"")

    def _check_terms(self, welcome: Welcome, version: int) -> None:
        hello = self._hello
        wrong = {
            "version": welcome.version != version,
            "node": welcome.node != hello.node,
            "incarnation": welcome.incarnation == 0 or hello.incarnation not in (0, welcome.incarnation),
            "session": hello.lane == "bulk" and welcome.session != hello.session,
            "features": not set(welcome.features) <= set(hello.features),
        }
        for name, is_wrong in wrong.items():
            if is_wrong:
                raise Misread("malformed", f"WELCOME with {name} {getattr(welcome, name)!r}, which does not fit HELLO")


class Acceptor(_Side):
    """The side that listens.

    Parameters
    ----------
    credentials : Credentials
        With the run it belongs to.
    hello : AcceptorHello
        What this side says of itself; its ``nonce`` must be fresh.
    admit : callable
        ``admit(hello)`` is asked once the dialer is authenticated, and decides about unknown nodes, edges, duplicates
        and stale incarnations: a :class:`Grant`, or a :class:`Reject` that is sent.
    versions : tuple of int
        Least and greatest version of the wire format spoken here.

    Attributes
    ----------
    outcome : Agreed or Refused or None
    """

    def __init__(
        self, credentials: Credentials, hello: AcceptorHello, admit: Admit, versions: tuple[int, int] = VERSIONS
    ) -> None:
        self._hello, self._admit = hello, admit
        self._hello_record = _hello_record(hello)
        super().__init__(credentials, versions)

    def refuse(self, code: str, text: str, hint: str = "") -> bytes:
        """Give up for a reason of the listener (``timeout``, ``busy``, ``closing``); return the bytes to send."""
        if self.outcome is None:
            self._refuse(Misread(code, text, hint))
        return self._taken()

    def _refuse(self, misread: Misread) -> None:
        super()._refuse(misread)
        if not isinstance(misread, _Stranger):
            self._output += reject_record(misread.code, misread.text, misread.hint)

    def _run(self) -> _Script:
        their_preamble = yield from self._greet()
        versions = greeting.parse_preamble(their_preamble)
        self._output += self._preamble + self._hello_record
        version = self._version(versions)
        hello, their_record = yield from self._expect(RecordKind.HELLO, DialerHello)
        self._check_hello(hello)
        proof = transcript(
            their_preamble, their_record, self._preamble, self._hello_record, self._credentials.certificate
        )
        auth, _ = yield from self._expect(RecordKind.AUTH, Auth)
        if not self._credentials.proves(auth.tag, "dialer", proof):
            raise _auth_failed()
        if self._ahead:
            raise Misread("malformed", "bytes after AUTH, before WELCOME was sent")
        return self._welcomed(hello, version, proof)

    def _greet(self) -> Generator[int, bytes, bytes]:
        """Return the dialer's preamble, or send strangers away in their own language."""
        first = yield 1
        kind = greeting.greeting_of(first[0])
        if kind is Greeting.TLS:
            raise Misread("tls", "this port does not speak TLS, the peer does", "use the same security on both sides")
        if kind is not Greeting.EMUML:
            start = first + bytes(self._ahead[:64])
            self._output += greeting.http_answer() if kind is Greeting.HTTP else b""
            raise _Stranger("not_emuml", f"the connection looks like {greeting.describe(start)}")
        # The magic alone first: a stranger who happens to say E need not be waited for.
        magic = first + (yield len(greeting.MAGIC) - 1)
        if magic != greeting.MAGIC:
            raise Misread("not_emuml", f"the connection begins with {magic!r}", "is this the right port?")
        return magic + (yield greeting.PREAMBLE_BYTES - len(greeting.MAGIC))

    def _check_hello(self, hello: DialerHello) -> None:
        if hello.role not in ROLES or hello.lane not in LANES or (hello.lane == "bulk" and hello.session is None):
            raise Misread("malformed", f"role {hello.role!r}, lane {hello.lane!r}, session {hello.session!r}")
        if hello.run != self._credentials.run:
            text = f"this is run {self._credentials.run!r}, the peer belongs to run {hello.run!r}"
            raise Misread("run", text, "use the token and the address of one run")
        check_schema(hello, self._hello, self._hello)

    def _welcomed(self, hello: DialerHello, version: int, proof: bytes) -> Agreed:
        grant = self._admit(hello)
        if isinstance(grant, Reject):
            raise Misread(grant.code, grant.text, grant.hint)
        welcome = Welcome(
            tag=self._credentials.tag("acceptor", proof),
            version=version,
            node=hello.node,
            incarnation=grant.incarnation,
            boot=grant.boot,
            session=grant.session,
            received=grant.received,
            window=grant.window,
            message_max=grant.message_max,
            features=[feature for feature in hello.features if feature in self._hello.features],
            software=grant.software,
        )
        self._output += _record_of(RecordKind.WELCOME, welcome)
        return Agreed(version, hello, welcome, software_warnings(grant.software, hello.software), b"")


def _auth_failed() -> Misread:
    """Return the one answer to every wrong proof, so that it tells nothing."""
    return Misread("auth", "the peer does not prove the secret of this run", "use the token that this run printed")


def _raise_reject(payload: bytes) -> NoReturn:
    reject = decode_record(payload, Reject)
    raise _PeerRejected(printable(reject.code, 64), printable(reject.text), printable(reject.hint))


def _hello_record(hello: DialerHello | AcceptorHello) -> bytes:
    """Return HELLO, without the digests of single messages if there are too many of them."""
    record = encode_record(hello)
    if len(hello.messages) > _MESSAGES_MAX or len(record) > greeting.PAYLOAD_BYTES_MAX:
        record = encode_record(msgspec.structs.replace(hello, messages={}))
    return greeting.record_bytes(RecordKind.HELLO, record)


def _record_of(kind: RecordKind, record: Auth | Welcome) -> bytes:
    return greeting.record_bytes(kind, encode_record(record))
