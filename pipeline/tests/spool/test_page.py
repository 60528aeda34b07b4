"""The command of docs/spool.md, typed as printed: over TLS, with a password, and with metrics in a file."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from pipeline.tests.spooled import send
from tests.certificates import Authority
from tests.house.sources import ROOT
from tests.routers import RunningRouter, running
from tests.waiting import until
from tests.walks import Shell
from trouter.cli import main
from trouter_pipeline.spool import SpoolReader

_PAGE = (ROOT / "docs" / "spool.md").read_text(encoding="utf-8")
COMMAND, *_ = re.findall(r"^```\n(trouter pipeline spool .*?)^```", _PAGE, re.MULTILINE | re.DOTALL)
CONFIGURATION = """
router {{ id: R, usersFile: {folder}/users }}
sslProfile {{ name: tls, certFile: {certificate}, privateKeyFile: {key} }}
listener {{ host: 127.0.0.1, port: 0, saslMechanisms: ANONYMOUS }}
listener {{ host: 127.0.0.1, port: 0, sslProfile: tls, requireSsl: yes, authenticatePeer: yes, saslMechanisms: PLAIN }}
"""


@pytest.fixture
def router(tmp_path: Path) -> Iterator[RunningRouter]:
    """Run a router with the user and the password of the page."""
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc" / "spool.password").write_text("a password of the spool\n")
    (tmp_path / "etc" / "spool.password").chmod(0o600)
    assert (
        main(["passwd", "add", f"{tmp_path}/users", "spool", "--password-file", f"{tmp_path}/etc/spool.password"]) == 0
    )
    certificate, key = Authority(tmp_path, "ours").pair("127.0.0.1")
    text = CONFIGURATION.format(folder=tmp_path, certificate=certificate, key=key)
    with running(text, tmp_path) as started:
        yield started


@pytest.mark.slow
def test_the_command_of_the_page_works_as_printed(
    router: RunningRouter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folders of the page are folders of the test, and its router is that of the test."""
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
    typed = COMMAND.replace("\\\n", " ").replace("router.example.com", f"127.0.0.1:{router.ports[1]}")
    for theirs, ours in (("/var/lib/trouter", "."), ("/var/lib/node_exporter", "."), ("/etc/trouter", "etc")):
        typed = typed.replace(theirs, ours)
    shell = Shell(tmp_path, ports=("9",), brings=())
    shell.start(typed.strip())
    send(f"127.0.0.1:{router.ports[0]}", "orders", 3)
    until(lambda: SpoolReader(tmp_path / "orders").durable() == 3)
    until(lambda: 'trouter_spool_accepted_total{address="orders",shard="0"} 3' in (tmp_path / "spool.prom").read_text())
    shell.stop()
