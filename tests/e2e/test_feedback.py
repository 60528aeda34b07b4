"""Decisions sent to a router process by python-qpid-proton: their effects, and those of invalid ones.

Of several workers, the one that accepts a decision tells the others: a test waits until all have followed.
One router serves all tests: every test has users and tenants of its own.
"""

from __future__ import annotations

import itertools
import json
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from proton import Delivery, Message, symbol
from proton.reactor import AtLeastOnce

from tests.e2e.by_proton import Client, Ear, Said, refusal
from tests.e2e.test_records import of, records_of
from tests.management.node import Node
from tests.routers import DEADLINE_S, WORKERS, RunningRouter, running
from tests.waiting import until
from trouter.policy.sanctions import UNDOES
from trouter.wire.framing import SASL_HEADER
from trouter_plugins.users_file import put_user

pytestmark = pytest.mark.slow

PASSWORD = "wonderland"
ADDRESS = "decisions"
USERS = ("audit", "outsider", "blind", "loser", "guest", "timed", "tenant1", "tenant2", "again", "kept")
DENIED = Said("amqp:resource-limit-exceeded", "connection disallowed by local policy")
CONFIGURATION = """
router {{
    id: R
    usersFile: {folder}/users
    handshakeExempt: 127.0.0.1
    pluginSettings: {{"feedback": {{
        "address": "decisions", "senders": "audit, blind", "maxSeconds": 3600, "maxPerSecond": 1000, "maxStanding": 12
    }}}}
}}
listener {{
    host: 127.0.0.1
    port: 0
    saslMechanisms: PLAIN ANONYMOUS
    allowInsecurePlain: loopback
    idleTimeoutSeconds: 0
}}
listener {{
    host: 127.0.0.1
    port: 0
    saslMechanisms: PLAIN
    allowInsecurePlain: loopback
    multiTenant: yes
    idleTimeoutSeconds: 0
}}
policy {{ enableVhostPolicy: yes, defaultVhost: main }}
vhost {{
    hostname: main
    allowUnknownUser: yes
    groups: {{
        blind: {{ users: blind, sources: "*", targets: elsewhere, remoteHosts: "*" }}
        $default: {{
            management: admin, sources: "*", targets: "*", remoteHosts: "*"
            allowDynamicSource: yes, allowAnonymousSender: yes
        }}
    }}
}}
vhost {{
    hostname: acme
    allowUnknownUser: yes
    groups: {{ $default: {{ sources: "*", targets: "*", remoteHosts: "*", allowDynamicSource: yes }} }}
}}
recordLog {{ dir: {folder}/records, kinds: audit }}
"""
PLAIN, TENANTS = 0, 1
_ids = itertools.count()


class Scene:
    def __init__(self, router: RunningRouter, folder: Path) -> None:
        self.router = router
        self.folder = folder
        self.audit = self.client("audit")
        self.sender: Any = self.audit.create_sender(ADDRESS, options=AtLeastOnce())
        self.node = Node(router.ports[PLAIN])

    def client(self, user: str, listener: int = PLAIN, **options: Any) -> Client:
        return Client(Ear(), self.router.ports[listener], user, PASSWORD if user else "", **options)

    def decide(self, sender: Any = None, client: Client | None = None, **fields: Any) -> Said | None:
        """Send a decision, and wait until all workers follow it; return the reason if it is not accepted."""
        made = decision(**fields)
        reason = self.say(json.dumps(made).encode(), sender, client)
        if reason is None:
            undoes = made["action"] in UNDOES
            what = rf"ends: {made['action']} by {made['id']}$" if undoes else rf"decision '{made['id']}' of user"
            self.router.wait_for_line(what, WORKERS)
        return reason

    def say(self, body: bytes | str, sender: Any = None, client: Client | None = None, **more: Any) -> Said | None:
        return (client or self.audit).outcome_of(sender or self.sender, letter(body, **more))

    def standing(self) -> dict[str, dict[str, Any]]:
        return {row["id"]: row for row in self.node.query("decision")}


def decision(**fields: Any) -> dict[str, Any]:
    seconds = fields.pop("seconds", 600)
    until_us = int((time.time() + seconds) * 1_000_000)
    return {"v": 1, "id": f"d{next(_ids)}", "reason": "a test", "evidence": [1, 2], "until_us": until_us, **fields}


def letter(body: bytes | str, **more: Any) -> Message:
    facts = {"subject": "trouter.decision.v1", "content_type": symbol("application/json"), **more}
    return Message(body=body, inferred=isinstance(body, bytes), **facts)


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    folder = tmp_path_factory.mktemp("feedback")
    for user in USERS:
        put_user(folder / "users", user, PASSWORD.encode())
    with running(CONFIGURATION.format(folder=folder), folder) as router:
        scene = Scene(router, folder)
        yield scene
        scene.node.close()
        scene.audit.close()


