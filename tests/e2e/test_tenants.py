"""Multi-tenant listeners (security.md 5, Q-10): every row of its table, and attempts to leave a tenant's space."""

from __future__ import annotations

import http.client
import json
import re
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families
from proton import Delivery, Link, Message
from proton.reactor import AtMostOnce, LinkOption
from proton.utils import BlockingConnection, ConnectionClosed, LinkDetached, SendException

from tests.e2e.peer import Peer
from tests.management.node import Node
from tests.routers import DEADLINE_S, ROOT, WORKERS, RunningRouter, any_worker, running
from trouter.testing import compose
from trouter.wire.framing import AMQP_HEADER, frame
from trouter.wire.performatives import (
    Attach,
    Begin,
    Error,
    Open,
    Rejected,
    Released,
    Source,
    Target,
    encode_performative,
)
from trouter_plugins.users_file import put_user

pytestmark = pytest.mark.attack

PASSWORD = "secret"
#: By user: the tenants it belongs to.
USERS: dict[str, str | list[str]] = {
    "ann": "t1.example",
    "bob": "t2.example",
    "both": ["t1.example", "t2.example"],
    "nobody": [],
    "reserved": "_local",
}
TENANTS = (
    "host: 127.0.0.1, port: 0, multiTenant: yes, authenticatePeer: yes, saslMechanisms: PLAIN, idleTimeoutSeconds: 0, "
    "allowInsecurePlain: loopback, tenantFrom: file:{folder}/tenants.json"
)
CONFIGURATION = f"""
router {{{{ id: R, usersFile: {{folder}}/users, secureDefaults: yes }}}}
policy {{{{ enableVhostPolicy: no }}}}
address {{{{ prefix: t1.example/news, distribution: multicast }}}}
listener {{{{ host: 127.0.0.1, port: 0, saslMechanisms: ANONYMOUS, authenticatePeer: no }}}}
listener {{{{ name: tenants, {TENANTS} }}}}
listener {{{{ name: annotated, {TENANTS}, stripAnnotations: no }}}}
listener {{{{ name: figures, {TENANTS}, http: yes, policyVhost: t1.example }}}}
listener {{{{ name: web, {TENANTS}, http: yes }}}}
listener {{{{ name: pinned, {TENANTS}, policyVhost: t1.example }}}}
"""


@pytest.fixture(scope="module")
def router(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningRouter]:
    """Run a router with a listener outside any tenant's space, and one for tenants."""
    folder = tmp_path_factory.mktemp("tenants")
    for user in (*USERS, "unlisted"):
        put_user(folder / "users", user, PASSWORD.encode())
    (folder / "tenants.json").write_text(json.dumps(USERS))
    with running(CONFIGURATION.format(folder=folder), folder) as started:
        yield started


REFUSED = "'amqp:unauthorized-access', 'link disallowed by local policy'"
CLOSED = Rejected(Error("amqp:unauthorized-access", "policy violation on target"))


class DynamicTarget(LinkOption):
    def apply(self, link: Link) -> None:
        link.target.dynamic = True


class Client:
    """A client of a tenant, or of none."""

    def __init__(self, router: RunningRouter, user: str = "", hostname: str | None = None) -> None:
        if user:
            options: dict[str, Any] = {"user": user, "password": PASSWORD, "allow_insecure_mechs": True}
            url = f"127.0.0.1:{router.ports[1]}"
        else:
            options = {"allowed_mechs": "ANONYMOUS"}
            url = f"127.0.0.1:{router.ports[0]}"
        self.connection: Any = BlockingConnection(url, timeout=DEADLINE_S, virtual_host=hostname, **options)

    def send(self, to: str, body: str, *, anonymous: bool = False, **fields: Any) -> None:
        """Send a settled message once there is credit; its receiver may be in this thread too."""
        sender = self.connection.create_sender(None if anonymous else to, options=AtMostOnce())
        self.connection.wait(lambda: sender.link.credit > 0, timeout=DEADLINE_S)
        sender.send(Message(body=body, address=to if anonymous else None, **fields))
        sender.close()

    def post(self, to: str, **fields: Any) -> int:
        """Send to ``to`` a message that the router must settle itself; return the outcome."""
        sender = self.connection.create_sender(None)
        try:
            return int(sender.send(Message(address=to, **fields), timeout=DEADLINE_S).remote_state)
        except SendException as refused:
            return int(refused.state)
        finally:
            sender.close()

    def receiver(self, address: str | None, **options: Any) -> Any:
        return self.connection.create_receiver(address, credit=10, **options)


