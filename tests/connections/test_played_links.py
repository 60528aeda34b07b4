"""Sessions and links of one connection, played in memory."""

from __future__ import annotations

import pytest
from trio.testing import MockClock

from tests.connections.plays import LISTENER, OPENING, ROUTER, condition_of, message, only, opened, receiver, sender
from trouter.config import load
from trouter.policy.compiled import Policy
from trouter.testing.player import HANG_UP, RESET, Closed, PlayedRouter, kinds, play
from trouter.wire.performatives import (
    Attach,
    Begin,
    Close,
    Detach,
    Disposition,
    End,
    Flow,
    Open,
    Transfer,
)

POLICY = """
policy {{ enableVhostPolicy: yes }}
vhost {{
    hostname: vhost
    allowUnknownUser: yes
    groups: {{
        $default: {{
            remoteHosts: *
            sources: {sources}
            targets: queue
            {more}
        }}
    }}
}}
"""


def replace_policy(router: PlayedRouter, text: str) -> None:
    configuration = load(text=text)
    router.process.services.policy.replace_policy(Policy.compile(configuration.policy, configuration.vhosts))


async def test_a_session_with_links_begins_and_ends(mock_clock: MockClock) -> None:
    async with play(ROUTER + LISTENER) as router:
        links = router.process.router.links
        before = len(links)
        peer = router.accept()
        assert kinds(await peer.play(*OPENING)) == [bytes, Open, Begin]
        assert kinds(await peer.play(receiver())) == [Attach]
        assert kinds(await peer.play(sender())) == [Attach, Flow]
        assert len(links) == before + 2
        assert kinds(await peer.play(Detach(0, True))) == [Detach]
        assert len(links) == before + 1
        assert kinds(await peer.play(End())) == [End]
        assert len(links) == before
        assert kinds(await peer.play(Close(), HANG_UP)) == [Close, Closed]


async def test_a_message_goes_from_one_connection_to_another(mock_clock: MockClock) -> None:
    async with play(ROUTER + LISTENER) as router:
        taker, giver = await opened(router, receiver()), await opened(router, sender())
        await taker.play(Flow(incoming_window=9, next_outgoing_id=0, outgoing_window=9, handle=0, link_credit=5))
        await giver.play()
        assert await giver.play(message(Transfer(1, delivery_id=0, delivery_tag=b"1", message_format=0), b"x")) == []
        assert kinds(await taker.play()) == [Transfer]
        await taker.play(Disposition(True, 0, settled=True))
        assert Disposition in kinds(await giver.play())


async def test_more_links_than_the_listener_allows_are_refused(mock_clock: MockClock) -> None:
    text = ROUTER + LISTENER.replace("port: 0,", "port: 0, maxLinks: 2,")
    async with play(text) as router:
        peer = await opened(router, receiver("a", 0), receiver("b", 1))
        outputs = await peer.play(receiver("c", 2))
        assert kinds(outputs) == [Attach, Detach]
        assert condition_of(outputs, Detach) == "amqp:resource-limit-exceeded"
        assert kinds(await peer.play(Detach(0, True), Detach(2, True), receiver("d", 3))) == [Detach, Attach]


