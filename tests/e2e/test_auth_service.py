"""A router process with scripted authentication services: the logins of its clients."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
import trio
from proton.utils import BlockingConnection, LinkDetached

from tests.auth_double import ALICE, AUTHZ, IDENTITY, Double, Script, Wire, plain, says_no, service, stops_before, words
from tests.certificates import Authority
from tests.e2e.peer import Peer
from tests.management.node import node_of
from tests.routers import DEADLINE_S, RunningRouter, StartRouter, running
from trouter.client import AuthenticationFailed, Message, Properties, connect
from trouter.wire.framing import AMQP_HEADER, SASL_HEADER
from trouter.wire.performatives import Open, Rejected, SaslInit, SaslMechanisms, SaslOutcome

pytestmark = pytest.mark.slow

OK, AUTH, SYS_TEMP = 0, 1, 4
CREDENTIALS = b"\0alice\0wonderland"
HANGS = ("header", "mechanisms", "outcome", "amqp header", "open")
LISTENER = "listener {{ host: 127.0.0.1, port: 0, allowInsecurePlain: loopback, saslPlugin: {} }}\n"


def configuration(*doubles: Double, more: str = "timeoutSeconds: 60", listener: str = LISTENER) -> str:
    services = "".join(
        f"authServicePlugin {{ name: s{number}, host: 127.0.0.1, port: {double.port}, {more} }}\n"
        for number, double in enumerate(doubles)
    )
    return f"router {{ id: R }}\n{services}" + "".join(listener.format(f"s{n}") for n in range(len(doubles)))


@pytest.fixture(scope="module")
def double() -> Iterator[Double]:
    with service(plain({IDENTITY: ALICE, AUTHZ: {"*": words("send", "recv")}})) as double:
        yield double


@pytest.fixture(scope="module")
def router(tmp_path_factory: pytest.TempPathFactory, double: Double) -> Iterator[RunningRouter]:
    with running(configuration(double), tmp_path_factory.mktemp("router")) as router:
        yield router


def test_a_client_has_the_user_name_that_the_service_returns(router: RunningRouter) -> None:
    connection = BlockingConnection(
        f"127.0.0.1:{router.port}",
        user="somebody",
        password="wonderland",
        allowed_mechs="PLAIN",
        allow_insecure_mechs=True,
        timeout=DEADLINE_S,
    )
    router.wait_for_line("Connection Opened: .* auth=PLAIN user=alice ")
    connection.close()
    assert "wonderland" not in router.text()


def test_frames_sent_before_the_login_wait_for_the_service(router: RunningRouter) -> None:
    with Peer(router.port, opened=False) as peer:
        peer.raw(SASL_HEADER)
        peer.say(SaslInit("PLAIN", CREDENTIALS), frame_type=1)
        peer.raw(AMQP_HEADER)
        peer.say(Open("early"))
        peer.expect_header(SASL_HEADER)
        assert peer.expect(SaslMechanisms).sasl_server_mechanisms == ("PLAIN",)
        assert peer.expect(SaslOutcome).code == OK
        peer.expect_header(AMQP_HEADER)
        assert peer.expect(Open).container_id == "R"


def test_a_mechanism_that_was_not_offered(router: RunningRouter) -> None:
    with Peer(router.port, opened=False) as peer:
        peer.begin_sasl()
        peer.say(SaslInit("ANONYMOUS"), frame_type=1)
        assert peer.expect(SaslOutcome).code == AUTH
        peer.expect_end_of_stream()


FILTERS: dict[str, tuple[str, ...]] = {
    "allowInsecurePlain: yes": ("X-LAST", "PLAIN", "ANONYMOUS"),
    "allowInsecurePlain: yes\nauthenticatePeer: yes": ("X-LAST", "PLAIN"),
    "allowInsecurePlain: yes\nsaslMechanisms: PLAIN X-LAST": ("X-LAST", "PLAIN"),
    "allowInsecurePlain: yes\nsaslMechanisms: SCRAM-SHA-256": (),
    "allowInsecurePlain: no": ("X-LAST", "ANONYMOUS"),
}


def test_the_offer_of_the_service_is_filtered(start_router: StartRouter) -> None:
    with service(plain({IDENTITY: ALICE}, "X-LAST", "EXTERNAL", "PLAIN", "ANONYMOUS")) as double:
        listeners = "".join(f"listener {{\nhost: 127.0.0.1\nport: 0\nsaslPlugin: s0\n{more}\n}}\n" for more in FILTERS)
        router = start_router(configuration(double, listener="") + listeners)
        for port, (more, expected) in zip(router.ports, FILTERS.items(), strict=True):
            with Peer(port, opened=False) as peer:
                assert peer.begin_sasl() == expected, more


def test_sasl_cannot_be_skipped(router: RunningRouter, double: Double) -> None:
    asked, opened = double.accepted, len(router.matching("Connection Opened"))
    with Peer(router.port, opened=False) as peer:
        peer.raw(AMQP_HEADER)
        peer.say(Open("skips"))
        text = peer.sock.recv(65536)
        assert not text.startswith(AMQP_HEADER) or b"Client skipped authentication" in text
    assert double.accepted == asked
    assert len(router.matching("Connection Opened")) == opened


SCRIPTS: dict[str, tuple[Script, int]] = {
    "code 1": (says_no(1), AUTH),
    "code 2": (says_no(2), AUTH),
    "code 3": (says_no(3), AUTH),
    "code 4": (says_no(4), SYS_TEMP),
    "no user": (plain({IDENTITY: {}, AUTHZ: {"*": words("send")}}), AUTH),
    "the empty user": (plain({IDENTITY: {"sub": ""}}), AUTH),
    "dies before the outcome": (stops_before("outcome", dies=True), SYS_TEMP),
    "dies before its open": (stops_before("open", dies=True), SYS_TEMP),
}


def test_each_refusal_and_each_death_of_the_service_has_its_outcome(start_router: StartRouter) -> None:
    with ExitStack() as stack:
        doubles = [stack.enter_context(service(script)) for script, _ in SCRIPTS.values()]
        router = start_router(configuration(*doubles))
        for port, (what, (_, code)) in zip(router.ports, SCRIPTS.items(), strict=True):
            with Peer(port, opened=False) as peer:
                assert peer.authenticate("PLAIN", CREDENTIALS) == code, what
                peer.expect_end_of_stream()


@pytest.mark.parametrize("secure", [False, True], ids=["as Qpid Dispatch", "secureDefaults"])
def test_existing_services_let_users_in_unless_defaults_are_secure(
    start_router: StartRouter, tmp_path: Path, secure: bool
) -> None:
    """One service sends the user as a plain string; one has a certificate for another name, which the file allows."""
    authority = Authority(tmp_path, "services")
    profile = f"sslProfile {{ name: p, caCertFile: {authority.certificate} }}\n"
    forms = (
        (plain({IDENTITY: "alice"}), None, "", AUTH if secure else OK),
        (plain({IDENTITY: ALICE}), "127.0.0.2", "sslProfile: p, verifyHostname: no", OK),
        (plain({IDENTITY: ALICE}), "127.0.0.2", "sslProfile: p", SYS_TEMP),
    )
    with ExitStack() as stack:
        text = f"router {{ id: R, secureDefaults: {'yes' if secure else 'no'} }}\n{profile}"
        for number, (script, name, more, _) in enumerate(forms):
            tls = None if name is None else authority.server(name)
            double = stack.enter_context(service(script, tls))
            text += f"authServicePlugin {{\nname: s{number}\nhost: 127.0.0.1\nport: {double.port}\n"
            text += "\n".join(more.split(", ")) + "\n}\n" + LISTENER.format(f"s{number}")
        router = start_router(text)
        codes = []
        for port in router.ports:
            with Peer(port, opened=False) as peer:
                codes.append(peer.authenticate("PLAIN", CREDENTIALS))
    assert codes == [code for *_, code in forms]


def test_a_service_that_hangs_holds_up_its_own_clients_only_and_not_for_long(start_router: StartRouter) -> None:
    with ExitStack() as stack:
        doubles = [stack.enter_context(service(stops_before(stage))) for stage in HANGS]
        healthy = "listener { host: 127.0.0.1, port: 0, saslMechanisms: ANONYMOUS }\n"
        router = start_router(healthy + configuration(*doubles, more="timeoutSeconds: 1"))
        peers = [stack.enter_context(Peer(port, opened=False)) for port in router.ports[1:]]
        for peer in peers:
            peer.raw(SASL_HEADER)
            peer.say(SaslInit("PLAIN", CREDENTIALS), frame_type=1)
        with Peer(router.port, sasl=True) as neighbour:
            assert neighbour.number
        for peer, stage in zip(peers, HANGS, strict=True):
            peer.expect_header(SASL_HEADER)
            mechanisms = peer.expect(SaslMechanisms).sasl_server_mechanisms
            assert mechanisms == (() if stage in {"header", "mechanisms"} else ("PLAIN",))
            assert peer.expect(SaslOutcome).code == SYS_TEMP, stage
            peer.expect_end_of_stream()


async def test_a_service_that_is_gone_comes_back(start_router: StartRouter) -> None:
    with service(plain({IDENTITY: ALICE})) as gone:
        text = configuration(gone)
    router = start_router(text)
    with Peer(router.port, opened=False) as peer:
        assert peer.begin_sasl() == ()
        peer.say(SaslInit("PLAIN", CREDENTIALS), frame_type=1)
        assert peer.expect(SaslOutcome).code == SYS_TEMP
    router.wait_for_line("authServicePlugin s0: it cannot be reached: Connection refused")
    with pytest.raises(AuthenticationFailed, match="mechanisms none"):
        async with connect(f"amqp://127.0.0.1:{router.port}", user="alice", password="x"):
            pytest.fail("nobody is there to let us in")


def test_a_client_that_goes_away_takes_its_call_to_the_service_along(start_router: StartRouter) -> None:
    with service(stops_before("outcome")) as double:
        router = start_router(configuration(double, more="timeoutSeconds: 60"))
        with Peer(router.port, opened=False) as peer:
            peer.begin_sasl()
        router.wait_for_line("peer closed the socket")
    # Closing the double has waited for its script, which waits until the router disconnects.


@pytest.mark.parametrize("stage", ["mechanisms", "outcome"])
def test_a_pending_login_at_a_service_ends_when_the_client_disconnects(start_router: StartRouter, stage: str) -> None:
    asked = threading.Event()

    def script(wire: Wire) -> None:
        if stage == "mechanisms":
            wire.header(SASL_HEADER)
        else:
            wire.offer("PLAIN")
        asked.set()
        wire.until_gone()

    with service(script) as double:
        patient = LISTENER.replace("saslPlugin", "initialHandshakeTimeoutSeconds: 600, saslPlugin")
        router = start_router(configuration(double, listener=patient))
        with Peer(router.port, opened=False) as peer:
            peer.raw(SASL_HEADER)
            if stage == "outcome":
                peer.expect_header(SASL_HEADER)
                peer.expect(SaslMechanisms)
                peer.say(SaslInit("PLAIN", CREDENTIALS), frame_type=1)
            assert asked.wait(DEADLINE_S)
            peer.raw(b"octets that nobody will read")
        router.wait_for_line("peer closed the socket")
        assert not router.matching("authServicePlugin s0|too long")  # the service had time left


def test_an_answer_of_the_service_is_cached_if_configured(start_router: StartRouter) -> None:
    inits: list[SaslInit] = []

    def script(wire: Wire) -> None:
        inits.append(wire.offer("PLAIN"))
        wire.let_in({IDENTITY: ALICE})

    with service(script) as double:
        router = start_router(configuration(double, more="cacheSeconds: 60"))
        for response in (CREDENTIALS, CREDENTIALS, b"\0alice\0other"):
            with Peer(router.port, opened=False) as peer:
                assert peer.authenticate("PLAIN", response) == OK
                peer.open()
    assert [init.initial_response for init in inits] == [CREDENTIALS, b"\0alice\0other"]


def test_services_come_change_and_go_while_the_router_runs(start_router: StartRouter) -> None:
    free = "router { id: R }\nlistener { name: free, host: 127.0.0.1, port: 0, saslMechanisms: ANONYMOUS }\n"
    with service(says_no(1)) as old, service(plain({IDENTITY: ALICE})) as new:
        router = start_router(free)
        with node_of(router.port) as node:
            there = {"host": "127.0.0.1", "port": str(old.port)}
            listener = {"host": "127.0.0.1", "port": "0", "allowInsecurePlain": "yes", "saslPlugin": "s"}
            assert "no authServicePlugin" in node.refused("CREATE", listener, type="listener", name="l")[1]
            status, why = node.refused("CREATE", {**there, "sslProfile": "x"}, type="authServicePlugin", name="s")
            assert (status, "no sslProfile" in why) == (400, True), why
            node.create("authServicePlugin", there, name="s")
            node.create("listener", listener, name="l")
            router.wait_for_line(r"Listening on 127\.0\.0\.1:\d+ \(l\)")
            with Peer(router.ports[1], opened=False) as peer:
                assert peer.authenticate("PLAIN", CREDENTIALS) == AUTH
            node.get("UPDATE", {"port": str(new.port)}, type="authServicePlugin", name="s")
            with Peer(router.ports[1], opened=False) as peer:
                assert peer.authenticate("PLAIN", CREDENTIALS) == OK
            assert "uses this authServicePlugin" in node.refused("DELETE", type="authServicePlugin", name="s")[1]
            node.get("DELETE", type="listener", name="l")
            node.get("DELETE", type="authServicePlugin", name="s")
            assert "no authServicePlugin" in node.refused("CREATE", listener, type="listener", name="l")[1]


# The rights that a service grants, through proton

RIGHTS = {
    "both": words("send", "recv"),
    "orders/*": words("send"),
    "in,out": words("recv"),
    "${user}/inbox": words("recv"),
    "half": words("s", "sendX", ""),
}
WITHOUT_POLICY = "policy { enableVhostPolicy: no }\n"
WITH_POLICY = """policy { enableVhostPolicy: yes, defaultVhost: here }
vhost {
    hostname: here
    groups: { $default: { users: *, remoteHosts: *, sources: vhost, targets: vhost } }
}
"""
ALLOWED_SOURCES = ("both", "in,out", "alice/inbox")
DENIED_SOURCES = ("other", "bot", "bothX", "in", "out", "orders/1", "bob/inbox", "${user}/inbox", "half", "vhost")
ALLOWED_TARGETS = ("both", "orders/1", "orders/a/b")
DENIED_TARGETS = ("other", "orders", "in,out", "alice/inbox", "half", "vhost")


@pytest.fixture(scope="module")
def permitting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[RunningRouter]]:
    """Run routers without and with a policy for vhosts; each has three listeners: rights, an empty map, no rights."""
    said = ({IDENTITY: ALICE, AUTHZ: RIGHTS}, {IDENTITY: ALICE, AUTHZ: {}}, {IDENTITY: ALICE})
    with ExitStack() as stack:
        doubles = [stack.enter_context(service(plain(properties))) for properties in said]
        text = configuration(*doubles, more="timeoutSeconds: 60, authzOptional: yes")
        yield [
            stack.enter_context(running(policy + text, tmp_path_factory.mktemp("permitting")))
            for policy in (WITHOUT_POLICY, WITH_POLICY)
        ]


@contextmanager
def logged_in(port: int) -> Iterator[BlockingConnection]:
    how: dict[str, Any] = {"allowed_mechs": "PLAIN", "allow_insecure_mechs": True, "timeout": DEADLINE_S}
    connection = BlockingConnection(f"127.0.0.1:{port}", user="alice", password="x", **how)
    try:
        yield connection
    finally:
        connection.close()


def may(attach: Callable[[], Any]) -> bool:
    """Return whether a link is permitted; a denial must have the condition for that."""
    try:
        link = attach()
    except LinkDetached as detached:
        denied = detached
    else:
        link.close()
        return True
    assert denied.condition == "amqp:unauthorized-access"
    return False


def may_receive(connection: BlockingConnection, address: str | None, **how: Any) -> bool:
    return may(lambda: connection.create_receiver(address, **how))


def may_send(connection: BlockingConnection, address: str) -> bool:
    return may(lambda: connection.create_sender(address))


@pytest.mark.parametrize("policy", [0, 1], ids=["without policy", "with policy"])
def test_rights_allow_exactly_the_addresses_that_they_name(permitting: list[RunningRouter], policy: int) -> None:
    with logged_in(permitting[policy].ports[0]) as connection:
        assert {address: may_receive(connection, address) for address in (*ALLOWED_SOURCES, *DENIED_SOURCES)} == {
            **dict.fromkeys(ALLOWED_SOURCES, True),
            **dict.fromkeys(DENIED_SOURCES, False),
        }
        assert {address: may_send(connection, address) for address in (*ALLOWED_TARGETS, *DENIED_TARGETS)} == {
            **dict.fromkeys(ALLOWED_TARGETS, True),
            **dict.fromkeys(DENIED_TARGETS, False),
        }


@pytest.mark.parametrize("policy", [0, 1], ids=["without policy", "with policy"])
async def test_with_rights_an_anonymous_sender_is_held_to_them_message_by_message(
    permitting: list[RunningRouter], policy: int
) -> None:
    async with (
        connect(f"amqp://127.0.0.1:{permitting[policy].ports[0]}", user="alice", password="x") as connection,
        connection.open_receiver(dynamic=True),
        connection.open_receiver("both") as receiver,
        connection.open_sender() as sender,
    ):
        denied = await sender.send(Message("denied", Properties(to="other")))
        assert isinstance(denied, Rejected)
        assert denied.error is not None
        assert denied.error.condition == "amqp:unauthorized-access"
        async with trio.open_nursery() as nursery:
            nursery.start_soon(sender.send, Message("allowed", Properties(to="both")))
            delivery = await receiver.receive()
            assert delivery.message.body == "allowed"
            await delivery.accept()


@pytest.mark.parametrize("policy", [0, 1], ids=["without policy", "with policy"])
def test_an_empty_map_allows_nothing(permitting: list[RunningRouter], policy: int) -> None:
    with logged_in(permitting[policy].ports[1]) as connection:
        for address in ("both", "vhost", "orders/1"):
            assert not may_receive(connection, address)
            assert not may_send(connection, address)


def test_rights_that_are_left_to_the_policy(permitting: list[RunningRouter]) -> None:
    with logged_in(permitting[0].ports[2]) as connection:
        assert may_receive(connection, "anything")
        assert may_send(connection, "anything")
    with logged_in(permitting[1].ports[2]) as connection:
        assert may_receive(connection, "vhost")
        assert not may_receive(connection, "both")