@pytest.fixture
def clients(router: RunningRouter) -> Iterator[Any]:
    """Yield a function that connects by user and hostname; close the connections at the end."""
    with ExitStack() as stack:

        def connect(user: str = "", hostname: str | None = None) -> Client:
            client = Client(router, user, hostname)
            stack.callback(client.connection.close)
            return client

        yield connect


@pytest.fixture(scope="module")
def patient(router: RunningRouter) -> Iterator[Client]:
    """Yield a tenant's connection for tests that leave nothing behind."""
    client = Client(router, "ann", "t1.example")
    yield client
    client.connection.close()


def ann(clients: Callable[..., Client]) -> Client:
    return clients("ann", "t1.example")


def bob(clients: Callable[..., Client]) -> Client:
    return clients("bob", "t2.example")


def nothing_came(client: Client, receiver: Any) -> bool:
    """Return whether a receiver has no message, after a round trip that brings those under way to its connection."""
    client.connection.create_sender(None).close()
    return not receiver.fetcher.has_message


def bodies(receiver: Any, count: int) -> list[str]:
    return [receiver.receive(timeout=DEADLINE_S).body for _ in range(count)]


# --- the table of section 5


def test_one_address_is_another_in_each_space(clients: Callable[..., Client]) -> None:
    first, second, outside = ann(clients), bob(clients), clients()
    mine, its, theirs = first.receiver("q"), second.receiver("q"), outside.receiver("q")
    first.send("q", "one")
    second.send("q", "two", anonymous=True)
    outside.send("q", "none")
    assert [bodies(each, 1) for each in (mine, its, theirs)] == [["one"], ["two"], ["none"]]


def test_a_client_without_a_tenant_addresses_a_tenant_by_the_first_part_of_the_address(
    clients: Callable[..., Client],
) -> None:
    tenant, outside = ann(clients), clients()
    within, beyond = tenant.receiver("a"), outside.receiver("t1.example/b")
    outside.send("t1.example/a", "in")
    tenant.send("b", "out")
    tenant.send("amqp://host/b", "out", anonymous=True)
    assert bodies(within, 1) == ["in"]
    assert bodies(beyond, 2) == ["out", "out"]


@pytest.mark.parametrize("address", ["q", "/q", "amqp://host/q", "q.", "sub/q", "$x"])
def test_the_answer_to_an_attach_has_the_address_as_the_client_wrote_it(patient: Client, address: str) -> None:
    receiver, sender = patient.receiver(address), patient.connection.create_sender(address)
    assert receiver.link.remote_source.address == sender.link.remote_target.address == address
    receiver.close()
    sender.close()


@pytest.mark.parametrize("anonymous", [False, True])
def test_the_properties_arrive_as_they_were_sent(clients: Callable[..., Client], anonymous: bool) -> None:
    client = ann(clients)
    receiver = client.receiver("q")
    sender = client.connection.create_sender(None if anonymous else "q", options=AtMostOnce())
    to = "amqp://host/q" if anonymous else "t2.example/elsewhere"
    client.connection.wait(lambda: sender.link.credit > 0, timeout=DEADLINE_S)
    sender.send(Message(body="x", address=to, reply_to="t2.example/back"))
    sender.close()
    message = receiver.receive(timeout=DEADLINE_S)
    assert (message.address, message.reply_to) == (to, "t2.example/back")
    assert not message.annotations