async def test_a_router_short_of_memory_grants_no_link_beyond_the_first_two(
    mock_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with play(ROUTER + LISTENER) as router:
        peer = await opened(router, receiver("a", 0), receiver("b", 1))
        monkeypatch.setattr(type(router.process.services.guard.memory), "refuses_links", True)
        assert condition_of(await peer.play(receiver("c", 2)), Detach) == "amqp:resource-limit-exceeded"


async def test_a_channel_beyond_ours_ends_the_connection(mock_clock: MockClock) -> None:
    text = ROUTER + LISTENER.replace("port: 0,", "port: 0, maxSessions: 2,")
    async with play(text) as router:
        peer = await opened(router)
        assert condition_of(await peer.play((2, OPENING[2]))) == "amqp:connection:framing-error"  # type: ignore[arg-type]


async def test_an_open_that_the_policy_refuses_is_answered_with_a_close(mock_clock: MockClock) -> None:
    async with play(ROUTER + LISTENER + POLICY.format(sources="queue", more="")) as router:
        assert kinds(await (await opened(router)).play(receiver())) == [Attach]
        peer = router.accept()
        opening = [OPENING[0], Open("client", hostname="elsewhere"), OPENING[2], receiver()]
        outputs = await peer.play(*opening)
        assert kinds(outputs) == [bytes, Open, Close]
        assert condition_of(outputs) == "amqp:resource-limit-exceeded"
        assert await peer.play(receiver("late", 3)) == []
        assert kinds(await peer.play(Close(), HANG_UP)) == [Closed]
        assert len(router.process.services.connections) == 1


async def test_a_link_that_the_policy_denies_is_refused_and_the_others_stay(mock_clock: MockClock) -> None:
    async with play(ROUTER + LISTENER + POLICY.format(sources="queue", more="")) as router:
        peer = await opened(router, receiver())
        outputs = await peer.play(receiver("other", 1, "secret"))
        assert kinds(outputs) == [Attach, Detach]
        assert condition_of(outputs, Detach) == "amqp:unauthorized-access"
        assert only(outputs, Attach).source is None


async def test_a_session_beyond_the_group_s_is_ended(mock_clock: MockClock) -> None:
    async with play(ROUTER + LISTENER + POLICY.format(sources="queue", more="maxSessions: 1")) as router:
        peer = router.accept()
        assert only(await peer.play(*OPENING), Open).channel_max == 0
        assert condition_of(await peer.play((1, OPENING[2]))) == "amqp:connection:framing-error"  # type: ignore[arg-type]


async def test_a_changed_policy_detaches_what_it_no_longer_allows(mock_clock: MockClock) -> None:
    text = POLICY.format(sources="queue, news", more="")
    async with play(ROUTER + LISTENER + text) as router:
        peer = await opened(router, receiver("a", 0), receiver("b", 1, "news"))
        replace_policy(router, POLICY.format(sources="queue", more=""))
        outputs = await peer.play()
        assert only(outputs, Detach).handle == 1
        assert condition_of(outputs, Detach) == "amqp:unauthorized-access"
        replace_policy(router, POLICY.format(sources="queue", more="").replace("hostname: vhost", "hostname: other"))
        assert condition_of(await peer.play()) == "amqp:resource-limit-exceeded"


async def test_credit_is_withheld_and_given_back(mock_clock: MockClock) -> None:
    async with play(ROUTER + LISTENER) as router:
        peer = await opened(router, receiver())
        (connection,) = router.process.services.connections.values()
        connection.suspend_credit(True)
        assert Flow not in kinds(await peer.play(sender()))
        connection.suspend_credit(False)
        router.process.services.hub.flush()
        assert only(await peer.play(), Flow).link_credit > 0


@pytest.mark.parametrize("end", [HANG_UP, RESET])
async def test_a_lost_connection_loses_its_links_and_the_others_go_on(
    mock_clock: MockClock, caplog: pytest.LogCaptureFixture, end: object
) -> None:
    caplog.set_level("INFO")
    async with play(ROUTER + LISTENER) as router:
        links = router.process.router.links
        before = len(links)
        lost, other = await opened(router, receiver(), sender()), await opened(router, receiver())
        assert kinds(await lost.play(end)) == [Closed]  # type: ignore[arg-type]  # one of the two ends
        assert len(links) == before + 1
        assert "Link lost" in caplog.text
        assert kinds(await other.play(receiver("more", 1))) == [Attach]


async def test_attaches_of_one_read_are_answered_in_order(mock_clock: MockClock) -> None:
    async with play(ROUTER + LISTENER) as router:
        peer = await opened(router)
        outputs = await peer.play(*(receiver(f"l{number}", number) for number in range(70)))
        assert [each.name for each in outputs if isinstance(each, Attach)] == [f"l{number}" for number in range(70)]
