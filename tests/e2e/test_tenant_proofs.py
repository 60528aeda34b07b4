"""Tenants from a token or a certificate (security.md R-5d), with real ones, through python-qpid-proton."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from proton import Message, SSLDomain
from proton.reactor import AtMostOnce

from tests.e2e.by_proton import Client, Ear, Said, refusal
from tests.management.node import node_of
from tests.plugins.tokens import AUDIENCE, ISSUER, key_set, token
from tests.routers import DEADLINE_S, RunningRouter, running
from tests.tls.pki import Authority

pytestmark = [pytest.mark.attack, pytest.mark.slow]

CONFIGURATION = """
router {{
    id: R
    oauthIssuer: '{issuer}'
    oauthAudience: {audience}
    oauthJwks: {folder}/keys.json
    oauthPlain: yes
    oauthTenantClaim: org
}}
sslProfile {{
    name: tls
    certFile: {server.cert}
    privateKeyFile: {server.key}
    caCertFile: {authority.file}
}}
listener {{ host: 127.0.0.1, port: 0, saslMechanisms: ANONYMOUS }}
listener {{
    name: tokens
    host: 127.0.0.1
    port: 0
    multiTenant: yes
    authenticatePeer: yes
    saslMechanisms: PLAIN
    allowInsecurePlain: loopback
    tenantFrom: claim
}}
listener {{
    name: certificates
    host: 127.0.0.1
    port: 0
    multiTenant: yes
    sslProfile: tls
    requireSsl: yes
    authenticatePeer: yes
    saslMechanisms: EXTERNAL
    tenantFrom: uid:o
}}
"""
DENIED = Said("amqp:unauthorized-access", "connection disallowed by local policy")


@dataclass
class Scene:
    router: RunningRouter
    authority: Authority

    def by_token(self, hostname: str, **claims: Any) -> dict[str, Any]:
        """Return the options of a client that has a token with these claims."""
        return {
            "port": self.router.ports[1],
            "user": "alice",
            "password": token(**claims),
            "virtual_host": hostname,
        }

    def by_certificate(self, hostname: str, subject: str) -> dict[str, Any]:
        """Return the options of a client that has a certificate of this subject."""
        pair = self.authority.issue(subject)
        domain = SSLDomain(SSLDomain.MODE_CLIENT)
        domain.set_trusted_ca_db(str(self.authority.file))
        domain.set_peer_authentication(SSLDomain.VERIFY_PEER)
        domain.set_credentials(str(pair.cert), str(pair.key), None)
        return {
            "port": 0,
            "url": f"amqps://localhost:{self.router.ports[2]}",
            "ssl_domain": domain,
            "sni": "localhost",
            "allowed_mechs": "EXTERNAL",
            "virtual_host": hostname,
        }


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    folder: Path = tmp_path_factory.mktemp("proofs")
    authority = Authority(folder)
    (folder / "keys.json").write_text(key_set())
    text = CONFIGURATION.format(
        folder=folder,
        issuer=ISSUER,
        audience=AUDIENCE,
        authority=authority,
        server=authority.issue("CN=localhost", "localhost"),
    )
    with running(text, folder) as router:
        yield Scene(router, authority)


def test_a_token_and_a_certificate_lead_into_the_same_tenant(scene: Scene) -> None:
    receiving = Client(Ear(), **scene.by_certificate("one", "O=one,CN=bob"))
    sending = Client(Ear(), **scene.by_token("one", org="one"))
    stranger = Client(Ear(), **scene.by_token("two", org="two"))
    with node_of(scene.router.port) as node:
        rows = node.query("connection", ["user", "tenant"])
    assert sorted((row["user"], row["tenant"]) for row in rows if row["tenant"]) == [
        ("CN=bob,O=one", "one/"), ("alice", "one/"), ("alice", "two/")
    ]  # fmt: skip
    receiver: Any = receiving.create_receiver("q", credit=1)
    elsewhere: Any = stranger.create_receiver("q", credit=1)
    sender: Any = sending.create_sender("q", options=AtMostOnce())
    sending.wait(lambda: sender.link.credit > 0)
    sender.link.send(Message("x"))
    sending.close()
    assert receiver.receive(timeout=DEADLINE_S).body == "x"
    marker: Any = stranger.create_sender("q")  # a round trip: a message under way to this connection has arrived
    marker.close()
    assert not elsewhere.fetcher.has_message
    for client in (receiving, stranger):
        client.close()


@pytest.mark.parametrize("hostname", ["one", "other"])
@pytest.mark.parametrize("claim", ["two", "one/x"], ids=repr)
def test_a_token_that_does_not_name_the_tenant(scene: Scene, claim: object, hostname: str) -> None:
    assert refusal(**scene.by_token(hostname, org=claim)).said == [DENIED]


@pytest.mark.parametrize("claim", [None, "", 1, ["one"], {"one": 1}], ids=repr)
def test_a_token_whose_tenant_is_no_name_lets_no_user_in(scene: Scene, claim: object) -> None:
    heard = refusal(**scene.by_token("one", org=claim))
    assert (heard.said, heard.number, heard.outcome) == ([], 0, 1)


@pytest.mark.parametrize("subject", ["O=two,CN=bob", "CN=one", "OU=one,CN=bob", "O=one/x,CN=bob"])
def test_a_certificate_that_does_not_name_the_tenant(scene: Scene, subject: str) -> None:
    assert refusal(**scene.by_certificate("one", subject)).said == [DENIED]
    assert refusal(**scene.by_certificate("one/x", subject)).said[0].condition == "amqp:invalid-field"
