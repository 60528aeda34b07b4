"""Requests that are refused without end fill no log, and hide no other user's."""

from __future__ import annotations

import logging
from collections import Counter

import pytest
from trio.testing import MockClock, wait_all_tasks_blocked

from tests.connections.plays import LISTENER, ROUTER, opened, receiver, sender
from trouter.policy.kinds import SINGLY
from trouter.testing.player import play
from trouter.wire.framing import frame
from trouter.wire.message import Message, Properties
from trouter.wire.performatives import Flow, Transfer, encode_performative

pytestmark = pytest.mark.attack

POLICY = """
policy { enableVhostPolicy: yes, defaultVhost: $default }
vhost {
    hostname: $default
    allowUnknownUser: yes
    groups: { $default: { remoteHosts: *, sources: *, targets: *, management: LEVEL } }
}
"""
MORE = 100
#: Credit for all answers.
ANSWERS = Flow(
    next_incoming_id=0,
    incoming_window=999,
    next_outgoing_id=0,
    outgoing_window=999,
    handle=0,
    delivery_count=0,
    link_credit=999,
)


def requests(operation: str, first: int, count: int) -> bytes:
    """Return requests for an entity that does not exist."""
    properties = {"operation": operation, "type": "listener", "name": "nowhere"}
    octets = Message(properties=Properties(reply_to="answers"), application_properties=properties).encode()
    transfers = (
        Transfer(1, delivery_id=number, delivery_tag=b"t", message_format=0, settled=True)
        for number in range(first, first + count)
    )
    return b"".join(frame(0, encode_performative(each) + octets) for each in transfers)


@pytest.mark.parametrize("level", ["read", "admin"])
@pytest.mark.parametrize("operation", ["READ", "DELETE", "FROB"])
async def test_refused_requests_of_a_user_are_logged_in_few_lines(
    operation: str, level: str, mock_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    async with play(ROUTER + LISTENER + POLICY.replace("LEVEL", level)) as router:
        links = (receiver(address="answers"), sender(address="$management"), ANSWERS)
        busy = await opened(router, *links)
        quiet = await opened(router, *links, host="192.0.2.8")
        await busy.play(requests(operation, 0, SINGLY + MORE))
        await wait_all_tasks_blocked()
        await quiet.play(requests(operation, 0, 1))
        await wait_all_tasks_blocked()
        told = [each.getMessage() for each in caplog.records if each.name == "trouter.AGENT"]
        assert len(told) == SINGLY + 1
        router.process.services.recorder.repeats.write_all()
    told = [each.getMessage() for each in caplog.records if each.name == "trouter.AGENT"]
    assert Counter("more)" in line for line in told) == {False: SINGLY + 1, True: 1}
    assert told[-1].endswith(f"(and {MORE - 1} more)")
    assert all(line.startswith(f"Error performing {operation}: ") for line in told)
