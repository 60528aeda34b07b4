"""An issuer of tokens: a key, the key set that it publishes, and a server for the set."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm

ISSUER = "https://issuer.example"
AUDIENCE = "trouter"

RSA_KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)
EC_KEY = ec.generate_private_key(ec.SECP256R1())
ED_KEY = ed25519.Ed25519PrivateKey.generate()


def public(key: Any, kid: str | None = None, **more: Any) -> dict[str, Any]:
    """Return the JSON Web Key of a private key's public half."""
    if isinstance(key, rsa.RSAPrivateKey):
        made = RSAAlgorithm.to_jwk(key.public_key(), as_dict=True)
    elif isinstance(key, ec.EllipticCurvePrivateKey):
        made = ECAlgorithm.to_jwk(key.public_key(), as_dict=True)
    else:
        made = OKPAlgorithm.to_jwk(key.public_key(), as_dict=True)
    made.pop("key_ops", None)
    return {**made, **({} if kid is None else {"kid": kid}), **more}


def key_set(*keys: dict[str, Any]) -> str:
    return json.dumps({"keys": keys or (public(RSA_KEY, "one"), public(EC_KEY, "two"), public(ED_KEY, "three"))})


def token(
    key: Any = RSA_KEY,
    algorithm: str = "RS256",
    kid: str | None = "one",
    header: dict[str, Any] | None = None,
    **claims: Any,
) -> str:
    """Return a token for alice that is valid for an hour; a claim that is None is left out."""
    now = time.time()
    given = {"iss": ISSUER, "aud": AUDIENCE, "sub": "alice", "iat": now, "exp": now + 3600, **claims}
    headers = {**({} if kid is None else {"kid": kid}), **(header or {})}
    return jwt.encode(
        {name: value for name, value in given.items() if value is not None}, key, algorithm, headers=headers
    )


class KeyServer:
    """The answer of an issuer's server; a test may change it while the server runs."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}/keys"
        self.body = key_set().encode()
        self.status = 200
        self.location = ""
        self.asked = 0
        #: Answers wait until it is set.
        self.gate = threading.Event()
        self.gate.set()


@contextmanager
def serving_keys() -> Iterator[KeyServer]:
    """Run an issuer's server on this machine."""

    class Handler(BaseHTTPRequestHandler):
        keys: ClassVar[KeyServer]

        def do_GET(self) -> None:
            keys = self.keys
            keys.asked += 1
            keys.gate.wait(60)
            self.send_response(keys.status)
            if keys.location:
                self.send_header("Location", keys.location)
            self.send_header("Content-Length", str(len(keys.body)))
            self.end_headers()
            try:
                self.wfile.write(keys.body)
            except OSError:  # the client has closed the connection
                return

        def log_message(self, *_: Any) -> None:
            """Write no log."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        Handler.keys = KeyServer(server.server_address[1])
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield Handler.keys
        finally:
            Handler.keys.gate.set()
            server.shutdown()
            thread.join()
