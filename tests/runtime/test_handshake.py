"""Handshake: golden vectors, every refusal with its facts, and no transcript but the right one is believed."""

import pickle
import struct
import tracemalloc
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import numpy as np
import pytest
from crc32c import crc32c
from hypothesis import given
from hypothesis import strategies as st

from emuml.message import Decoder, Message
from emuml.runtime.greeting import (
    Greeting,
    Misread,
    RecordKind,
    describe,
    greeting_of,
    parse_preamble,
    preamble,
    record_bytes,
)
from emuml.runtime.handshake import (
    NO_SCHEMA,
    Acceptor,
    Agreed,
    Dialer,
    Grant,
    Refused,
    reject_record,
    schema_difference,
    software_warnings,
)
from emuml.runtime.proof import Credentials, hkdf_sha256, transcript
from emuml.runtime.records import (
    AcceptorHello,
    Auth,
    DialerHello,
    RecordError,
    Reject,
    Software,
    Welcome,
    decode_record,
    encode_record,
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


# Golden vectors of the sheet.


def test_golden_preamble_and_reject() -> None:
    assert preamble((1, 1)).hex() == PREAMBLE_HEX
    vector = "8400150082a4636f6465a776657273696f6ea474657874a16e8136e4c5"
    assert reject_record("version", "n").hex() == vector
    assert decode_record(bytes.fromhex(vector)[4:-4], Reject) == Reject("version", "n", "")
    assert crc32c(b"123456789") == 0xE3069283


def test_golden_keys_and_tags() -> None:
    assert CREDENTIALS.key().hex() == "b9ce819be0aa9efc32983f756ddcaebc92a4ca7dc491cd3780cd482630fd2050"
    greeting = bytes.fromhex(PREAMBLE_HEX)
    proof = transcript(greeting, b"\x44", greeting, b"\x41", bytes(32))
    assert proof.hex() == "bad3ba90769578aac54ed7dd3b2fae06004889d908a1f9aa09d26e596d779877"
    dialer, acceptor = CREDENTIALS.tag("dialer", proof), CREDENTIALS.tag("acceptor", proof)
    assert dialer.hex() == "9e6d2dec207084c129d5aaf5e435a583857edca712a459cd710588865fc4b7b4"
    assert acceptor.hex() == "ef13e27fe88d7d4d5d369350e76062cc682de0a3becf0d11d50c78b2f456eb4a"
    assert CREDENTIALS.proves(dialer, "dialer", proof)
    assert not CREDENTIALS.proves(dialer, "acceptor", proof)
    assert not CREDENTIALS.proves(b"", "dialer", proof)


def test_hkdf_rfc_5869_case_1() -> None:
    """Reference: RFC 5869, appendix A.1."""
    made = hkdf_sha256(b"\x0b" * 22, bytes(range(13)), bytes(range(0xF0, 0xFA)), 42)
    assert made.hex() == ("3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf34007208d5b887185865")


# Agreement.


@pytest.mark.parametrize("step", [1, 2, 5, 17, 4096])
def test_both_sides_agree_on_the_terms(step: int) -> None:
    dialer, acceptor = sides()
    talk(dialer, acceptor, step=step)
    mine, theirs = agreement(dialer), agreement(acceptor)
    assert mine.welcome == theirs.welcome
    assert mine.hello == theirs.hello == DIALER
    assert (mine.version, mine.rest, theirs.rest) == (1, b"", b"")
    assert mine.welcome.node == "worker-3"
    assert (mine.welcome.incarnation, mine.welcome.session, mine.welcome.received) == (4, b"S" * 16, 17)
    assert mine.welcome.features == ["relay"]
    assert mine.warnings == theirs.warnings == ()


def test_the_bulk_lane_joins_its_session() -> None:
    bulk = change(DIALER, lane="bulk", session=b"S" * 16, incarnation=4)
    dialer, acceptor = sides(bulk)
    talk(dialer, acceptor)
    assert agreement(acceptor).hello.lane == "bulk"
    dialer, acceptor = sides(change(bulk, session=b"T" * 16))
    talk(dialer, acceptor)
    assert refusal(dialer).code == "malformed"
    assert "session" in refusal(dialer).text


def test_frames_right_behind_the_welcome_are_kept() -> None:
    dialer, acceptor = sides()
    answer = acceptor.receive(dialer.start())
    welcome = acceptor.receive(dialer.receive(answer))
    assert dialer.receive(welcome + b"frames") == b""
    assert agreement(dialer).rest == b"frames"
    assert dialer.receive(b"more") == b""


def test_the_highest_common_version_is_taken() -> None:
    dialer, acceptor = sides(dialer_versions=(1, 4), acceptor_versions=(2, 3))
    talk(dialer, acceptor)
    assert agreement(dialer).version == agreement(acceptor).version == agreement(dialer).welcome.version == 3


def test_major_versions_of_software_only_warn() -> None:
    old = change(SOFTWARE, numpy="1.26.4", python="3.9.1", emuml="9.0.0")
    dialer, acceptor = sides(change(DIALER, software=old))
    talk(dialer, acceptor)
    assert agreement(dialer).warnings == ("numpy 1.26.4 here, 2.4.6 at the peer",)
    assert agreement(acceptor).warnings == ("numpy 2.4.6 here, 1.26.4 at the peer",)
    assert software_warnings(SOFTWARE, SOFTWARE) == ()


def test_sides_without_protocol_messages_do_not_compare_schemas() -> None:
    for dialer_hello, acceptor_hello in (
        (change(DIALER, role="supervisor", schema=NO_SCHEMA, messages={}), ACCEPTOR),
        (change(DIALER, role="client", schema=b"x" * 16), ACCEPTOR),
        (DIALER, change(ACCEPTOR, schema=NO_SCHEMA, messages={})),
    ):
        dialer, acceptor = sides(dialer_hello, acceptor_hello)
        talk(dialer, acceptor)
        agreement(dialer)
        agreement(acceptor)


def test_certificates_may_stand_for_the_secret() -> None:
    certified = Credentials("run1", b"", b"c" * 32, certified=True)
    dialer, acceptor = sides(dials=certified, accepts=certified)
    talk(dialer, acceptor)
    assert agreement(dialer).welcome.tag == b""
    for secret, certificate, by_tls in ((b"", bytes(32), True), (b"", b"c" * 32, False), (b"x", b"c", False)):
        with pytest.raises(ValueError, match="certificate"):
            Credentials("run1", secret, certificate, by_tls)


def test_the_secret_is_not_printed() -> None:
    assert "secret" not in repr(Credentials("run1", b"xyzzy"))
    assert "xyzzy" not in repr(Credentials("run1", b"xyzzy"))


# Refusals, each with its facts.


def test_wrong_secret() -> None:
    dialer, acceptor = sides(dials=Credentials("run1", SECRET[::-1]))
    talk(dialer, acceptor)
    assert refusal(acceptor).code == refusal(dialer).code == "auth"
    assert (refusal(acceptor).by, refusal(dialer).by) == ("here", "peer")
    assert "rejected by the peer (auth)" in str(refusal(dialer))


def test_wrong_secret_of_the_acceptor_is_noticed_by_the_dialer() -> None:
    class Anyone(Credentials):
        def proves(self, *arguments: Any) -> bool:
            return True

    dialer, acceptor = sides(accepts=Anyone("run1", b"other"))
    talk(dialer, acceptor)
    agreement(acceptor)
    assert refusal(dialer).code == "auth"
    assert refusal(dialer).by == "here"


def test_wrong_run_names_both() -> None:
    dialer, acceptor = sides(change(DIALER, run="run2"))
    talk(dialer, acceptor)
    assert refusal(acceptor).code == refusal(dialer).code == "run"
    assert "'run1'" in refusal(dialer).text
    assert "'run2'" in refusal(dialer).text


@pytest.mark.parametrize(
    ("dialer_versions", "acceptor_versions", "dialer_says", "acceptor_says"),
    [((1, 2), (3, 4), "upgrade emuml here", "upgrade emuml at the peer"),
     ((3, 4), (1, 2), "upgrade emuml at the peer", "upgrade emuml here")],
)  # fmt: skip
def test_versions_without_overlap_name_both_ranges(
    dialer_versions: tuple[int, int], acceptor_versions: tuple[int, int], dialer_says: str, acceptor_says: str
) -> None:
    dialer, acceptor = sides(dialer_versions=dialer_versions, acceptor_versions=acceptor_versions)
    talk(dialer, acceptor)
    for side, says in ((dialer, dialer_says), (acceptor, acceptor_says)):
        assert refusal(side).code == "version"
        assert "1 to 2" in refusal(side).text
        assert "3 to 4" in refusal(side).text
        assert refusal(side).hint == says
        assert refusal(side).by == "here"


def other(*kinds: type[Message]) -> dict[str, Any]:
    decoder = Decoder(kinds)
    return {"schema": decoder.schema, "messages": decoder.message_digests}


class Extra(Message):
    pass


Different = msgspec.defstruct("Pull", [("clock", float)], bases=(Message,), frozen=True)


@pytest.mark.parametrize(
    ("kinds", "dialer_says", "acceptor_says"),
    [
        ((Push,), "message 'Pull' exists only at the peer", "message 'Pull' exists only here"),
        ((Push, Pull, Extra), "message 'Extra' exists only here", "message 'Extra' exists only at the peer"),
        ((Push, Different), "message 'Pull' is different", "message 'Pull' is different"),
    ],
)
def test_schemas_name_the_first_message_that_differs(
    kinds: tuple[type[Message], ...], dialer_says: str, acceptor_says: str
) -> None:
    dialer, acceptor = sides(change(DIALER, **other(*kinds)))
    talk(dialer, acceptor)
    for side, says in ((dialer, dialer_says), (acceptor, acceptor_says)):
        assert refusal(side).code == "schema"
        assert says in refusal(side).text
        assert DECODER.schema.hex() in refusal(side).text


def test_the_first_difference_is_the_first_in_order_of_tags() -> None:
    here, there = {"C": b"1", "A": b"1"}, {"C": b"2", "B": b"1", "A": b"1"}
    assert schema_difference(here, there) == "message 'B' exists only at the peer"
    assert schema_difference(here, here) == ""


def test_too_many_messages_are_compared_as_a_whole() -> None:
    many = {f"M{number}": bytes(8) for number in range(65)}
    dialer, acceptor = sides(change(DIALER, messages=many, schema=b"x" * 16))
    talk(dialer, acceptor)
    assert refusal(acceptor).code == "schema"
    assert "message" not in refusal(acceptor).text
    assert (b"x" * 16).hex() in refusal(acceptor).text


@pytest.mark.parametrize("code", ["node", "edge", "duplicate", "fenced", "closing"])
def test_decisions_after_authentication_reach_the_dialer(code: str) -> None:
    dialer, acceptor = sides(admit=lambda hello: Reject(code, f"{hello.node}: no", "because"))
    talk(dialer, acceptor)
    assert refusal(acceptor) == Refused(code, "worker-3: no", "because", "here")
    assert refusal(dialer) == Refused(code, "worker-3: no", "because", "peer")


def test_nobody_is_asked_for_admission_before_authentication() -> None:
    def never(hello: DialerHello) -> Grant:
        raise AssertionError("asked")

    for hello, credentials in ((DIALER, Credentials("run1", b"x")), (change(DIALER, run="r"), CREDENTIALS)):
        dialer, acceptor = sides(hello, dials=credentials, admit=never)
        talk(dialer, acceptor)
        refusal(acceptor)
    dialer, acceptor = sides(admit=never)
    acceptor.receive(dialer.receive(acceptor.receive(dialer.start())) + b"early")
    assert refusal(acceptor).text == "bytes after AUTH, before WELCOME was sent"


def test_the_listener_may_refuse_at_any_time() -> None:
    dialer, acceptor = sides()
    dialer.start()
    dialer.receive(acceptor.refuse("busy", "64 connections wait", "try again"))
    assert refusal(dialer) == Refused("busy", "64 connections wait", "try again", "peer")
    dialer, acceptor = sides()
    answer = acceptor.receive(dialer.start()[:20]) + acceptor.refuse("timeout", "nothing came for 5 s")
    dialer.receive(answer)
    assert refusal(acceptor).code == "timeout"
    assert refusal(dialer).code == "timeout"
    assert acceptor.receive(b"late") == b""
    assert acceptor.refuse("busy", "again") == b""


def test_a_closed_connection_is_an_outcome() -> None:
    dialer, acceptor = sides()
    talk(dialer, acceptor)
    dialer.closed()
    agreement(dialer)
    dialer, acceptor = sides()
    dialer.closed()
    assert refusal(dialer).code == "closed"


def test_texts_of_a_peer_are_made_printable_and_long_ones_fit() -> None:
    dialer, _ = sides()
    dialer.receive(reject_record("auth", "\x1b[2J" + "é" * 5000, "\n" * 5000))
    assert refusal(dialer).text == "?[2J" + "é" * 496
    assert refusal(dialer).hint == "?" * 300
    raw = record_bytes(RecordKind.REJECT, msgspec.msgpack.encode(Reject("a\x00" * 60, "\x1b", "\x07")))
    dialer, _ = sides()
    dialer.receive(raw)
    assert refusal(dialer) == Refused("a?" * 32, "?", "?", "peer")
    assert len(reject_record("x", "\U0001f600" * 9999, "\U0001f600" * 9999)) <= 4104


# Strangers.


def test_the_first_byte_tells_who_it_is() -> None:
    expected = {"E": Greeting.EMUML, "\x16": Greeting.TLS, "G": Greeting.HTTP, "P": Greeting.HTTP, "H": Greeting.HTTP,
                "S": Greeting.OTHER, "\x00": Greeting.OTHER}  # fmt: skip
    assert {first: greeting_of(ord(first)) for first in expected} == expected
    assert describe(b"GET / HTTP/1.1") == "HTTP"
    assert describe(b"") == "unknown bytes b''"


@pytest.mark.parametrize(
    ("start", "code", "text", "answer"),
    [
        (b"GET / HTTP/1.1\r\n", "not_emuml", "HTTP", b"HTTP/1.1 400 "),
        (b"SSH-2.0-x\r\n", "not_emuml", "an SSH client", b""),
        (b"\x00\x00", "not_emuml", "unknown bytes", b""),
        (b"\x16\x03\x01", "tls", "does not speak TLS", b"\x84"),
        (b"EHLO x\r\n", "not_emuml", "begins with b'EHLO x'", b"\x84"),
        (preamble((2, 1)), "malformed", "versions 2 to 1", b"\x84"),
        (resealed(preamble()[:8] + b"\1\0\0\0" + bytes(4)), "malformed", "flags 0x1", b"\x84"),
        (preamble()[:12] + bytes(4), "malformed", "checksum", b"\x84"),
    ],
)
@pytest.mark.parametrize("step", [1, 100])
def test_strangers_at_the_listener(start: bytes, code: str, text: str, answer: bytes, step: int) -> None:
    _, acceptor = sides()
    sent = b"".join([acceptor.receive(start[i : i + step]) for i in range(0, len(start), step)])
    assert refusal(acceptor).code == code
    if step > 1:
        assert text in refusal(acceptor).text
    assert sent[: len(answer)] == answer
    assert bool(sent) is bool(answer)


@pytest.mark.parametrize(
    ("answer", "code", "text"),
    [
        (b"HTTP/1.1 400 Bad", "not_emuml", "HTTP"),
        (b"SSH-2.0-OpenSSH", "not_emuml", "an SSH client"),
        (b"\x15\x03\x03", "tls", "the peer speaks TLS"),
        (b"EMUMX" + bytes(11), "not_emuml", "begins with"),
    ],
)
def test_strangers_that_answer_the_dialer(answer: bytes, code: str, text: str) -> None:
    dialer, _ = sides()
    assert dialer.receive(answer) == b""
    assert refusal(dialer).code == code
    assert text in refusal(dialer).text


# Malformed and hostile input.


def hello_map(**changes: Any) -> bytes:
    fields = {**msgspec.msgpack.decode(encode_record(DIALER)), **changes}
    return record_bytes(RecordKind.HELLO, msgspec.msgpack.encode({k: v for k, v in fields.items() if v != "missing"}))


MALFORMED = {
    "missing key": hello_map(nonce="missing"),
    "wrong type": hello_map(node=7),
    "float count": hello_map(received=1.5),
    "negative": hello_map(incarnation=-1),
    "short nonce": hello_map(nonce=b"d" * 31),
    "long boot": hello_map(boot=b"b" * 17),
    "short session": hello_map(session=b""),
    "long name": hello_map(node="n" * 65),
    "long name in bytes": hello_map(node="é" * 33),
    "long tag": hello_map(messages={"m" * 33: bytes(8)}),
    "long digest": hello_map(messages={"m": bytes(9)}),
    "long feature": hello_map(features=["f" * 65]),
    "long software": hello_map(software={"os": "o" * 65}),
    "unknown role": hello_map(role="king"),
    "unknown lane": hello_map(lane="fast"),
    "bulk without session": hello_map(lane="bulk"),
    "array": record_bytes(RecordKind.HELLO, b"\x90"),
    "nothing": record_bytes(RecordKind.HELLO, b""),
    "broken text": record_bytes(RecordKind.HELLO, b"\x81\xa3run\xa1\xff"),
    "deep nesting": record_bytes(RecordKind.HELLO, b"\x81\xa1x" + b"\x91" * 4000),
    "claimed length": record_bytes(RecordKind.HELLO, b"\xdf\xff\xff\xff\xff"),
    "AUTH first": record_bytes(RecordKind.AUTH, encode_record(Auth(b"x" * 32))),
    "REJECT from the dialer": reject_record("x", "y"),
    "reserved byte": resealed(b"\x81\x01" + hello_map()[2:]),
    "checksum": hello_map()[:-4] + bytes(4),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_malformed_hellos_are_rejected(name: str) -> None:
    _, acceptor = sides()
    answer = acceptor.receive(preamble() + MALFORMED[name])
    assert refusal(acceptor).code == "malformed"
    assert refusal(acceptor).text
    *_, last = records_of(answer[16:])
    assert last[0] == RecordKind.REJECT


def test_unknown_keys_are_ignored() -> None:
    _, acceptor = sides()
    acceptor.receive(preamble() + hello_map(later={"x": [1, 2]}))
    assert acceptor.outcome is None


def test_a_record_above_4096_bytes_is_refused_at_its_head() -> None:
    for length in (4097, 65535):
        _, acceptor = sides()
        acceptor.receive(preamble() + struct.pack("<BBH", 0x81, 0, length))
        assert refusal(acceptor).code == "too_large"
        dialer, _ = sides()
        dialer.receive(preamble() + struct.pack("<BBH", 0x81, 0, length))
        assert refusal(dialer).code == "too_large"
    with pytest.raises(ValueError, match="at most 4096"):
        record_bytes(RecordKind.HELLO, bytes(4097))


@pytest.mark.parametrize(
    "changes",
    [{"version": 2}, {"node": "worker-4"}, {"incarnation": 0}, {"features": ["unasked"]}],
    ids=str,
)  # fmt: skip
def test_a_welcome_that_does_not_fit_the_hello_is_refused(changes: dict[str, Any]) -> None:
    def tamper(sender: str, data: bytes) -> bytes:
        if sender == "acceptor" and data[:1] == b"\x83":
            welcome = decode_record(data[4:-4], Welcome)
            return record_bytes(RecordKind.WELCOME, encode_record(change(welcome, **changes)))
        return data

    dialer, acceptor = sides()
    talk(dialer, acceptor, tamper)
    assert refusal(dialer).code == "malformed"
    assert next(iter(changes)) in refusal(dialer).text


def flips(data: bytes, reseal: bool) -> Iterator[bytes]:
    """Every flip of one bit; with ``reseal`` the checksum of the flipped unit is made to fit again."""
    units = [data] if data[0] != ord("E") else [data[:16], *records_of(data[16:])]
    start = 0
    for unit in units:
        for bit in range(8 * (len(unit) - 4 * reseal)):
            flipped = bytearray(unit)
            flipped[bit // 8] ^= 1 << bit % 8
            changed = resealed(bytes(flipped)) if reseal else bytes(flipped)
            yield data[:start] + changed + data[start + len(unit) :]
        start += len(unit)


SMALL = change(DIALER, messages={}, software=Software(), features=[])
SMALL_ACCEPTOR = change(ACCEPTOR, messages={}, features=[])


def transcript_of() -> list[tuple[str, bytes]]:
    said: list[tuple[str, bytes]] = []

    def listen(sender: str, data: bytes) -> bytes:
        if data:
            said.append((sender, data))
        return data

    talk(*sides(SMALL, SMALL_ACCEPTOR), listen)
    return said


@pytest.mark.slow
@pytest.mark.parametrize("reseal", [False, True])
@pytest.mark.parametrize("turn", [0, 1, 2, 3])
def test_no_flipped_bit_of_a_valid_transcript_is_authenticated(turn: int, reseal: bool) -> None:
    """Turns: dialer's greeting, acceptor's greeting, AUTH, WELCOME. Resealed: with right checksums, as an attacker."""
    said = transcript_of()
    assert [sender for sender, _ in said] == ["dialer", "acceptor", "dialer", "acceptor"]
    for changed in flips(said[turn][1], reseal):
        dialer, acceptor = sides(SMALL, SMALL_ACCEPTOR)
        count = 0

        def tamper(sender: str, data: bytes, changed: bytes = changed) -> bytes:
            nonlocal count
            count += bool(data)
            return changed if data and count == turn + 1 else data

        talk(dialer, acceptor, tamper)
        if turn < 3:
            assert not isinstance(acceptor.outcome, Agreed)
            assert not isinstance(dialer.outcome, Agreed)
        elif isinstance(dialer.outcome, Agreed):
            # The proof covers both HELLOs; what else the WELCOME says is as safe as the channel.
            assert reseal
            assert dialer.outcome.welcome.tag == agreement(acceptor).welcome.tag


def test_a_downgrade_is_noticed() -> None:
    def tamper(sender: str, data: bytes) -> bytes:
        return preamble((1, 1)) + data[16:] if data[:1] == b"E" else data

    dialer, acceptor = sides(dialer_versions=(1, 2), acceptor_versions=(1, 2))
    talk(dialer, acceptor, tamper)
    assert refusal(acceptor).code == "auth"
    assert not isinstance(dialer.outcome, Agreed)


def test_a_replayed_dialer_fails_against_a_fresh_nonce() -> None:
    said = transcript_of()
    _, acceptor = sides(SMALL, change(SMALL_ACCEPTOR, nonce=b"z" * 32))
    acceptor.receive(said[0][1])
    acceptor.receive(said[2][1])
    assert refusal(acceptor).code == "auth"


def test_a_reflected_proof_fails() -> None:
    dialer, acceptor = sides()
    auth = dialer.receive(acceptor.receive(dialer.start()))
    tag = decode_record(auth[4:-4], Auth).tag
    welcome = Welcome(tag, 1, "worker-3", 1, b"B" * 16, b"S" * 16, 0, 1, 1, [], Software())
    dialer.receive(record_bytes(RecordKind.WELCOME, encode_record(welcome)))
    assert refusal(dialer).code == "auth"


def test_a_relay_to_another_certificate_fails() -> None:
    dialer, acceptor = sides(
        dials=Credentials("run1", SECRET, b"m" * 32), accepts=Credentials("run1", SECRET, b"c" * 32)
    )
    talk(dialer, acceptor)
    assert refusal(acceptor).code == "auth"


@pytest.mark.slow
@given(st.binary(max_size=80), st.booleans(), st.sampled_from(list(RecordKind)), st.sampled_from([1, 7, 4096]))
def test_random_bytes_never_raise_nor_authenticate(data: bytes, framed: bool, kind: RecordKind, step: int) -> None:
    stream = preamble() + record_bytes(kind, data) if framed else data
    for side in sides():
        for start in range(0, len(stream), step):
            side.receive(stream[start : start + step])
        assert not isinstance(side.outcome, Agreed)


@pytest.mark.slow
@given(st.sampled_from([0, 2]), st.data())
def test_truncated_and_spliced_transcripts_never_authenticate(turn: int, data: st.DataObject) -> None:
    valid = transcript_of()[turn][1]
    cut = data.draw(st.integers(0, len(valid) - 1))
    tail = data.draw(st.binary(max_size=40) | st.just(valid))
    _, acceptor = sides(SMALL, SMALL_ACCEPTOR)
    if turn == 2:
        acceptor.receive(transcript_of()[0][1])
    acceptor.receive(valid[:cut] + tail)
    assert not isinstance(acceptor.outcome, Agreed) or valid[:cut] + tail == valid


def test_a_connection_holds_at_most_one_record() -> None:
    stream = preamble() + struct.pack("<BBH", 0x81, 0, 4096) + bytes(4095)
    pieces = [stream[i : i + 512] for i in range(0, len(stream), 512)]
    acceptors = [sides()[1] for _ in range(20)]
    tracemalloc.start()
    try:
        for acceptor in acceptors:
            for piece in pieces:
                acceptor.receive(piece)
        per_connection = tracemalloc.get_traced_memory()[0] / len(acceptors)
    finally:
        tracemalloc.stop()
    assert all(acceptor.outcome is None for acceptor in acceptors)
    assert per_connection < 6000


def test_our_own_hello_must_fit() -> None:
    with pytest.raises(RecordError, match="nonce"):
        Dialer(CREDENTIALS, change(DIALER, nonce=b""))
    with pytest.raises(RecordError, match="node"):
        Dialer(CREDENTIALS, change(DIALER, node="n" * 65))


def test_misread_survives_pickling() -> None:
    error = Misread("auth", "text", "hint")
    assert str(pickle.loads(pickle.dumps(error))) == str(Misread(*error.args)) == "auth: text; hint"
    with pytest.raises(Misread, match="not_emuml"):
        parse_preamble(b"x" * 16)
