"""The logins of a web console: each mechanism that a browser has, from rhea over ws and wss."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from tests.interop.consoles import LoginFailed, ask, query, rows
from tests.plugins.tokens import AUDIENCE, ISSUER, key_set, token
from tests.routers import RunningRouter, running
from tests.tls.pki import Authority, Pair
from trouter_plugins.users_file import put_user

pytestmark = pytest.mark.interop

PASSWORD = "wonderland"
ROUTER = """
router {{
    id: R
    usersFile: {folder}/users
    oauthIssuer: {issuer}
    oauthAudience: {audience}
    oauthJwks: {folder}/keys.json
}}
sslProfile {{
    name: pair
    certFile: {server.cert}
    privateKeyFile: {server.key}
    caCertFile: {authority.file}
    uidFormat: n
}}
"""
LISTENERS = {
    "open": "saslMechanisms: ANONYMOUS",
    "loopback": "authenticatePeer: yes, saslMechanisms: PLAIN, allowInsecurePlain: loopback",
    "closed": "authenticatePeer: yes, saslMechanisms: PLAIN EXTERNAL XOAUTH2, allowInsecurePlain: no",
    "tls": "authenticatePeer: yes, saslMechanisms: PLAIN XOAUTH2, sslProfile: pair, requireSsl: yes, clientCert: none",
    "certificates": "authenticatePeer: yes, saslMechanisms: EXTERNAL, sslProfile: pair, requireSsl: yes",
}
WITHIN_TLS = {"tls", "certificates"}


@dataclass
class Scene:
    router: RunningRouter
    authority: Authority
    alice: Pair

    def login(self, name: str, **options: Any) -> tuple[str, str, bool]:
        """Return mechanism, user and encryption, as the router lists the console's own connection."""
        port = self.router.wait_for_line(rf"Listening for HTTP on \S+:(\d+) \({name}\)")[1]
        scheme = "wss" if name in WITHIN_TLS else "ws"
        ca = {"ca": str(self.authority.file)} if name in WITHIN_TLS else {}
        (reply,) = ask(f"{scheme}://localhost:{port}/", [query("connection")], **ca, **options, subprotocol="amqp")
        found = [row for row in rows(reply) if row["properties"].get("console_identifier")]
        (row,) = (each for each in found if each["container"] == found[-1]["container"])
        return row["sasl"], row["user"], row["isEncrypted"]


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    folder = tmp_path_factory.mktemp("logins")
    authority = Authority(folder)
    put_user(folder / "users", "alice", PASSWORD.encode())
    (folder / "keys.json").write_text(key_set())
    server = authority.issue("CN=localhost", "localhost")
    text = ROUTER.format(folder=folder, issuer=ISSUER, audience=AUDIENCE, server=server, authority=authority)
    for name, attributes in LISTENERS.items():
        lines = "\n    ".join(re.split(", ", attributes))
        pages = "http: yes\n    webSocketOrigins: none"
        text += f"listener {{\n    name: {name}\n    host: localhost\n    port: 0\n    {pages}\n    {lines}\n}}\n"
    (folder / "router").mkdir()
    with running(text, folder / "router") as router:
        yield Scene(router, authority, authority.issue("CN=alice"))


def test_without_a_name(scene: Scene) -> None:
    assert scene.login("open") == ("ANONYMOUS", "anonymous", False)


def test_by_password_on_this_machine(scene: Scene) -> None:
    assert scene.login("loopback", username="alice", password=PASSWORD) == ("PLAIN", "alice", False)


def test_by_password_within_tls(scene: Scene) -> None:
    assert scene.login("tls", username="alice", password=PASSWORD) == ("PLAIN", "alice", True)


def test_by_token_within_tls(scene: Scene) -> None:
    assert scene.login("tls", username="alice", token=token()) == ("XOAUTH2", "alice", True)


def test_by_certificate(scene: Scene) -> None:
    pair = {"cert": str(scene.alice.cert), "key": str(scene.alice.key)}
    assert scene.login("certificates", external=True, **pair) == ("EXTERNAL", "alice", True)


DENIED = {
    "a wrong password": ("loopback", {"username": "alice", "password": "looking-glass"}),
    "a name that is none": ("loopback", {"username": "mallory", "password": PASSWORD}),
    "no name": ("loopback", {}),
    "a password in clear": ("closed", {"username": "alice", "password": PASSWORD}),
    "a token in clear": ("closed", {"username": "alice", "token": "x.y.z"}),
    "a token of another issuer": ("tls", {"username": "alice", "token": token(iss="https://other.example")}),
    "no certificate": ("certificates", {"external": True}),
    "a page from elsewhere": ("open", {"origin": "http://evil.example"}),
}


@pytest.mark.parametrize(("name", "options"), DENIED.values(), ids=DENIED)
def test_a_denied_login_fails_without_a_trace_of_the_password(scene: Scene, name: str, options: dict[str, Any]) -> None:
    with pytest.raises(LoginFailed):
        scene.login(name, **options)
    assert PASSWORD not in scene.router.text()
