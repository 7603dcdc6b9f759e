"""Proof of a shared secret over a transcript: HKDF and HMAC with SHA-256, from the standard library.

No secret goes over the wire. The transcript stops downgrade and tampering, the two roles stop reflection, the two
nonces in it stop replay, and the certificate digest in it stops relaying under TLS.
"""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass, field
from typing import Literal

__all__ = ["NO_CERTIFICATE", "Credentials", "hkdf_sha256", "transcript"]

NO_CERTIFICATE = bytes(32)
"""Stands in the transcript for the acceptor's certificate on a plain connection."""


def hkdf_sha256(secret: bytes, salt: bytes, info: bytes, n_bytes: int) -> bytes:
    """Return key material of ``n_bytes`` (at most 8160) derived from ``secret`` (RFC 5869)."""
    key = hmac.digest(salt or bytes(32), secret, "sha256")
    block, blocks = b"", b""
    for counter in range(1, -(-n_bytes // 32) + 1):
        block = hmac.digest(key, block + info + bytes([counter]), "sha256")
        blocks += block
    return blocks[:n_bytes]


def transcript(
    dialer_preamble: bytes, dialer_hello: bytes, acceptor_preamble: bytes, acceptor_hello: bytes, certificate: bytes
) -> bytes:
    """Return SHA-256 over both preambles and HELLO records as they were sent, and the acceptor's certificate digest."""
    parts = dialer_preamble + dialer_hello + acceptor_preamble + acceptor_hello + certificate
    return hashlib.sha256(parts).digest()


@dataclass(frozen=True)
class Credentials:
    """What one side knows.

    Parameters
    ----------
    run : str
        Run id, ASCII; no secret.
    secret : bytes
        Shared by all members of the run; never printed. Empty only if ``certified``.
    certificate : bytes
        SHA-256 of the acceptor's certificate (DER) under TLS, else 32 zero bytes.
    certified : bool
        Both sides' certificates have been checked by TLS, so that a secret is not needed.

    Raises
    ------
    ValueError
        If nothing would be proved.
    """

    run: str
    secret: bytes = field(repr=False)
    certificate: bytes = NO_CERTIFICATE
    certified: bool = False

    def __post_init__(self) -> None:
        if not self.secret and not (self.certified and self.certificate != NO_CERTIFICATE):
            raise ValueError("an empty secret is allowed only where TLS has checked both certificates")
        if len(self.certificate) != 32 or not self.run.isascii():
            raise ValueError("expected a certificate digest of 32 bytes and an ASCII run id")

    def key(self) -> bytes:
        """Return the authentication key of the run, 32 bytes."""
        return hkdf_sha256(self.secret, self.run.encode("ascii"), b"emuml/1 auth", 32)

    def tag(self, role: Literal["dialer", "acceptor"], transcript: bytes) -> bytes:
        """Return the proof of ``role``, 32 bytes; empty without a secret."""
        if not self.secret:
            return b""
        return hmac.digest(self.key(), b"emuml/1 " + role.encode() + b"\0" + transcript, "sha256")

    def proves(self, tag: bytes, role: Literal["dialer", "acceptor"], transcript: bytes) -> bool:
        """Whether ``tag`` is the proof of ``role``; takes the same time for every wrong one."""
        return hmac.compare_digest(tag, self.tag(role, transcript))
