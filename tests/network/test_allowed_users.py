"""Users that may log in, and are no routers: a listener with allowedUsers refuses them at their open."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from proton import SSLDomain
from proton.utils import BlockingConnection, ConnectionClosed

from tests.management.node import node_of
from tests.routers import DEADLINE_S, RunningRouter, running
from tests.tls.pki import Authority, Pair
from trouter_plugins.users_file import put_user

pytestmark = [pytest.mark.slow, pytest.mark.attack]

PASSWORD = "secret"
ROLES = ("inter-router", "edge", "route-container", "normal")
MECHANISMS = ("EXTERNAL", "SCRAM-SHA-256", "PLAIN")
WAYS = [(role, mechanism) for role in ROLES for mechanism in MECHANISMS]


class Site:
    """A router with secureDefaults, and one listener for each way to log in; alice and spoke are its users."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.authority = Authority(folder)
        self.pairs: dict[str, Pair] = {
            user: self.authority.issue(f"CN={user}", "localhost") for user in ("alice", "spoke")
        }
        for user in self.pairs:
            put_user(folder / "users", user, PASSWORD.encode())

    def profile(self, user: str) -> str:
        pair = self.pairs[user]
        return (
            f"sslProfile {{\n name: p\n caCertFile: {self.authority.file}\n certFile: {pair.cert}\n"
            f" privateKeyFile: {pair.key}\n}}\n"
        )

    def configuration(self) -> str:
        listeners = "".join(
            f"listener {{\n name: {role}-{mechanism}\n host: 127.0.0.1\n port: 0\n role: {role}\n sslProfile: p\n"
            f" saslMechanisms: {mechanism}\n allowedUsers: CN=spoke, spoke\n}}\n"
            for role, mechanism in WAYS
        )
        return (
            f"router {{ mode: interior, id: Hub, secureDefaults: yes, usersFile: {self.folder}/users }}\n"
            f"policy {{ enableVhostPolicy: no }}\n{self.profile('spoke')}"
            "listener { host: 127.0.0.1, port: 0, saslMechanisms: ANONYMOUS, authenticatePeer: no }\n"
            f"recordLog {{ dir: {self.folder}/records, kinds: audit }}\n{listeners}"
        )

    def connect(self, router: RunningRouter, user: str, way: tuple[str, str]) -> BlockingConnection:
        """Connect as a client of a stranger would, with the certificate and the password of ``user``."""
        _, mechanism = way
        domain = SSLDomain(SSLDomain.MODE_CLIENT)
        domain.set_trusted_ca_db(str(self.authority.file))
        domain.set_peer_authentication(SSLDomain.VERIFY_PEER)
        if mechanism == "EXTERNAL":
            domain.set_credentials(str(self.pairs[user].cert), str(self.pairs[user].key), "")
        login: dict[str, Any] = {} if mechanism == "EXTERNAL" else {"user": user, "password": PASSWORD}
        url = f"amqps://localhost:{router.ports[1 + WAYS.index(way)]}"
        return BlockingConnection(url, DEADLINE_S, ssl_domain=domain, allowed_mechs=mechanism, **login)

    def refusal_of(self, router: RunningRouter, user: str, way: tuple[str, str]) -> ConnectionClosed:
        """Connect, and return the error with which the router ends the connection."""
        with pytest.raises(ConnectionClosed) as closed:
            self.connect(router, user, way).create_sender("any")
        return closed.value


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    folder = tmp_path_factory.mktemp("site")
    (folder / "records").mkdir(0o700)
    return Site(folder)


@pytest.fixture(scope="module")
def hub(site: Site) -> Iterator[RunningRouter]:
    (site.folder / "hub").mkdir()
    with running(site.configuration(), site.folder / "hub") as router:
        yield router


@pytest.mark.parametrize("way", WAYS, ids="-".join)
def test_another_user_is_refused_with_the_name_and_the_cure_in_the_log(
    site: Site, hub: RunningRouter, way: tuple[str, str]
) -> None:
    closed = site.refusal_of(hub, "alice", way)
    assert closed.condition == "amqp:unauthorized-access"
    role, mechanism = way
    name, user = f"{role}-{mechanism}", "CN=alice" if mechanism == "EXTERNAL" else "alice"
    assert user not in str(closed)
    who = f"the user '{user}' is not in allowedUsers of listener {name} \\(role {role}\\); add the name there"
    hub.wait_for_line(f"refused: {who} if this peer may connect")
    hub.wait_for_line(f"DENY AMQP Open for user '{user}'.*: user rule='listener:{name}:allowedUsers'")


def test_each_refusal_is_counted_and_recorded(site: Site, hub: RunningRouter) -> None:
    with node_of(hub.port) as node:
        (before,) = node.query("policy")
    for way in WAYS:
        site.refusal_of(hub, "alice", way)
    with node_of(hub.port) as node:  # a blocking client sends no heartbeats meanwhile, so it would be given up
        (after,) = node.query("policy")
        denied = node.query("denial")
    count = after["vhostConnectionsDenied"] - before["vhostConnectionsDenied"]
    assert count == len(WAYS)
    assert {"alice", "CN=alice"} <= {row["user"] for row in denied}
    lines = [line for file in (site.folder / "records").iterdir() for line in file.read_bytes().splitlines()]
    rules = {json.loads(line).get("rule") for line in lines if b'"policy.decision"' in line and b"alice" in line}
    assert {f"listener:{'-'.join(way)}:allowedUsers" for way in WAYS} <= rules


@pytest.mark.parametrize("way", [way for way in WAYS if way[0] != "inter-router"], ids="-".join)
def test_those_who_are_named_connect(site: Site, hub: RunningRouter, way: tuple[str, str]) -> None:
    site.connect(hub, "spoke", way).close()


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_router_with_the_login_of_a_client_is_no_neighbour(
    site: Site, hub: RunningRouter, mechanism: str, tmp_path: Path
) -> None:
    (tmp_path / "password").write_text(PASSWORD)
    (tmp_path / "password").chmod(0o600)
    port = hub.ports[1 + WAYS.index(("inter-router", mechanism))]
    for user, joins in (("alice", False), ("spoke", True)):
        login = f" saslUsername: {user}\n saslPassword: file:{tmp_path}/password\n" if mechanism != "EXTERNAL" else ""
        folder = tmp_path / user
        folder.mkdir()
        text = (
            f"router {{ mode: interior, id: {user}-{mechanism} }}\n{site.profile(user)}"
            f"connector {{\n name: hub\n host: localhost\n port: {port}\n role: inter-router\n sslProfile: p\n"
            f" saslMechanisms: {mechanism}\n{login}}}\n"
        )
        with running(text, folder) as router:
            if joins:
                router.wait_for_line("router Hub is a neighbour over")
            else:
                router.wait_for_line(f"{re.escape('amqp:unauthorized-access')}.*disallowed by the listener")
                assert not router.matching("is a neighbour over")
