"""A running router is changed by requests: the change is complete when the answer arrives, or not done at all.

The rules are those of management.md 10.
"""

from __future__ import annotations

import socket
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.peer import Peer
from tests.e2e.test_reload import FRONT, ROUTER, is_open, listener, state, used_port
from tests.management.node import node_of
from tests.ports import free_port
from tests.routers import DEADLINE_S, RunningRouter, StartRouter
from tests.waiting import until

pytestmark = pytest.mark.slow


def local(port: int, **more: Any) -> dict[str, Any]:
    return {"host": "127.0.0.1", "port": str(port), "saslMechanisms": "ANONYMOUS", **more}


def test_a_created_listener_accepts_at_once_and_a_deleted_one_refuses_at_once(router: RunningRouter) -> None:
    port = free_port()
    with node_of(router.port) as node:
        for _ in range(3):
            node.create("listener", local(port), name="side")
            with Peer(port) as peer:
                assert node.ask("DELETE", type="listener", name="side").status == 204
                assert not is_open(port)
                peer.be_heard()


def test_a_port_in_use_is_the_requests_fault_and_leaves_nothing(router: RunningRouter) -> None:
    with used_port() as used, node_of(router.port) as node:
        before = state(node)
        descriptors = router.open_files()
        for http in (False, True):
            status, description = node.refused("CREATE", local(used, http=http), type="listener", name="side")
            assert (status, description) == (400, f"cannot listen on 127.0.0.1:{used}: Address already in use")
        assert state(node) == before
        assert router.open_files() == descriptors
        node.create("listener", local(0), name="side")  # the name is free, and the router still runs
        assert is_open(router.ports[-1])


def test_the_listener_that_the_request_came_through_may_be_deleted(start_router: StartRouter) -> None:
    router = start_router(ROUTER + FRONT + listener("side"))
    with node_of(router.ports[1]) as node:
        assert node.ask("DELETE", type="listener", name="side").status == 204
        assert [row["name"] for row in node.query("listener")] == ["front"]
        assert not is_open(router.ports[1])


def test_settings_hold_for_connections_to_come(start_router: StartRouter) -> None:
    router = start_router(ROUTER + FRONT)
    with Peer(router.port) as old, node_of(router.port) as node:
        answer = node.ask("UPDATE", {"maxFrameSize": 2048, "linkCapacity": 7}, type="listener", name="front")
        assert (answer.status, answer.body["maxFrameSize"], answer.body["linkCapacity"]) == (200, 2048, 7)
        with Peer(router.port) as new:
            assert new.remote_open is not None
            assert new.remote_open.max_frame_size == 2048
            new.attach_receiver("a")
            assert new.attach_sender("a").credit == 7
        old.be_heard()


def test_another_port_is_listened_on_before_the_first_is_given_up(start_router: StartRouter) -> None:
    one, other = free_port(), free_port()
    router = start_router(ROUTER + FRONT + listener("side", one))
    with node_of(router.port) as node:
        with used_port() as used:
            status, description = node.refused("UPDATE", {"port": str(used)}, type="listener", name="side")
            assert (status, "Address already in use" in description) == (400, True)
            assert is_open(one)
        assert node.ask("UPDATE", {"port": str(other)}, type="listener", name="side").status == 200
    assert (is_open(one), is_open(other)) == (False, True)


def test_an_unsupported_connector_role_is_refused_and_changes_nothing(router: RunningRouter) -> None:
    with node_of(router.port) as node:
        before = state(node)
        assert node.refused("CREATE", {"host": "127.0.0.1", "role": "edge"}, type="connector", name="c")[0] in (
            400,
            501,
        )
        assert state(node) == before


def test_a_log_file_that_cannot_be_opened_changes_nothing(router: RunningRouter, tmp_path: Path) -> None:
    with node_of(router.port) as node:
        before = state(node)
        for bad in ("", str(tmp_path / "missing" / "log")):
            status, description = node.refused("UPDATE", {"outputFile": bad}, type="log", name="log/SERVER")
            assert status == 500
            assert description.startswith(f"CError: Configuration: Failed to open log file '{bad}'")
        assert state(node) == before
        file = tmp_path / "log"
        node.get("UPDATE", {"outputFile": str(file)}, type="log", name="log/SERVER")
        with Peer(router.port):
            pass
        assert "Accepted connection" in file.read_text(encoding="utf-8")


def test_address_rules_hold_at_once(router: RunningRouter) -> None:
    with node_of(router.port) as node, Peer(router.port) as peer:
        node.create("router.config.address", {"prefix": "x", "distribution": "unavailable"}, name="nobody")
        link = peer.attach_sender("y", credit=False)
        assert link.address == "y"
        assert node.ask("DELETE", type="router.config.address", name="nobody").status == 204
        node.create("router.config.address", {"prefix": "x", "distribution": "multicast"}, name="all")
        peer.attach_receiver("x.1")
        found = {row["key"]: row["distribution"] for row in node.query("router.address", ["key", "distribution"])}
        assert found["M0x.1"] == "multicast"