def test_a_request_is_answered_at_the_dynamic_address_of_the_same_tenant(clients: Callable[..., Client]) -> None:
    asking, answering = ann(clients), ann(clients)
    requests, replies = answering.receiver("service"), asking.receiver(None, dynamic=True)
    address = replies.link.remote_source.address
    assert re.fullmatch(rf"amqp:/_topo/0/{any_worker('R')}/temp\.[a-zA-Z0-9+_]{{22}}", address)
    for anonymous in (True, False):
        asking.send("service", "question", reply_to=address)
        request = requests.receive(timeout=DEADLINE_S)
        assert request.reply_to == address
        answering.send(request.reply_to, "answer", anonymous=anonymous)
    assert bodies(replies, 2) == ["answer"] * 2


def test_a_client_in_no_space_answers_at_a_tenants_dynamic_address(clients: Callable[..., Client]) -> None:
    asking, answering = ann(clients), clients()
    requests, replies = answering.receiver("t1.example/service"), asking.receiver(None, dynamic=True)
    asking.send("service", "question", reply_to=replies.link.remote_source.address)
    answering.send(requests.receive(timeout=DEADLINE_S).reply_to, "answer", anonymous=True)
    assert bodies(replies, 1) == ["answer"]


def test_a_dynamic_target_is_open_to_the_same_tenant_only(clients: Callable[..., Client]) -> None:
    client = ann(clients)
    sender = client.connection.create_sender(None, options=DynamicTarget())
    address = sender.link.remote_target.address
    assert re.fullmatch(r"amqp:/_\$temp\.[a-zA-Z0-9+_]{22}", address)
    receiver = ann(clients).receiver(address)
    with pytest.raises(LinkDetached, match="unauthorized-access"):
        bob(clients).receiver(address)
    outside = clients()
    stranger = outside.receiver(address)
    client.send(address, "x")
    assert bodies(receiver, 1) == ["x"]
    assert nothing_came(outside, stranger)


def test_treatment_is_configured_with_the_tenants_prefix(clients: Callable[..., Client]) -> None:
    first, second = ann(clients), bob(clients)
    multicast = [each.receiver("news/x") for each in (first, ann(clients))]
    balanced = [each.receiver("news/x") for each in (second, bob(clients))]
    for _ in range(2):
        first.send("news/x", "all")
        second.send("news/x", "one")
    assert [bodies(each, 2) for each in multicast] == [["all"] * 2] * 2
    assert [bodies(each, 1) for each in balanced] == [["one"]] * 2


def test_a_user_of_two_tenants_names_one_of_them(clients: Callable[..., Client]) -> None:
    receivers = [ann(clients).receiver("q"), bob(clients).receiver("q")]
    for number, hostname in enumerate(("T1.Example.:5672", "t2.example"), 1):
        clients("both", hostname).send("q", str(number))
    assert [bodies(each, 1) for each in receivers] == [["1"], ["2"]]


# --- leaving a space


def test_no_address_leads_into_the_space_of_another(clients: Callable[..., Client]) -> None:
    places = [(bob(clients), "q"), *((clients(), address) for address in ("q", "t2.example/q", "sub/q"))]
    elsewhere = [(other, other.receiver(address)) for other, address in places]
    client = ann(clients)
    for address in ("t2.example/q", "/t2.example/q", "//host/t2.example/q", "../t2.example/q", "x:/t2.example/q", "q"):
        own = client.receiver(address)
        client.send(address, address)
        client.send(address, address, anonymous=True)
        assert bodies(own, 2) == [address] * 2
        own.close()
    assert all(nothing_came(*each) for each in elsewhere)


