"""The router's open, whatever the client's open contains (routing.md 7 and 8)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import trouter
from tests.e2e.peer import Peer, body_of
from tests.management.node import node_of
from tests.routers import PLAIN_LISTENER, RunningRouter, StartRouter, running
from trouter.wire.codec import encode
from trouter.wire.framing import AMQP_HEADER, frame
from trouter.wire.performatives import Close, Open, encode_performative
from trouter.wire.types import Array, Int, Symbol, UInt


@pytest.fixture(scope="module")
def router(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningRouter]:
    with running(PLAIN_LISTENER, tmp_path_factory.mktemp("router")) as router:
        yield router


def test_a_router_names_itself_as_configured(start_router: StartRouter) -> None:
    router = start_router("router { id: Router.A }\nlistener { host: 127.0.0.1, port: 0 }")
    with Peer(router.port, container_id="a-client") as peer:
        introduction = peer.remote_open
        assert introduction is not None
        assert introduction.container_id == "Router.A"
        assert introduction.hostname is None
        assert (introduction.max_frame_size, introduction.channel_max, introduction.idle_time_out) == (
            16384,
            1023,
            8000,
        )
        properties = dict(introduction.properties or {})
        number = properties.pop("qd.conn-id")
        assert (type(number), number) == (Int, 1)
        assert properties == {"product": "trouter", "version": trouter.__version__}


def test_each_connection_has_its_number_in_the_log(router: RunningRouter) -> None:
    with Peer(router.port, container_id="first") as first, Peer(router.port, container_id="second") as second:
        assert first.number != second.number
        for peer, name in ((first, "first"), (second, "second")):
            router.wait_for_line(rf"\[C{peer.number}\] Accepted connection to 127\.0\.0\.1:\d+ from {peer.address}$")
            router.wait_for_line(
                rf"\[C{peer.number}\] Connection Opened: dir=in host={peer.address} .*container_id={name} "
            )


def test_frame_and_session_limits_are_those_of_the_listener(start_router: StartRouter) -> None:
    limits = "maxFrameSize: 4096, maxSessions: 3, maxSessionFrames: 7, idleTimeoutSeconds: 60"
    router = start_router(f"listener {{ host: 127.0.0.1, port: 0, {limits} }}")
    with Peer(router.port) as peer:
        introduction = peer.remote_open
        assert introduction is not None
        assert (introduction.max_frame_size, introduction.channel_max, introduction.idle_time_out) == (4096, 2, 30_000)
        assert peer.window == 7


def test_properties_and_places_to_fail_over_to_are_reported(start_router: StartRouter) -> None:
    router = start_router(
        "listener {\n host: 127.0.0.1\n port: 0\n"
        ' openProperties: {"region": "north", "rank": 3}\n failoverUrls: amqp://other:5673, amqps://third\n}\n'
    )
    with Peer(router.port) as peer:
        assert peer.remote_open is not None
        properties = peer.remote_open.properties
        assert properties is not None
        assert (properties["region"], properties["rank"]) == ("north", 3)
        assert properties["failover-server-list"] == [
            {"network-host": "other", "port": "5673", "scheme": "amqp"},
            {"network-host": "third", "port": "5672", "scheme": "amqps"},
        ]
        assert properties["product"] == "trouter"


CAPABILITIES = {
    "none": None,
    "a symbol": Symbol("one"),
    "symbols": Array("symbol", ["one", "two"]),
    "no symbols": Array("symbol", []),
    "a list": [Symbol("one"), Symbol("two")],
    "an empty list": [],
    "a string": "one",
    "an int": UInt(7),
    "ints": Array("uint", [1, 2, 3]),
    "a list of ints": [UInt(1), UInt(2)],
}


def open_with_capabilities(capabilities: object) -> bytes:
    value = encode(capabilities)
    fields = encode("odd") + b"\x40" * 6 + value + value
    body = b"\0\x53\x10\xd0" + (len(fields) + 4).to_bytes(4, "big") + (9).to_bytes(4, "big") + fields
    return AMQP_HEADER + frame(0, body)


@pytest.mark.parametrize("kind", CAPABILITIES)
def test_the_open_has_the_same_capabilities_for_every_client(router: RunningRouter, kind: str) -> None:
    with Peer(router.port, opened=False) as peer:
        peer.raw(open_with_capabilities(CAPABILITIES[kind]))
        peer.expect_header(AMQP_HEADER)
        introduction = peer.expect(Open)
        assert introduction.offered_capabilities == ("ANONYMOUS-RELAY", "qd.streaming-links")
        assert introduction.desired_capabilities == ("ANONYMOUS-RELAY", "qd.streaming-links")
        peer.begin()
        peer.be_heard()
        peer.say(Close())
        assert peer.expect(Close).error is None


@pytest.mark.parametrize("key", ["text", Symbol("symbol")], ids=["string keys", "symbol keys"])
def test_a_clients_properties_stand_in_the_log(router: RunningRouter, key: str) -> None:
    with Peer(router.port, properties={key: "value"}):
        router.wait_for_line(rf"Connection Opened: .* props=\{{:{key}=\"value\"\}}")


def test_a_client_without_a_name_is_served_and_shown_without_one(router: RunningRouter) -> None:
    """Plain proton-C sends an empty container-id."""
    with Peer(router.port, container_id="") as peer, node_of(router.port) as node:
        link = peer.attach_receiver("nameless", credit=1)
        peer.send_message(peer.attach_sender("nameless"), b"served")
        assert body_of(peer.take_message(link)) == b"served"
        (row,) = [row for row in node.query("connection") if row["identity"] == str(peer.number)]
        assert row["container"] == ""
        router.wait_for_line(rf"\[C{peer.number}\] Connection Opened: .* container_id= ")


@pytest.mark.parametrize("role", ["edge", "inter-router"])
def test_a_router_without_a_name_is_refused(start_router: StartRouter, role: str) -> None:
    router = start_router(
        "router { id: R, mode: interior }\n"
        f"listener {{ host: 127.0.0.1, port: 0, role: {role}, allowInsecureRole: yes }}"
    )
    with Peer(router.port, opened=False) as peer:
        peer.raw(AMQP_HEADER + frame(0, encode_performative(Open(""))))
        peer.expect_header(AMQP_HEADER)
        peer.expect(Open)
        error = peer.expect_close()
        assert error is not None
        assert (error.condition, error.description) == ("amqp:invalid-field", "open carries no container-id")


def test_management_shows_a_long_container_id_whole_and_the_log_its_beginning(router: RunningRouter) -> None:
    name = "\u00e9" * 4_096  # 8,192 bytes
    with Peer(router.port, container_id=name) as peer, node_of(router.port) as node:
        assert name in [row["container"] for row in node.query("connection")]
        line = router.wait_for_line(rf"\[C{peer.number}\] Connection Opened.* container_id=(\S+)")
        assert name.startswith(line[1])


@pytest.mark.parametrize("secure", [False, True], ids=["compatible", "strict"])
def test_a_peer_that_has_not_logged_in_learns_the_version_unless_defaults_are_secure(
    start_router: StartRouter, secure: bool
) -> None:
    listener = "listener { host: 127.0.0.1, port: 0, saslMechanisms: ANONYMOUS, authenticatePeer: no }"
    policy = "policy { enableVhostPolicy: no }"
    router = start_router(f"router {{ id: R, secureDefaults: {'yes' if secure else 'no'} }}\n{listener}\n{policy}\n")
    versions = []
    for sasl in (False, True):
        with Peer(router.port, sasl=sasl) as peer:
            assert peer.remote_open is not None
            properties = peer.remote_open.properties or {}
            assert properties["product"] == "trouter"
            versions.append(properties.get("version"))
    assert versions == [None if secure else trouter.__version__, trouter.__version__]


@pytest.mark.parametrize("secure", ["no", "yes"])
def test_the_product_and_the_version_in_the_open_may_be_another_one_with_a_finding(
    start_router: StartRouter, secure: str
) -> None:
    """RabbitMQ's own clients serve no other product."""
    router = start_router(
        f"router {{ id: R, secureDefaults: {secure} }}\npolicy {{ enableVhostPolicy: no }}\n"
        "listener {\n host: 127.0.0.1\n port: 0\n saslMechanisms: ANONYMOUS\n authenticatePeer: no\n"
        ' openProperties: { product: "RabbitMQ", version: "4.2.0" }\n}\n'
    )
    router.wait_for_line("listener.openProperties: will make the router pass for RabbitMQ 4.2.0")
    with Peer(router.port, sasl=True) as peer:
        assert peer.remote_open is not None
        properties = peer.remote_open.properties or {}
        assert (properties["product"], properties["version"]) == ("RabbitMQ", "4.2.0")
        assert isinstance(properties["qd.conn-id"], int)
