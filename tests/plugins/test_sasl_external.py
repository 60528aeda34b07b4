"""EXTERNAL: it admits only the user of the certificate, and refuses a client without one."""

from __future__ import annotations

import pytest

from trouter.hooks import Authenticated, ListenerFacts, PeerFacts, Plugins, Refused, TlsFacts
from trouter_plugins import sasl_external

LISTENER = ListenerFacts("here", "127.0.0.1", "5671")
ALICE = TlsFacts("TLSv1.3", "TLS_AES_256_GCM_SHA384", 256, "CN=alice", b"certificate", "alice")
STRANGERS = {
    "no TLS": None,
    "no certificate": TlsFacts("TLSv1.3", "TLS_AES_256_GCM_SHA384", 256),
    "no user": TlsFacts("TLSv1.3", "TLS_AES_256_GCM_SHA384", 256, "CN=alice", b"certificate", ""),
}


def peer_with(tls: TlsFacts | None, listener: ListenerFacts = LISTENER) -> PeerFacts:
    return PeerFacts(1, listener, "192.0.2.1", 40000, encrypted=tls is not None, loopback=False, tls=tls)


@pytest.mark.parametrize("tls", STRANGERS.values(), ids=STRANGERS)
def test_a_client_without_a_certificate_is_not_offered_external_and_cannot_use_external(tls: TlsFacts | None) -> None:
    plugins = Plugins([sasl_external])
    assert plugins.sasl_mechanisms_for(peer_with(tls)) == ()
    assert plugins.open_sasl("EXTERNAL", peer_with(tls)) is None
    assert sasl_external.open_sasl("EXTERNAL", peer_with(tls)) is None


async def test_the_certificate_is_the_user() -> None:
    plugins = Plugins([sasl_external])
    assert plugins.sasl_mechanisms_for(peer_with(ALICE)) == ("EXTERNAL",)
    exchange = plugins.open_sasl("EXTERNAL", peer_with(ALICE))
    assert exchange is not None
    assert await exchange.respond(b"") == Authenticated("alice")


@pytest.mark.parametrize(
    ("response", "answer"), [(b"alice", Authenticated), (b"root", Refused), (b"alice\0", Refused), (b"\xff", Refused)]
)
async def test_a_client_that_requests_another_user_is_refused(response: bytes, answer: type) -> None:
    exchange = sasl_external.open_sasl("EXTERNAL", peer_with(ALICE))
    assert exchange is not None
    assert isinstance(await exchange.respond(response), answer)


def test_external_is_left_out_where_the_listener_names_other_mechanisms() -> None:
    listener = ListenerFacts("here", "127.0.0.1", "5671", sasl_mechanisms=("PLAIN",))
    assert Plugins([sasl_external]).sasl_mechanisms_for(peer_with(ALICE, listener)) == ()