RESERVED = (
    "_local/q", "_local/$management", "_topo/0/R/q", "_topo/0/R/$management", "_topo/all/all/q", "_topo/1/R/q",
    "_topo/0/OTHER/q", "_edge/R/q", "_edge/OTHER/q", "_x", "_$qd.addr_lookup", "_local", "amqp:/_local/q",
    "/_topo/0/R/$management", "_local/temp.aaaaaaaaaaaaaaaaaaaaaa", "_local/$_management_internal",
)  # fmt: skip


@pytest.mark.parametrize("address", RESERVED)
def test_a_tenant_may_not_attach_to_an_address_with_a_leading_underscore(
    router: RunningRouter, patient: Client, address: str
) -> None:
    with pytest.raises(LinkDetached, match=REFUSED):
        patient.receiver(address)
    with pytest.raises(LinkDetached, match=REFUSED):
        patient.connection.create_sender(address)
    for what in ("receiver", "sender"):
        link = rf"DENY AMQP Attach {what} link {re.escape(repr(address))}"
        router.wait_for_line(rf"{link} for user 'ann', .* based on 'reserved'")


@pytest.mark.parametrize("address", RESERVED)
def test_a_tenant_may_not_send_to_an_address_with_a_leading_underscore(
    patient: Client, clients: Callable[..., Client], address: str
) -> None:
    outside = clients()
    listening = outside.receiver(address) if address in ("_local/q", "_topo/0/R/q", "_x") else None
    outcome = Delivery.RELEASED if "temp." in address else Delivery.REJECTED  # it may have been a reply's
    assert patient.post(address, reply_to="q") == outcome
    assert listening is None or nothing_came(outside, listening)


def test_a_message_to_a_closed_address_is_counted_and_reported(
    router: RunningRouter, clients: Callable[..., Client]
) -> None:
    manager = Node(router.ports[0])
    before = manager.query("policy")[0]["messagesDenied"]
    assert ann(clients).post("_local/told") == Delivery.REJECTED
    assert manager.query("policy")[0]["messagesDenied"] == before + 1
    manager.close()


def test_a_dynamic_address_is_taken_over_by_no_client(clients: Callable[..., Client]) -> None:
    owner = ann(clients)
    replies = owner.receiver(None, dynamic=True)
    address = replies.link.remote_source.address
    spellings = (address, address.removeprefix("amqp:/"), "_local/" + address.rpartition("/")[2])
    for thief in (ann(clients), bob(clients), clients()):
        for spelling in spellings:
            with pytest.raises(LinkDetached, match=REFUSED):
                thief.receiver(spelling)
    with pytest.raises(LinkDetached, match="unauthorized-access"):
        bob(clients).connection.create_sender(address)
    assert bob(clients).post(address) == Delivery.RELEASED
    again = owner.receiver(address)
    owner.send(address, "mine")
    owner.send(address, "mine")
    assert bodies(replies, 1) == bodies(again, 1) == ["mine"]


def test_a_dynamic_address_that_is_gone_has_no_owner(clients: Callable[..., Client]) -> None:
    for owner in (ann(clients), clients()):
        replies = owner.receiver(None, dynamic=True)
        address = replies.link.remote_source.address
        replies.close()
        with pytest.raises(LinkDetached, match="unauthorized-access"):
            owner.receiver(address)


@contextmanager
def opened(router: RunningRouter, user: str, *, listener: int = 1, **fields: Any) -> Iterator[Peer]:
    """Yield a raw peer that has logged in and exchanged opens."""
    with Peer(router.ports[listener], opened=False) as peer:
        assert peer.authenticate("PLAIN", f"\0{user}\0{PASSWORD}".encode()) == 0
        peer.open(**fields)
        yield peer


def test_a_forged_annotation_leads_nowhere_else(router: RunningRouter, clients: Callable[..., Client]) -> None:
    places = [(bob(clients), "q"), (clients(), "q"), (clients(), "_local/q")]
    listening = [(client, client.receiver(address)) for client, address in places]
    with opened(router, "ann", listener=2, hostname="t1.example") as peer:
        peer.begin()
        sender = peer.attach_sender(None)
        for to in ("t2.example/q", "q", "_local/q", "amqp:/t2.example/q"):
            delivery = peer.transfer(sender, compose(b"x", to="nowhere", annotations={"x-opt-qd.to": to}))
            assert peer.expect_outcome(delivery) in (Released(), CLOSED)
    assert all(nothing_came(*each) for each in listening)


