"""A connector that is stopped in the same turn in which its dialling succeeds leaves no connection."""

from __future__ import annotations

import socket
from typing import Any

import pytest
import trio
import trio.testing

from trouter.app.process import RouterProcess
from trouter.config import load
from trouter.hooks import Plugins
from trouter.net import reach
from trouter.net.dialing import connect

HANG_S = 60.0


async def test_a_connection_dialled_after_the_stop_is_closed(
    nursery: trio.Nursery, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = RouterProcess(load(text="router { id: R }\nlistener { host: 127.0.0.1, port: 0 }\n"), Plugins.load())
    await nursery.start(there.run)
    port = there.listeners[0].sockets[0].getsockname()[1]
    here = RouterProcess(load(text=f"connector {{ name: out, host: 127.0.0.1, port: {port} }}\n"), Plugins.load())
    dialled: list[Any] = []

    async def connect_and_stop(*place: Any) -> socket.socket:
        dialled.append(await connect(*place))
        (own,) = here.in_force.parts.connectors.all
        own.stop()
        dialled.append(own)
        return dialled[0]  # type: ignore[no-any-return]

    monkeypatch.setattr(reach, "connect", connect_and_stop)
    await nursery.start(here.run)
    with trio.fail_after(HANG_S):
        while len(dialled) < 2:
            await trio.testing.wait_all_tasks_blocked()
        await dialled[1].done.wait()
    assert dialled[0].fileno() == -1
    nursery.cancel_scope.cancel()
