"""Any text as a token is refused unless a key of the issuer signed it for this audience and it has not expired.

The input is the text of a token, three parts in base64. A third part `0` stands for a signature that the target makes
with the issuer's key over the parts before it, so that signed claims of every kind reach the judge.

Allowed: BadToken, because most texts are no token; its text is printable and short.
"""

from __future__ import annotations

import json
import time
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Any, Final

from cryptography.hazmat.primitives.asymmetric import ed25519
from jwt.algorithms import OKPAlgorithm

from fuzz.parts.at_once import now
from trouter.testing.fuzz import mutation
from trouter_plugins.oauth_keys import Keys, parse_keys
from trouter_plugins.sasl_oauth import BadToken, Judge

COVERS = ("trouter_plugins.sasl_oauth", "trouter_plugins.oauth_rights")
KEY: Final = ed25519.Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
JWK: Final = {**OKPAlgorithm.to_jwk(KEY.public_key(), as_dict=True), "kid": "one"}
JWK.pop("key_ops", None)
ISSUER: Final = "https://issuer.example"
AUDIENCE: Final = "trouter"


class Published(Keys):
    """The keys of the issuer, without a fetch."""

    def __init__(self) -> None:
        self._url = None
        self._keys = parse_keys(json.dumps({"keys": [JWK]}).encode())


JUDGE: Final = Judge(ISSUER, AUDIENCE, "sub", Published(), "scope", "amqp:", "tenant")


def decoded(part: bytes) -> bytes:
    try:
        return urlsafe_b64decode(part + b"=" * (-len(part) % 4))
    except ValueError:
        return b""


def encoded(octets: bytes) -> bytes:
    return urlsafe_b64encode(octets).rstrip(b"=")


def inside(rng: Any, data: bytes, other: bytes) -> bytes:
    """Mutate the JSON of a part and encode it again."""
    parts = data.split(b".")
    others = other.split(b".")
    at = rng.randrange(len(parts))
    if len(parts) != 3 or at == 2 or rng.random() < 0.1:
        return mutation.octets(rng, data, other)
    borrowed = decoded(others[at]) if at < len(others) else b""
    parts[at] = encoded(mutation.text(rng, decoded(parts[at]), borrowed))
    return b".".join(parts)


MUTATOR = inside


def signed(data: bytes) -> tuple[str, bool]:
    """Return the token, and whether the target signed it."""
    head, dot, signature = data.rpartition(b".")
    text = data.decode("latin-1")
    if not dot or signature != b"0" or not text.isascii():
        return text, False
    return f"{head.decode()}.{encoded(KEY.sign(head)).decode()}", True


def check(data: bytes) -> None:
    token, ours = signed(data)
    try:
        answer = now(JUDGE.judge(token))
    except BadToken as bad:
        text = str(bad)
    else:
        assert ours, f"{answer} by a token without a valid signature"
        claims = json.loads(decoded(token.split(".")[1].encode()))
        assert claims["iss"] == ISSUER
        assert AUDIENCE in ([claims["aud"]] if isinstance(claims["aud"], str) else claims["aud"])
        assert answer.expires_at_s is not None
        assert answer.expires_at_s > time.time() - 60
        assert answer.user == claims["sub"]
        assert answer.user.isprintable()
        return
    assert text.isprintable()
    assert len(text) < 200