MISSING = "amqp:invalid-field"
DENIED = "amqp:unauthorized-access"
HOSTNAMES: dict[str, tuple[str, str | None, str]] = {
    "none": ("ann", None, MISSING),
    "empty": ("ann", "", MISSING),
    "a slash": ("ann", "t1.example/sub", MISSING),
    "a slash alone": ("ann", "/", MISSING),
    "a control character": ("ann", "t1.example\n", MISSING),
    "a NUL": ("ann", "t1.example\0", MISSING),
    "too long": ("ann", "t" * 256, MISSING),
    "bytes, not characters": ("ann", "\xe9" * 128, MISSING),
    "as long as can be": ("ann", "t" * 255, DENIED),
    "another's": ("ann", "t2.example", DENIED),
    "encoded": ("ann", "t1%2Eexample", DENIED),
    "part of a name": ("ann", "t1", DENIED),
    "a user without tenants": ("nobody", "t1.example", DENIED),
    "a user whom the file does not name": ("unlisted", "t1.example", DENIED),
    "a user's name": ("unlisted", "unlisted", DENIED),
}


@pytest.mark.parametrize(("user", "hostname", "condition"), HOSTNAMES.values(), ids=HOSTNAMES)
def test_no_client_opens_without_a_tenant_of_its_own(
    router: RunningRouter, user: str, hostname: str | None, condition: str
) -> None:
    with opened(router, user, hostname=hostname) as peer:
        error = peer.expect_close()
        assert error is not None
        assert error.condition == condition
        if condition == DENIED:
            assert error.description == "connection disallowed by local policy"
        number = router.wait_for_line(rf"\[C(\d+)\] Connection from {peer.address} refused: ")[1]
        router.wait_for_line(rf"\[C{number}\] DENY AMQP Open for user '{user}', .*: tenant rule=.tenant:")


def test_frames_after_an_open_without_a_tenant_are_ignored(
    router: RunningRouter, clients: Callable[..., Client]
) -> None:
    outside = clients()
    receiver = outside.receiver("q")
    with Peer(router.ports[1], opened=False) as peer:
        assert peer.authenticate("PLAIN", f"\0ann\0{PASSWORD}".encode()) == 0
        attach = Attach("l", 0, False, source=Source(), target=Target("q"), initial_delivery_count=0)
        at_once = (Open("peer"), Begin(next_outgoing_id=0, incoming_window=9, outgoing_window=9), attach)
        peer.raw(AMQP_HEADER + b"".join(frame(0, encode_performative(each)) for each in at_once))
        peer.expect_header(AMQP_HEADER)
        peer.expect(Open)
        assert peer.expect_close() == Error(MISSING, "a tenant must be named in the hostname of the open")
    assert nothing_came(outside, receiver)


def test_a_tenant_may_be_called_like_a_reserved_address(clients: Callable[..., Client]) -> None:
    client, outside = clients("reserved", "_local"), clients()
    within, beyond = client.receiver("q"), outside.receiver("_local/q")
    client.send("q", "mine")
    outside.send("%5Flocal/q", "to it")
    outside.send("_local/q", "local")
    assert bodies(within, 2) == ["mine", "to it"]
    assert bodies(beyond, 1) == ["local"]


