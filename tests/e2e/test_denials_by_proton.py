"""Every denial to a client, through python-qpid-proton: the error at the client, the counters and the records.

A row is one denial, mostly one of security.md 4.9. A receiver on the address of the router's log of records follows the
records as the router makes them.
"""

from __future__ import annotations

import itertools
import json
import signal
import socket
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from proton import Link, Message, SSLDomain, symbol
from proton.reactor import AtMostOnce, LinkOption
from proton.utils import ConnectionClosed, LinkDetached

from tests.auth_double import says_no, service, stops_before
from tests.e2e.by_proton import Client, Ear, Said, refusal, said
from tests.e2e.test_policy import (
    CONFIGURATION,
    OPEN,
    PASSWORD,
    USERS,
    VHOSTS,
    Counters,
    Manager,
    change,
    vhost,
    wait_until,
)
from tests.e2e.test_tenants import page_of
from tests.routers import DEADLINE_S, RunningRouter, running
from tests.tls.pki import Authority, Pair
from trouter_plugins.users_file import edit_users, put_user

pytestmark = pytest.mark.slow

RESOURCE, UNAUTHORIZED = "amqp:resource-limit-exceeded", "amqp:unauthorized-access"
CONNECTION = Said(RESOURCE, "connection disallowed by local policy")
SESSION = Said(RESOURCE, "session disallowed by local policy")
TOO_MANY = Said(RESOURCE, "link disallowed by local policy")
LINK = Said(UNAUTHORIZED, "link disallowed by local policy")
OPEN_COUNTS = {"policy.vhostConnectionsDenied": 1}
OPEN_IN_VHOST = OPEN_COUNTS | {"connectionsDenied": 1}
SENDER = {"policy.linksDenied": 1, "policy.totalDenials": 1, "senderDenied": 1}
RECEIVER = {"policy.linksDenied": 1, "policy.totalDenials": 1, "receiverDenied": 1}
OK, AUTH, TEMP = 0, 1, 4

QUOTAS = [
    vhost("rates.org", maxConnectionsPerSecond=1, group=OPEN),
    vhost("hasty.org", maxAttachesPerSecond=1, group=OPEN),
    vhost("counted.org", maxLinks=2, group={"perHost": {"maxAddresses": 1}, **OPEN}),
    vhost("kept.org", maxBufferedBytes=3000, group=OPEN),
    vhost("moved.org", {"all": {"users": "alice, bob, carol", **OPEN}}),
    vhost("gone.org", {"all": {"users": "alice", **OPEN}}),
    vhost("certified.org", {"all": {"users": "CN=alice", **OPEN}}),
    vhost("$connecting", {"$connector": {**OPEN}}),
]
MORE = """
listener {{ name: strict, host: 127.0.0.1, port: 0, authenticatePeer: yes, saslMechanisms: PLAIN, {loopback} }}
listener {{ name: tenants, host: 127.0.0.1, port: 0, multiTenant: yes, saslMechanisms: PLAIN, {loopback} }}
listener {{ name: web, host: 127.0.0.1, port: 0, http: yes, saslMechanisms: ANONYMOUS }}
listener {{ name: says-no, host: 127.0.0.1, port: 0, saslPlugin: no, {loopback} }}
listener {{ name: dies, host: 127.0.0.1, port: 0, saslPlugin: dead, {loopback} }}
authServicePlugin {{ name: no, host: 127.0.0.1, port: {says_no.port} }}
authServicePlugin {{ name: dead, host: 127.0.0.1, port: {dies.port} }}
sslProfile {{
    name: profile
    certFile: {server.cert}
    privateKeyFile: {server.key}
    caCertFile: {authority.file}
    crlFile: {revoked}
    ordinal: 1
}}
listener {{
    name: tls
    host: 127.0.0.1
    port: 0
    sslProfile: profile
    requireSsl: yes
    authenticatePeer: yes
    saslMechanisms: EXTERNAL
}}
recordLog {{ dir: {folder}/records, kinds: audit, address: records }}
"""
STRICT, TENANTS, SAYS_NO, DIES, TLS = range(1, 6)
LOOPBACK = "allowInsecurePlain: loopback"
#: A lock without delays, so that no test has to wait.
LOCKING = "authDelayAfter: 1000, authLockoutAfter: 3, authLockoutSeconds: 3600"


def together(*work: Callable[[], None]) -> None:
    """Run all of these concurrently."""
    threads = [threading.Thread(target=each) for each in work]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


