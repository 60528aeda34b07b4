"""sasl_anonymous: called directly, then through a real manager."""

from __future__ import annotations

import pytest

from trouter.hooks import Authenticated, ListenerFacts, PeerFacts, Plugins, RouterFacts
from trouter_plugins import sasl_anonymous


def peer_of(*mechanisms: str, authenticate_peer: bool = False) -> PeerFacts:
    listener = ListenerFacts("here", "", "amqp", sasl_mechanisms=mechanisms, authenticate_peer=authenticate_peer)
    return PeerFacts(1, listener, "192.0.2.1", 40000, encrypted=False, loopback=False)


@pytest.mark.parametrize(
    ("peer", "served"),
    [
        (peer_of(), True),
        (peer_of("ANONYMOUS"), True),
        (peer_of("PLAIN", "anonymous"), True),
        (peer_of("PLAIN"), False),
        (peer_of("XANONYMOUS"), False),
        (peer_of(authenticate_peer=True), False),
        (peer_of("ANONYMOUS", authenticate_peer=True), False),
    ],
    ids=str,
)
def test_anonymous_is_served_where_the_listener_lists_anonymous_or_nothing(peer: PeerFacts, served: bool) -> None:
    assert tuple(sasl_anonymous.Plugin().sasl_mechanisms(peer.listener)) == (("ANONYMOUS",) if served else ())
    assert (sasl_anonymous.Plugin().open_sasl("ANONYMOUS", peer) is not None) is served
    plugins = Plugins([sasl_anonymous])
    assert (plugins.open_sasl("ANONYMOUS", peer) is not None) is served


def test_anonymous_opens_no_other_mechanism() -> None:
    assert sasl_anonymous.Plugin().open_sasl("PLAIN", peer_of()) is None


@pytest.mark.parametrize("trace", [b"", b"me@example.com", b"\xff\x00", b"x" * 5000])
async def test_every_client_is_anonymous_for_any_trace(trace: bytes) -> None:
    plugins = Plugins([sasl_anonymous])
    exchange = plugins.open_sasl("ANONYMOUS", peer_of())
    assert exchange is not None
    assert await plugins.objects.respond_or_refuse(exchange, trace) == Authenticated("anonymous")
    assert not plugins.faults


@pytest.mark.parametrize(
    ("mech_list", "role", "served"),
    [
        (None, "normal", True),
        (("PLAIN", "ANONYMOUS"), "normal", True),
        (("PLAIN",), "normal", False),
        (("PLAIN",), "route-container", False),
        (("PLAIN",), "inter-router", True),
        (("PLAIN",), "edge", True),
    ],
)
def test_mech_list_of_cyrus_leaves_anonymous_out_for_clients(
    mech_list: tuple[str, ...] | None, role: str, served: bool
) -> None:
    plugins = Plugins([sasl_anonymous])
    plugins.configure(RouterFacts("QDR.A", sasl_mech_list=mech_list))
    for named in ((), ("ANONYMOUS",)):
        listener = ListenerFacts("here", "", "amqp", role=role, sasl_mechanisms=named)
        assert plugins.sasl_mechanisms(listener) == (("ANONYMOUS",) if served else ())