def test_a_created_connector_dials_at_once_shows_its_status_and_closes_when_deleted(router: RunningRouter) -> None:
    other_port = free_port()
    with node_of(router.port) as node:
        node.create("listener", local(other_port), name="side")
        node.create("connector", {"host": "127.0.0.1", "port": str(other_port)}, name="self")
        (row,) = until(
            lambda: [row for row in node.query("connector") if row["connectionStatus"] == "SUCCESS"], "a connection"
        )
        assert row["failoverUrls"] == f"amqp://127.0.0.1:{other_port}"
        assert "Connection Opened: dir=out" in row["connectionMsg"]
        assert len([each for each in node.query("connection") if each["dir"] == "out"]) == 1
        assert node.ask("DELETE", type="connector", name="self").status == 204
        until(lambda: not [each for each in node.query("connection") if each["dir"] == "out"], "the end of it")


def test_reload_by_request_answers_with_the_report(start_router: StartRouter) -> None:
    router = start_router(ROUTER + FRONT)
    with node_of(router.port) as node:
        text = ROUTER.replace("id: R", "id: Q") + FRONT.replace(" }", ", linkCapacity: 3 }") + "address { prefix: a }\n"
        router.configuration.write_text(text, encoding="utf-8")
        report = node.node("RELOAD")
        assert report["created"] == ["address/0"]
        assert report["updated"] == ["listener/127.0.0.1:0:front: linkCapacity"]
        assert report["deleted"] == []
        (restart,) = report["restart"]
        assert restart.startswith("router.id")
        before = state(node)
        router.configuration.write_text("listener { prot: 1 }\nlog { module: X }\n", encoding="utf-8")
        status, description = node.refused("RELOAD", type="org.amqp.management", name="self")
        assert status == 400
        assert "listener.prot" in description
        assert "log.module" in description
        assert state(node) == before


def test_a_check_answers_what_a_reload_would_change_and_changes_nothing(start_router: StartRouter) -> None:
    router = start_router(ROUTER + FRONT)
    with node_of(router.port) as node:
        text = ROUTER + FRONT.replace(" }", ", linkCapacity: 3 }") + "address { prefix: a }\n"
        before = state(node)
        answer = node.node("CHECK", text, file="R.conf")
        plan = answer["plan"]
        assert plan["created"] == ["address/0"]
        assert plan["updated"] == ["listener/127.0.0.1:0:front: linkCapacity"]
        assert plan["deleted"] == []
        assert {finding["severity"] for finding in answer["findings"]} <= {"unsafe", "warning"}
        assert state(node) == before
        router.configuration.write_text(text, encoding="utf-8")
        assert node.node("RELOAD") == plan


def test_a_check_of_a_file_that_cannot_be_used_answers_its_errors(start_router: StartRouter) -> None:
    with node_of(start_router(ROUTER + FRONT).port) as node:
        answer = node.node("CHECK", "listener { prot: 1, saslPassword: secret }\nlog { module: X }\n", file="R.conf")
        assert answer["plan"] is None
        places = [(found["file"], found["line"], found["attribute"]) for found in answer["findings"]]
        assert places == [("R.conf", 1, "prot"), ("R.conf", 1, "saslPassword"), ("R.conf", 2, "module")]
        assert {found["severity"] for found in answer["findings"]} == {"problem"}
        assert "secret" not in str(answer)
        many = node.node("CHECK", "# trouter: accept x: y\n" * 300, file="R.conf")["findings"]
        assert (len(many), many[-1]["message"].endswith("more findings: mend these first")) == (201, True)
        assert node.refused("CHECK", {"listener": 1}, type="org.amqp.management", name="self") == (
            400,
            "CHECK needs a configuration, as a string, in the body, not map",
        )


def test_requests_that_change_things_meet_no_half_made_change(start_router: StartRouter) -> None:
    router = start_router(ROUTER + FRONT)
    with node_of(router.port) as one, node_of(router.port) as other:
        asked = []
        for number in range(20):
            asked.append(one.send({"operation": "CREATE", "type": "listener", "name": f"n{number}"}, local(0)))
            other.send({"operation": "RELOAD", "type": "org.amqp.management", "name": "self"})
        statuses = {one.receive().status for _ in asked} | {other.receive().status for _ in asked}
        assert statuses == {200, 201}
        assert one.node("RELOAD")["created"] == []
        assert [row["name"] for row in one.query("listener")] == ["front"]


def test_http_and_amqp_over_websockets_come_with_a_listener(router: RunningRouter) -> None:
    port = free_port()
    with node_of(router.port) as node:
        node.create("listener", {"host": "127.0.0.1", "port": str(port), "http": True}, name="web")
        for page, content in (("/metrics", b"qdr_connections_total 1"), ("/healthz", b""), ("/readyz", b"")):
            with closing(socket.create_connection(("127.0.0.1", port), DEADLINE_S)) as client:
                client.sendall(b"GET %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n" % page.encode())
                answer = client.makefile("rb").read()
            assert answer.startswith(b"HTTP/1.1 200 ")
            assert content in answer
        assert node.ask("DELETE", type="listener", name="web").status == 204
