"""Connectors: the addresses that the router dials, its logins there, and its reaction to a refusal."""

from __future__ import annotations

import os
import re
import signal
import socket
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.management.node import Node, node_of
from tests.ports import free_port
from tests.routers import DEADLINE_S, PLAIN_LISTENER, RunningRouter, StartRouter, process
from trouter_plugins.users_file import put_user

OPENED = r"\[C\d+\] Connection Opened: dir=out "
FAILED = r"\[C\d+\] Connection to 127\.0\.0\.1:\d+ failed: "
SECRET = "wonderland"


def dialling(port: int, more: str = "", name: str = "A") -> str:
    """Return the configuration of a router that dials ``port``."""
    own = PLAIN_LISTENER.replace("id: R", f"id: {name}")
    return f"{own}connector {{ name: out, host: 127.0.0.1, port: {', '.join(filter(None, (str(port), more)))} }}\n"


def connector(node: Node) -> dict[str, Any]:
    (row,) = node.query("connector")
    return row


def outgoing(node: Node) -> list[dict[str, Any]]:
    return [row for row in node.query("connection") if row["dir"] == "out"]


def test_a_connector_dials_and_both_ends_show_the_connection(router: RunningRouter, start_router: StartRouter) -> None:
    here = start_router(dialling(router.port))
    here.wait_for_line(OPENED)
    with node_of(here.port) as node:
        (row,) = outgoing(node)
        assert (row["host"], row["container"], row["role"]) == (f"127.0.0.1:{router.port}", "R", "normal")
        assert (row["sasl"], row["user"], row["isAuthenticated"]) == ("ANONYMOUS", "anonymous", False)
        shown = connector(node)
        assert shown["connectionStatus"] == "SUCCESS"
        assert shown["failoverUrls"] == f"amqp://127.0.0.1:{router.port}"
        assert f"[C{row['identity']}] Connection Opened: dir=out" in shown["connectionMsg"]
    with node_of(router.port) as node:
        there = [row for row in node.query("connection") if row["container"] == "A"]
        assert [(row["dir"], row["properties"]["product"]) for row in there] == [("in", "trouter")]
    router.wait_for_line("Connection Opened: dir=in .* vhost=127.0.0.1 ")


def test_a_connector_dials_again_until_the_peer_listens(start_router: StartRouter, tmp_path: Path) -> None:
    port = free_port()
    here = start_router(dialling(port))
    told = f"Connection to 127.0.0.1:{port} failed: Connection refused"
    here.wait_for_line(told)
    with node_of(here.port) as node:
        assert connector(node)["connectionMsg"] == told
    late = start_router(PLAIN_LISTENER.replace("port: 0", f"port: {port}"))
    here.wait_for_line(OPENED)
    late.wait_for_line("Connection Opened")


def test_a_connection_that_is_lost_is_made_again(start_router: StartRouter, tmp_path: Path) -> None:
    port = free_port()
    there = PLAIN_LISTENER.replace("port: 0", f"port: {port}")
    folder = tmp_path / "there"
    folder.mkdir()
    with process(there, folder) as first:
        first.wait_for_line("Operational")
        here = start_router(dialling(port))
        here.wait_for_line(OPENED)
        first.process.kill()
        first.wait()
    here.wait_for_line(FAILED)
    start_router(there)
    here.wait_for_line(OPENED, count=2)


def test_plain_without_tls_logs_in_unless_defaults_are_secure(start_router: StartRouter, tmp_path: Path) -> None:
    put_user(tmp_path / "users", "alice", SECRET.encode())
    (tmp_path / "password").write_text(f"{SECRET}\n")
    there = start_router(
        f"router {{ id: R, usersFile: {tmp_path / 'users'} }}\nlistener {{ host: 127.0.0.1, port: 0, "
        "authenticatePeer: yes, saslMechanisms: PLAIN, allowInsecurePlain: loopback }\n"
    )
    credentials = f"saslUsername: alice, saslPassword: file:{tmp_path / 'password'}"
    here = start_router(dialling(there.port, f"{credentials}, allowInsecurePlain: loopback"))
    here.wait_for_line(OPENED)
    there.wait_for_line("auth=PLAIN user=alice")
    with node_of(here.port) as node:
        (row,) = outgoing(node)
        assert (row["sasl"], row["user"]) == ("PLAIN", "alice")
        assert connector(node)["saslPassword"] == "*****"
    assert SECRET not in here.text() + there.text()
    here.stop()
    start_router(dialling(there.port, credentials, name="B")).wait_for_line(OPENED)
    shy = start_router(dialling(there.port, credentials, name="C, secureDefaults: yes"))
    shy.wait_for_line(f"{FAILED}no mechanism available: the peer offers PLAIN")


