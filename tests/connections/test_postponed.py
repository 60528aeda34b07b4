"""The time for which the router makes a peer wait, because of earlier failures, is not taken from its handshake."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from trouter.app.process import RouterProcess
from trouter.client import connect
from trouter.client.sasl import Plain
from trouter.config import load
from trouter.config.facts import router_facts
from trouter.hooks import Plugins
from trouter_plugins.users_file import put_user

SECRET = "wonderland"
HANDSHAKE_S, LONGEST_S = 3, 4
ROUTER = f"""
router {{{{
    id: R
    authLockout: enforce
    authDelayAfter: 1
    authLongestDelaySeconds: {LONGEST_S}
    usersFile: {{users}}
}}}}
listener {{{{
    host: 127.0.0.1
    port: 0
    allowInsecurePlain: loopback
    saslMechanisms: PLAIN
    idleTimeoutSeconds: 0
    initialHandshakeTimeoutSeconds: {HANDSHAKE_S}
}}}}
"""


async def test_an_outcome_that_is_delayed_comes_even_when_the_handshake_would_be_over(
    tmp_path: Path, nursery: trio.Nursery, mock_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The loop's clock stands still, so that the speed of the machine does not matter."""
    put_user(tmp_path / "users", "alice", SECRET.encode())
    configuration, plugins = load(text=ROUTER.format(users=tmp_path / "users")), Plugins.load()
    plugins.configure(router_facts(configuration), configuration.router.plugin_settings)
    process = RouterProcess(configuration, plugins)
    await nursery.start(process.run)
    lockout, waits = process.services.guard.lockout, trio.Event()
    for _ in range(3):
        mock_clock.jump(lockout.judge_attempt("127.0.0.1", "alice", right=False).wait_s or 0)
    state = lockout.state_of(lockout.keys()[-1])
    assert state is not None
    assert state[1] == LONGEST_S
    sleep = trio.sleep

    async def noted(seconds: float) -> None:
        if seconds == LONGEST_S:
            waits.set()
        await sleep(seconds)

    monkeypatch.setattr(trio, "sleep", noted)

    async def let_it_pass() -> None:
        await waits.wait()
        mock_clock.jump(HANDSHAKE_S + 0.5)
        await wait_all_tasks_blocked(0.05)
        mock_clock.jump(LONGEST_S - HANDSHAKE_S)

    nursery.start_soon(let_it_pass)
    port = process.listeners[0].sockets[0].getsockname()[1]
    async with connect(f"amqp://127.0.0.1:{port}", sasl=[Plain("alice", SECRET)], idle_timeout=0):
        assert waits.is_set()
    nursery.cancel_scope.cancel()
