"""Hundreds of stock clients come at once from one address that is not this machine's, as behind a NAT or an ingress."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.field.hosts import Host, hosts, needs_hosts
from tests.routers import DEADLINE_S, RunningRouter, process, stopped_cleanly
from tests.tls.pki import Authority
from trouter_plugins.verifiers import MIN_ITERATIONS, ScramVerifier

pytestmark = [needs_hosts(), pytest.mark.slow, pytest.mark.interop]

PASSWORD = "right"
STORM = Path(__file__).with_name("storm.py")
#: What is tested is who is admitted, not in how many seconds: on a busy machine ten are too few.
LISTENER = (
    "listener {{\n host: {}\n port: 0\n authenticatePeer: yes\n saslMechanisms: PLAIN\n allowInsecurePlain: yes\n"
    " initialHandshakeTimeoutSeconds: 600\n idleTimeoutSeconds: 600\n{}}}\n"
)


class Place:
    """A router on a host, and a host from which all clients come."""

    def __init__(
        self, router: RunningRouter, scheme: str, server: Host, client: Host, trusted: tuple[str, ...]
    ) -> None:
        self.router = router
        self._client = client
        self._url = f"{scheme}://{server.address}:{router.port}"
        self._trusted = trusted

    def start(self, count: int, password: str = PASSWORD) -> subprocess.Popen[str]:
        """Start a process with ``count`` connections, all at once."""
        words = [sys.executable, str(STORM), self._url, str(count), password, *self._trusted]
        return self._client.start(words, stdout=subprocess.PIPE)


@contextmanager
def place(folder: Path, router: str = "", *, tls: bool = False, workers: int = 1) -> Iterator[Place]:
    """Run a router with the user `app`, whose password is checked fast: the tests wait for the router alone."""
    users = folder / "users"
    verifier = ScramVerifier.make("SCRAM-SHA-256", PASSWORD.encode(), MIN_ITERATIONS)
    users.write_text(f"app:{verifier.format()}\n", encoding="ascii")
    users.chmod(0o600)
    with hosts(2) as (server, client):
        authority = Authority(folder)
        pair = authority.issue("CN=R", server.address)
        text = f"router {{\n id: R\n usersFile: {users}\n workers: {workers}\n{router}\n}}\n"
        text += f"sslProfile {{\n name: p\n certFile: {pair.cert}\n privateKeyFile: {pair.key}\n}}\n"
        text += LISTENER.format(server.address, " sslProfile: p\n requireSsl: yes\n" if tls else "")
        with ExitStack() as stack:
            with server.inside():
                made = stack.enter_context(process(text, folder))
            made.wait_for_line(r"Operational" if workers == 1 else rf"MAIN \(notice\) {workers} workers serve")
            stack.enter_context(stopped_cleanly(made))
            yield Place(made, "amqps" if tls else "amqp", server, client, (str(authority.file),) if tls else ())


def result(storm: subprocess.Popen[str]) -> dict[str, Any]:
    """Wait for the end of a storm; return what became of its connections."""
    with storm:
        out, _ = storm.communicate(timeout=DEADLINE_S)
    answer: dict[str, Any] = json.loads(out.splitlines()[-1])
    return answer


def test_four_hundred_clients_in_clear_with_a_stale_password_among_them(tmp_path: Path) -> None:
    with place(tmp_path, "authLongestDelaySeconds: 1") as site:
        stale = site.start(30, "stale")
        fresh = site.start(370)
        assert result(fresh) == {"opened": 370, "ends": {}}
        assert result(stale)["opened"] == 0
        assert result(site.start(1)) == {"opened": 1, "ends": {}}
        assert not site.router.matching(r" refused: ")


@pytest.mark.parametrize("workers", [1, 2])
def test_a_thousand_clients_with_tls(tmp_path: Path, workers: int) -> None:
    with place(tmp_path, tls=True, workers=workers) as site:
        storms = [site.start(500) for _ in range(2)]
        found = [result(storm) for storm in storms]
        assert found == [{"opened": 500, "ends": {}}] * 2, "\n".join(site.router.lines[-40:])
        assert not site.router.matching(r" refused: ")


@pytest.mark.parametrize("router", ["maxHandshakesPerHost: 20", "acceptRatePerHost: 50"])
def test_a_limit_that_is_written_holds_and_names_its_cure(tmp_path: Path, router: str) -> None:
    with place(tmp_path, router) as site:
        assert result(site.start(200))["opened"] < 200
        site.router.wait_for_line(
            r"refused: (maxHandshakesPerHost 20|more than acceptRatePerHost 50 a second) from 10\.\S+; if many clients "
            "share this address, put it into handshakeExempt, or let their proxy send PROXY headers"
        )
