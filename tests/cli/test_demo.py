"""`trouter run --demo` as a new user types it: a network with traffic, consoles with logins, and a clean end."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Timer
from typing import Any

import pytest

from tests.interop.consoles import ask, operation, query, rows
from tests.routers import DEADLINE_S, ROOT

pytestmark = [pytest.mark.interop, pytest.mark.slow]
USERS = ("operator", "watcher", "acme", "umbrella")


@dataclass
class Demonstration:
    """A running demo: its process, its output, and the processes of its routers."""

    process: subprocess.Popen[str]
    text: str
    routers: list[int]

    def ask(self, user: str, *requests: dict[str, Any]) -> list[dict[str, Any]]:
        """Return the answer that the console of ``user`` gets."""
        whole, acme, umbrella = re.findall(r"http(://127\.0\.0\.1:\d+/)", self.text)
        login = re.search(rf"^  {user} +(\S+) ", self.text, re.MULTILINE)
        assert login is not None
        url = {"acme": acme, "umbrella": umbrella}.get(user, whole)
        return ask(f"ws{url}", requests, username=user, password=login[1])

    def wait_for(self, user: str, request: dict[str, Any], wanted: Any) -> list[dict[str, Any]]:
        """Repeat the request until the rows are as ``wanted``; kill the process if they never are."""
        while not wanted(found := rows(self.ask(user, request)[0])):
            assert self.process.poll() is None, found
        return found


def children_of(parent: int) -> list[int]:
    """Return the processes that ``parent`` has started, in that order."""
    children = (path.read_text() for path in Path(f"/proc/{parent}/task").glob("*/children"))
    return sorted((int(pid) for listed in children for pid in listed.split()), key=started_at)


def started_at(process: int) -> int:
    """Return when a process started: its number does not say it, because numbers begin anew at the highest."""
    return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[19])


@contextmanager
def demonstration(folder: Path) -> Iterator[Demonstration]:
    """Run the demo until it has printed its URLs; kill it at the end, and check that none of its routers is left."""
    command = [sys.executable, "-m", "trouter", "run", "--demo", "--no-browser"]
    pipe = subprocess.PIPE
    environment = {**os.environ, "TMPDIR": str(folder)}
    with subprocess.Popen(command, cwd=ROOT, env=environment, stdout=pipe, stderr=pipe, text=True) as process:
        hang = Timer(2 * DEADLINE_S, process.send_signal, (signal.SIGINT,))
        hang.start()
        try:
            assert process.stdout is not None
            text = ""
            for line in process.stdout:
                text += line
                if line.startswith("Ctrl-C"):
                    break
            routers = children_of(process.pid)
            assert len(routers) == 4, text
            yield Demonstration(process, text, routers)
        finally:
            hang.cancel()
            process.send_signal(signal.SIGINT)
            process.wait(DEADLINE_S)
    assert [pid for pid in routers if Path(f"/proc/{pid}").exists()] == []
    assert list(folder.iterdir()) == []


def test_a_newcomer_sees_a_working_network_and_ends_the_demonstration(tmp_path: Path) -> None:
    with demonstration(tmp_path) as shown:
        (nodes,) = shown.ask("watcher", operation("GET-MGMT-NODES", "$management"))
        assert {re.sub(r".*/0/(\w+)/.*", r"\1", node) for node in nodes["body"]} == {"main", "north", "south"}
        addresses = query(
            "router.address", ["name", "deliveriesIngress", "deliveriesEgress"], "_edge/branch/$management"
        )
        shown.wait_for(
            "operator",
            addresses,
            lambda found: any(row["name"] == "M0orders" and row["deliveriesIngress"] > 10 for row in found),
        )
        links = query("router.link", ["owningAddr", "linkDir", "unsettledCount"], "_topo/0/south/$management")
        shown.wait_for(
            "operator",
            links,
            lambda found: any(row["owningAddr"] == "M0reports" and row["unsettledCount"] == 10 for row in found),
        )
        shown.wait_for(
            "operator",
            query("vhostStats", ["hostname", "connectionsDenied"]),
            lambda found: {row["hostname"]: row["connectionsDenied"] for row in found}["$default"] > 1,
        )
        shown.process.send_signal(signal.SIGINT)
        assert shown.process.wait(DEADLINE_S) == 0
        assert shown.process.stderr is not None
        assert shown.process.stderr.read() == ""


def test_each_login_of_the_demonstration_has_its_rights(tmp_path: Path) -> None:
    with demonstration(tmp_path) as shown:
        for tenant in ("acme", "umbrella"):
            connections, logs = shown.ask(tenant, query("connection", ["user"]), query("log"))
            assert {row["user"] for row in rows(connections)} == {tenant}
            assert logs["status"] == 403
        create = {
            "to": "$management",
            "body": {"name": "x", "prefix": "x"},
            "application_properties": {
                "operation": "CREATE",
                "type": "org.apache.qpid.dispatch.router.config.address",
                "name": "x",
            },
        }
        for user, status in (("watcher", 403), ("operator", 201)):
            assert shown.ask(user, create)[0]["status"] == status
        there = {**create, "to": "_topo/0/north/$management"}
        assert shown.ask("operator", there)[0]["status"] == 201


def test_the_demonstration_ends_when_one_router_ends(tmp_path: Path) -> None:
    with demonstration(tmp_path) as shown:
        os.kill(shown.routers[1], signal.SIGKILL)
        assert shown.process.wait(DEADLINE_S) == 1
        assert shown.process.stderr is not None
        assert shown.process.stderr.read().startswith("The router north ended. The end of its log:\n")