def test_a_client_that_was_refused_and_is_not_gone_yet_keeps_no_change_from_others(tmp_path: Path) -> None:
    text = (
        f"router {{ id: R, usersFile: {tmp_path}/users }}\nlistener {{ {TENANTS.format(folder=tmp_path)} }}\n"
        "listener { host: 127.0.0.1, port: 0, saslMechanisms: ANONYMOUS }\n"
    )
    put_user(tmp_path / "users", "bob", PASSWORD.encode())
    (tmp_path / "tenants.json").write_text(json.dumps(USERS))
    with running(text, tmp_path) as started, Peer(started.ports[0], opened=False) as refused:
        assert refused.authenticate("PLAIN", f"\0bob\0{PASSWORD}".encode()) == 0
        refused.open(hostname="t1.example")
        assert refused.expect_close() is not None  # and it does not answer
        with Peer(started.ports[1]) as other:
            vhost = "vhost { hostname: t1.example, groups: { all: { users: *, remoteHosts: * } } }\n"
            started.configuration.write_text(f"{text}policy {{ enableVhostPolicy: yes, defaultVhost: }}\n{vhost}")
            started.process.send_signal(signal.SIGHUP)
            error = other.expect_close()
            assert error is not None
            assert error.description == "connection disallowed by local policy"
        started.wait_for_line("Reloaded")


# --- policyVhost, HTTP


def test_with_policy_vhost_the_hostname_does_not_matter_and_the_user_does(router: RunningRouter) -> None:
    for hostname in (None, "", "t1.example", "t2.example", "a/b"):
        with opened(router, "ann", listener=3, hostname=hostname) as peer:
            peer.begin()
            assert peer.attach_receiver("q").address == "q"
    with opened(router, "bob", listener=3, hostname="t1.example") as peer:
        error = peer.expect_close()
        assert error is not None
        assert error.condition == DENIED


def page_of(router: RunningRouter, name: str) -> tuple[int, str]:
    port = router.wait_for_line(rf"Listening for HTTP on 127\.0\.0\.1:(\d+) \({name}\)")[1]
    connection = http.client.HTTPConnection("127.0.0.1", int(port), timeout=DEADLINE_S)
    try:
        connection.request("GET", "/metrics")
        response = connection.getresponse()
        return response.status, response.read().decode()
    finally:
        connection.close()


def test_the_page_of_figures_shows_one_tenant(router: RunningRouter, clients: Callable[..., Client]) -> None:
    client, other = ann(clients), bob(clients)
    receivers = [client.receiver("figures"), other.receiver("theirs")]
    before = page_of(router, "figures")[1]
    client.send("figures", "x")
    status, page = page_of(router, "figures")
    assert status == 200
    own = {f"trouter_tenant_{each}" for each in ("connections", "links", "addresses", "deliveries_total")}
    of_workers = {"trouter_worker_up"} if WORKERS > 1 else set()
    assert set(re.findall(r"^(\w+)", page, re.MULTILINE)) == own | of_workers
    assert set(re.findall(r'tenant="(.*?)"', page)) == {"t1.example"}

    def presettled(text: str) -> float:
        samples = [each for family in text_string_to_metric_families(text) for each in family.samples]
        counted = [each.value for each in samples if each.labels.get("outcome") == "presettled"]
        assert len(counted) == WORKERS
        return float(sum(counted))

    assert presettled(page) == presettled(before) + 1
    assert bodies(receivers[0], 1) == ["x"]


def test_without_a_tenant_there_is_no_page_of_figures(router: RunningRouter) -> None:
    assert page_of(router, "web")[0] == 404


# --- the manual


def test_the_tenancy_example_of_the_manual_works_as_described(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "multi-tenancy.md").read_text(encoding="utf-8")
    configuration, tenants, *_ = re.findall(r"```(?:json)?\n(.*?)```\n", page, re.DOTALL)
    (tmp_path / "tenants.json").write_text(tenants)
    for user in json.loads(tenants):
        put_user(tmp_path / "users", user, PASSWORD.encode())
    here = re.sub(r"port: \d+", "port: 0", configuration)
    here = here.replace("usersFile: users", f"usersFile: {tmp_path}/users").replace("file:", f"file:{tmp_path}/")
    with running(here, tmp_path) as started, ExitStack() as stack:

        def connect(user: str = "", hostname: str | None = None) -> Client:
            client = Client(started, user, hostname)
            stack.callback(client.connection.close)
            return client

        first, second = connect("ann", "t1.example"), connect("bob", "t2.example")
        news = [each.receiver("news") for each in (first, connect("carol", "T1.example"), second)]
        connect().send("t1.example/news", "to all of t1")
        connect("carol", "t2.example").send("news", "to t2")
        assert [bodies(each, 1) for each in news] == [["to all of t1"], ["to all of t1"], ["to t2"]]


