"""What routers with workers limit together: connections of policies, vhosts, users and hosts, and of listeners."""

from __future__ import annotations

import os
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress

import pytest
import trio

from tests.management.node import Node
from tests.routers import DEADLINE_S, RunningRouter, process, stopped_cleanly
from tests.waiting import until
from trouter.client import ClientError, connect
from trouter_plugins.users_file import put_user

WORKERS = 3
ROUTER = f"router {{\n    id: A\n    workers: {WORKERS}\n    drainTimeoutSeconds: 5\n}}\n"
POLICY = """policy {
    enableVhostPolicy: yes
    maxConnections: 9
}
"""
VHOSTS = {
    "all": "maxConnections: 4",
    "user": "maxConnectionsPerUser: 2",
    "host": "maxConnectionsPerHost: 3",
    "few": "maxConnections: 100",
}
GROUP = """    groups: {
        $default: {
            remoteHosts: *
            sources: *
            targets: *
            allowDynamicSource: true
        }
    }
"""
SERVES = rf"MAIN \(notice\) {WORKERS} workers serve"

pytestmark = [pytest.mark.attack, pytest.mark.trio]


def vhost(name: str, limit: str) -> str:
    return f"vhost {{\n    hostname: {name}\n    {limit}\n    allowUnknownUser: true\n{GROUP}}}\n"


LISTENERS = (
    "listener {\n    host: 127.0.0.1\n    port: 0\n    name: main\n    saslMechanisms: ANONYMOUS\n}\n"
    "listener {\n    host: 127.0.0.1\n    port: 0\n    name: small\n    maxConnections: 4\n"
    "    saslMechanisms: ANONYMOUS\n}\n"
    "listener {\n    host: 127.0.0.1\n    port: 0\n    name: users\n    saslMechanisms: SCRAM-SHA-256\n}\n"
)
LOCK_AFTER = 4
LOCKING = f"    authDelayAfter: 1000\n    authLockoutAfter: {LOCK_AFTER}\n"


@pytest.fixture(scope="module")
def router(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningRouter]:
    folder = tmp_path_factory.mktemp("limits")
    for user in ("alice", "bob"):
        put_user(folder / "users", user, b"secret")
    own = ROUTER.replace("}", f"    usersFile: {folder / 'users'}\n{LOCKING}}}")
    with process(own + POLICY + "".join(vhost(*each) for each in VHOSTS.items()) + LISTENERS, folder) as running:
        running.wait_for_line(SERVES)
        with stopped_cleanly(running):
            yield running


class Held:
    """A connection that stays open until it is given up."""

    def __init__(self) -> None:
        self.worker = ""
        self.given_up = trio.Event()
        self.ended = trio.Event()

    async def hold(self, port: int, hostname: str, task_status: trio.TaskStatus[None]) -> None:
        async with (
            connect(f"amqp://127.0.0.1:{port}", hostname=hostname) as connection,
            connection.open_sender("any"),  # a refused connection is opened and closed
        ):
            self.worker = connection.remote.container_id
            task_status.started()
            with suppress(ClientError):
                await self.given_up.wait()
        self.ended.set()


async def open_as_many(
    nursery: trio.Nursery, port: int, hostname: str, wanted: int, attempts: int = 2 * WORKERS
) -> list[Held]:
    """Open connections until ``attempts`` in a row are refused after the ``wanted`` ones."""
    opened: list[Held] = []
    refused = 0
    with trio.fail_after(DEADLINE_S):
        while refused < attempts:
            held = Held()
            try:
                await nursery.start(held.hold, port, hostname)
            except* (ClientError, OSError):  # what ended just before is counted a moment longer
                refused = 0 if len(opened) < wanted else refused + 1
            else:
                opened.append(held)
    return opened


@asynccontextmanager
async def many() -> AsyncIterator[trio.Nursery]:
    async with trio.open_nursery() as nursery:
        yield nursery
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize(("hostname", "limit"), [("all", 4), ("user", 2), ("host", 3)])
async def test_the_limits_of_a_vhost_hold_for_all_workers_together(
    router: RunningRouter, hostname: str, limit: int
) -> None:
    async with many() as nursery:
        opened = await open_as_many(nursery, router.ports[0], hostname, limit)
        assert len(opened) == limit
        assert len({each.worker for each in opened}) > 1
        opened[0].given_up.set()
        await opened[0].ended.wait()  # its place is free again, whichever worker had it
        assert len(await open_as_many(nursery, router.ports[0], hostname, 1)) == 1


async def test_the_limit_of_the_policy_holds_for_all_workers_together(router: RunningRouter) -> None:
    async with many() as nursery:
        assert len(await open_as_many(nursery, router.ports[0], "few", 9)) == 9


async def test_the_limit_of_a_listener_holds_for_all_workers_together(router: RunningRouter) -> None:
    async with many() as nursery:
        assert len(await open_as_many(nursery, router.ports[1], "few", 4)) == 4


async def test_the_places_of_a_worker_that_is_killed_are_free_again(router: RunningRouter) -> None:
    async with many() as nursery:
        opened = await open_as_many(nursery, router.ports[0], "all", 4)
        await trio.to_thread.run_sync(router.wait_for_line, r"\[W2\] Operational")
        line = router.matching(r"\[W2\] Operational")[-1]
        os.kill(int(line.rpartition("process ID ")[2].rstrip(")")), signal.SIGKILL)
        await trio.to_thread.run_sync(router.wait_for_line, r"\[W2\] Operational", 2)
        lost = sum(each.worker == "A.2" for each in opened)
        assert lost
        assert len(await open_as_many(nursery, router.ports[0], "all", lost)) == lost


async def may_log_in(port: int, user: str, password: str) -> bool:
    try:
        async with (
            connect(f"amqp://127.0.0.1:{port}", user=user, password=password, hostname="few") as connection,
            connection.open_sender("any"),
        ):
            return True
    except ClientError:
        return False


def is_locked_at_all(port: int) -> bool:
    """Return whether alice is locked out at each of the workers, which get the connections in turn."""
    found: dict[str, bool] = {}
    while len(found) < WORKERS:
        node = Node(port, virtual_host="few")
        try:
            rows = node.query("authLockout")
            found[node.connection.conn.remote_container] = any(each["locked"] for each in rows)
        finally:
            node.close()
    return all(found.values())


async def test_failed_logins_at_all_workers_lock_a_user_out_at_all_workers(router: RunningRouter) -> None:
    port = router.ports[2]
    assert await may_log_in(port, "alice", "secret")
    for _ in range(LOCK_AFTER):
        assert not await may_log_in(port, "alice", "guess")
    await trio.to_thread.run_sync(until, lambda: is_locked_at_all(router.ports[0]))
    assert not any([await may_log_in(port, "alice", "secret") for _ in range(WORKERS)])
    assert all([await may_log_in(port, "bob", "secret") for _ in range(WORKERS)])


async def test_a_login_that_succeeds_at_one_worker_clears_the_failures_at_all(router: RunningRouter) -> None:
    for _ in range(3):
        for _ in range(LOCK_AFTER // 2):
            assert not await may_log_in(router.ports[2], "bob", "guess")
        assert await may_log_in(router.ports[2], "bob", "secret")
