"""What a user may repeat at will is told one by one for a while, and then in sum, for this user alone."""

from __future__ import annotations

import pytest
from trio.testing import MockClock

from tests.connections.plays import LISTENER, ROUTER, opened, receiver
from trouter.records import LinkAttachedRecord, LinkDetachedRecord, PolicyDecision
from trouter.records.stream import RecordQueue
from trouter.telemetry.allowances import A_SECOND, AT_ONCE, MAX_STORES, Allowances
from trouter.telemetry.recorder import Repeats
from trouter.telemetry.user_keys import user_key
from trouter.testing.player import octets_of, play
from trouter.wire.performatives import Detach

pytestmark = pytest.mark.attack

MORE = 300
POLICY = """
policy { enableVhostPolicy: yes, defaultVhost: $default }
vhost {
    hostname: $default
    allowUnknownUser: yes
    groups: { $default: { remoteHosts: *, sources: *, targets: *, allowDynamicSource: yes } }
}
"""


class Told:
    """Notes how many events each call stands for."""

    def __init__(self) -> None:
        self.counts: list[int] = []
        self.now_s = 0.0
        self.repeats = Repeats()
        self.allowances = Allowances(self.repeats.happened, lambda: self.now_s)

    def happen(self, count: int, user: str = "alice", host: str = "192.0.2.7", kind: str = "attached") -> list[int]:
        """Let a user cause events; return what is told at once."""
        for _ in range(count):
            self.allowances.tell(kind, user_key("vhost", user, host), self.counts.append)
        told = self.counts[:]
        self.counts.clear()
        return told


def test_a_user_has_a_store_that_fills_again_and_the_rest_is_told_in_sum() -> None:
    told = Told()
    assert told.happen(AT_ONCE + MORE) == [1] * AT_ONCE
    told.repeats.write()
    assert told.counts == [MORE]
    told.counts.clear()
    told.now_s += 2
    assert told.happen(MORE) == [1] * 2 * A_SECOND
    told.now_s += 1e6
    assert told.happen(AT_ONCE + MORE) == [1] * AT_ONCE


def test_one_user_on_many_hosts_has_one_store_and_two_users_on_one_host_have_two() -> None:
    told = Told()
    told.happen(AT_ONCE)
    assert told.happen(MORE, host="192.0.2.8") == []
    assert told.happen(MORE, user="bob") == [1] * MORE
    assert told.happen(MORE, kind="ended") == [1] * MORE


def test_clients_without_a_login_are_told_apart_by_their_hosts() -> None:
    told = Told()
    told.happen(AT_ONCE, user="anonymous")
    assert told.happen(MORE, user="anonymous") == []
    assert told.happen(MORE, user="anonymous", host="192.0.2.8") == [1] * MORE


def test_users_who_have_been_quiet_are_forgotten_for_others() -> None:
    told = Told()
    for number in range(MAX_STORES):
        told.happen(1, user=f"user{number}")
    assert told.happen(AT_ONCE + MORE, user="late") == [1] * (AT_ONCE + MORE)
    told.now_s += 1
    assert told.happen(AT_ONCE + MORE, user="later") == [1] * AT_ONCE


async def test_links_without_end_of_one_client_are_counted_in_few_records_and_lines(
    mock_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    total = AT_ONCE + MORE
    async with play(ROUTER + LISTENER + POLICY) as router:
        recorder = router.process.services.recorder
        recorder.allowances = Allowances(recorder.repeats.happened, lambda: 0.0)
        queue = RecordQueue(lambda: None)
        recorder.add(queue)
        flood = await opened(router)
        await flood.play(
            b"".join(octets_of(receiver(handle=7, name="a")) + octets_of(Detach(7, True)) for _ in range(total))
        )
        other = await opened(router, receiver(), host="192.0.2.8")
        assert not other.sock.closed
        recorder.repeats.write()
        taken = queue.take_records().records
        attached = [each for each in taken if isinstance(each, LinkAttachedRecord)]
        ended = [each for each in taken if isinstance(each, LinkDetachedRecord)]
        allowed = [each for each in taken if isinstance(each, PolicyDecision) and each.op == "attach"]
        for found in (attached, allowed):
            mine = [each.repeat for each in found if each.host == "192.0.2.7"]
            assert mine == [1] * AT_ONCE + [MORE]
            assert [each.repeat for each in found if each.host == "192.0.2.8"] == [1]
        assert [each.repeat for each in ended] == [1] * AT_ONCE + [MORE]
        lines = [record.getMessage() for record in caplog.records]
        assert sum("Link attached" in line for line in lines) == AT_ONCE + 2
        assert sum("Link detached" in line for line in lines) == AT_ONCE + 1