def test_a_locked_user_is_turned_out_and_let_in_no_more(scene: Scene) -> None:
    inside = scene.client("loser")
    assert scene.decide(id="lock-1", action="lock-user", subject="loser") is None
    assert inside.until_closed() == DENIED
    assert refusal(scene.router.ports[PLAIN], "loser", PASSWORD).outcome == 1
    row = scene.standing()["lock-1"]
    assert (row["action"], row["subject"], row["decidedBy"], row["evidence"]) == ("lock-user", "loser", "audit", [1, 2])
    assert 500 < row["secondsLeft"] <= 600
    scene.client("guest").close()
    assert scene.decide(action="unlock-user", subject="loser") is None
    assert "lock-1" not in scene.standing()
    scene.client("loser").close()


def test_a_user_is_locked_out_of_one_vhost(scene: Scene) -> None:
    assert scene.decide(action="lock-user", subject="tenant2", vhost="acme") is None
    heard = refusal(scene.router.ports[TENANTS], "tenant2", PASSWORD, virtual_host="acme")
    assert heard.said == [DENIED]
    scene.client("tenant2").close()
    assert scene.decide(action="unlock-user", subject="tenant2", vhost="acme") is None
    scene.client("tenant2", TENANTS, virtual_host="acme").close()


def test_a_decision_ends_in_its_time(scene: Scene) -> None:
    inside = scene.client("timed")
    assert scene.decide(id="brief", action="lock-user", subject="timed", seconds=2) is None
    assert inside.until_closed() == DENIED
    scene.router.wait_for_line(r"decision 'brief' ends: its time is over", WORKERS)
    assert "brief" not in scene.standing()
    scene.client("timed").close()
    assert scene.decide(action="lock-user", subject="timed", seconds=-1) == Said(
        "amqp:invalid-field", "until_us is in the past"
    )


def test_a_blocked_host_gets_no_connection(scene: Scene) -> None:
    port = scene.router.ports[PLAIN]
    assert greeting("127.0.0.9", port) == SASL_HEADER
    assert scene.decide(id="block", action="block-host", subject="127.0.0.9") is None
    assert greeting("127.0.0.9", port) == b""
    scene.router.wait_for_line(r"connection from 127.0.0.9:\d+ refused: a decision blocks the host")
    scene.client("guest").close()
    scene.node.ask("DELETE", type="decision", name=scene.standing()["block"]["name"])
    assert greeting("127.0.0.9", port) == SASL_HEADER


def greeting(host: str, port: int) -> bytes:
    """Return the first bytes of the router to a client from an address of this machine."""
    with socket.create_connection(("127.0.0.1", port), DEADLINE_S, (host, 0)) as sock:
        try:
            sock.sendall(SASL_HEADER)
            return sock.recv(8)
        except ConnectionError:
            return b""


def test_a_host_that_many_users_may_share_is_not_blocked(scene: Scene) -> None:
    for subject, why in (("127.0.0.1", "handshakeExempt"), ("example.com", "must be an IP address")):
        said = scene.decide(action="block-host", subject=subject)
        assert said is not None
        assert said.condition == "amqp:not-allowed"
        assert why in str(said.description)


def test_a_slowed_tenant_has_credit_for_its_rate_and_full_credit_after_the_restore(scene: Scene) -> None:
    client = scene.client("tenant1", TENANTS, virtual_host="acme")
    receiver = client.create_receiver("q", credit=2000)
    assert scene.decide(id="slow", action="slow-tenant", subject="acme", rate=3) is None
    sender = client.create_sender("q")
    client.wait(lambda: sender.link.credit > 0)
    assert 1 <= sender.link.credit <= 3
    for _ in range(4):
        client.wait(lambda: sender.link.credit > 0)
        sender.link.send(Message("x"))
        receiver.receive(timeout=DEADLINE_S)
        receiver.accept()
    scene.router.wait_for_line(r"ALARM quota raised: rule='decision:acme:maxMessagesPerSecond'")
    assert scene.standing()["slow"]["rate"] == 3
    assert scene.decide(action="restore-tenant", subject="acme") is None
    client.wait(lambda: sender.link.credit > 100)
    client.close()


def test_the_same_decision_again_changes_nothing(scene: Scene) -> None:
    lock = decision(id="twice", action="lock-user", subject="again")
    body = json.dumps(lock).encode()
    assert scene.decide(**lock) is None
    assert scene.decide(action="unlock-user", subject="again") is None
    assert scene.say(body) is None
    scene.client("again").close()
    said = scene.say(json.dumps({**lock, "subject": "kept"}).encode())
    assert said == Said("amqp:not-allowed", "another decision had this id")


