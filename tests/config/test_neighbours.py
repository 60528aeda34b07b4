"""Listeners for routers and brokers at which a client's login is enough are found, and closed with secureDefaults."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.tls.pki import Authority
from trouter.config import load
from trouter.config.access import covers_user
from trouter.config.configuration import NAME_ROUTERS
from trouter.config.findings import evaluate
from trouter.config.problems import Severity

pytestmark = pytest.mark.attack

POINT = "any-user-is-a-router"
CLIENTS = "listener {{\n name: clients\n host: 127.0.0.1\n {}\n}}\n"
ROUTERS = (
    "listener {{\n name: routers\n host: 127.0.0.1\n port: 1\n role: {role}\n authenticatePeer: yes\n {more}\n}}\n"
)
EXTERNAL = "sslProfile: {}\n saslMechanisms: EXTERNAL"
SCRAM = "saslMechanisms: SCRAM-SHA-256"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two authorities, and a bundle and a folder that hold the first one."""
    folder = tmp_path_factory.mktemp("authorities")
    ours, theirs = (Authority(folder, name).file.read_text() for name in ("ours", "theirs"))
    (folder / "bundle").mkdir()
    (folder / "bundle" / "a.pem").write_text(theirs + ours)
    for name, text in {"ours.pem": ours, "again.pem": f"# the same\n{ours}", "theirs.pem": theirs}.items():
        (folder / name).write_text(text)
    return folder


def found(folder: Path, clients: str, routers: str, secure: bool = False) -> list[str]:
    """Return the messages of the point for two listeners, each by its own text."""
    profiles = "".join(
        f"sslProfile {{\n name: {name}\n {attribute}\n}}\n"
        for name, attribute in {
            "ours": f"caCertFile: {folder}/ours.pem",
            "again": f"caCertFile: {folder}/again.pem",
            "theirs": f"caCertFile: {folder}/theirs.pem",
            "bundle": f"caCertFile: {folder}/bundle",
            "system": "useSystemCA: yes",
        }.items()
    )
    head = f"router {{\n mode: interior\n secureDefaults: {'yes' if secure else 'no'}\n}}\n"
    configuration = load(text=head + profiles + CLIENTS.format(clients) + routers)
    here = [each for each in evaluate(configuration) if each.point == POINT]
    assert all((each.severity, each.key) == (Severity.UNSAFE, "allowedUsers") for each in here)
    return [each.message for each in here]


# ------------------------------------------------------------------------------------------------------- what is found
@pytest.mark.parametrize(
    ("clients", "routers", "why"),
    [
        (EXTERNAL.format("ours"), EXTERNAL.format("ours"), "an authority"),
        (EXTERNAL.format("ours"), EXTERNAL.format("again"), "an authority"),
        (EXTERNAL.format("ours"), EXTERNAL.format("bundle"), "an authority"),
        (EXTERNAL.format("ours"), EXTERNAL.format("theirs"), ""),
        (EXTERNAL.format("ours"), EXTERNAL.format("system"), "the authorities of the system"),
        (EXTERNAL.format("theirs") + "\n trustedCertsFile: {folder}/ours.pem", EXTERNAL.format("ours"), "an authority"),
        (SCRAM, EXTERNAL.format("ours"), ""),
        (SCRAM, SCRAM, "passwords of the same users"),
        ("saslMechanisms: PLAIN", SCRAM, "passwords of the same users"),
        ("authenticatePeer: yes", SCRAM, "passwords of the same users"),
        ("saslMechanisms: ANONYMOUS", SCRAM, ""),
        (EXTERNAL.format("ours"), SCRAM, ""),
        (f"{SCRAM}\n http: yes\n websockets: no", SCRAM, ""),
    ],
)
@pytest.mark.parametrize("secure", [False, True], ids=["compatible", "strict"])
@pytest.mark.parametrize("role", ["inter-router", "edge", "route-container"])
def test_a_login_that_serves_clients_and_routers_is_found(
    folder: Path, role: str, secure: bool, clients: str, routers: str, why: str
) -> None:
    clients = clients.replace("{folder}", str(folder))
    messages = found(folder, clients, ROUTERS.format(role=role, more=routers), secure)
    assert len(messages) == (1 if why else 0)
    assert all(why in each for each in messages)