# --- with vhost policy

VHOST = """
vhost {{
    hostname: {hostname}
{more}    allowUnknownUser: yes
    groups: {{
        $default: {{
            remoteHosts: *
            sources: q, $management
            targets: q, $management
            allowDynamicSource: yes
            allowAnonymousSender: yes
            management: {management}
        }}
    }}
}}
"""
POLICED = (
    "router { id: R }\npolicy {\n    enableVhostPolicy: yes\n    defaultVhost: dflt\n}\n"
    + VHOST.format(hostname="mt.org", more="    aliases: alias.org\n", management="operate")
    + VHOST.format(hostname="forced.org", more="", management="none")
    + VHOST.format(hostname="ops", more="", management="admin")
    + VHOST.format(hostname="dflt", more="", management="read")
    + "listener { host: 127.0.0.1, port: 0, multiTenant: yes, saslMechanisms: ANONYMOUS }\n"
    + "listener { host: 127.0.0.1, port: 0, multiTenant: yes, saslMechanisms: ANONYMOUS, policyVhost: forced.org }\n"
    + "listener { host: 127.0.0.1, port: 0, saslMechanisms: ANONYMOUS, policyVhost: ops }\n"
)


@pytest.fixture(scope="module")
def policed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningRouter]:
    """Run a router in which the tenant is the vhost."""
    with running(POLICED, tmp_path_factory.mktemp("policed")) as started:
        yield started


def visitor(router: RunningRouter, hostname: str | None, listener: int = 0) -> Node:
    return Node(router.ports[listener], allowed_mechs="ANONYMOUS", virtual_host=hostname)


@pytest.mark.parametrize(
    ("hostname", "space"),
    [("mt.org", "mt.org/"), ("MT.org.:5672", "mt.org/"), ("alias.org", "mt.org/"), ("unknown.org", "dflt/")],
)
def test_the_tenant_is_the_vhost_that_the_policy_found(policed: RunningRouter, hostname: str, space: str) -> None:
    node = visitor(policed, hostname)
    receiver = node.connection.create_receiver("q", name="only")
    assert receiver.link.remote_source.address == "q"
    assert {row["tenant"] for row in node.query("connection")} == {space}
    assert f"M0{space}q" in {row["key"] for row in node.query("router.address")}
    node.close()


def test_policy_vhost_is_the_tenant(policed: RunningRouter) -> None:
    for hostname in ("mt.org", "other"):
        connection: Any = BlockingConnection(
            f"127.0.0.1:{policed.ports[1]}", timeout=DEADLINE_S, allowed_mechs="ANONYMOUS", virtual_host=hostname
        )
        receiver = connection.create_receiver("q", credit=1)
        sender = connection.create_sender("q", options=AtMostOnce())
        connection.wait(lambda ready=sender: ready.link.credit > 0, timeout=DEADLINE_S)
        sender.send(Message(body=hostname))
        sender.close()
        assert bodies(receiver, 1) == [hostname]
        connection.close()


@pytest.mark.parametrize("hostname", ["mt.org/sub", "/", "t" * 256])
def test_with_policy_too_the_hostname_must_be_fit_for_a_tenant(policed: RunningRouter, hostname: str) -> None:
    with Peer(policed.port, opened=False, sasl=True) as peer:
        peer.open(hostname=hostname)
        error = peer.expect_close()
        assert error is not None
        assert error.condition == MISSING
    with Peer(policed.ports[1], opened=False, sasl=True) as peer:
        peer.open(hostname=hostname)
        peer.begin()


