"""Alarms for the operator: each is a record when it is raised, and another when it is cleared."""

from __future__ import annotations

import pytest

from tests.policy.test_router_policy import compiled, enter, request
from trouter.admission.memory import LATITUDE, REFUSE_AT, REFUSE_LINKS_AT, STARVE_AT, MemoryWatch
from trouter.engine.ports import Budget
from trouter.hooks import Plugins
from trouter.policy.book import CLEAR_S
from trouter.policy.router_policy import RouterPolicy
from trouter.records import Alarm, Record
from trouter.telemetry.recorder import Recorder

QUOTA = """
policy {{ enableVhostPolicy: yes, defaultVhost: }}
vhost {{
    hostname: one
    quotaMode: {mode}
    groups: {{ all: {{ users: *, remoteHosts: *, perUser: {{ maxConnectionsPerSecond: 1 }} }} }}
}}
"""


class Alarms:
    """A sink that keeps the alarms among the records."""

    def __init__(self, recorder: Recorder) -> None:
        self._taken: list[Alarm] = []
        recorder.add(self)

    def put(self, record: Record) -> None:
        if isinstance(record, Alarm):
            self._taken.append(record)

    def take(self) -> list[tuple[str | None, ...]]:
        """Return the kind and text of the alarms since the last call."""
        taken, self._taken = self._taken, []
        return [(each.name, each.severity, each.subject, each.state, each.value, each.limit) for each in taken]


@pytest.mark.parametrize(("mode", "how"), [("enforce", "enforced"), ("alarm", "alarm only")])
def test_a_quota_is_reported_when_it_is_reached_and_when_it_clears(mode: str, how: str) -> None:
    recorder, now = Recorder(), [100.0]
    alarms = Alarms(recorder)
    policy = RouterPolicy(recorder, Plugins(), lambda: now[0])
    policy.replace_policy(compiled(QUOTA.format(mode=mode)))
    enter(policy, request(1))
    assert alarms.take() == []
    told = "quota", "warning", "one:all:perUser:maxConnectionsPerSecond alice"
    assert policy.judge_open(request(2)).allowed == (mode != "enforce")
    assert alarms.take() == [(*told, "raised", how, "1")]
    policy.judge_open(request(3))
    assert alarms.take() == []
    now[0] += CLEAR_S + 1
    policy.book.check_usage()
    assert alarms.take() == [(*told, "cleared", how, "1")]


def test_memory_is_reported_at_each_mark_and_when_it_falls_below() -> None:
    recorder, taken = Recorder(), [0]
    alarms = Alarms(recorder)
    watch = MemoryWatch(Budget(0), recorder, lambda: taken[0], lambda: taken[0], lambda: 0.0)
    watch.set_limit(1000)

    def refuses() -> bool:
        return bool(watch.refusal)

    def refuses_links() -> bool:
        return watch.refuses_links

    def at(percent: int) -> list[tuple[str | None, ...]]:
        taken[0] = percent * 10
        watch.check_memory(())
        return alarms.take()

    starve, refuse = ("memory", "warning", f"{STARVE_AT} percent"), ("memory", "critical", f"{REFUSE_AT} percent")
    links = "memory", "warning", f"{REFUSE_LINKS_AT} percent"
    assert at(STARVE_AT - 1) == []
    assert at(STARVE_AT) == [(*starve, "raised", f"{STARVE_AT} percent", "1000")]
    assert at(REFUSE_LINKS_AT - 1) == []
    assert not refuses_links()
    assert at(REFUSE_LINKS_AT) == [(*links, "raised", f"{REFUSE_LINKS_AT} percent", "1000")]
    assert refuses_links()
    assert at(REFUSE_AT - 1) == []
    assert not refuses()
    assert at(REFUSE_AT) == [(*refuse, "raised", f"{REFUSE_AT} percent", "1000")]
    assert refuses()
    assert at(REFUSE_AT - LATITUDE) == []
    assert at(REFUSE_AT - LATITUDE - 1) == [(*refuse, "cleared", f"{REFUSE_AT - LATITUDE - 1} percent", "1000")]
    assert not refuses()
    assert refuses_links()
    below = REFUSE_LINKS_AT - LATITUDE - 1
    assert at(below) == [(*links, "cleared", f"{below} percent", "1000")]
    assert not refuses_links()
    assert at(10) == [(*starve, "cleared", "10 percent", "1000")]