@pytest.mark.parametrize(("users", "count"), [("spoke", 0), ("spoke, router-*", 0), ("*", 1), ("spoke, *", 1)])
def test_names_of_routers_end_it_and_a_star_does_not(folder: Path, users: str, count: int) -> None:
    routers = ROUTERS.format(role="inter-router", more=f"{SCRAM}\n allowedUsers: {users}")
    assert len(found(folder, SCRAM, routers)) == count


def test_what_needs_no_login_is_another_point(folder: Path) -> None:
    assert found(folder, SCRAM, ROUTERS.format(role="edge", more="").replace("authenticatePeer: yes", "")) == []


# ------------------------------------------------------------------------------------------------------- what is closed
@pytest.mark.parametrize("secure", [False, True], ids=["compatible", "strict"])
@pytest.mark.parametrize(
    ("role", "more", "closed"),
    [
        ("inter-router", "", True),
        ("inter-router", "allowedUsers: spoke", False),
        ("inter-router", "allowedUsers: *", False),
        ("inter-router", "allowInsecureRole: yes", False),
        ("edge", "", False),
        ("route-container", "", False),
    ],
)
def test_secure_defaults_open_no_listener_for_routers_that_nobody_named(
    role: str, more: str, closed: bool, secure: bool
) -> None:
    switch = "yes" if secure else "no"
    text = f"router {{\n mode: interior\n secureDefaults: {switch}\n}}\n" + ROUTERS.format(
        role=role, more=f"{SCRAM}\n {more}"
    )
    configuration = load(text=text)
    assert configuration.unserved(configuration.listeners[0]) == ((NAME_ROUTERS,) if secure and closed else ())


@pytest.mark.parametrize("secure", [False, True], ids=["compatible", "strict"])
@pytest.mark.parametrize(
    ("role", "more", "closed"),
    [
        ("edge", "", True),
        ("edge", "allowedUsers: spoke", False),
        ("edge", "allowInsecureRole: yes", False),
        ("route-container", "", False),
    ],
)
def test_without_vhost_policy_a_listener_for_edge_routers_has_to_name_them_too(
    role: str, more: str, closed: bool, secure: bool
) -> None:
    switch = "yes" if secure else "no"
    text = f"router {{\n mode: interior\n secureDefaults: {switch}\n}}\npolicy {{\n enableVhostPolicy: no\n}}\n"
    configuration = load(text=text + ROUTERS.format(role=role, more=f"{SCRAM}\n {more}"))
    assert configuration.unserved(configuration.listeners[0]) == ((NAME_ROUTERS,) if secure and closed else ())


# ------------------------------------------------------------------------------------------------------------- the names
@pytest.mark.parametrize(
    ("written", "user", "covered"),
    [
        ("east, west", "west", True),
        ("east, west", "wes", False),
        ("east", "east.x", False),
        ("CN=r-*", "CN=r-1", True),
        ("CN=r-*", "CN=x", False),
        ("*", "alice", True),
        ("*", "", False),
        ("CN=east,O=Example; CN=west,O=Example", "CN=west,O=Example", True),
        ("CN=east, O=Example;", "CN=east,O=Example", True),
        ("CN=east,O=Example;", "CN=east", False),
        ("CN=east,O=Example;", "O=Example", False),
        ('""', "alice", False),
    ],
)
def test_a_user_is_covered_by_a_whole_name_or_by_a_beginning(written: str, user: str, covered: bool) -> None:
    (listener,) = load(text=f"listener {{\n host: ::1\n allowedUsers: {written}\n}}\n").listeners
    assert listener.allowed_users is not None
    assert covers_user(listener.allowed_users, user) is covered


def test_a_list_of_the_json_form_needs_no_semicolons() -> None:
    text = json.dumps([["listener", {"host": "::1", "allowedUsers": ["CN=east,O=Example", "west"]}]])
    (listener,) = load(Path("router.json"), text).listeners
    assert listener.allowed_users == ("CN=east,O=Example", "west")
