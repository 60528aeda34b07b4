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
from trouter.telemetry.recorder import MAX_REMEMBERED, OF_USER, Denials, Denied
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


BOB = Denied("attach", "sender", "bob", "192.0.2.9", "v", "v:g:targets:none", "quiet")
ALICE = BOB._replace(user="alice", host="192.0.2.7")
LOGIN = Denied("login", "bad-credentials", "bob", "192.0.2.9", "", "listener:l", "PLAIN")


@pytest.mark.parametrize(
    "flood",
    [
        [ALICE._replace(about=f"queue {number}") for number in range(MAX_REMEMBERED)],
        [ALICE._replace(operation="open", vhost=f"vhost{number}") for number in range(MAX_REMEMBERED)],
        [LOGIN._replace(user=f"made up {number}", host="192.0.2.7") for number in range(MAX_REMEMBERED)],
        [ALICE._replace(user="anonymous", host=f"2001:db8::{number}") for number in range(MAX_REMEMBERED)],
    ],
    ids=["addresses", "vhosts", "logins", "addresses of an IPv6 network"],
)
def test_a_client_that_varies_its_requests_pushes_no_denial_of_others_out_of_the_list(flood: list[Denied]) -> None:
    denials = Denials()
    for quiet in (BOB, LOGIN):
        denials.note_denial(quiet)
    for denied in flood:
        denials.note_denial(denied)
    denials.note_denial(BOB._replace(about="late"))
    rows = [row for _, row in denials.rows()]
    assert len(rows) == MAX_REMEMBERED
    assert {row.about for row in rows if row.host == "192.0.2.9"} == {"quiet", "PLAIN", "late"}
    assert [row.user for row in rows if row.host != "192.0.2.9"] == [denied.user for denied in flood[3:]]
