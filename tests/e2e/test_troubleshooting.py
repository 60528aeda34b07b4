"""What the page on troubleshooting says of a symptom is what a running router shows."""

from __future__ import annotations

import re

import pytest
from proton import ConnectionException
from proton.utils import BlockingConnection

from tests.house.sources import ROOT
from tests.management.node import node_of
from tests.routers import DEADLINE_S, StartRouter, router, start_router

__all__ = ["router", "start_router"]

PAGE = (ROOT / "docs" / "troubleshooting.md").read_text(encoding="utf-8")


def rows(symptom: str) -> list[str]:
    """Return the rows of the page's tables that name the symptom in their first two cells."""
    return [line for line in PAGE.splitlines() if line.startswith("|") and symptom in "|".join(line.split("|")[:3])]


def connect_and_send(port: int) -> None:
    """Open a link too: the close of a denied connection comes behind the open."""
    client = BlockingConnection(f"127.0.0.1:{port}", allowed_mechs="ANONYMOUS", timeout=DEADLINE_S)
    client.create_sender("any")


def test_the_page_names_the_error_of_a_connection_that_the_policy_denies(start_router: StartRouter) -> None:
    denying = start_router(
        "policy { enableVhostPolicy: yes }\n"
        "listener { host: 127.0.0.1, port: 0, saslMechanisms: ANONYMOUS }\n"
        "vhost { hostname: other, groups: { $default: { users: nobody, remoteHosts: * } } }\n"
    )
    with pytest.raises(ConnectionException) as refused:
        connect_and_send(denying.port)
    assert "amqp:resource-limit-exceeded" in str(refused.value)
    (row,) = rows("disallowed by local policy`")
    assert "`amqp:resource-limit-exceeded`, `connection disallowed by local policy`" in row
    assert "policy explain" in row
    assert "connection disallowed by local policy" in str(refused.value)


def test_the_page_names_the_state_of_a_connector_that_cannot_connect(start_router: StartRouter) -> None:
    dialling = start_router(
        "listener { host: 127.0.0.1, port: 0, saslMechanisms: ANONYMOUS }\n"
        "connector { name: gone, host: 127.0.0.1, port: 1 }\n"
    )
    dialling.wait_for_line(r"Connection to 127\.0\.0\.1:1 failed")
    with node_of(dialling.port) as node:
        shown = node.get("READ", type="connector", name="gone")
    assert shown["connectionMsg"]
    (row,) = rows("stat --connectors")
    assert f"`{shown['connectionStatus']}` between two attempts" in row
    assert set(re.findall(r"\b[A-Z]{6,}\b", row)) == {shown["connectionStatus"]}
