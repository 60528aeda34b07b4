"""Denials that a client repeats on many connections fill neither log nor records, and hide no other client's."""

from __future__ import annotations

import logging
from collections import Counter

import pytest
from trio.testing import MockClock

from tests.connections.plays import LISTENER, ROUTER, opened, receiver
from trouter.policy.kinds import SINGLY
from trouter.records import PolicyDecision
from trouter.records.stream import RecordQueue
from trouter.telemetry.recorder import OF_USER
from trouter.testing.player import octets_of, play

pytestmark = pytest.mark.attack

POLICY = """
policy { enableVhostPolicy: yes, defaultVhost: $default }
vhost {
    hostname: $default
    allowUnknownUser: yes
    groups: { $default: { remoteHosts: *, sources: other, targets: other, maxConnectionsPerHost: 100 } }
}
"""
CONNECTIONS = OF_USER // 2
ATTACHES = 2 * SINGLY


async def test_refused_attaches_of_a_client_are_told_within_its_allowance(
    mock_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    """The first of each connection is told, also of one that comes last; of the others few are, and all are counted."""
    caplog.set_level(logging.INFO)
    async with play(ROUTER + LISTENER + POLICY) as router:
        recorder = router.process.services.recorder
        queue = RecordQueue(lambda: None)
        recorder.add(queue)
        flood = b"".join(octets_of(receiver(handle=number, name=f"n{number}")) for number in range(ATTACHES))
        clients = [await opened(router) for _ in range(CONNECTIONS)]
        for client in clients:
            await client.play(flood)
        await opened(router, receiver(name="quiet", address="quiet"))
        await opened(router, receiver(name="other", address="of another host"), host="192.0.2.8")
        at_once = [record for record in queue.take_records().records if isinstance(record, PolicyDecision)]
        recorder.repeats.write_all()
        rest = [record for record in queue.take_records().records if isinstance(record, PolicyDecision)]
    denials = [record for record in at_once if record.op == "attach" and not record.allow]
    assert all(record.repeat == 1 for record in denials)
    own = [record for record in denials if record.host == "192.0.2.7"]
    assert len({record.conn for record in own}) == CONNECTIONS + 1
    assert len(own) == CONNECTIONS + 1 + OF_USER
    assert {record.addr for record in denials} == {"queue", "quiet", "of another host"}
    counts = Counter[str | None]()
    for record in (*denials, *rest):
        counts[record.host] += record.repeat
    assert counts == {"192.0.2.7": CONNECTIONS * ATTACHES + 1, "192.0.2.8": 1}
    lines = Counter(record.name for record in caplog.records if "refused" in record.message or "DENY" in record.message)
    assert max(lines.values()) <= 4 * OF_USER