def test_a_string_is_as_good_as_octets(scene: Scene) -> None:
    lock = decision(action="lock-user", subject="kept")
    assert scene.say(json.dumps(lock)) is None
    scene.router.wait_for_line(f"decision '{lock['id']}' of user", WORKERS)
    assert scene.decide(action="unlock-user", subject="kept") is None


@pytest.mark.parametrize(
    ("body", "more", "condition", "why"),
    [
        (b"{", {}, "amqp:invalid-field", "the body is no decision"),
        (b"x" * 5000, {}, "amqp:link:message-size-exceeded", "at most 4096"),
        (b"{}", {"subject": "else"}, "amqp:invalid-field", "the subject must be trouter.decision.v1"),
        (b"{}", {"content_type": symbol("text/plain")}, "amqp:invalid-field", "application/json"),
    ],
)
def test_a_malformed_one_is_rejected(scene: Scene, body: bytes, more: Any, condition: str, why: str) -> None:
    said = scene.say(body, **more)
    assert said is not None
    assert said.condition == condition
    assert why in str(said.description)


def test_decisions_of_other_users_are_refused(scene: Scene) -> None:
    lock = {"action": "lock-user", "subject": "guest"}
    attached = Said("amqp:unauthorized-access", "link disallowed by local policy")
    for user in ("outsider", "blind", ""):
        client = scene.client(user)
        assert client.refusal_of(lambda each: each.create_sender(ADDRESS)) == attached
        client.close()
    receiving = scene.client("audit")
    assert receiving.refusal_of(lambda each: each.create_receiver(ADDRESS)) == attached
    receiving.close()
    for user in ("outsider", ""):
        client = scene.client(user)
        anyhow = client.create_sender(None)
        for to in (ADDRESS, f"amqp:/{ADDRESS}", f"/{ADDRESS}"):
            sent = letter(json.dumps(decision(**lock)).encode(), address=to)
            said = client.outcome_of(anyhow, sent)
            assert said is not None, to
            assert said.condition == "amqp:unauthorized-access"
        client.close()
    scene.client("guest").close()
    assert not any(row["subject"] == "guest" for row in scene.standing().values())


def test_a_tenant_has_an_address_of_its_own(scene: Scene) -> None:
    client = scene.client("audit", TENANTS, virtual_host="acme")
    assert client.refusal_of(lambda each: each.create_receiver(ADDRESS)).condition == "amqp:unauthorized-access"
    client.close()
    assert not scene.standing()


def test_a_flood_of_decisions_is_bounded_and_so_are_the_decisions_in_force(scene: Scene) -> None:
    ids = [f"flood{number}" for number in range(14)]
    said = [scene.decide(id=each, action="lock-user", subject=each) for each in ids]
    assert said[:12] == [None] * 12
    assert set(said[12:]) == {Said("amqp:resource-limit-exceeded", "12 decisions are in force already")}
    assert len(scene.standing()) == 12
    client = scene.client("audit")
    sender: Any = client.create_sender(ADDRESS)
    body = json.dumps(decision(action="unlock-user", subject="flood0")).encode()
    deliveries = []
    for _ in range(1500):
        client.wait(lambda: sender.link.credit > 0)
        deliveries.append(sender.link.send(letter(body)))
    client.wait(lambda: all(each.settled for each in deliveries))
    assert {each.remote_state for each in deliveries} <= {Delivery.ACCEPTED, Delivery.RELEASED}
    client.close()

    def all_are_lifted() -> bool:
        """Lift those in force; the rate of the flood may release some of these, too."""
        for row in scene.standing().values():
            assert scene.say(json.dumps(decision(action="unlock-user", subject=row["subject"])).encode()) is None
        return not scene.standing()

    until(all_are_lifted)


def test_everything_is_recorded(scene: Scene) -> None:
    assert scene.decide(id="told", action="lock-user", subject="outsider", reason="guessed") is None
    assert refusal(scene.router.ports[PLAIN], "outsider", PASSWORD).outcome == 1
    assert scene.decide(id="ended", action="unlock-user", subject="outsider") is None
    assert scene.say(b"{") is not None
    scene.audit.refusal_of(lambda each: each.create_receiver(ADDRESS))
    scene.router.wait_for_line("decision 'told' ends: unlock-user by ended")

    def told() -> list[dict[str, Any]]:
        found = of(records_of(scene.folder / "records"), "management.change")
        return [each for each in found if each["entity_name"] == "decision/lock-user/outsider"]

    until(lambda: len(told()) >= 2)
    made, ended = told()
    assert (made["op"], made["user"], made["values"]["reason"]) == ("CREATE", "audit", "guessed")
    assert (ended["op"], ended["user"]) == ("DELETE", "audit")
    until(lambda: of(records_of(scene.folder / "records"), "sasl.outcome", user="outsider", reason="locked"))
