"""Listeners on which no client can log in, and the configuration of Cyrus SASL that the router finds itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.plugins.test_sasl_cyrus import missing
from trouter.config import RouterEntity, load
from trouter.config.cyrus import cyrus_site
from trouter.config.facts import router_facts
from trouter.config.findings import evaluate
from trouter.config.problems import Severity
from trouter.config.texts import ListedPlugin
from trouter.hooks import Plugins
from trouter_plugins.sasl_cyrus import Cyrus
from trouter_plugins.users_file import put_user

pytestmark = pytest.mark.own_process  # the library of Cyrus SASL reads one configuration in a process
WITH_LIBRARY = pytest.mark.skipif(bool(missing()), reason=missing() or "it is there")

ROUTER = "router {{\n mode: standalone\n id: A\n{0}\n}}\n"
POINTS = {
    "no-mechanism",
    "no-sasl-users",
    "users-elsewhere",
    "unreadable-file",
    "weak-mechanisms",
    "missing-sasl-module",
}


def found(text: str) -> dict[str, str]:
    """Return the findings about logins: the message by the name of the point."""
    configuration = load(text=text)
    plugins = Plugins.load({})
    plugins.configure(router_facts(configuration))
    return {each.point: each.message for each in evaluate(configuration, plugins) if each.point in POINTS}


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder in which Cyrus SASL looks."""
    monkeypatch.setenv("SASL_CONF_PATH", f"{tmp_path}/none:{tmp_path}")
    return tmp_path


# ------------------------------------------------------------------------------------------------ no client can log in
PROFILE = "sslProfile {{\n name: p\n certFile: {0}/cert\n privateKeyFile: {0}/cert\n{1}\n}}\n"
NO_LOGIN = {
    "no users": ("", "authenticatePeer: yes", "EXTERNAL needs a certificate, and clients are not asked for one"),
    "EXTERNAL without authorities": (
        PROFILE.format("/etc", ""),
        "authenticatePeer: yes\n sslProfile: p",
        "EXTERNAL needs a certificate, and clients are not asked for one",
    ),
    "a mechanism that is not served": ("", "saslMechanisms: PLAIN", "no plugin serves any of its mechanisms"),
    "passwords that must not be sent": (
        "USERS",
        "saslMechanisms: PLAIN\n allowInsecurePlain: no",
        "PLAIN needs TLS, as allowInsecurePlain is no, and there is no sslProfile",
    ),
    "channel binding without TLS": (
        "USERS",
        "saslMechanisms: SCRAM-SHA-256-PLUS",
        "SCRAM-SHA-256-PLUS needs TLS, and there is no sslProfile",
    ),
    "WebSockets": ("", "http: yes\n authenticatePeer: yes", "EXTERNAL needs a certificate"),
}


def written(kind: str, listener: str, folder: Path) -> str:
    """Return a file with one listener; with users if ``kind`` says so."""
    router = ""
    if kind == "USERS":
        put_user(folder / "users", "alice", b"wonderland")
        kind, router = "", f"usersFile: {folder / 'users'}"
    return f"{ROUTER.format(router)}{kind}listener {{\n host: 127.0.0.1\n port: 0\n {listener}\n}}\n"


@pytest.mark.parametrize(("kind", "listener", "why"), NO_LOGIN.values(), ids=NO_LOGIN)
def test_a_listener_on_which_no_client_can_log_in_is_a_problem(
    kind: str, listener: str, why: str, tmp_path: Path
) -> None:
    text = written(kind, listener, tmp_path)
    assert found(text)["no-mechanism"].startswith(f"no client will be able to log in: {why}")
    configuration = load(text=text)
    plugins = Plugins.load({})
    plugins.configure(router_facts(configuration))
    (problem,) = [each for each in evaluate(configuration, plugins) if each.point == "no-mechanism"]
    assert problem.severity is Severity.PROBLEM


@pytest.mark.parametrize(
    ("kind", "listener"),
    [
        ("USERS", "authenticatePeer: yes"),
        ("USERS", "saslMechanisms: PLAIN\n allowInsecurePlain: loopback"),
        ("", "authenticatePeer: no"),
        ("", "saslMechanisms: ANONYMOUS"),
        ("", "http: yes\n websockets: no\n authenticatePeer: yes"),
        (PROFILE.format("/etc", ""), "authenticatePeer: yes\n sslProfile: p\n clientCert: optional"),
        (PROFILE.format("/etc", ""), "saslMechanisms: EXTERNAL\n sslProfile: p"),
    ],
)
def test_a_listener_on_which_a_client_can_log_in_is_none(kind: str, listener: str, tmp_path: Path) -> None:
    assert "no-mechanism" not in found(written(kind, listener, tmp_path))


def test_pages_of_a_router_with_secure_defaults_and_without_users_are_no_problem() -> None:
    pages = "listener {\n host: 127.0.0.1\n port: 0\n http: yes\n}\n"
    assert "no-mechanism" not in found(ROUTER.format(" secureDefaults: yes") + pages)
    amqp = "listener {\n host: 127.0.0.1\n port: 0\n}\n"
    assert "no-mechanism" in found(ROUTER.format(" secureDefaults: yes") + amqp)


