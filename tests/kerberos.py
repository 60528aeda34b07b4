"""A Kerberos realm for tests of GSSAPI: its key distribution centre, a user with a ticket, and the key of a router."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.ports import free_port
from tests.routers import DEADLINE_S

REALM = "TEST.INVALID"
SBIN = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
TOOLS = ("krb5kdc", "kdb5_util", "kadmin.local", "kinit")


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


@contextmanager
def running_realm(folder: Path) -> Iterator[Realm]:
    """Run a realm in which alice has a ticket."""
    realm = Realm(folder)
    try:
        realm.log_in()
        yield realm
    finally:
        realm.process.kill()
        realm.process.communicate()
