"""A client or a container that leaves without waiting: all that it sent before its end is carried out, in order."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest
from trio.testing import MockClock

from tests.connections.plays import BEGIN, LISTENER, ROUTER, message
from trouter.connections.settings import EVENTS_AT_ONCE
from trouter.core.pending_detaches import PATIENCE_S
from trouter.testing.player import (
    HANG_UP,
    RESET,
    HangUp,
    Input,
    Output,
    PlayedPeer,
    PlayedRouter,
    Reset,
    kinds,
    octets_of,
    play,
)
from trouter.wire.framing import AMQP_HEADER
from trouter.wire.performatives import (
    Accepted,
    Attach,
    Begin,
    Close,
    Detach,
    Disposition,
    End,
    Error,
    Flow,
    Open,
    Performative,
    Source,
    Target,
    Transfer,
)

ROUTED = (
    ROUTER
    + LISTENER.replace("name: in,", "name: in, role: route-container,")
    + """
linkRoute { prefix: b, direction: in, containerId: B }
linkRoute { prefix: b, direction: out, containerId: B }
"""
)
#: What a peer sends after its detach, in the same write.
LEAVES: dict[str, tuple[Input, ...]] = {
    "end": (End(),),
    "close": (Close(),),
    "end-close": (End(), Close()),
    "close-and-hang-up": (Close(), HANG_UP),
    "end-close-and-hang-up": (End(), Close(), HANG_UP),
    "hang-up": (HANG_UP,),
    "reset": (RESET,),
    "end-reset": (End(), RESET),
    "close-reset": (Close(), RESET),
}
#: What ends a link that neither side has detached.
LOSSES: dict[str, tuple[Input, ...]] = {"end": (End(),), "close": (Close(),), "hang-up": (HANG_UP,)}
LOST = "qd:routed-link-lost"
CREDIT = 9


def flow(handle: int, credit: int, count: int = 0, drain: bool = False) -> Flow:
    return Flow(
        next_incoming_id=0,
        incoming_window=900,
        next_outgoing_id=0,
        outgoing_window=900,
        handle=handle,
        delivery_count=count,
        link_credit=credit,
        drain=drain,
    )


def lasting(handle: int = 0, name: str = "sub") -> Attach:
    """Return the attach of a durable subscription."""
    return Attach(name, handle, True, source=Source("b.news", durable=2, expiry_policy="never"), target=Target())


def sending(handle: int = 0) -> Attach:
    return Attach("out", handle, False, source=Source(), target=Target("b.q"), initial_delivery_count=0)


class Peer:
    """One end of a routed link; it answers begins and, unless told otherwise, attaches and detaches."""

    def __init__(self, peer: PlayedPeer, *, answers: bool = True, begins: bool = True, window: int = 900) -> None:
        self.peer = peer
        self.answers = answers
        self.begins = begins
        #: The frames that it takes in a session.
        self.window = window
        #: What the router sent, without flows of the session alone.
        self.heard: list[Output] = []

    async def play(self, *inputs: Input, piecemeal: bool = False) -> list[Output]:
        """Send the inputs in one write, or octet by octet, and return what the router sent since the last call."""
        if piecemeal:
            for each in inputs:
                if isinstance(each, HangUp | Reset):
                    await self.rest(each)
                    continue
                for octet in octets_of(each):
                    await self.rest(bytes((octet,)))
        await self.rest(*(() if piecemeal else inputs))
        heard, self.heard = self.heard, []
        return [each for each in heard if not (isinstance(each, Flow) and each.handle is None)]

    async def rest(self, *inputs: Input) -> None:
        new = await self.peer.play(*inputs)
        while new:
            self.heard += new
            for each in new:
                self._answer(each)
            new = await self.peer.play()

    def _answer(self, output: Output) -> None:
        if isinstance(output, Begin) and output.remote_channel is None:
            if self.begins:
                self.begin()
        elif isinstance(output, Attach) and self.answers:
            self.answer(output)
        elif isinstance(output, Detach) and self.answers:
            self.peer.put(Detach(output.handle, output.closed))

    def begin(self) -> None:
        self.peer.put(Begin(remote_channel=0, next_outgoing_id=0, incoming_window=self.window, outgoing_window=900))

    def answer(self, attach: Attach) -> None:
        count = 0 if attach.role else None
        self.peer.put(
            Attach(
                attach.name,
                attach.handle,
                not attach.role,
                source=attach.source,
                target=attach.target,
                initial_delivery_count=count,
            )
        )
        if not attach.role:
            credit = flow(attach.handle, CREDIT)
            credit.incoming_window = self.window
            self.peer.put(credit)


@asynccontextmanager
async def joined(
    attach: Attach, *, answers: bool = True, window: int = 900
) -> AsyncIterator[tuple[PlayedRouter, Peer, Peer, Attach]]:
    """Yield the router, a client and the container of its routed link, and the attach that the container heard."""
    async with play(ROUTED) as router:
        container = await opened_as(router, "B", answers=answers, window=window)
        client = Peer(router.accept(), answers=False)
        await client.play(AMQP_HEADER, Open("client"), BEGIN, attach)
        (heard,) = of(await container.play(), Attach)
        assert isinstance(heard, Attach)
        await client.play()
        yield router, client, container, heard


async def opened_as(router: PlayedRouter, name: str, **options: Any) -> Peer:
    """Return a container whose connection is open."""
    container = Peer(router.accept("192.0.2.8"), **options)
    await container.play(AMQP_HEADER, Open(name))
    return container


def of(outputs: Sequence[Output], *kinds: type[Performative]) -> list[Output]:
    return [each for each in outputs if isinstance(each, kinds)]


def detaches(outputs: Sequence[Output]) -> list[tuple[bool, str]]:
    """Return whether each detach closes its link, and its condition."""
    found = [each for each in outputs if isinstance(each, Detach)]
    return [(each.closed, "" if each.error is None else str(each.error.condition)) for each in found]


@pytest.fixture(params=LEAVES)
def leave(request: pytest.FixtureRequest) -> tuple[Input, ...]:
    return LEAVES[request.param]


@pytest.fixture(params=(False, True), ids=("one-write", "octets"))
def piecemeal(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


@pytest.mark.parametrize("closed", [True, False])
async def test_a_detach_before_the_end_goes_to_the_container_as_sent(
    mock_clock: MockClock, leave: tuple[Input, ...], piecemeal: bool, closed: bool
) -> None:
    async with joined(lasting()) as (router, client, container, _):
        links = len(router.process.router.links)
        await client.play(Detach(0, closed), *leave, piecemeal=piecemeal)
        assert detaches(await container.play()) == [(closed, "")]
        assert len(router.process.router.links) == links - 2


@pytest.mark.parametrize("closed", [True, False])
async def test_what_was_sent_before_a_reset_is_carried_out_though_no_answer_can_be_written(
    mock_clock: MockClock, leave: tuple[Input, ...], closed: bool
) -> None:
    """A peer that closes its socket over unread input breaks the connection; what it sent before can still be read."""
    async with joined(lasting()) as (_, client, container, _):
        await client.play(lasting(1, "second"), lasting(2, "third"))
        await container.play()
        client.peer.sock.read_bytes = 1
        asks = Flow(next_incoming_id=0, incoming_window=900, next_outgoing_id=0, outgoing_window=900, echo=True)
        await client.play(asks, *(Detach(handle, closed) for handle in range(3)), *leave, RESET)
        assert detaches(await container.play()) == [(closed, "")] * 3


async def test_an_error_of_the_detach_goes_along(mock_clock: MockClock, leave: tuple[Input, ...]) -> None:
    async with joined(lasting()) as (_, client, container, _):
        await client.play(Detach(0, True, Error("my:reason")), *leave)
        assert detaches(await container.play()) == [(True, "my:reason")]


@pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)
async def test_a_link_without_a_detach_is_lost(mock_clock: MockClock, loss: tuple[Input, ...], piecemeal: bool) -> None:
    async with joined(sending()) as (_, client, container, _):
        await client.play(*loss, piecemeal=piecemeal)
        assert detaches(await container.play()) == [(True, LOST)]


async def test_of_many_links_only_those_without_a_detach_are_lost(mock_clock: MockClock, piecemeal: bool) -> None:
    async with joined(lasting()) as (_, client, container, _):
        await client.play(lasting(1, "other"), sending(2))
        await container.play()
        await client.play(Detach(0, True), Detach(2, True), End(), Close(), piecemeal=piecemeal)
        assert detaches(await container.play()) == [(True, ""), (True, ""), (False, LOST)]


async def test_the_detaches_of_more_links_than_are_answered_at_once_go_along(
    mock_clock: MockClock, leave: tuple[Input, ...]
) -> None:
    count = 3 * EVENTS_AT_ONCE
    async with joined(lasting()) as (router, client, container, _):
        links = len(router.process.router.links)
        await client.play(*(lasting(handle, f"l{handle}") for handle in range(1, count)))
        await container.play()
        await client.play(*(Detach(handle, True) for handle in range(count)), *leave)
        assert detaches(await container.play()) == [(True, "")] * count
        assert len(router.process.router.links) == links - 2


async def test_a_detach_of_the_container_before_its_end_goes_to_the_client_as_sent(
    mock_clock: MockClock, leave: tuple[Input, ...], piecemeal: bool
) -> None:
    async with joined(lasting()) as (_, client, container, heard):
        await container.play(Detach(heard.handle, True, Error("my:reason")), *leave, piecemeal=piecemeal)
        assert detaches(await client.play()) == [(True, "my:reason")]


async def test_messages_before_the_detach_arrive(
    mock_clock: MockClock, leave: tuple[Input, ...], piecemeal: bool
) -> None:
    async with joined(sending()) as (_, client, container, _):
        first, more = message(Transfer(0, 0, b"0", 0), b"one"), message(Transfer(0, 1, b"1", 0, more=True), b"two")
        rest = octets_of(Transfer(0))
        await client.play(first, more, rest, Detach(0, True), *leave, piecemeal=piecemeal)
        heard = of(await container.play(), Transfer, Detach)
        assert [type(each) for each in heard] in ([Transfer, Transfer, Detach], [Transfer] * 3 + [Detach])
        last = heard[-2]
        assert isinstance(last, Transfer)
        assert not last.more
        assert detaches(heard) == [(True, "")]


async def test_a_message_that_is_not_whole_is_aborted_before_the_detach(
    mock_clock: MockClock, leave: tuple[Input, ...]
) -> None:
    async with joined(sending()) as (_, client, container, _):
        begun_one = message(Transfer(0, 0, b"0", 0, more=True), bytes(10_000))
        await client.play(begun_one, Detach(0, True), *leave)
        heard = of(await container.play(), Transfer, Detach)
        if len(heard) > 1:
            aborted = heard[-2]
            assert isinstance(aborted, Transfer)
            assert aborted.aborted
        assert detaches(heard) == [(True, "")]


@pytest.mark.parametrize(("detach", "told"), [((Detach(0, True),), ""), ((), LOST)], ids=["detached", "lost"])
async def test_messages_that_wait_for_the_container_arrive_before_it_is_told(
    mock_clock: MockClock, leave: tuple[Input, ...], detach: tuple[Input, ...], told: str
) -> None:
    async with joined(sending(), window=1) as (_, client, container, heard):
        messages = [message(Transfer(0, number, b"%d" % number, 0), b"body") for number in range(3)]
        await client.play(*messages, *detach, *leave)
        assert kinds(of(await container.play(), Transfer, Detach)) == [Transfer]
        wide = flow(heard.handle, CREDIT)
        found = of(await container.play(wide, Disposition(True, 0, None, True, Accepted())), Transfer, Detach)
        assert kinds(found) == [Transfer, Transfer, Detach]
        assert detaches(found) == [(True, told)]


async def test_a_container_that_takes_nothing_is_told_after_a_while(
    mock_clock: MockClock, leave: tuple[Input, ...]
) -> None:
    async with joined(sending(), window=1) as (router, client, container, _):
        messages = [message(Transfer(0, number, b"%d" % number, 0), b"body") for number in range(3)]
        links = len(router.process.router.links)
        await client.play(*messages, Detach(0, True), *leave)
        assert kinds(of(await container.play(), Transfer, Detach)) == [Transfer]
        for _ in range(int(PATIENCE_S) + 2):
            mock_clock.jump(1.0)
            await container.rest()
        assert detaches(await container.play()) == [(True, "")]
        assert len(router.process.router.links) == links - 2


async def test_outcomes_before_the_detach_arrive(
    mock_clock: MockClock, leave: tuple[Input, ...], piecemeal: bool
) -> None:
    async with joined(lasting()) as (_, client, container, heard):
        await client.play(flow(0, 3))
        await container.play(message(Transfer(heard.handle, 0, b"0", 0), b"one"))
        await container.play(message(Transfer(heard.handle, 1, b"1", 0), b"two"))
        assert len(of(await client.play(), Transfer)) == 2
        outcome = Disposition(True, 0, 1, True, Accepted())
        await client.play(outcome, Detach(0, True), *leave, piecemeal=piecemeal)
        heard_there = of(await container.play(), Disposition, Detach)
        assert [each.state for each in heard_there if isinstance(each, Disposition)] in ([Accepted()], [Accepted()] * 2)
        assert isinstance(heard_there[-1], Detach)
        assert detaches(heard_there) == [(True, "")]


@pytest.mark.parametrize("drain", [False, True])
async def test_credit_before_the_detach_arrives(
    mock_clock: MockClock, leave: tuple[Input, ...], piecemeal: bool, drain: bool
) -> None:
    async with joined(lasting()) as (_, client, container, _):
        await client.play(flow(0, 7, drain=drain), Detach(0, True), *leave, piecemeal=piecemeal)
        heard = of(await container.play(), Flow, Detach)
        flows = [each for each in heard if isinstance(each, Flow)]
        assert [(each.link_credit, each.drain) for each in flows] == [(7, drain)]
        assert isinstance(heard[-1], Detach)


@pytest.mark.parametrize("closed", [True, False])
async def test_a_pending_attach_is_detached_as_sent(
    mock_clock: MockClock, leave: tuple[Input, ...], piecemeal: bool, closed: bool
) -> None:
    async with joined(lasting(), answers=False) as (router, client, container, heard):
        links = len(router.process.router.links)
        await client.play(Detach(0, closed), *leave, piecemeal=piecemeal)
        assert detaches(await container.play()) == [(closed, "")]
        container.answer(heard)
        await container.play(Detach(heard.handle, closed))
        assert len(router.process.router.links) == links - 2


@pytest.mark.parametrize("closed", [True, False])
@pytest.mark.parametrize("first", [True, False])
async def test_an_attach_and_its_detach_go_to_the_container(
    mock_clock: MockClock, leave: tuple[Input, ...], piecemeal: bool, closed: bool, first: bool
) -> None:
    """The client's ``first`` link, for which a session is begun at the container, and a later one."""
    async with play(ROUTED) as router:
        container = await opened_as(router, "B")
        links = len(router.process.router.links)
        client = Peer(router.accept(), answers=False)
        head: tuple[Input, ...] = (AMQP_HEADER, Open("client"), BEGIN)
        if not first:
            await client.play(*head, lasting())
            await container.play()
            await client.play()
            head = ()
        attach = lasting(1, "given-up")
        await client.play(*head, attach, Detach(1, closed), *leave, piecemeal=piecemeal)
        heard = of(await container.play(), Attach, Detach)
        assert [type(each) for each in heard[:2]] == [Attach, Detach]
        assert isinstance(heard[0], Attach)
        assert heard[0].name.startswith("given-up")
        assert detaches(heard)[0] == (closed, "")
        await client.play()
        left = len(router.process.router.links)
        assert left == links


