"""Management's rows on denials, with the policy's reasons, and on ended or lost objects."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from proton import ConnectionException
from proton.utils import BlockingConnection, LinkDetached

from tests.management.node import Node, node_of
from tests.routers import RunningRouter, StartRouter, running
from tests.tls.pki import Authority
from trouter.records import Alarm
from trouter.telemetry.recorder import MAX_REMEMBERED, Alarms, Denials, Denied
from trouter_plugins.users_file import put_user

CONFIGURATION = """
router {{ id: R, usersFile: {folder}/users, authDelayAfter: 1000 }}
listener {{ name: l0, host: 127.0.0.1, port: 0, saslMechanisms: ANONYMOUS PLAIN, allowInsecurePlain: yes }}
policy {{ enableVhostPolicy: yes }}
vhost {{
    hostname: $default
    allowUnknownUser: yes
    groups: {{
        $default: {{
            users: *, remoteHosts: *, sources: "*", targets: "$management", allowDynamicSource: yes
            management: read
        }}
    }}
}}
vhost {{ hostname: closed, groups: {{ few: {{ users: alice, remoteHosts: 10.0.0.1, sources: "a*", targets: b }} }} }}
recordLog {{ dir: {folder}/records }}
"""


@pytest.fixture
def router(tmp_path: Path) -> Iterator[RunningRouter]:
    put_user(tmp_path / "users", "alice", b"wonderland")
    with running(CONFIGURATION.format(folder=tmp_path), tmp_path) as process:
        yield process


def denials(node: Node) -> list[dict[str, Any]]:
    return node.query("denial")


def test_a_denied_link_a_denied_host_and_a_refused_login_are_reported(router: RunningRouter) -> None:
    url = f"127.0.0.1:{router.port}"
    with node_of(router.port) as node:
        assert denials(node) == []
        before = node.query("router")[0]["loginsDenied"]
        connection = BlockingConnection(url)
        with pytest.raises(LinkDetached):
            connection.create_sender("orders")
        connection.close()
        with pytest.raises(ConnectionException):
            BlockingConnection(url, virtual_host="closed", user="alice", password="wonderland").create_receiver("a")
        with pytest.raises(ConnectionException):
            BlockingConnection(url, user="mallory", password="guess", allowed_mechs="PLAIN")
        link, host, login = denials(node)
        assert (link["operation"], link["reason"], link["about"]) == ("attach", "sender", "orders")
        assert (link["user"], link["vhost"]) == ("anonymous", "$default")
        assert link["rule"] == "$default:$default:targets:none"
        assert (host["operation"], host["user"], host["vhost"]) == ("open", "alice", "closed")
        assert host["rule"] == "closed:few:remote-host"
        assert (login["operation"], login["reason"], login["host"]) == ("login", "bad-credentials", "127.0.0.1")
        assert (login["user"], login["rule"], login["about"]) == ("mallory", "listener:l0", "PLAIN")
        assert link["at"] <= host["at"] <= login["at"]
        assert node.get("READ", type="denial", identity=login["identity"])["count"] == 1
        assert node.query("router")[0]["loginsDenied"] == before + 1
        assert node.refused("DELETE", type="denial", name=login["name"])[0] in {403, 501}


def test_the_denials_list_is_short_and_counts_repeats() -> None:
    now = 1_000.0
    memory = Denials(lambda: now)
    again = Denied("attach", "sender", "u", "h", "v", "r", "again")
    memory.note_denial(again)
    for number in range(MAX_REMEMBERED - 1):
        memory.note_denial(again._replace(about=f"address {number}"))
    now = 2_000.0
    memory.note_denial(again, 3)
    memory.note_denial(again._replace(about="\x1b[2J" + "x" * 10_000))
    rows = [row for _, row in memory.rows()]
    assert len(rows) == MAX_REMEMBERED
    assert (rows[-2].about, rows[-2].times, rows[-2].at_ms) == ("again", 4, 2_000_000)
    assert "address 0" not in {row.about for row in rows}
    assert rows[-1].about.startswith("\\x1b[2Jx")
    assert len(rows[-1].about) == 256


def test_the_list_of_alarms_is_short_and_one_that_strangers_raise_displaces_no_other() -> None:
    now = 1_000.0
    memory = Alarms(lambda: now)
    memory.note_alarm(Alarm(name="memory", severity="warning", subject="75 percent", state="raised"))
    for number in range(10_000):
        memory.note_alarm(
            Alarm(name="auth-lockout", severity="warning", subject=f"\x1b[2J{number}{'x' * 999}", state="raised")
        )
    now = 2_000.0
    memory.note_alarm(Alarm(name="memory", severity="warning", subject="75 percent", state="raised"))
    memory.note_alarm(Alarm(name="memory", severity="warning", subject="75 percent", state="cleared"))
    rows = [row for _, row in memory.rows()]
    assert len(rows) == MAX_REMEMBERED
    assert [(row.name, row.state, row.times, row.at_ms) for row in rows[-2:]] == [
        ("memory", "raised", 2, 2_000_000),
        ("memory", "cleared", 1, 2_000_000),
    ]
    assert rows[-3].subject.startswith("\\x1b[2J9999x")
    assert len(rows[-3].subject) == 256


@pytest.mark.parametrize(
    ("asked", "allowed", "rule"),
    [
        ({"vhost": "closed", "user": "alice", "host": "10.0.0.1"}, True, "closed:few:remoteHosts:1"),
        ({"vhost": "closed", "user": "alice", "host": "10.0.0.2"}, False, "closed:few:remote-host"),
        ({"vhost": "closed", "user": "bob", "host": "10.0.0.1"}, False, "closed:no-group"),
        ({"vhost": "closed", "user": "alice", "host": "10.0.0.1", "source": "abc"}, True, "closed:few:sources:1"),
        ({"vhost": "closed", "user": "alice", "host": "10.0.0.1", "target": "abc"}, False, "closed:few:targets:none"),
        ({"policyVhost": "closed", "vhost": "x", "user": "bob"}, False, "closed:no-group"),
        ({"vhost": "elsewhere"}, True, "$default:$default:remoteHosts:1"),
    ],
)
def test_the_policy_in_force_is_explained(
    router: RunningRouter, asked: dict[str, str], allowed: bool, rule: str
) -> None:
    with node_of(router.port) as node:
        explanation = node.node("EXPLAIN-POLICY", **asked)
    assert (explanation["allowed"], explanation["rule"]) == (allowed, rule)
    assert all(set(step) == {"what", "found", "why"} for step in explanation["steps"])


@pytest.mark.parametrize(
    "asked", [{}, {"source": "a"}, {"user": "u", "source": "a", "target": "b"}, {"user": "x" * 5000}, {"user": 7}]
)
def test_a_question_that_cannot_be_answered_is_refused(router: RunningRouter, asked: dict[str, Any]) -> None:
    with node_of(router.port) as node:
        assert node.refused("EXPLAIN-POLICY", type="org.amqp.management", name="self", **asked)[0] == 400


def test_a_record_log_shows_its_number_of_lost_records(router: RunningRouter) -> None:
    with node_of(router.port) as node:
        (row,) = node.query("recordLog")
        assert row["recordsLost"] == 0
        assert node.query("router")[0]["logLinesLost"] == 0


@pytest.mark.skipif(sys.platform != "linux", reason="/dev/full")
def test_lines_that_a_log_cannot_write_are_counted(start_router: StartRouter) -> None:
    router = start_router(
        "router { id: R }\nlistener { host: 127.0.0.1, port: 0, saslMechanisms: ANONYMOUS }\n"
        "log { module: AGENT, enable: trace+, outputFile: /dev/full }\n"
    )
    with node_of(router.port) as node:
        assert node.query("router")[0]["logLinesLost"] > 0


def test_a_profile_shows_when_its_certificate_ends(start_router: StartRouter, tmp_path: Path) -> None:
    pair = Authority(tmp_path).issue("CN=router", "localhost", days=20)
    router = start_router(
        "router { id: R }\nlistener { host: 127.0.0.1, port: 0, saslMechanisms: ANONYMOUS }\n"
        f"sslProfile {{ name: p, certFile: {pair.cert}, privateKeyFile: {pair.key} }}\n"
        "listener { name: tls, host: 127.0.0.1, port: 0, sslProfile: p, requireSsl: yes }\n"
    )
    with node_of(router.port) as node:
        (row,) = node.query("sslProfile")
    assert row["certificateEnds"] == int(pair.certificate.not_valid_after_utc.timestamp())