@dataclass
class Scene:
    """A router, its manager, and a receiver of its records."""

    router: RunningRouter
    folder: Path
    manager: Manager
    authority: Authority
    revoked: Pair
    _records: Any = None
    _marks: int = 0
    _unread: list[dict[str, Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._records = self.manager.connection.create_receiver("records", credit=1000)

    def client(self, user: str, hostname: str, listener: int = 0) -> Client:
        return Client(Ear(), self.router.ports[listener], user, PASSWORD if user else "", virtual_host=hostname)

    def refusal(self, user: str, hostname: str, listener: int = 0, **options: Any) -> Ear:
        password = options.pop("password", PASSWORD if user else "")
        return refusal(self.router.ports[listener], user, password, virtual_host=hostname, **options)

    def counters(self, hostname: str = "") -> Counters:
        return Counters(self.manager, hostname)

    def record(self, kind: str, **wanted: object) -> dict[str, Any]:
        """Return the first unread record of this kind with these fields; those before it stay unread."""
        at = 0
        while True:
            while at == len(self._unread):
                message = self._records.receive(timeout=DEADLINE_S)
                self._unread.append(json.loads(bytes(message.body)))
            if self._unread[at]["k"] == kind and wanted.items() <= self._unread[at].items():
                return self._unread.pop(at)
            at += 1

    def records(self) -> list[dict[str, Any]]:
        """Return the unread records."""
        self._marks += 1
        name = f"mark-{self._marks}"
        assert self.manager.ask("CREATE", {}, type="router.config.address", name=name).status == 400
        self.record("management.change", entity_name=name)
        records, self._unread = self._unread, []
        return records

    def denial(self, **wanted: object) -> None:
        """Check that a denial was recorded with these fields; None stands for an absent field."""
        (record,) = [each for each in self.records() if each["k"] == "policy.decision" and not each["allow"]]
        assert {name: record.get(name) for name in wanted} == wanted, record


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    folder = tmp_path_factory.mktemp("denials")
    authority = Authority(folder)
    revoked = authority.issue("CN=alice")
    for name in (*USERS, "dave", "erin"):
        put_user(folder / "users", name, PASSWORD.encode())
    (folder / "vhosts").mkdir()
    (folder / "vhosts" / "all.json").write_text(json.dumps([*VHOSTS, *QUOTAS]))
    with service(says_no(1)) as no, service(stops_before("outcome", dies=True)) as dies:
        few = CONFIGURATION.replace("id: R,", f"id: R, {LOCKING},").replace("maxConnections: 30", "maxConnections: 8")
        text = (few + MORE).format(
            folder=folder,
            loopback=LOOPBACK,
            says_no=no,
            dies=dies,
            authority=authority,
            server=authority.issue("CN=localhost", "localhost"),
            revoked=authority.revoke(revoked.certificate, days=30),
        )
        with running(text, folder) as router:
            manager = Manager(router.port)
            yield Scene(router, folder, manager, authority, revoked)
            manager.close()


# --- connections


OPENS = {
    "no vhost": ("alice", "unknown.org", "", "no-vhost"),
    "unknown user": ("bob", "closed.org", "closed.org", "closed.org:no-group"),
    "wrong host": ("alice", "closed.org", "closed.org", "closed.org:far:remote-host"),
    "no user": ("", "closed.org", "closed.org", "closed.org:no-group"),
}


@pytest.mark.parametrize(("user", "hostname", "found", "rule"), OPENS.values(), ids=OPENS)
def test_a_connection(scene: Scene, user: str, hostname: str, found: str, rule: str) -> None:
    counters = scene.counters(found)
    heard = scene.refusal(user, hostname)
    assert heard.said == [CONNECTION]
    assert counters.changed() == (OPEN_IN_VHOST if found else OPEN_COUNTS)
    scene.denial(
        conn=heard.number, op="open", rule=rule, reason="connection", vhost=found or None, user=user or "anonymous",
        host="127.0.0.1", addr=None, repeat=1,
    )  # fmt: skip


def test_a_connection_that_was_denied_is_reported_as_over(scene: Scene) -> None:
    heard = scene.refusal("", "unknown.org")
    closed = scene.record("connection.closed", conn=heard.number)
    assert (closed["by"], closed["condition"], closed["opened_at"]) == ("local", RESOURCE, 0)


FULL = {
    "of the vhost": ("few.org", ["alice"], "bob", "few.org:all:max-connections"),
    "of a user": ("user.org", ["bob", "alice"], "alice", "user.org:all:max-connections-per-user"),
    "from a host": ("host.org", ["alice"], "bob", "host.org:all:max-connections-per-host"),
    "of a user in a group": ("group.org", ["alice", "alice"], "alice", "group.org:many:max-connections-per-user"),
}


@pytest.mark.parametrize(("hostname", "first", "last", "rule"), FULL.values(), ids=FULL)
def test_one_connection_too_many(scene: Scene, hostname: str, first: list[str], last: str, rule: str) -> None:
    with ExitStack() as stack:
        for user in first:
            stack.callback(scene.client(user, hostname).close)
        scene.records()
        counters = scene.counters(hostname)
        heard = scene.refusal(last, hostname)
        assert heard.said == [CONNECTION]
        assert counters.changed() == OPEN_IN_VHOST
        scene.denial(conn=heard.number, op="open", rule=rule, reason="connection", vhost=hostname, user=last)


def test_one_connection_too_many_for_the_router(scene: Scene) -> None:
    wait_until(lambda: scene.manager.policy()["connectionsCurrent"] == 1)
    with ExitStack() as stack:
        for _ in range(7):
            stack.callback(scene.client("", "anon.org").close)
        scene.records()
        counters = scene.counters()
        processed = scene.manager.policy()["connectionsProcessed"]
        heard = scene.refusal("", "anon.org")
        assert (heard.said, heard.number, heard.outcome) == ([], 0, None)
        assert counters.changed() == {"policy.connectionsDenied": 1, "policy.totalDenials": 1}
        assert scene.manager.policy()["connectionsProcessed"] == processed + 1
        scene.denial(
            conn=0, op="accept", rule="policy:maxConnections", reason="max-connections", host="127.0.0.1", user=None
        )
    wait_until(lambda: scene.manager.policy()["connectionsCurrent"] == 1)


def test_connections_too_fast(scene: Scene) -> None:
    scene.records()
    counters = scene.counters("rates.org")
    denied: list[int] = []

    def connect() -> None:
        ear = Ear()
        with suppress(ConnectionClosed):
            client = Client(ear, scene.router.port, virtual_host="rates.org")
            sends_to("any")(client)
            client.close()
        if ear.said:
            assert ear.said == [CONNECTION]
            denied.append(ear.number)

    while not denied:  # one of them is too fast on any machine
        together(*[connect] * 4)
    assert counters.changed() == {name: count * len(denied) for name, count in OPEN_IN_VHOST.items()}
    records = scene.records()
    told = [each for each in records if each["k"] == "policy.decision" and not each["allow"]]
    assert sorted(each["conn"] for each in told) == sorted(denied)
    assert {each["rule"] for each in told} == {"rates.org:maxConnectionsPerSecond"}
    status, figures = page_of(scene.router, "web")
    alarm, *later = [
        each
        for each in records
        if each["k"] == "alarm" and each["state"] == "raised" and "rates.org" in each["subject"]
    ]
    assert (alarm["name"], alarm["subject"], alarm["state"], alarm["value"], alarm["limit"]) == (
        "quota", "rates.org:maxConnectionsPerSecond", "raised", "enforced", "1"
    )  # fmt: skip
    assert status == 200
    assert f'trouter_vhost_quota_alarms_total{{vhost="rates.org"}} {1 + len(later)}.0' in figures.splitlines()


# --- sessions and links


class Terminus(LinkOption):
    """A hook that changes the router's terminus in an attach."""

    def __init__(self, capability: str = "", *, dynamic: bool = False, nothing: bool = False) -> None:
        self._capability = capability
        self._dynamic = dynamic
        self._nothing = nothing

    def apply(self, link: Link) -> None:
        terminus: Any = link.target if link.is_sender else link.source
        if self._capability:
            terminus.capabilities.put_object(symbol(self._capability))
        if self._nothing:
            terminus.type = terminus.UNSPECIFIED
        terminus.dynamic = self._dynamic


_names = itertools.count(1)


def sends_to(address: str | None, **terminus: Any) -> Callable[[Client], object]:
    return lambda client: client.create_sender(address, name=f"link-{next(_names)}", options=Terminus(**terminus))


def receives_from(address: str | None, **terminus: Any) -> Callable[[Client], object]:
    return lambda client: client.create_receiver(address, name=f"link-{next(_names)}", options=Terminus(**terminus))


LINKS: dict[str, tuple[Callable[[Client], object], Mapping[str, int], str, str | None]] = {
    "a target": (sends_to("other"), SENDER, "targets:none", "other"),
    "a source": (receives_from("other"), RECEIVER, "sources:none", "other"),
    "another user's": (receives_from("own-bob"), RECEIVER, "sources:none", "own-bob"),
    "an anonymous sender": (sends_to(None), SENDER, "allowAnonymousSender", None),
    "a target that is none": (sends_to(None, nothing=True), SENDER, "allowAnonymousSender", None),
    "a dynamic target": (sends_to(None, dynamic=True), SENDER, "allowAnonymousSender", None),
    "a dynamic source": (receives_from(None, dynamic=True), RECEIVER, "allowDynamicSource", None),
    "a source that is none": (receives_from(None, nothing=True), RECEIVER, "source", None),
    "a source without an address": (receives_from(None), RECEIVER, "source", None),
    "a waypoint to send to": (sends_to("out", capability="qd.waypoint"), SENDER, "allowWaypointLinks", "out"),
    "a waypoint to receive from": (
        receives_from("in", capability="qd.waypoint_9"), RECEIVER, "allowWaypointLinks", "in"),
    "a fallback to send to": (sends_to("out", capability="qd.fallback"), SENDER, "allowFallbackLinks", "out"),
    "a fallback to receive from": (
        receives_from("in", capability="qd.fallback"), RECEIVER, "allowFallbackLinks", "in"),
}  # fmt: skip


@pytest.fixture(scope="module")
def linking(scene: Scene) -> Iterator[Client]:
    client = scene.client("alice", "links.org")
    yield client
    client.close()


@pytest.mark.parametrize(("attach", "counted", "rule", "address"), LINKS.values(), ids=LINKS)
def test_a_link(
    scene: Scene,
    linking: Client,
    attach: Callable[[Client], object],
    counted: Mapping[str, int],
    rule: str,
    address: str | None,
) -> None:
    scene.records()
    counters = scene.counters("links.org")
    assert linking.refusal_of(attach) == LINK
    assert counters.changed() == counted
    sends = counted is SENDER
    scene.denial(
        conn=linking.number, op="attach", rule=f"links.org:all:{rule}", reason="sender" if sends else "receiver",
        vhost="links.org", group="all", user="alice", addr=address, dir="in" if sends else "out",
    )  # fmt: skip


@pytest.mark.parametrize("sends", [True, False], ids=["a sender", "a receiver"])
def test_one_link_too_many(scene: Scene, sends: bool) -> None:
    client = scene.client("alice", "links.org")
    attach = sends_to("out") if sends else receives_from("in")
    for _ in range(2):
        attach(client)
    scene.records()
    counters = scene.counters("links.org")
    assert client.refusal_of(attach) == TOO_MANY
    assert counters.changed() == (SENDER if sends else RECEIVER)
    limit = "maxSenders" if sends else "maxReceivers"
    scene.denial(conn=client.number, op="attach", rule=f"links.org:all:{limit}", addr="out" if sends else "in")
    client.close()


def test_an_address_that_is_none(scene: Scene) -> None:
    linking = scene.client("alice", "links.org", STRICT)
    assert linking.refusal_of(sends_to("own-alice\n")) == Said(
        "amqp:invalid-field", "an address must not contain control characters"
    )
    assert linking.refusal_of(sends_to("own-alice" + "x" * 5000)) == Said(
        "amqp:invalid-field", "addresses are limited to 4096 bytes"
    )
    linking.close()


QUOTA_ROWS = {
    "links": ("counted.org", "a", "a", 2, "maxLinks"),
    "addresses": ("counted.org", "a", "b", 1, "all:perHost:maxAddresses"),
}


@pytest.mark.parametrize(("hostname", "first", "last", "most", "rule"), QUOTA_ROWS.values(), ids=QUOTA_ROWS)
def test_more_links_than_a_quota_allows(
    scene: Scene, hostname: str, first: str, last: str, most: int, rule: str
) -> None:
    client = scene.client("alice", hostname)
    for _ in range(most):
        sends_to(first)(client)
    scene.records()
    counters = scene.counters(hostname)
    assert client.refusal_of(sends_to(last)) == TOO_MANY
    assert counters.changed() == SENDER
    assert scene.manager.vhost(hostname)["quotaAlarmsRaised"]
    scene.denial(op="attach", rule=f"{hostname}:{rule}", addr=last, dir="in")
    client.close()


def test_links_too_fast(scene: Scene) -> None:
    client = scene.client("alice", "hasty.org")
    scene.records()
    counters = scene.counters("hasty.org")
    why = None
    while why is None:
        with suppress(AssertionError):
            why = client.refusal_of(receives_from("a"))
    assert why == TOO_MANY
    assert counters.changed() == RECEIVER
    scene.denial(op="attach", rule="hasty.org:maxAttachesPerSecond", dir="out")
    client.close()


def test_links_while_as_much_is_kept_as_may_be(scene: Scene) -> None:
    slow, client = scene.client("bob", "kept.org"), scene.client("alice", "kept.org")
    slow.create_receiver("a", credit=0)
    sender = client.create_sender("a", options=AtMostOnce())
    client.wait(lambda: sender.link.credit > 0)
    while sender.link.credit > 0:
        sender.link.send(Message(b"x" * 200))
    counters = scene.counters("kept.org")
    scene.records()
    assert client.refusal_of(sends_to("a")) == TOO_MANY
    assert counters.changed() == SENDER
    scene.denial(op="attach", rule="kept.org:maxBufferedBytes", dir="in")
    client.close()
    slow.close()


def test_a_session(scene: Scene) -> None:
    client = scene.client("carol", "moved.org")
    assert client.create_sender("a").link.credit >= 0
    everybody = {"users": "alice, bob, carol", **OPEN}
    change(scene.manager, "moved.org", maxSessions=1, **everybody)
    scene.records()
    counters = scene.counters("moved.org")
    assert client.end_of_session() == SESSION
    assert counters.changed() == {"policy.totalDenials": 1, "sessionDenied": 1}
    scene.denial(conn=client.number, op="begin", rule="moved.org:all:maxSessions", reason="session", user="carol")
    change(scene.manager, "moved.org", **everybody)
    client.close()


# --- messages


@dataclass(frozen=True)
class MessageRow:
    """A refused message: its address, the outcome, the counters, and the record."""

    said: Said
    counted: Mapping[str, int]
    to: str | None = None
    record: Mapping[str, object] = field(default_factory=dict)
    fields: Mapping[str, Any] = field(default_factory=dict)


USER_ID: dict[str, Any] = {
    "said": Said(UNAUTHORIZED, "user_id proxy violation"),
    "counted": {"policy.userIdDenied": 1},
    "record": {"op": "send", "reason": "user-id", "dir": "in"},
}
MESSAGES = {
    "a target": MessageRow(
        Said(UNAUTHORIZED, "policy violation on target"), {"policy.messagesDenied": 1},
        record={"op": "send", "reason": "target", "addr": "other", "dir": "in", "rule": "free.org:all:targets:none"},
        fields={"address": "other"},
    ),
    "no target": MessageRow(
        Said("amqp:precondition-failed", "Routing failure: no address present"), {"policy.messagesDenied": 1},
        record={"op": "send", "reason": "no-address", "addr": None},
    ),
    "another's name": MessageRow(**USER_ID, to="t1", fields={"user_id": b"bob"}),
    "half the own name": MessageRow(**USER_ID, to="t1", fields={"user_id": b"ali"}),
    "another's name through an anonymous sender": MessageRow(**USER_ID, fields={"user_id": b"bob", "address": "t1"}),
    "long annotations": MessageRow(
        Said("amqp:invalid-field", "annotations are limited to 8192 bytes a map"), {}, to="t1",
        fields={"annotations": {symbol("own"): b"x" * 8200}},
    ),
}  # fmt: skip


@pytest.mark.parametrize("row", MESSAGES.values(), ids=MESSAGES)
def test_a_message(scene: Scene, row: MessageRow) -> None:
    client = scene.client("alice", "free.org")
    client.create_receiver("t1", credit=1)
    sender = client.create_sender(row.to)
    scene.records()
    counters = scene.counters("free.org")
    assert client.outcome_of(sender, Message("x", **row.fields)) == row.said
    assert counters.changed() == row.counted
    if row.record:
        scene.denial(conn=client.number, vhost="free.org", user="alice", **row.record)
    client.close()


def test_a_denied_presettled_message_has_no_outcome(scene: Scene) -> None:
    """It was settled by its sender: it is dropped, counted and recorded."""
    client = scene.client("alice", "free.org")
    sender = client.create_sender(None, options=AtMostOnce())
    scene.records()
    counters = scene.counters("free.org")
    client.wait(lambda: sender.link.credit > 0)
    sender.link.send(Message("x", address="other"))
    sends_to("t1")(client)
    assert counters.changed() == {"policy.messagesDenied": 1}
    scene.denial(op="send", reason="target", addr="other")
    client.close()


TOO_LARGE = Said("amqp:link:message-size-exceeded", "Message size exceeded")


@pytest.mark.parametrize("ends", ["link", "connection"])
def test_a_message_too_large(scene: Scene, ends: str) -> None:
    policy = {"type": "policy", "identity": "policy/None"}
    scene.manager.get("UPDATE", {"oversizeAction": ends}, **policy)
    try:
        client = scene.client("alice", "size.org")
        client.create_receiver("t1", credit=1)
        sender = client.create_sender("t1")
        scene.records()
        counters = scene.counters("size.org")
        delivery: Any = sender.link.send(Message(b"x" * 5000))
        if ends == "link":
            with pytest.raises(LinkDetached):
                client.wait(lambda: bool(client.ear.said))
            assert client.ear.said == [TOO_LARGE]
        else:
            with pytest.raises(LinkDetached, match="closed by peer"):
                client.wait(lambda: False)
            assert client.until_closed() == Said("amqp:connection:forced", "Message size exceeded")
        record = scene.record("policy.decision", allow=False, conn=client.number)
        assert (record["op"], record["reason"]) == ("send", "message-size")
        assert record["rule"] == "size.org:small:maxMessageSize"
        assert said(delivery.remote.condition) == TOO_LARGE
        assert counters.changed() == {
            "policy.maxMessageSizeDenied": 1, "policy.totalDenials": 1, "maxMessageSizeDenied": 1
        }  # fmt: skip
        client.close()
    finally:
        scene.manager.get("UPDATE", {"oversizeAction": "link"}, **policy)


# --- logins


WRONG = Said(UNAUTHORIZED, "Authentication failed [mech=PLAIN]")  # proton's words
LOGINS = {
    "a wrong password": (STRICT, "alice", "wrong", AUTH, "bad-credentials", "sasl_plain"),
    "no such user": (STRICT, "zoe", PASSWORD, AUTH, "bad-credentials", "sasl_plain"),
    "a service that says no": (SAYS_NO, "alice", PASSWORD, AUTH, "bad-credentials", "no"),
    "a service that dies": (DIES, "alice", PASSWORD, TEMP, "service", "dead"),
}


@pytest.mark.parametrize(("listener", "user", "password", "code", "reason", "plugin"), LOGINS.values(), ids=LOGINS)
def test_a_login(scene: Scene, listener: int, user: str, password: str, code: int, reason: str, plugin: str) -> None:
    scene.records()
    heard = scene.refusal(user, "any", listener, password=password)
    assert (heard.said, heard.outcome, heard.number) == ([], code, 0)
    assert heard.broken == WRONG
    (record,) = [each for each in scene.records() if each["k"] == "sasl.outcome"]
    assert (record["ok"], record["code"], record["reason"], record["mech"]) == (False, code, reason, "PLAIN")
    assert (record["plugin"], record["host"]) == (plugin, "127.0.0.1")
    assert record.get("user") in (user, None)


@pytest.mark.parametrize("mechanism", ["ANONYMOUS", "EXTERNAL"])
def test_a_mechanism_that_is_not_offered(scene: Scene, mechanism: str) -> None:
    """The client gives up by itself."""
    heard = scene.refusal("", "any", STRICT, allowed_mechs=mechanism)
    assert (heard.said, heard.number) == ([], 0)
    assert heard.broken == Said(UNAUTHORIZED, "Authentication failed [mech=none]")


def test_without_sasl(scene: Scene) -> None:
    heard = scene.refusal("", "any", STRICT, sasl_enabled=False)
    assert heard.said == [Said("amqp:connection:policy-error", "Client skipped authentication - forbidden")]
    why = "amqp:connection:policy-error: Client skipped authentication - forbidden"
    closed = scene.record("connection.closed", reason=why)
    assert (closed["by"], closed["condition"]) == ("local", "amqp:connection:policy-error")


def test_a_locked_out_user_is_refused_recorded_and_shown_until_the_lock_is_deleted(scene: Scene) -> None:
    scene.records()
    heard = [scene.refusal("dave", "any", STRICT, password=each) for each in ("wrong",) * 3 + (PASSWORD,)]
    assert [(each.outcome, each.broken) for each in heard] == [(AUTH, WRONG)] * 4
    records = scene.records()
    assert [each["reason"] for each in records if each["k"] == "sasl.outcome"] == ["bad-credentials"] * 3 + ["locked"]
    (alarm,) = [each for each in records if each["k"] == "alarm" and each["name"] == "auth-lockout"]
    assert (alarm["name"], alarm["subject"], alarm["state"]) == ("auth-lockout", "dave at 127.0.0.1", "raised")
    (row,) = [row for row in scene.manager.query("authLockout") if row["user"] == "dave"]
    assert (row["locked"], row["failures"]) == (True, 4)
    assert scene.manager.ask("DELETE", type="authLockout", name=row["name"]).status == 204
    change = scene.record("management.change", entity_type="org.apache.qpid.dispatch.authLockout")
    assert (change["op"], change["entity_name"], change["status"], change["user"]) == (
        "DELETE", "authLockout/127.0.0.1:dave", 204, "manager"
    )  # fmt: skip
    scene.client("dave", "free.org").close()


# --- TLS


def encrypted(scene: Scene, pair: Pair | None = None) -> Any:
    """Return a client's TLS settings with this certificate."""
    domain = SSLDomain(SSLDomain.MODE_CLIENT)
    domain.set_trusted_ca_db(str(scene.authority.file))
    domain.set_peer_authentication(SSLDomain.VERIFY_PEER)
    if pair is not None:
        domain.set_credentials(str(pair.cert), str(pair.key), None)
    return domain


def tls_options(scene: Scene, pair: Pair | None) -> dict[str, Any]:
    return {
        "port": 0, "url": f"amqps://localhost:{scene.router.ports[TLS]}", "ssl_domain": encrypted(scene, pair),
        "allowed_mechs": "EXTERNAL", "virtual_host": "certified.org", "sni": "localhost",
    }  # fmt: skip


CERTIFICATES = {
    "none": ("certificate required", "peer did not return a certificate"),
    "another authority's": ("unknown ca", "unable to get local issuer certificate"),
    "expired": ("certificate expired", "certificate has expired"),
    "revoked": ("", "is revoked"),  # it is found after the handshake, when there are no alerts
}


@pytest.mark.parametrize(("kind", "alert", "reason"), [(kind, *row) for kind, row in CERTIFICATES.items()])
def test_a_certificate(scene: Scene, kind: str, alert: str, reason: str) -> None:
    pairs = {
        "another authority's": Authority(scene.folder, "Somebody Else").issue("CN=alice"),
        "expired": scene.authority.issue("CN=alice", days=-0.5),
        "revoked": scene.revoked,
    }
    scene.records()
    ear = refusal(**tls_options(scene, pairs.get(kind)))
    assert (ear.said, ear.number, ear.outcome) == ([], 0, None)
    assert ear.broken is not None
    assert alert in str(ear.broken.description)
    record = scene.record("tls.outcome", ok=False)
    assert (record["listener"], record["host"]) == ("tls", "127.0.0.1")
    assert reason in record["reason"]


def test_the_alert_of_a_client_that_does_not_trust_the_router_is_recorded(scene: Scene) -> None:
    scene.records()
    context = ssl.create_default_context()
    context.check_hostname = False
    with socket.create_connection(("127.0.0.1", scene.router.ports[TLS]), DEADLINE_S) as sock:
        with pytest.raises(ssl.SSLCertVerificationError):
            context.wrap_socket(sock)
        record = scene.record("tls.outcome", ok=False)
    assert record["alert"] == "unknown_ca"


def test_a_certificate_that_is_good_is_recorded_too(scene: Scene) -> None:
    pair = scene.authority.issue("CN=alice")
    client = Client(Ear(), **tls_options(scene, pair))
    tls = scene.record("tls.outcome", conn=client.number)
    assert (tls["ok"], tls["peer_subject"]) == (True, "CN=alice")
    assert tls["peer_serial"] == f"{pair.certificate.serial_number:X}"
    sasl = scene.record("sasl.outcome", conn=client.number)
    assert (sasl["ok"], sasl["mech"], sasl["user"], sasl["tls_subject"]) == (True, "EXTERNAL", "CN=alice", "CN=alice")
    client.close()


def test_clear_text_where_tls_is_required(scene: Scene) -> None:
    """The router answers with the TLS header, which proton does not expect there; no password is sent."""
    heard = scene.refusal("alice", "any", TLS)
    assert (heard.said, heard.number, heard.outcome) == ([], 0, None)
    assert "AMQP TLS layer" in str(heard.broken)
    why = "amqp:connection:policy-error: Client connection unencrypted - forbidden"
    assert scene.record("connection.closed", reason=why)["condition"] == "amqp:connection:policy-error"


# --- ends of admitted connections


FORCED = "amqp:connection:forced"
NO_LONGER = Said(FORCED, "credentials no longer valid")


def test_a_connection_that_management_closes(scene: Scene) -> None:
    client = scene.client("alice", "free.org")
    update = {"adminStatus": "deleted"}
    scene.manager.get("UPDATE", update, type="connection", identity=str(client.number))
    assert client.until_closed() == Said(FORCED, "closed by management")
    changed = scene.record("management.change", entity_type="org.apache.qpid.dispatch.connection")
    assert (changed["op"], changed["status"], changed["user"]) == ("UPDATE", 200, "manager")
    assert (changed["entity_name"], changed["values"]) == (str(client.number), update)
    closed = scene.record("connection.closed", conn=client.number)
    assert (closed["by"], closed["condition"]) == ("local", FORCED)


def test_a_connection_whose_user_the_vhost_has_no_longer(scene: Scene) -> None:
    client = scene.client("alice", "moved.org")
    scene.records()
    counters = scene.counters("moved.org")
    change(scene.manager, "moved.org", users="bob, carol", **OPEN)
    assert client.until_closed() == CONNECTION
    assert counters.changed() == OPEN_IN_VHOST
    scene.denial(conn=client.number, op="open", rule="moved.org:no-group", reason="connection", user="alice")
    change(scene.manager, "moved.org", users="alice, bob, carol", **OPEN)


def test_a_link_that_the_policy_allows_no_longer(scene: Scene) -> None:
    client = scene.client("alice", "moved.org")
    client.create_sender("a")
    scene.records()
    counters = scene.counters("moved.org")
    everybody = "alice, bob, carol"
    change(scene.manager, "moved.org", users=everybody, sources="*", targets="b")
    with pytest.raises(LinkDetached):
        client.wait(lambda: bool(client.ear.said))
    assert client.ear.said == [LINK]
    assert counters.changed() == SENDER
    scene.denial(conn=client.number, op="attach", rule="moved.org:all:targets:none", addr="a", dir="in")
    change(scene.manager, "moved.org", users=everybody, **OPEN)
    client.close()


def test_a_connection_whose_vhost_is_deleted(scene: Scene) -> None:
    client = scene.client("alice", "gone.org")
    scene.records()
    counters = scene.counters()
    assert scene.manager.ask("DELETE", type="vhost", identity="vhost/gone.org").status == 204
    assert client.until_closed() == CONNECTION
    assert counters.changed() == OPEN_COUNTS
    scene.denial(conn=client.number, op="open", rule="no-vhost", user="alice", vhost=None)


def test_a_connection_whose_user_is_disabled(scene: Scene) -> None:
    client = scene.client("erin", "free.org")
    edit_users(scene.folder / "users", lambda users: users.update(erin=replace(users["erin"], disabled=True)))
    assert client.until_closed() == NO_LONGER
    closed = scene.record("connection.closed", conn=client.number)
    assert (closed["by"], closed["condition"]) == ("local", FORCED)
    assert scene.refusal("erin", "free.org").outcome == AUTH


def test_a_connection_of_an_older_profile(scene: Scene) -> None:
    pair = scene.authority.issue("CN=alice")
    client = Client(Ear(), **tls_options(scene, pair))
    scene.manager.get("UPDATE", {"ordinal": 2, "oldestValidOrdinal": 2}, type="sslProfile", name="profile")
    assert client.until_closed() == Said(FORCED, "the sslProfile of this connection is no longer valid")
    Client(Ear(), **tls_options(scene, pair)).close()


# --- management


FORBIDDEN = (403, "You are not allowed to perform this operation.")
ADDRESS = {"prefix": "made", "distribution": "closest"}
ASKED: dict[str, tuple[str, str, Any, dict[str, Any], str]] = {
    "none: query": ("carol", "QUERY", {"attributeNames": []},
                    {"type": "org.amqp.management", "name": "self", "entityType": "log"}, "none"),
    "read: create": ("reader", "CREATE", ADDRESS, {"type": "router.config.address", "name": "made"}, "read"),
    "read: update": ("reader", "UPDATE", {"enable": "trace+"}, {"type": "log", "name": "log/DEFAULT"}, "read"),
    "read: delete": ("reader", "DELETE", None, {"type": "listener", "name": "main"}, "read"),
    "read: log": ("reader", "GET-LOG", None, {"type": "org.amqp.management", "name": "self"}, "read"),
    "operate: listener": ("operator", "CREATE", {"port": "0", "host": "127.0.0.1"},
                          {"type": "listener", "name": "mine"}, "operate"),
    "operate: vhost": ("operator", "CREATE", {"hostname": "mine.org"}, {"type": "vhost", "name": "v"}, "operate"),
    "operate: close": ("operator", "UPDATE", {"adminStatus": "deleted"}, {"type": "connection"}, "operate"),
}  # fmt: skip


@pytest.mark.parametrize(("user", "operation", "body", "asked", "level"), ASKED.values(), ids=ASKED)
def test_a_request_of_management(
    scene: Scene, user: str, operation: str, body: Any, asked: dict[str, Any], level: str
) -> None:
    node = Manager(scene.router.port, user)
    if asked["type"] == "connection":
        rows = scene.manager.query("connection")
        asked = {**asked, "identity": str(next(row["identity"] for row in rows if row["user"] == "manager"))}
    scene.records()
    counters = scene.counters()
    assert node.refused(operation, body, **asked) == FORBIDDEN
    assert counters.changed() == {"policy.managementDenied": 1}
    scene.denial(op="manage", rule=f"management:{level}", reason="management", user=user, vhost="admin.org")
    node.close()


# --- tenants


def test_a_tenant_that_names_none(scene: Scene) -> None:
    scene.records()
    counters = scene.counters()
    heard = scene.refusal("alice", "free.org/sub", TENANTS)
    why = "the name of a tenant must not contain a slash"
    assert heard.said == [Said("amqp:invalid-field", f"{why} in the hostname of the open")]
    assert counters.changed() == OPEN_COUNTS
    scene.denial(op="open", reason="tenant", user="alice", rule=f"tenant:{why}")


def test_an_address_outside_every_tenant_is_denied_to_a_tenant(scene: Scene) -> None:
    client = scene.client("alice", "free.org", TENANTS)
    scene.records()
    counters = scene.counters("free.org")
    assert client.refusal_of(receives_from("_local/temp.q")) == LINK
    assert counters.changed() == RECEIVER
    scene.denial(op="attach", rule="reserved", addr="_local/temp.q", dir="out")
    client.close()


# --- without a policy: tenants, guessing, and the end of the router


BARE = """
router {{
    id: R
    usersFile: {folder}/users
    authLockout: enforce
    authDelayAfter: 1
    authLongestDelaySeconds: 1
}}
listener {{ host: 127.0.0.1, port: 0, saslMechanisms: PLAIN, {loopback} }}
listener {{
    name: tenants
    host: 127.0.0.1
    port: 0
    multiTenant: yes
    authenticatePeer: yes
    saslMechanisms: PLAIN
    {loopback}
    tenantFrom: file:{folder}/tenants.json
}}
recordLog {{ dir: {folder}/records, kinds: audit, address: records }}
"""
ANOTHERS = Said(UNAUTHORIZED, "connection disallowed by local policy")


def test_without_a_policy(tmp_path: Path) -> None:
    """Tenants, guessing, and the end of the router itself."""
    for name in ("alice", "bob", "manager"):
        put_user(tmp_path / "users", name, PASSWORD.encode())
    (tmp_path / "tenants.json").write_text(json.dumps({"alice": "t1", "bob": ["t2", "t3"]}))
    with running(BARE.format(folder=tmp_path, loopback=LOOPBACK), tmp_path) as router:
        authority = Authority(tmp_path)
        scene = Scene(router, tmp_path, Manager(router.port), authority, authority.issue("CN=nobody"))
        for user, hostname in (("alice", "t2"), ("bob", "t1"), ("manager", "t1")):
            scene.records()
            counters = scene.counters()
            heard = scene.refusal(user, hostname, 1)
            assert heard.said == [ANOTHERS]
            assert counters.changed() == OPEN_COUNTS
            why = f"tenant:the user does not belong to the tenant {hostname!r}"
            scene.denial(op="open", reason="tenant", user=user, rule=why, vhost=None)
        guess_together(scene)
        client = scene.client("alice", "any")
        router.process.send_signal(signal.SIGTERM)
        assert client.until_closed() == Said(FORCED, "the router is shutting down")
        client.close()
        assert router.wait() == 0


def guess_together(scene: Scene) -> None:
    """Try passwords concurrently: each attempt is delayed, and only a limited number may wait."""
    assert scene.refusal("bob", "any", password="wrong").outcome == AUTH
    outcomes: list[int | None] = []

    def guess() -> None:
        outcomes.append(scene.refusal("bob", "any", password="wrong").outcome)

    scene.records()
    together(*[guess] * 3)
    assert set(outcomes) == {AUTH, TEMP}
    told = [each for each in scene.records() if each["k"] == "sasl.outcome"]
    assert {(each["code"], each["reason"], each["delay_us"] > 0) for each in told} == {
        (AUTH, "bad-credentials", True),
        (TEMP, "throttled", False),
    }