@pytest.mark.parametrize("hostname", [None, ""])
def test_under_a_policy_a_client_without_a_tenant_belongs_to_the_default_vhost(
    policed: RunningRouter, hostname: str | None
) -> None:
    operator = visitor(policed, "ops", 2)
    with Peer(policed.port, opened=False, sasl=True) as peer:
        peer.open(hostname=hostname)
        peer.begin()
        rows = operator.query("connection")
        assert [row["tenant"] for row in rows if row["tenantIdentity"] == str(peer.number)] == ["dflt/"]
    operator.close()


@pytest.mark.parametrize("hostname", [None, "", "mt.org/sub"])
def test_with_policy_and_secure_defaults_the_tenant_must_be_named(tmp_path: Path, hostname: str | None) -> None:
    text = POLICED.replace("id: R }", "id: R, secureDefaults: yes }")
    text = text.replace("port: 0,", "port: 0, authenticatePeer: no,")
    with running(text, tmp_path) as router, Peer(router.port, opened=False, sasl=True) as peer:
        peer.open(hostname=hostname)
        error = peer.expect_close()
        assert error is not None
        assert error.condition == MISSING


def test_the_policy_checks_the_addresses_as_clients_write_them(policed: RunningRouter) -> None:
    node = visitor(policed, "mt.org")
    with pytest.raises(LinkDetached, match=REFUSED):
        node.connection.create_receiver("mt.org/q")
    assert node.connection.create_receiver("q").link.remote_source.address == "q"
    node.close()


def test_a_tenant_closes_a_connection_of_its_own_if_its_group_may(policed: RunningRouter) -> None:
    node, victim, other = visitor(policed, "mt.org"), visitor(policed, "alias.org"), visitor(policed, "unknown.org")
    kind = "org.apache.qpid.dispatch.connection"

    def number(each: Node) -> str:
        assert each.connection.conn.remote_properties is not None
        return str(int(each.connection.conn.remote_properties["qd.conn-id"]))

    close = {"adminStatus": "deleted"}
    assert node.refused("UPDATE", close, type=kind, identity=number(other))[0] in (400, 404)
    assert other.refused("UPDATE", close, type=kind, identity=number(other))[0] == 403
    assert other.query("connection", ["identity"])
    assert node.refused("CREATE", {"port": "0"}, type="org.apache.qpid.dispatch.listener")[0] == 403
    assert node.get("UPDATE", close, type=kind, identity=number(victim))["identity"] == number(victim)
    with pytest.raises(ConnectionClosed, match="closed by management"):
        victim.connection.wait(lambda: False, timeout=DEADLINE_S)
    assert node.query("connection", ["identity"])
    for each in (node, other):
        each.close()


def test_a_connection_that_the_policy_moves_to_another_tenant_is_closed(policed: RunningRouter) -> None:
    moved, stays, operator = visitor(policed, "late.org"), visitor(policed, "mt.org"), visitor(policed, "ops", 2)
    kind = "org.apache.qpid.dispatch.vhost"
    assert {row["tenant"] for row in moved.query("connection")} == {"dflt/"}
    group = {"remoteHosts": "*", "sources": "*", "targets": "*"}
    attributes = {"hostname": "late.org", "allowUnknownUser": True, "groups": {"$default": group}}
    answer = operator.ask("CREATE", attributes, type=kind)
    assert answer.status == 201, answer.description
    with pytest.raises(
        ConnectionClosed, match="'amqp:connection:forced', 'the connection belongs to another tenant now'"
    ):
        moved.connection.wait(lambda: False, timeout=DEADLINE_S)
    assert {row["tenant"] for row in stays.query("connection")} == {"mt.org/"}
    assert operator.ask("DELETE", type=kind, identity="vhost/late.org").status == 204
    for each in (stays, operator):
        each.close()
