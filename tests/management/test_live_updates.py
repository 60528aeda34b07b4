"""The changes of a running router: listeners, connectors, certificates, policy, vhosts (management.md 10)."""

from __future__ import annotations

from typing import Any

import pytest
from proton import ConnectionException
from proton.utils import BlockingConnection

from tests.management.node import NODE, PREFIX, Node, node_of, small
from tests.routers import WORKERS, RunningRouter, StartRouter

LISTENER = {"host": "127.0.0.1", "port": "0", "saslMechanisms": "ANONYMOUS"}


def open_to(port: int) -> None:
    BlockingConnection(f"127.0.0.1:{port}", timeout=60).close()


def test_a_changed_listener_applies_to_later_connections(router: RunningRouter, own: Node) -> None:
    own.create("listener", {**LISTENER, "name": "l1"})
    port = int(router.wait_for_line(r"Listening on \S+:(\d+) \(l1\)")[1])
    with node_of(port) as before:
        changed = own.get("UPDATE", {"linkCapacity": small(7), "idleTimeoutSeconds": small(30)}, name="l1")
        assert (changed["linkCapacity"], changed["idleTimeoutSeconds"]) == (7, 30)
        assert own.get("READ", name="l1")["linkCapacity"] == 7
        assert before.get("READ", **NODE)
        assert max(row["capacity"] for row in before.query("router.link")) == 250
        with node_of(port) as after:
            assert min(row["capacity"] for row in after.query("router.link")) == 7


def test_a_listener_moves_without_losing_a_client(router: RunningRouter, own: Node) -> None:
    own.create("listener", {**LISTENER, "name": "l1"})
    old = int(router.wait_for_line(r"Listening on \S+:(\d+) \(l1\)")[1])
    with node_of(old) as client:
        changed = own.get("UPDATE", {"host": "localhost"}, name="l1")
        assert changed["identity"] == "listener/localhost:0:l1"
        assert client.get("READ", **NODE)
        assert own.refused("READ", identity="listener/127.0.0.1:0:l1")[0] == 404
        new = int(router.wait_for_line(r"Listening on 127.0.0.1:(\d+) \(l1\)", WORKERS + 1)[1])
        open_to(new)
        with pytest.raises(ConnectionException):
            open_to(old)


def test_a_listener_that_cannot_move_stays_unchanged(router: RunningRouter, own: Node) -> None:
    own.create("listener", {**LISTENER, "name": "l1"})
    port = int(router.wait_for_line(r"Listening on \S+:(\d+) \(l1\)")[1])
    before = own.get("READ", name="l1")
    status, text = own.refused("UPDATE", {"port": str(router.port)}, name="l1")
    assert status in (400, 500)
    assert str(router.port) in text
    assert own.get("READ", name="l1") == before
    open_to(port)


def test_a_created_connector_dials_at_once_and_a_deleted_one_disconnects(start_router: StartRouter) -> None:
    here = start_router("router { id: HERE }\nlistener { host: 127.0.0.1, port: 0, saslMechanisms: ANONYMOUS }\n")
    there = start_router("router { id: THERE }\nlistener { host: 127.0.0.1, port: 0, saslMechanisms: ANONYMOUS }\n")
    with node_of(here.port) as node:
        created = node.create("connector", {"host": "127.0.0.1", "port": str(there.port), "name": "c"})
        assert created["role"] == "normal"
        there.wait_for_line(r"Connection Opened: dir=in .*container_id=HERE")
        here.wait_for_line(r"Connection Opened: dir=out .*container_id=THERE")
        row = node.get("READ", type="connector", name="c")
        assert row["connectionStatus"] == "SUCCESS"
        assert "THERE" in row["connectionMsg"]
        assert f"127.0.0.1:{there.port}" in row["failoverUrls"]
        assert [one["dir"] for one in node.query("connection") if one["container"] == "THERE"] == ["out"]
        node.get("DELETE", type="connector", name="c")
        there.wait_for_line(r"Connection Closed")
        here.wait_for_line(r"\[C\d+\] Connection Closed")  # the other one is the node's
        assert not [one for one in node.query("connection") if one["container"] == "THERE"]
        assert node.create("connector", {"host": "127.0.0.1", "port": str(there.port), "name": "c"})


