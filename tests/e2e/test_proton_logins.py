"""python-qpid-proton with Cyrus SASL, as distributions have it, logs in by each of its mechanisms."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests import kerberos
from tests.plugins import test_sasl_cyrus as cyrus
from tests.proton_build import WITH_CYRUS, WITH_TLS
from tests.routers import DEADLINE_S, ROOT, RunningRouter, running
from tests.tls.pki import Authority
from trouter_plugins.users_file import put_user

pytestmark = [pytest.mark.interop, pytest.mark.slow, WITH_CYRUS]

CLIENT = ROOT / "tests" / "interop" / "clients" / "proton_login.py"
SECRET = "wonderland"
SCRAM = ("SCRAM-SHA-512", "SCRAM-SHA-256", "SCRAM-SHA-1")
BY_CYRUS = (*SCRAM, "DIGEST-MD5", "CRAM-MD5", "PLAIN", "LOGIN")
NEEDS_SASLDB = pytest.mark.skipif(bool(cyrus.missing()), reason=cyrus.missing() or "it is there")
NEEDS_KERBEROS = pytest.mark.skipif(bool(kerberos.missing()), reason=kerberos.missing() or "it is there")

ROUTER = """
router {{ id: R, {users} }}
listener {{
    name: clear
    host: 127.0.0.1
    port: 0
    authenticatePeer: yes
    allowInsecurePlain: loopback
    saslMechanisms: {mechanisms}
}}
"""
TLS = """
sslProfile {{
    name: tls
    certFile: {server.cert}
    privateKeyFile: {server.key}
    caCertFile: {authority.file}
    uidFormat: n
}}
listener {{
    name: within-tls
    host: 127.0.0.2
    port: 0
    authenticatePeer: yes
    sslProfile: tls
    requireSsl: yes
    clientCert: optional
    saslMechanisms: {mechanisms} EXTERNAL
}}
"""


def log_in(
    port: int, environment: Mapping[str, str] | None = None, tls: dict[str, str] | None = None, **options: Any
) -> Any:
    """Return what the client reports of its login at localhost, as it calls either address."""
    url = f"amqps://127.0.0.2:{port}" if tls else f"amqp://127.0.0.1:{port}"
    wanted = {"url": url, "options": {"virtual_host": "localhost", **options}, "tls": tls}
    done = subprocess.run(
        [sys.executable, str(CLIENT), json.dumps(wanted)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=2 * DEADLINE_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def by_password(mechanism: str | None, user: str = "alice", password: str = SECRET) -> dict[str, Any]:
    options = {"user": user, "password": password, "allow_insecure_mechs": True}
    return options if mechanism is None else {**options, "allowed_mechs": mechanism}


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def of_file(tmp_path_factory: pytest.TempPathFactory, authority: Authority) -> Iterator[RunningRouter]:
    """Run a router with a users file; its second port is for TLS."""
    folder = tmp_path_factory.mktemp("file")
    put_user(folder / "users", "alice", SECRET.encode(), SCRAM)
    made = {"mechanisms": " ".join((*SCRAM, "PLAIN")), "users": f"usersFile: {folder / 'users'}"}
    text = (ROUTER + TLS).format(server=authority.issue("CN=localhost", "localhost"), authority=authority, **made)
    with running(text, folder) as router:
        yield router


@pytest.fixture(scope="module")
def of_cyrus(tmp_path_factory: pytest.TempPathFactory, authority: Authority) -> Iterator[RunningRouter]:
    """Run a router with users of Cyrus SASL; its second port is for TLS."""
    folder = tmp_path_factory.mktemp("cyrus")
    site = cyrus.write_site(folder)
    made = {"mechanisms": " ".join(BY_CYRUS), "users": f"saslConfigDir: {site}, saslConfigName: {cyrus.NAME}"}
    text = (ROUTER + TLS).format(server=authority.issue("CN=localhost", "localhost"), authority=authority, **made)
    with running(text, folder) as router:
        yield router


def assert_logged_in(router: RunningRouter, said: Any, mechanism: str) -> None:
    assert said == {"mechanism": mechanism, "body": "to myself"}
    router.wait_for_line(f"Connection Opened: .* auth={mechanism} user=alice ")
    assert SECRET not in router.text()


def assert_refused(said: Any) -> None:
    assert said["refused"].startswith("amqp:unauthorized-access: Authentication failed"), said


# Users of a file


@pytest.mark.parametrize("mechanism", [*SCRAM, "PLAIN"])
def test_a_user_of_a_file_logs_in_and_not_with_a_wrong_password(of_file: RunningRouter, mechanism: str) -> None:
    assert_logged_in(of_file, log_in(of_file.port, **by_password(mechanism)), mechanism)
    assert_refused(log_in(of_file.port, **by_password(mechanism, password="looking glass")))
    assert_refused(log_in(of_file.port, **by_password(mechanism, user="bob")))


@pytest.mark.parametrize("port", [0, 1], ids=["clear", "tls"])
def test_a_client_that_names_no_mechanism_chooses_the_strongest(
    of_file: RunningRouter, authority: Authority, port: int
) -> None:
    tls = {"ca": str(authority.file)} if port else None
    assert_logged_in(of_file, log_in(of_file.ports[port], tls=tls, **by_password(None)), "SCRAM-SHA-512")


@WITH_TLS
def test_a_client_with_a_certificate_logs_in_by_external(of_file: RunningRouter, authority: Authority) -> None:
    pair = authority.issue("CN=alice")
    tls = {"ca": str(authority.file), "cert": str(pair.cert), "key": str(pair.key)}
    assert_logged_in(of_file, log_in(of_file.ports[1], tls=tls, allowed_mechs="EXTERNAL"), "EXTERNAL")


# Users of Cyrus SASL


@NEEDS_SASLDB
@pytest.mark.parametrize("mechanism", BY_CYRUS)
def test_a_user_of_cyrus_logs_in_and_not_with_a_wrong_password(of_cyrus: RunningRouter, mechanism: str) -> None:
    assert_logged_in(of_cyrus, log_in(of_cyrus.port, **by_password(mechanism)), mechanism)
    assert_refused(log_in(of_cyrus.port, **by_password(mechanism, password="looking glass")))
    assert_refused(log_in(of_cyrus.port, **by_password(mechanism, user="bob")))


@NEEDS_SASLDB
@WITH_TLS
@pytest.mark.parametrize("mechanism", BY_CYRUS)
def test_a_user_of_cyrus_logs_in_within_tls(of_cyrus: RunningRouter, authority: Authority, mechanism: str) -> None:
    tls = {"ca": str(authority.file)}
    assert_logged_in(of_cyrus, log_in(of_cyrus.ports[1], tls=tls, **by_password(mechanism)), mechanism)


# Kerberos


@pytest.fixture(scope="module")
def realm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[kerberos.Realm]:
    with kerberos.running_realm(tmp_path_factory.mktemp("realm")) as realm:
        yield realm


@pytest.fixture(scope="module")
def of_realm(
    realm: kerberos.Realm, tmp_path_factory: pytest.TempPathFactory, authority: Authority
) -> Iterator[RunningRouter]:
    """Run a router that takes tickets; its second port is for TLS."""
    (realm.folder / "gss.conf").write_text(f"keytab: {realm.keytab}\nmech_list: GSSAPI\n")
    made = {"mechanisms": "GSSAPI", "users": f"saslConfigDir: {realm.folder}, saslConfigName: gss"}
    text = (ROUTER + TLS).format(server=authority.issue("CN=localhost", "localhost"), authority=authority, **made)
    with pytest.MonkeyPatch.context() as patch:
        for name, value in realm.environment.items():
            patch.setenv(name, value)
        with running(text, tmp_path_factory.mktemp("router")) as router:
            yield router


@NEEDS_KERBEROS
@pytest.mark.parametrize("port", [0, 1], ids=["clear", "tls"])
def test_a_user_with_a_ticket_logs_in(
    of_realm: RunningRouter, realm: kerberos.Realm, authority: Authority, port: int
) -> None:
    tls = {"ca": str(authority.file)} if port else None
    said = log_in(of_realm.ports[port], realm.environment, tls, allowed_mechs="GSSAPI")
    assert_logged_in(of_realm, said, "GSSAPI")


@NEEDS_KERBEROS
def test_a_user_without_a_ticket_does_not(of_realm: RunningRouter, realm: kerberos.Realm, tmp_path: Path) -> None:
    environment = {**realm.environment, "KRB5CCNAME": f"FILE:{tmp_path / 'none'}"}
    said = log_in(of_realm.port, environment, allowed_mechs="GSSAPI")
    assert said["refused"].startswith("amqp:unauthorized-access: "), said