async def given_up(router: PlayedRouter, count: int, name: str = "client") -> None:
    """Let a client attach links, detach them and leave, in one write."""
    pairs = [(lasting(handle, f"l{handle}"), Detach(handle, True)) for handle in range(count)]
    client = Peer(router.accept(), answers=False)
    await client.play(AMQP_HEADER, Open(name), BEGIN, *(each for pair in pairs for each in pair), End(), Close())


async def test_a_container_that_begins_no_session_hears_nothing_of_them(mock_clock: MockClock) -> None:
    async with play(ROUTED) as router:
        container = await opened_as(router, "B", begins=False)
        await given_up(router, 1)
        assert kinds(await container.play()) == [Begin]
        for _ in range(int(PATIENCE_S) + 2):
            mock_clock.jump(1.0)
            await container.rest()
        container.begin()
        assert of(await container.play(), Attach, Detach) == []


@pytest.mark.parametrize("refuses", [End(), End(Error("my:reason")), Close(), HANG_UP], ids=str)
async def test_a_container_that_ends_the_session_at_once_leaves_nothing(mock_clock: MockClock, refuses: Input) -> None:
    async with play(ROUTED) as router:
        container = await opened_as(router, "B", begins=False)
        links = len(router.process.router.links)
        await given_up(router, 2)
        container.begin()
        await container.play(refuses)
        assert len(router.process.router.links) == links


