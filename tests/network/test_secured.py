"""Routers that authenticate to each other over TLS, and tenants that stay apart on both sides."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from proton import Message
from proton.reactor import AtMostOnce
from proton.utils import BlockingConnection, LinkDetached, SendException

from tests.management.node import node_of
from tests.network.test_connectors import status_of
from tests.routers import DEADLINE_S, RunningRouter, running
from tests.tls.pki import Authority
from trouter_plugins.users_file import put_user

pytestmark = pytest.mark.slow

MECHANISMS = ("EXTERNAL", "SCRAM-SHA-256", "PLAIN")
PASSWORD = "secret"
TENANTS = {"ann": "t1.example", "bob": "t2.example"}


@dataclass
class Site:
    """A router that others may join, with one listener for each mechanism."""

    hub: RunningRouter
    folder: Path
    profile: str

    def port_for(self, mechanism: str) -> int:
        return self.hub.ports[1 + MECHANISMS.index(mechanism)]

    def spoke(self, name: str, mechanism: str, more: str = "") -> str:
        """Return the configuration of a router that joins by ``mechanism``."""
        return (
            f"router {{ mode: interior, id: {name}, usersFile: {self.folder}/users }}\n{self.profile}{self.clients()}"
            f"connector {{\n name: hub\n host: localhost\n port: {self.port_for(mechanism)}\n role: inter-router\n"
            f" sslProfile: p\n saslMechanisms: {mechanism}\n{more}}}\n"
        )

    def clients(self) -> str:
        """Return listeners for clients: one for tenants, one for the observer."""
        return "listener { host: 127.0.0.1, port: 0, saslMechanisms: ANONYMOUS }\n" + self.tenants()

    def tenants(self) -> str:
        return (
            "listener {\n name: tenants\n host: 127.0.0.1\n port: 0\n multiTenant: yes\n authenticatePeer: yes\n"
            " saslMechanisms: PLAIN\n allowInsecurePlain: loopback\n idleTimeoutSeconds: 0\n"
            f" tenantFrom: file:{self.folder}/tenants.json\n}}\n"
        )


def credentials(folder: Path, password: str = PASSWORD) -> str:
    path = folder / f"{password}.txt"
    path.write_text(password)
    path.chmod(0o600)
    return f" saslUsername: spoke\n saslPassword: file:{path}\n"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("secured")
    authority = Authority(folder)
    pair = authority.issue("CN=spoke", "localhost")
    attributes = (("caCertFile", authority.file), ("certFile", pair.cert), ("privateKeyFile", pair.key))
    profile = "sslProfile {\n name: p\n" + "".join(f" {key}: {value}\n" for key, value in attributes) + "}\n"
    for user in ("spoke", *TENANTS):
        put_user(folder / "users", user, PASSWORD.encode())
    (folder / "tenants.json").write_text(json.dumps(TENANTS))
    site = Site(None, folder, profile)  # type: ignore[arg-type]  # it is started below
    routers = "".join(
        "listener {\n host: 127.0.0.1\n port: 0\n role: inter-router\n sslProfile: p\n requireSsl: yes\n"
        f" authenticatePeer: yes\n saslMechanisms: {mechanism}\n}}\n"
        for mechanism in MECHANISMS
    )
    first = "listener { host: 127.0.0.1, port: 0, saslMechanisms: ANONYMOUS }\n"
    text = f"router {{ mode: interior, id: Hub, usersFile: {folder}/users }}\n{profile}{first}{routers}{site.tenants()}"
    (folder / "hub").mkdir()
    with running(text, folder / "hub") as hub:
        site.hub = hub
        yield site


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_router_joins_by_its_certificate_or_its_password(site: Site, mechanism: str, tmp_path: Path) -> None:
    more = "" if mechanism == "EXTERNAL" else credentials(tmp_path)
    name = f"by-{mechanism}"
    folder = tmp_path / "spoke"
    folder.mkdir()
    with running(site.spoke(name, mechanism, more), folder) as spoke:
        spoke.wait_for_line("router Hub is a neighbour over")
        site.hub.wait_for_line(f"router {name} is a neighbour over")
        with node_of(site.hub.port) as node:
            (row,) = [row for row in node.query("connection") if row["container"] == name]
            user = "CN=spoke" if mechanism == "EXTERNAL" else "spoke"
            assert (row["role"], row["sasl"], row["user"]) == ("inter-router", mechanism, user)
            assert row["isAuthenticated"]
            assert row["isEncrypted"]
            assert row["sslProto"] == "TLSv1.3"
        with node_of(spoke.port, "_topo/0/Hub/$management") as node:
            assert [row["id"] for row in node.query("router")] == ["Hub"]
        assert PASSWORD not in spoke.text()


@pytest.mark.parametrize(
    ("mechanism", "password", "why"),
    [
        ("SCRAM-SHA-256", "wrong", "amqp:unauthorized-access Authentication failed [mech=SCRAM-SHA-256]"),
        ("PLAIN", "wrong", "amqp:unauthorized-access Authentication failed [mech=PLAIN]"),
    ],
)
def test_a_router_with_wrong_credentials_does_not_join(
    site: Site, mechanism: str, password: str, why: str, tmp_path: Path
) -> None:
    folder = tmp_path / "spoke"
    folder.mkdir()
    with running(site.spoke("Wrong", mechanism, credentials(tmp_path, password)), folder) as spoke:
        spoke.wait_for_line(f"Connection to localhost:.* failed: {re.escape(why)}")
        assert why in status_of(spoke)[1]
        assert not spoke.matching("is a neighbour over")
    with node_of(site.hub.port) as node:
        assert "Wrong" not in {row["id"] for row in node.query("router.node")}


def test_no_router_joins_without_credentials_where_they_are_required(site: Site, tmp_path: Path) -> None:
    """R-4.11: neither without TLS nor as ANONYMOUS."""
    folder = tmp_path / "spoke"
    folder.mkdir()
    text = (
        f"router {{ mode: interior, id: Nobody }}\n{site.profile}{site.clients().splitlines()[0]}\n"
        f"connector {{ name: clear, host: localhost, port: {site.port_for('EXTERNAL')}, role: inter-router, "
        "saslMechanisms: ANONYMOUS }\n"
        f"connector {{ name: anonymous, host: localhost, port: {site.port_for('PLAIN')}, role: inter-router, "
        "sslProfile: p, saslMechanisms: ANONYMOUS }\n"
    )
    with running(text, folder) as spoke:
        spoke.wait_for_line("Connection to localhost:.* failed: no mechanism available: the peer offers PLAIN")
        spoke.wait_for_line(rf"Connection to localhost:{site.port_for('EXTERNAL')} failed: ")
        assert not spoke.matching("is a neighbour over")


def as_tenant(router: RunningRouter, user: str) -> BlockingConnection:
    return BlockingConnection(
        f"127.0.0.1:{router.ports[-1]}",
        timeout=DEADLINE_S,
        virtual_host=TENANTS[user],
        user=user,
        password=PASSWORD,
        allowed_mechs="PLAIN",
        allow_insecure_mechs=True,
    )


def tell(connection: Any, address: str | None, message: Message) -> None:
    """Send a settled message when the link has credit, that is when the router knows the address there."""
    sender = connection.create_sender(address, options=AtMostOnce())
    connection.wait(lambda: sender.link.credit > 0, timeout=DEADLINE_S)
    sender.send(message)
    sender.close()


def test_tenants_stay_apart_on_both_sides_of_a_hop(site: Site, tmp_path: Path) -> None:
    """R-5e: the tenant is part of the key, so receivers on other routers are found by the whole of it."""
    folder = tmp_path / "spoke"
    folder.mkdir()
    with running(site.spoke("Spoke", "EXTERNAL"), folder) as spoke:
        spoke.wait_for_line("router Hub is a neighbour over")
        there, here, other = as_tenant(site.hub, "ann"), as_tenant(spoke, "ann"), as_tenant(spoke, "bob")
        receiver = there.create_receiver("orders", credit=10)
        tell(here, "orders", Message("mine"))
        assert receiver.receive(timeout=DEADLINE_S).body == "mine"
        anonymous = other.create_sender(None)
        for to in ("orders", "t1.example/orders", "amqp:/orders", "amqp:/_topo/0/Hub/orders"):
            with pytest.raises((SendException, LinkDetached)):
                anonymous.send(Message("not mine", address=to), timeout=DEADLINE_S)
            if anonymous.link.state & anonymous.link.REMOTE_CLOSED:
                anonymous = other.create_sender(None)
        tell(here, "orders", Message("mine again"))
        assert receiver.receive(timeout=DEADLINE_S).body == "mine again"
        for connection in (there, here, other):
            connection.close()
