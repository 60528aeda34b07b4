"""GSSAPI through Cyrus SASL, end to end: a key distribution centre, a router, and another that dials it."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.peer import Peer
from tests.ports import free_port
from tests.routers import DEADLINE_S, RunningRouter, running
from trouter.wire.framing import SASL_HEADER
from trouter.wire.performatives import SaslChallenge, SaslInit, SaslMechanisms, SaslOutcome, SaslResponse

REALM = "TEST.INVALID"
SBIN = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
TOOLS = ("krb5kdc", "kdb5_util", "kadmin.local", "kinit")
AUTH = 1


def missing() -> str:
    """Return the missing program, "" if there is none."""
    for tool in TOOLS:
        if shutil.which(tool, path=SBIN) is None:
            return f"{tool} is not installed (Debian: krb5-kdc, krb5-admin-server, krb5-user)"
    try:
        ctypes.CDLL("libsasl2.so.2")
    except OSError:
        return "libsasl2.so.2 is not installed"
    modules = Path("/usr/lib").glob("*/sasl2/libgssapiv2.so*")
    return "" if any(modules) else "Cyrus SASL has no GSSAPI here (Debian: libsasl2-modules-gssapi-mit)"


pytestmark = pytest.mark.skipif(bool(missing()), reason=missing() or "it is there")


class Realm:
    """A realm of the test; its centre runs as a process."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = free_port()  # the centre cannot choose one itself
        self.keytab, self.tickets = folder / "router.keytab", folder / "tickets"
        (folder / "krb5.conf").write_text(
            f"[libdefaults]\ndefault_realm = {REALM}\ndns_lookup_kdc = false\ndns_lookup_realm = false\nrdns = false\n"
            "dns_canonicalize_hostname = false\nignore_acceptor_hostname = true\nudp_preference_limit = 1\n"
            f"[realms]\n{REALM} = {{\nkdc = 127.0.0.1:{self.port}\n}}\n"
            f"[domain_realm]\nlocalhost = {REALM}\n"
        )
        (folder / "kdc.conf").write_text(
            f'[kdcdefaults]\nkdc_listen = ""\nkdc_tcp_listen = 127.0.0.1:{self.port}\n[realms]\n{REALM} = {{\n'
            f"database_name = {folder}/principal\nkey_stash_file = {folder}/stash\n}}\n"
        )
        self.environment = {
            **os.environ,
            "PATH": SBIN,
            "KRB5_CONFIG": str(folder / "krb5.conf"),
            "KRB5_KDC_PROFILE": str(folder / "kdc.conf"),
            "KRB5_KTNAME": str(self.keytab),
            "KRB5CCNAME": f"FILE:{self.tickets}",
            "KRB5RCACHETYPE": "none",
        }
        self.run("kdb5_util", "create", "-s", "-r", REALM, "-P", "of no use to anybody")
        self.run("kadmin.local", "-q", "addprinc -pw wonderland alice")
        self.run("kadmin.local", "-q", "addprinc -randkey amqp/localhost")
        self.run("kadmin.local", "-q", f"ktadd -k {self.keytab} amqp/localhost")
        self.process = subprocess.Popen(
            ["krb5kdc", "-n", "-r", REALM], env=self.environment, stderr=subprocess.PIPE, executable=which("krb5kdc")
        )

    def run(self, *command: str, text: str = "") -> None:
        done = subprocess.run(
            command,
            env=self.environment,
            executable=which(command[0]),
            input=text,
            capture_output=True,
            text=True,
            timeout=DEADLINE_S,
            check=False,
        )
        assert done.returncode == 0, done.stderr

    def log_in(self) -> None:
        """Get tickets for alice; retry while the centre starts."""
        while self.process.poll() is None:
            try:
                self.run("kinit", "alice", text="wonderland\n")
            except AssertionError as error:
                if "Cannot contact" not in str(error):
                    raise
            else:
                return
        pytest.fail("the key distribution centre has ended")


def which(tool: str) -> str:
    found = shutil.which(tool, path=SBIN)
    assert found is not None
    return found


@pytest.fixture(scope="module")
def realm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Realm]:
    realm = Realm(tmp_path_factory.mktemp("realm"))
    try:
        realm.log_in()
        yield realm
    finally:
        realm.process.kill()
        realm.process.communicate()


@pytest.fixture(scope="module")
def site(realm: Realm) -> Path:
    """Write the configuration of Cyrus SASL."""
    (realm.folder / "gss.conf").write_text(f"keytab: {realm.keytab}\nmech_list: GSSAPI\n")
    return realm.folder


@pytest.fixture(scope="module")
def router(realm: Realm, site: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningRouter]:
    text = (
        f"router {{ id: R, saslConfigDir: {site}, saslConfigName: gss }}\n"
        "listener { host: localhost, socketAddressFamily: IPv4, port: 0\n"
        "saslMechanisms: GSSAPI\nauthenticatePeer: yes\n}\n"
    )
    with pytest.MonkeyPatch.context() as patch:
        for name, value in realm.environment.items():
            patch.setenv(name, value)
        with running(text, tmp_path_factory.mktemp("router")) as router:
            yield router


def calling(router: RunningRouter, site: Path, name: str) -> str:
    """Return a configuration that dials the router."""
    return (
        f"router {{ id: {name}, saslConfigDir: {site}, saslConfigName: gss }}\n"
        f"connector {{ name: there, host: localhost, port: {router.port}, role: route-container\n"
        "saslMechanisms: GSSAPI\n}\n"
    )


def test_a_router_with_a_ticket_gets_in(
    router: RunningRouter, realm: Realm, site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in realm.environment.items():
        monkeypatch.setenv(name, value)
    with running(calling(router, site, "C"), tmp_path) as caller:
        caller.wait_for_line("Connection Opened: dir=out .* auth=GSSAPI ")
    router.wait_for_line("Connection Opened: .* auth=GSSAPI user=alice.* container_id=C ")


def test_a_router_without_a_ticket_does_not(
    router: RunningRouter, realm: Realm, site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {**realm.environment, "KRB5CCNAME": f"FILE:{tmp_path / 'none'}"}.items():
        monkeypatch.setenv(name, value)
    with running(calling(router, site, "D"), tmp_path) as caller:
        caller.wait_for_line("failed: the plugin that logs the router in failed")
    assert not router.matching("container_id=D ")


def test_rubbish_does_not_either(router: RunningRouter) -> None:
    for response in (None, b"", b"rubbish", b"\x60\x82\xff\xff" + bytes(500)):
        with Peer(router.port, opened=False) as peer:
            peer.raw(SASL_HEADER)
            peer.expect_header(SASL_HEADER)
            assert peer.expect(SaslMechanisms).sasl_server_mechanisms == ("GSSAPI",)
            peer.say(SaslInit("GSSAPI", response), frame_type=1)
            if not response:
                peer.expect(SaslChallenge)
                peer.say(SaslResponse(b"rubbish"), frame_type=1)
            assert peer.expect(SaslOutcome).code == AUTH
            peer.expect_end_of_stream()