# -------------------------------------------------------------------------------------------- where Cyrus SASL is found
ROUTER_SECTION = RouterEntity(id="A")
OTHERS: dict[str, Callable[[Path], RouterEntity]] = {
    "users": lambda folder: replace(ROUTER_SECTION, users_file=str(folder / "users")),
    "PAM": lambda _: replace(ROUTER_SECTION, pam_service="amqp"),
    "tokens": lambda _: replace(ROUTER_SECTION, oauth_issuer="https://a.example"),
    "plugins": lambda _: replace(ROUTER_SECTION, plugins=(ListedPlugin("office_hours", ""),)),
    "secureDefaults": lambda _: replace(ROUTER_SECTION, secure_defaults=True),
}


def test_without_a_folder_cyrus_sasl_is_read_where_its_library_looks(place: Path) -> None:
    assert cyrus_site(ROUTER_SECTION) is None
    (place / "qdrouterd.conf").write_text("# users\nMech_List:  plain SCRAM-SHA-1\nmech_list: LOGIN\nsasldb_path:/x\n")
    site = cyrus_site(ROUTER_SECTION)
    assert site is not None
    assert (site.folder, site.mech_list, site.sasldb) == (str(place), ("PLAIN", "SCRAM-SHA-1"), "/x")
    assert cyrus_site(replace(ROUTER_SECTION, sasl_config_name="other")) is None


@pytest.mark.parametrize("other", OTHERS.values(), ids=OTHERS)
def test_a_file_with_users_of_its_own_or_secure_defaults_reads_only_what_it_names(
    other: Callable[[Path], RouterEntity], place: Path
) -> None:
    (place / "qdrouterd.conf").write_text("mech_list: PLAIN\n")
    router = other(place)
    assert cyrus_site(router) is None
    site = cyrus_site(replace(router, sasl_config_dir=f"/no/such:{place}"))
    assert site is not None
    assert (site.folder, site.written) == (str(place), True)


def test_the_variable_of_proton_comes_before_that_of_the_library(
    place: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = tmp_path_factory.mktemp("proton")
    for folder in (first, place):
        (folder / "qdrouterd.conf").write_text("mech_list: PLAIN\n")
    monkeypatch.setenv("PN_SASL_CONFIG_PATH", str(first))
    site = cyrus_site(ROUTER_SECTION)
    assert site is not None
    assert site.folder == str(first)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of the one configuration of Cyrus SASL that this process reads."""
    if Cyrus.source is not None:
        return Path(Cyrus.source[0])
    folder = tmp_path_factory.mktemp("site")
    (folder / "qdrouterd.conf").write_text("mech_list: PLAIN X-NOT-THERE ANONYMOUS EXTERNAL\nsasldb_path: /no/users\n")
    return folder


ASKING = ROUTER.format("") + "listener {\n host: ::1\n authenticatePeer: yes\n}\n"


@WITH_LIBRARY
def test_users_that_the_file_does_not_name_are_a_note(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SASL_CONF_PATH", str(site))
    message = found(ASKING)["users-elsewhere"]
    assert message == f"logins will be those of {site}/qdrouterd.conf, where Cyrus SASL looks itself"


@WITH_LIBRARY
def test_a_database_of_users_that_does_not_exist_is_a_problem(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SASL_CONF_PATH", str(site))
    message = found(ASKING)["no-sasl-users"]
    assert message.endswith("log in with a password: its database /no/users does not exist")
    assert "no-sasl-users" not in found(ASKING.replace("yes", "no"))


@WITH_LIBRARY
def test_a_module_that_cyrus_sasl_lacks_is_a_note(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SASL_CONF_PATH", str(site))
    assert found(ASKING)["missing-sasl-module"].startswith("will not offer X-NOT-THERE: ")
    assert "missing-sasl-module" not in found(ASKING.replace("host: ::1", "host: ::1\n saslMechanisms: PLAIN"))


def test_a_found_file_that_cannot_be_read_is_a_problem_and_the_rest_serves(place: Path) -> None:
    (place / "qdrouterd.conf").mkdir()
    message = found(ROUTER.format("") + "listener {\n host: ::1\n}\n")["unreadable-file"]
    assert message.startswith(f"this file cannot be read: {place}/qdrouterd.conf: Is a directory")


def test_with_secure_defaults_the_cure_names_the_folder_that_is_not_read(place: Path) -> None:
    (place / "qdrouterd.conf").write_text("mech_list: PLAIN\n")
    configuration = load(text=ROUTER.format(" secureDefaults: yes") + "listener {\n host: ::1\n}\n")
    plugins = Plugins.load({})
    plugins.configure(router_facts(configuration))
    (problem,) = [each for each in evaluate(configuration, plugins) if each.point == "no-mechanism"]
    assert problem.suggestion == f"write saslConfigDir: {place} to use {place}/qdrouterd.conf"
