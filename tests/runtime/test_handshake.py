"""Handshake: golden vectors, every refusal with its facts, and no transcript but the right one is believed."""

from typing import Any

import msgspec
import pytest
from crc32c import crc32c

from emuml.message import Decoder, Message
from emuml.runtime.greeting import (
    RecordKind,
    preamble,
    record_bytes,
)
from emuml.runtime.handshake import (
    NO_SCHEMA,
    Grant,
    Refused,
    reject_record,
    schema_difference,
    software_warnings,
)
from emuml.runtime.proof import Credentials, hkdf_sha256, transcript
from emuml.runtime.records import (
    DialerHello,
    Reject,
    decode_record,
)
from tests.runtime.handshakes import (
    ACCEPTOR,
    CREDENTIALS,
    DECODER,
    DIALER,
    PREAMBLE_HEX,
    SECRET,
    SOFTWARE,
    Pull,
    Push,
    agreement,
    change,
    refusal,
    sides,
    talk,
)

# Golden vectors of version 1.


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