def test_a_connector_without_a_server_shows_the_failure(own: Node, router: RunningRouter) -> None:
    own.create("connector", {"host": "127.0.0.1", "port": "1", "name": "c"})
    router.wait_for_line(r"Connection to 127.0.0.1:1 failed")
    row = own.get("READ", name="c")
    assert row["connectionStatus"] == "CONNECTING"
    assert "failed" in row["connectionMsg"]
    assert own.get("UPDATE", {"port": "2"}, name="c")["port"] == "2"
    router.wait_for_line(r"Connection to 127.0.0.1:2 failed")


def test_a_profile_is_kept_and_read_and_its_password_is_not(own: Node, tmp_path: Any) -> None:
    created = own.create("sslProfile", {"name": "p", "password": "literal:hush-hush", "ciphers": "HIGH"})
    assert created["identity"] == "sslProfile/p"
    assert "hush-hush" not in str(created)
    assert own.get("UPDATE", {"ciphers": "AES128"}, name="p")["password"] == "*****"
    assert "hush-hush" not in str(own.query("sslProfile"))
    own.get("DELETE", name="p")


def test_a_listener_on_a_profile_without_a_certificate_is_refused_with_the_cause(own: Node) -> None:
    own.create("sslProfile", {"name": "p"})
    status, text = own.refused("CREATE", {**LISTENER, "sslProfile": "p", "name": "l1"}, type="listener")
    assert status == 400
    assert "certFile: a listener needs a certificate" in text
    assert len(own.query("listener")) == 1


def test_a_vhost_comes_with_its_statistics(own: Node) -> None:
    groups = {"$default": {"users": "*", "remoteHosts": "*", "sources": "q"}}
    created = own.create("vhost", {"hostname": "h.example", "groups": groups, "maxConnections": small(3)})
    assert (created["identity"], created["maxConnections"]) == ("vhost/h.example", 3)
    assert own.get("READ", name="vhost/h.example")["groups"]["$default"]["sources"] == "q"
    assert own.get("READ", type="vhostStats", name="vhostStats/h.example")["connectionsCurrent"] == 0
    assert own.get("UPDATE", {"maxConnections": small(9)}, name="vhost/h.example")["maxConnections"] == 9
    own.get("DELETE", name="vhost/h.example")
    status, text = own.refused("CREATE", {"hostname": "x", "groups": {"a": {"maxSenders": "many"}}}, type="vhost")
    assert status == 500
    assert "Policy 'x' is invalid:" in text


def test_a_former_name_of_an_attribute_is_as_good(own: Node) -> None:
    assert own.create("vhost", {"id": "old.example"})["hostname"] == "old.example"
    created = own.create("listener", {**LISTENER, "name": "l1", "protocolFamily": "IPv4"})
    assert created["socketAddressFamily"] == "IPv4"


def test_the_policy_can_be_changed(own: Node) -> None:
    assert own.get("UPDATE", {"defaultVhost": "here"}, name="policy/None")["defaultVhost"] == "here"
    assert own.get("UPDATE", {"maxConnections": small(50)}, name="policy/None")["maxConnections"] == 50
    row = own.query("policy")[0]
    assert (row["connectionsProcessed"], row["connectionsCurrent"], row["totalDenials"]) == (1, 1, 0)


def test_both_names_of_an_attribute_stand_in_a_row(own: Node) -> None:
    created = own.create(PREFIX + "router.config.address", {"prefix": "x", "fallback": True})
    assert created["fallback"] is True
    assert own.query("router.config.address", ["fallback", "enableFallback"]) == [
        {"fallback": True, "enableFallback": True}
    ]
