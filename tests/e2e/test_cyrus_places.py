"""A router whose file names no folder for Cyrus SASL: unmodified clients log in by what Cyrus SASL has been told."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.test_proton_logins import SECRET, assert_logged_in, assert_refused, by_password, log_in
from tests.http.test_live import get, http_port
from tests.plugins import test_sasl_cyrus as cyrus
from tests.proton_build import WITH_CYRUS
from tests.routers import DEADLINE_S, RunningRouter, StartRouter, stopped_cleanly, watched

pytestmark = [
    pytest.mark.interop,
    pytest.mark.slow,
    WITH_CYRUS,
    pytest.mark.skipif(bool(cyrus.missing()), reason=cyrus.missing() or "it is there"),
]

#: As a published file has it: no saslConfigDir, and no saslMechanisms.
ROUTER = """
policy {{ enableVhostPolicy: no }}
router {{
    mode: standalone
    id: R
    {router}
}}
listener {{
    host: 127.0.0.1
    port: 0
    {listener}
}}
listener {{
    host: 127.0.0.1
    port: 0
    name: web
    http: yes
    websockets: no
}}
"""
#: What a client reports whose mechanisms are not offered.
NOT_OFFERED = {"refused": "amqp:unauthorized-access: Authentication failed [mech=none]"}
MECH_LIST = "SCRAM-SHA-1 DIGEST-MD5 PLAIN"


def write_site(folder: Path, mech_list: str) -> Path:
    """Write `qdrouterd.conf` for Cyrus SASL with alice in its database; return the folder."""
    cyrus.write_site(folder)
    written = (folder / f"{cyrus.NAME}.conf").read_text()
    (folder / "qdrouterd.conf").write_text(f"{written}mech_list: {mech_list}\n")
    return folder


@pytest.fixture
def place(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder in which Cyrus SASL looks."""
    folder = write_site(tmp_path_factory.mktemp("sasl2"), MECH_LIST)
    monkeypatch.setenv("SASL_CONF_PATH", str(folder))
    return folder


def stock(**options: object) -> dict[str, Any]:
    """Return the options of a client as Proton has them by default: it sends no password in clear."""
    return {"user": "alice", "password": SECRET, **options}


def test_a_stock_client_logs_in_by_what_mech_list_names(start_router: StartRouter, place: Path) -> None:
    router = start_router(ROUTER.format(router="", listener="authenticatePeer: yes"))
    router.wait_for_line(f"logins will be those of {place}/qdrouterd.conf")
    router.wait_for_line("will offer weak mechanisms: SCRAM-SHA-1 DIGEST-MD5")
    assert_logged_in(router, log_in(router.port, **stock()), "SCRAM-SHA-1")
    for mechanism in MECH_LIST.split():
        assert_logged_in(router, log_in(router.port, **by_password(mechanism)), mechanism)
        assert_refused(log_in(router.port, **by_password(mechanism, password="looking glass")))
    for absent in ("SCRAM-SHA-256", "CRAM-MD5", "LOGIN"):
        assert log_in(router.port, **by_password(absent)) == NOT_OFFERED


def test_a_listener_that_names_plain_offers_plain(start_router: StartRouter, place: Path) -> None:
    router = start_router(
        ROUTER.format(router="", listener="authenticatePeer: yes\n    saslMechanisms: PLAIN DIGEST-MD5")
    )
    assert_logged_in(router, log_in(router.port, **by_password("PLAIN")), "PLAIN")
    assert_logged_in(router, log_in(router.port, **stock()), "DIGEST-MD5")


def test_secure_defaults_leave_weak_mechanisms_out(start_router: StartRouter, place: Path) -> None:
    router = start_router(
        ROUTER.format(router=f"saslConfigDir: {place}\n    secureDefaults: yes", listener="authenticatePeer: yes")
    )
    assert_logged_in(router, log_in(router.port, **by_password(None)), "PLAIN")
    for weak in ("SCRAM-SHA-1", "DIGEST-MD5"):
        assert log_in(router.port, **by_password(weak)) == NOT_OFFERED


def test_anonymous_is_offered_only_if_mech_list_names_it(start_router: StartRouter, place: Path) -> None:
    router = start_router(ROUTER.format(router="", listener="authenticatePeer: no"))
    assert log_in(router.port, allowed_mechs="ANONYMOUS") == NOT_OFFERED
    assert_logged_in(router, log_in(router.port, **stock()), "SCRAM-SHA-1")
    assert log_in(router.port, sasl_enabled=False) == {"mechanism": None, "body": "to myself"}
    router.wait_for_line("Connection Opened: .* auth=no user= ")


def test_anonymous_is_offered_if_mech_list_names_it(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch, start_router: StartRouter
) -> None:
    folder = write_site(tmp_path_factory.mktemp("sasl2"), "ANONYMOUS PLAIN")
    monkeypatch.setenv("SASL_CONF_PATH", str(folder))
    router = start_router(ROUTER.format(router="", listener="authenticatePeer: no"))
    assert log_in(router.port, allowed_mechs="ANONYMOUS")["mechanism"] == "ANONYMOUS"


def test_a_router_on_which_no_client_can_log_in_is_not_ready(start_router: StartRouter) -> None:
    router = start_router(ROUTER.format(router="", listener="authenticatePeer: yes"))
    why = "no client will be able to log in: EXTERNAL needs a certificate, and clients are not asked for one"
    router.wait_for_line(rf"\(critical\) .*{why}")
    status, body = get(http_port(router), "/readyz")
    assert status == 503
    assert why in body


# ---------------------------------------------------------------------------------------- the place of every machine
IN_A_COPY_OF_ETC = 'mount --bind "$1" /etc && shift && exec "$@"'


def unable() -> str:
    """Return why this process cannot have an /etc of its own; empty if it can."""
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        return "another /etc needs root and unshare"
    done = subprocess.run(["unshare", "--mount", "true"], capture_output=True, timeout=DEADLINE_S, check=False)
    return "" if done.returncode == 0 else "the kernel forbids mount namespaces"


@pytest.fixture
def with_etc_sasl2(tmp_path: Path) -> Iterator[RunningRouter]:
    """Run a router that sees users in its own /etc/sasl2; the machine's /etc stays as it is."""
    etc = tmp_path / "etc"
    shutil.copytree(
        "/etc", etc, symlinks=True, ignore=shutil.ignore_patterns("shadow*", "gshadow*", "ssl", "alternatives")
    )
    (etc / "sasl2").mkdir(exist_ok=True)
    write_site(etc / "sasl2", MECH_LIST)
    configuration = tmp_path / "router.conf"
    configuration.write_text(ROUTER.format(router="", listener="authenticatePeer: yes"))
    trouter = str(Path(sys.executable).with_name("trouter"))
    command = ["unshare", "--mount", "sh", "-c", IN_A_COPY_OF_ETC, "sh", str(etc), trouter, "run", "-c"]
    environment = {name: value for name, value in os.environ.items() if name != "SASL_CONF_PATH"}
    with watched([*command, str(configuration)], configuration, environment=environment) as router:
        router.wait_for_line("Operational")
        with stopped_cleanly(router):
            yield router


@pytest.mark.skipif(bool(unable()), reason=unable() or "it is able")
def test_users_of_the_place_of_every_machine_log_in(with_etc_sasl2: RunningRouter) -> None:
    with_etc_sasl2.wait_for_line("logins will be those of /etc/sasl2/qdrouterd.conf")
    assert_logged_in(with_etc_sasl2, log_in(with_etc_sasl2.port, **stock()), "SCRAM-SHA-1")
