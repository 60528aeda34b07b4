"""Decisions of jobs (the plugin feedback) are in force at all workers of a router, whichever one they came to."""

from __future__ import annotations

import itertools
import json
import os
import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.e2e.peer import Peer
from tests.e2e.test_records import of, records_of
from tests.routers import RunningRouter, process, stopped_cleanly
from tests.waiting import until
from trouter.client import Message, Properties
from trouter.wire.performatives import Accepted
from trouter.wire.types import Symbol
from trouter_plugins.users_file import put_user

WORKERS = 3
CONFIGURATION = """router {{
    id: A
    workers: {workers}
    usersFile: {folder}/users
    authLockout: off
    drainTimeoutSeconds: 5
    pluginSettings: {{"feedback": {{"address": "decisions", "senders": "audit", "maxPerSecond": 1000}}}}
}}
listener {{
    host: 127.0.0.1
    port: 0
    saslMechanisms: PLAIN
    allowInsecurePlain: loopback
}}
recordLog {{
    dir: {folder}/records
    kinds: audit
}}
"""
PASSWORD = "secret"
_ids = itertools.count()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("feedback")


@pytest.fixture(scope="module")
def router(folder: Path) -> Iterator[RunningRouter]:
    for user in ("audit", "alice", "bob"):
        put_user(folder / "users", user, PASSWORD.encode())
    with process(CONFIGURATION.format(workers=WORKERS, folder=folder), folder) as running:
        running.wait_for_line(rf"MAIN \(notice\) {WORKERS} workers serve")
        with stopped_cleanly(running):
            yield running


def log_in(router: RunningRouter, user: str) -> tuple[Peer, int]:
    """Return a connection before its open, and the code of the login's outcome: 0 if the user may log in."""
    peer = Peer(router.port, opened=False)
    return peer, peer.authenticate("PLAIN", f"\0{user}\0{PASSWORD}".encode())


def one_at_each(stack: ExitStack, router: RunningRouter, user: str) -> dict[str, Peer]:
    """Return a connection with a session at each worker, by its id."""
    found: dict[str, Peer] = {}
    while len(found) < WORKERS:  # they go to the workers in turn
        peer, code = log_in(router, user)
        stack.enter_context(peer)
        assert code == 0
        found.setdefault(peer.open().container_id, peer)
    for each in found.values():
        each.begin()
    return found


def decide(peer: Peer, action: str, subject: str) -> None:
    """Send a decision, which the router accepts."""
    decision = {"v": 1, "id": f"d{next(_ids)}", "action": action, "subject": subject}
    body = json.dumps({**decision, "until_us": int((time.time() + 600) * 1_000_000)}).encode()
    facts = Properties(subject="trouter.decision.v1", content_type=Symbol("application/json"))
    delivery = peer.transfer(peer.attach_sender("decisions"), Message(body, properties=facts).encode())
    assert isinstance(peer.expect_outcome(delivery), Accepted)


def may_log_in(router: RunningRouter, user: str) -> list[bool]:
    """Return whether the user may log in, of as many connections as there are workers."""
    found = []
    for _ in range(WORKERS):
        peer, code = log_in(router, user)
        with peer:
            found.append(code == 0)
    return found


def until_all(router: RunningRouter, user: str, wanted: bool) -> None:
    """Wait until a user may log in at all workers, or at none."""
    until(lambda: may_log_in(router, user) == [wanted] * WORKERS)


def test_a_user_is_locked_at_all_workers_and_let_in_again_at_all(router: RunningRouter, folder: Path) -> None:
    with ExitStack() as stack:
        audit = one_at_each(stack, router, "audit")
        inside = one_at_each(stack, router, "alice")
        decide(audit["A.2"], "lock-user", "alice")
        for peer in inside.values():  # they are turned out
            assert peer.expect_close() is not None
        assert may_log_in(router, "alice") == [False] * WORKERS
        assert may_log_in(router, "bob") == [True] * WORKERS
        decide(audit["A.3"], "unlock-user", "alice")
        until_all(router, "alice", True)
    router.wait_for_line("ends: unlock-user", WORKERS)
    made, ended = of(records_of(folder / "records"), "management.change", entity_name="decision/lock-user/alice")
    assert (made["op"], ended["op"]) == ("CREATE", "DELETE")  # once, by the worker that it came to


def test_decisions_that_did_not_get_through_are_asked_for(router: RunningRouter) -> None:
    parent = int(router.matching(r"parent process ID")[-1].rpartition("ID ")[2].rstrip(")"))
    with ExitStack() as stack:
        audit = one_at_each(stack, router, "audit")
        os.kill(parent, signal.SIGSTOP)  # it passes nothing on, until its sockets are full
        try:
            for number in range(700):
                decide(audit["A"], "lock-user", f"nobody-{number}")
            decide(audit["A"], "lock-user", "alice")
        finally:
            os.kill(parent, signal.SIGCONT)
        router.wait_for_line(r"\[W2\] decision .* lock-user 'alice'")
        until_all(router, "alice", False)
        decide(audit["A"], "unlock-user", "alice")
        until_all(router, "alice", True)


def test_a_worker_that_replaces_another_one_has_the_decisions_in_force(router: RunningRouter) -> None:
    with ExitStack() as stack:
        audit = one_at_each(stack, router, "audit")
        decide(audit["A"], "lock-user", "bob")
        until_all(router, "bob", False)
        line = router.matching(r"\[W2\] Operational")[-1]
        os.kill(int(line.rpartition("process ID ")[2].rstrip(")")), signal.SIGKILL)
        router.wait_for_line(r"\[W2\] decision .* lock-user 'bob'", 2)
        until_all(router, "bob", False)
        decide(audit["A"], "unlock-user", "bob")
        until_all(router, "bob", True)