def test_a_wrong_password_is_reported_and_tried_no_faster(start_router: StartRouter, tmp_path: Path) -> None:
    put_user(tmp_path / "users", "alice", b"other")
    (tmp_path / "password").write_text(f"{SECRET}\n")
    there = start_router(
        f"router {{ id: R, usersFile: {tmp_path / 'users'} }}\nlistener {{ host: 127.0.0.1, port: 0, "
        "authenticatePeer: yes, saslMechanisms: PLAIN, allowInsecurePlain: loopback }\n"
    )
    here = start_router(
        dialling(
            there.port,
            f"saslUsername: alice, saslPassword: file:{tmp_path / 'password'}, allowInsecurePlain: loopback",
        )
    )
    told = FAILED + r"amqp:unauthorized-access Authentication failed \[mech=PLAIN\]"
    here.wait_for_line(told)
    with node_of(here.port) as node:
        assert outgoing(node) == []
        row = connector(node)
        assert row["connectionStatus"] == "CONNECTING"
        assert re.match(told, row["connectionMsg"])
    assert SECRET not in here.text() + there.text()


def test_where_else_to_go_is_learned_and_gone_to(start_router: StartRouter, tmp_path: Path) -> None:
    second = start_router(PLAIN_LISTENER.replace("id: R", "id: Second"))
    first_port = free_port()
    folder = tmp_path / "first"
    folder.mkdir()
    failover = f"port: {first_port}, failoverUrls: amqp://127.0.0.1:{second.port}"
    with process(PLAIN_LISTENER.replace("port: 0", failover), folder) as first:
        first.wait_for_line("Operational")
        here = start_router(dialling(first_port))
        here.wait_for_line(OPENED)
        with node_of(here.port) as node:
            told = f"amqp://127.0.0.1:{first_port}, amqp://127.0.0.1:{second.port}"
            assert connector(node)["failoverUrls"] == told
        first.process.kill()
        first.wait()
    here.wait_for_line(f"{OPENED}host=127.0.0.1:{second.port}")


def test_deleting_a_connector_closes_its_connection(router: RunningRouter, start_router: StartRouter) -> None:
    here = start_router(dialling(router.port))
    here.wait_for_line(OPENED)
    with node_of(here.port) as node:
        assert node.ask("DELETE", type="connector", name="out").status == 204
        assert node.query("connector") == []
        router.wait_for_line(r"\[C1\] Connection Closed")
        here.wait_for_line(r"\[C1\] Connection Closed")
        assert outgoing(node) == []
        node.create("connector", {"host": "127.0.0.1", "port": str(router.port)}, name="out")
    here.wait_for_line(OPENED, count=2)


def test_a_server_that_answers_with_nonsense_is_given_up_and_no_client_notices(start_router: StartRouter) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        here = start_router(dialling(server.getsockname()[1]))
        server.settimeout(DEADLINE_S)
        with closing(server.accept()[0]) as odd:
            odd.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            here.wait_for_line(f"{FAILED}.*SASL")
        with node_of(here.port) as node:
            assert connector(node)["connectionStatus"] == "CONNECTING"


@pytest.mark.parametrize("host", ["h" * 64, "h" * 250, "a..b", "\u00fc" * 60, "."])
def test_a_host_without_an_address_is_reported_and_no_client_notices(router: RunningRouter, host: str) -> None:
    with node_of(router.port) as node:
        status, text = node.refused("CREATE", {"host": host, "port": "0"}, type="listener", name="deaf")
        assert status == 400
        assert text.startswith(f"cannot listen on {host}:0: ")
        assert node.create("connector", {"host": host, "port": "5672"}, name="out")["host"] == host
        router.wait_for_line("Connection to .*:5672 failed: ")
        assert connector(node)["connectionStatus"] == "CONNECTING"
        node.get("DELETE", type="connector", name="out")


def test_a_resolver_that_does_not_answer_holds_up_no_other(
    start_router: StartRouter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    silent = tmp_path / "aliases"
    os.mkfifo(silent)
    monkeypatch.setenv("HOSTALIASES", str(silent))  # the resolver reads it first, and waits for a writer
    connectors = "".join(f"connector {{ name: c{number}, host: nowhere{number}, port: 5 }}\n" for number in range(60))
    here = start_router(PLAIN_LISTENER + connectors)
    with node_of(here.port) as node:
        assert {row["connectionStatus"] for row in node.query("connector")} <= {"INITIALIZING", "CONNECTING"}
        assert node.create("listener", {"host": "localhost", "port": "0"}, name="more")
        here.process.send_signal(signal.SIGHUP)
        here.wait_for_line("Reloaded ")
    assert here.stop() == 0


def test_a_stopping_router_closes_its_outgoing_connections(router: RunningRouter, start_router: StartRouter) -> None:
    here = start_router(dialling(router.port))
    here.wait_for_line(OPENED)
    assert here.stop() == 0
    router.wait_for_line(r"\[C1\] Connection Closed")
    assert router.matching("failed") == []
