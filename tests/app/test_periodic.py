"""The table of the periodic work of a router: each row works, and is there in the modes that need it."""

from __future__ import annotations

import pytest
import trio

from trouter.app.periodic import Periodic, periodic_work
from trouter.app.process import RouterProcess
from trouter.app.supervision import Supervisor
from trouter.config import load
from trouter.hooks import Plugins

ALWAYS = [
    "round",
    "memory",
    "quotas",
    "logins",
    "host names",
    "sslProfiles",
    "certificates",
    "records",
    "listeners",
    "routes",
]


def rows(mode: str, **environment: str) -> list[Periodic]:
    process = RouterProcess(load(text=f"router {{ id: R, mode: {mode} }}"), Plugins.load())
    return list(periodic_work(process._assembly, Supervisor(environment)))


@pytest.mark.parametrize(
    ("mode", "environment", "more"),
    [
        ("standalone", {}, []),
        ("interior", {}, ["edge routers"]),
        ("edge", {}, ["uplink"]),
        ("standalone", {"NOTIFY_SOCKET": "/nowhere", "WATCHDOG_USEC": "3000000"}, ["watchdog"]),
    ],
)
async def test_a_router_has_the_rows_of_its_mode(mode: str, environment: dict[str, str], more: list[str]) -> None:
    table = rows(mode, **environment)
    assert [row.name for row in table] == [*ALWAYS, *more]
    for row in table:
        assert (row.work is None) is (row.waiting is not None), row.name
        assert row.what
        assert (row.period_s() if callable(row.period_s) else row.period_s) > 0


@pytest.mark.parametrize("mode", ["standalone", "interior", "edge"])
async def test_each_row_can_be_done_at_once(mode: str) -> None:
    for row in rows(mode):
        if row.work is not None:
            row.work()
        if row.waiting is not None:
            with trio.fail_after(60):
                await row.waiting()