async def test_a_container_hears_of_few_links_whose_clients_left_before_its_session_began(
    mock_clock: MockClock,
) -> None:
    """They are kept until then without counting against any client's limits."""
    async with play(ROUTED) as router:
        container = await opened_as(router, "B", begins=False)
        await given_up(router, 60)
        container.begin()
        heard = of(await container.play(), Attach, Detach)
        assert 0 < len(of(heard, Attach)) == len(of(heard, Detach)) < 30


async def test_messages_to_an_address_arrive_though_their_sender_leaves(
    mock_clock: MockClock, leave: tuple[Input, ...], piecemeal: bool
) -> None:
    async with play(ROUTED) as router:
        consumer, client = Peer(router.accept(), answers=False), Peer(router.accept(), answers=False)
        attach = Attach("r", 0, True, source=Source("queue"), target=Target())
        await consumer.play(AMQP_HEADER, Open("consumer"), BEGIN, attach, flow(0, CREDIT))
        sender = Attach("s", 0, False, source=Source(), target=Target("queue"), initial_delivery_count=0)
        await client.play(AMQP_HEADER, Open("client"), BEGIN, sender)
        whole, more = message(Transfer(0, 0, b"0", 0), b"one"), message(Transfer(0, 1, b"1", 0, more=True), b"two")
        await client.play(whole, more, octets_of(Transfer(0)), Detach(0, True), *leave, piecemeal=piecemeal)
        heard = of(await consumer.play(), Transfer)
        assert len([each for each in heard if isinstance(each, Transfer) and not (each.more or each.aborted)]) == 2


async def test_outcomes_of_a_receiver_of_an_address_arrive_though_it_leaves(
    mock_clock: MockClock, leave: tuple[Input, ...], piecemeal: bool
) -> None:
    async with play(ROUTED) as router:
        consumer, client = Peer(router.accept(), answers=False), Peer(router.accept(), answers=False)
        attach = Attach("r", 0, True, source=Source("queue"), target=Target())
        await consumer.play(AMQP_HEADER, Open("consumer"), BEGIN, attach, flow(0, CREDIT))
        sender = Attach("s", 0, False, source=Source(), target=Target("queue"), initial_delivery_count=0)
        await client.play(AMQP_HEADER, Open("client"), BEGIN, sender)
        await client.play(message(Transfer(0, 0, b"0", 0), b"one"))
        outcome = Disposition(True, 0, None, True, Accepted())
        assert len(of(await consumer.play(), Transfer)) == 1
        await consumer.play(outcome, Detach(0, True), *leave, piecemeal=piecemeal)
        (heard,) = of(await client.play(), Disposition)
        assert isinstance(heard, Disposition)
        assert heard.state == Accepted()
