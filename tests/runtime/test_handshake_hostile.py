"""The handshake against strangers, malformed input, tampering and replays: refused, and nothing raised."""

import pickle
import struct
import tracemalloc
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

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
    Agreed,
    Dialer,
    reject_record,
)
from emuml.runtime.proof import Credentials
from emuml.runtime.records import (
    Auth,
    RecordError,
    Software,
    Welcome,
    decode_record,
    encode_record,
)
from tests.runtime.handshakes import (
    ACCEPTOR,
    CREDENTIALS,
    DIALER,
    SECRET,
    agreement,
    change,
    records_of,
    refusal,
    resealed,
    sides,
    talk,
)

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
