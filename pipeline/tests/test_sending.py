"""The sink without Spark: rows to messages to a real router, and a receiver's outcomes."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import trio

from tests.certificates import Authority
from tests.client.conftest import StartRouter, guard, router, start_router
from tests.client.support import Router, Server, serving
from trouter.client import (
    ACCEPTED,
    ClientError,
    Delivery,
    Error,
    Message,
    Modified,
    Properties,
    Receiver,
    connect,
)
from trouter.wire.performatives import State, encode_state
from trouter_pipeline.connecting import Peer, peers
from trouter_pipeline.messages import Unsendable
from trouter_pipeline.options import Options, Side
from trouter_pipeline.sending import Chunk, Sending, Tally, Terms

__all__ = ["guard", "router", "start_router"]

ADDRESS = "orders"


def peers_of(*urls: str) -> Sequence[Peer]:
    return peers(Options.parse({"url": ",".join(urls)}, Side.WRITE))


def terms(*urls: str, **given: Any) -> Terms:
    return Terms(peers_of(*urls), given.pop("address", ADDRESS), **{"settle_timeout_s": 30.0, **given})


def letter(number: int, size: int = 10, to: str | None = None) -> bytes:
    return Message(b"x" * size, properties=Properties(message_id=f"q/0/0/{number}", to=to)).encode()


def letters(count: int, start: int = 0) -> list[bytes | Unsendable]:
    return [letter(number) for number in range(start, start + count)]


async def send(terms: Terms, *chunks: Chunk) -> Tally:
    return await Sending(terms, iter(chunks)).run()


class Taking:
    """A receiver that settles each delivery as the test sets, and keeps the ids of those it accepted."""

    def __init__(self, decide: Callable[[Delivery, int], Awaitable[object]] | None = None) -> None:
        self.seen: Counter[str] = Counter()
        self.order: list[str] = []
        self.messages: list[Message] = []
        self._decide = decide

    async def run(self, receiver: Receiver) -> None:
        while True:
            delivery = await receiver.receive()
            name = str(delivery.message.properties.message_id)
            self.order.append(name)
            self.messages.append(delivery.message)
            self.seen[name] += 1
            if self._decide is None:
                await delivery.accept()
            else:
                await self._decide(delivery, self.seen[name])


async def sent_through(router: Router, terms: Terms, taking: Taking, *chunks: Chunk, address: str = ADDRESS) -> Tally:
    async with (
        router.connect() as connection,
        connection.open_receiver(address) as receiver,
        trio.open_nursery() as tasks,
    ):
        tasks.start_soon(taking.run, receiver)
        tally = await send(terms, *chunks)
        tasks.cancel_scope.cancel()
    return tally


async def test_every_row_is_settled_and_in_order(router: Router) -> None:
    taking = Taking()
    tally = await sent_through(router, terms(router.url, window=10), taking, letters(50), letters(0), letters(50, 50))
    assert (tally.rows, tally.accepted, tally.failure, tally.resent) == (100, 100, "", 0)
    assert taking.order == [f"q/0/0/{number}" for number in range(100)]


async def test_released_messages_are_sent_again_until_they_are_accepted(router: Router) -> None:
    async def decide(delivery: Delivery, times: int) -> None:
        await (
            delivery.release()
            if times < 3 and str(delivery.message.properties.message_id).endswith("7")
            else delivery.accept()
        )

    taking = Taking(decide)
    tally = await sent_through(router, terms(router.url, window=10), taking, letters(40))
    assert (tally.accepted, tally.resent, tally.refused, tally.failure) == (40, 8, 0, "")
    assert {name: count for name, count in taking.seen.items() if count > 1} == {
        f"q/0/0/{n}7": 3 for n in ("", 1, 2, 3)
    }


async def test_modified_messages_are_sent_again_with_their_history(router: Router) -> None:
    async def decide(delivery: Delivery, times: int) -> None:
        if times < 3:
            await delivery.settle(Modified(delivery_failed=True, message_annotations={"x-opt-seen": times}))
        else:
            await delivery.accept()

    taking = Taking(decide)
    tally = await sent_through(router, terms(router.url), taking, letters(1))
    assert (tally.accepted, tally.resent) == (1, 2)
    assert [message.header.delivery_count for message in taking.messages] == [0, 1, 2]
    assert [message.message_annotations.get("x-opt-seen") for message in taking.messages] == [None, 1, 2]
    assert {message.body for message in taking.messages} == {b"x" * 10}


async def reject_every_third(delivery: Delivery, times: int) -> None:
    if int(str(delivery.message.properties.message_id).rpartition("/")[2]) % 3 == 0:
        await delivery.reject("amqp:precondition-failed", "no third")
    else:
        await delivery.accept()


async def test_a_rejected_row_is_reported_and_stops_nothing(router: Router) -> None:
    taking = Taking(reject_every_third)
    tally = await sent_through(router, terms(router.url), taking, letters(10))
    assert (tally.rows, tally.accepted, tally.refused) == (10, 6, 4)
    assert tally.reasons == [f"row {row}: amqp:precondition-failed: no third" for row in (0, 3, 6, 9)]
    assert set(taking.seen.values()) == {1}


async def test_an_outcome_that_cannot_be_decoded_is_a_refusal_and_costs_no_connection(guard: trio.Nursery) -> None:
    class Mumbling(Server):
        def settle(self, delivery: Any, state: State) -> None:
            bad = b"\0\x53\x25\xc0\x03\x01\x52\x07"  # a rejected whose error is a number
            octets, code = (bad, 0x25) if self.deliveries.index(delivery) % 3 == 0 else (encode_state(state), 0x24)
            delivery.link.session.settle_incoming(delivery, code, octets, True)

    async with serving(Mumbling()) as server:
        server.outcome = ACCEPTED
        server.credit = 100
        tally = await send(terms(server.url, window=3), letters(10))
    assert (tally.rows, tally.accepted, tally.refused, tally.reconnects, tally.failure) == (10, 6, 4, 0, "")
    assert tally.reasons[1] == (
        "row 3: amqp:decode-error: the peer's delivery state cannot be decoded: "
        "rejected: error is not a valid error but UInt"
    )


async def test_reasons_are_bounded_and_counts_are_not(router: Router) -> None:
    async def decide(delivery: Delivery, times: int) -> None:
        await delivery.reject("amqp:internal-error", "long " * 500)

    tally = await sent_through(router, terms(router.url), Taking(decide), letters(150))
    assert (tally.refused, len(tally.reasons)) == (150, 100)
    assert max(map(len, tally.reasons)) < 600


async def test_a_rejected_row_goes_to_the_dead_letters_with_its_reason(router: Router) -> None:
    taking, dead = Taking(reject_every_third), Taking()
    async with (
        router.connect() as connection,
        connection.open_receiver("dead") as graves,
        trio.open_nursery() as tasks,
    ):
        tasks.start_soon(dead.run, graves)
        tally = await sent_through(router, terms(router.url, dead_letters="dead"), taking, letters(10))
        tasks.cancel_scope.cancel()
    assert (tally.accepted, tally.dead_lettered, tally.refused) == (6, 4, 0)
    assert dead.order == [f"q/0/0/{row}" for row in (0, 3, 6, 9)]
    assert dead.messages[0].message_annotations == {
        "x-opt-refused": "amqp:precondition-failed: no third",
        "x-opt-refused-by": ADDRESS,
    }
    assert dead.messages[0].body == b"x" * 10


async def test_a_dead_letter_that_is_rejected_too_is_reported(router: Router) -> None:
    taking, dead = Taking(reject_every_third), Taking(reject_every_third)
    async with (
        router.connect() as connection,
        connection.open_receiver("dead") as graves,
        trio.open_nursery() as tasks,
    ):
        tasks.start_soon(dead.run, graves)
        tally = await sent_through(router, terms(router.url, dead_letters="dead"), taking, letters(2))
        tasks.cancel_scope.cancel()
    assert (tally.accepted, tally.dead_lettered, tally.refused) == (1, 0, 1)
    assert tally.reasons[0].startswith("row 0: amqp:precondition-failed: no third (and as a dead letter to dead: ")


async def test_a_lost_connection_costs_duplicates_and_no_row(router: Router, caplog: pytest.LogCaptureFixture) -> None:
    cut = 0

    async def decide(delivery: Delivery, times: int) -> None:
        nonlocal cut
        await delivery.accept()
        if sum(taking.seen.values()) == 30 and not cut:
            cut += 1
            router.cut()

    taking = Taking(decide)
    async with trio.open_nursery() as tasks:

        async def receive() -> None:
            while True:
                with suppress(ClientError):
                    async with router.connect() as connection, connection.open_receiver(ADDRESS, credit=7) as receiver:
                        await taking.run(receiver)

        tasks.start_soon(receive)
        with caplog.at_level(logging.WARNING):
            tally = await send(terms(router.url, window=20), letters(100))
        tasks.cancel_scope.cancel()
    assert (tally.accepted, tally.reconnects, tally.failure) == (100, 1, "")
    assert set(taking.seen) == {f"q/0/0/{number}" for number in range(100)}
    assert sum(taking.seen.values()) - 100 <= 20
    assert "messages are not settled" in caplog.text


async def test_the_next_server_is_tried_when_the_first_is_not_there(router: Router) -> None:
    (gone,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
    url = f"amqp://127.0.0.1:{gone.socket.getsockname()[1]}"
    await gone.aclose()
    tally = await sent_through(router, terms(url, router.url), Taking(), letters(5))
    assert (tally.accepted, tally.reconnects, tally.failure) == (5, 1, "")


async def test_an_absent_server_is_reported_after_the_time_given(caplog: pytest.LogCaptureFixture) -> None:
    (gone,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
    url = f"amqp://127.0.0.1:{gone.socket.getsockname()[1]}"
    await gone.aclose()
    tally = await send(terms(url, settle_timeout_s=0.3), letters(5))
    assert tally.failure.startswith("no settlement progress for 0.3 s: ")
    assert url in tally.failure
    assert tally.accepted == 0


async def test_an_address_without_receivers_is_reported_after_the_time_given(router: Router) -> None:
    tally = await send(terms(router.url, settle_timeout_s=0.3), letters(5))
    assert "no settlement progress for 0.3 s" in tally.failure
    assert ADDRESS in tally.failure


async def test_a_receiver_that_always_releases_does_not_hold_the_sink_for_ever(router: Router) -> None:
    async def decide(delivery: Delivery, times: int) -> None:
        await delivery.release()

    tally = await sent_through(router, terms(router.url, settle_timeout_s=0.5), Taking(decide), letters(5))
    assert "released the message" in tally.failure
    assert tally.resent > 5


async def test_waiting_for_rows_is_no_want_of_progress(router: Router) -> None:
    arrived = trio.Event()
    token = trio.lowlevel.current_trio_token()

    async def decide(delivery: Delivery, times: int) -> None:
        await delivery.accept()
        arrived.set()

    def slow() -> Iterator[Chunk]:
        yield letters(1)
        trio.from_thread.run(arrived.wait, trio_token=token)
        trio.from_thread.run(trio.sleep, 0.5, trio_token=token)  # longer than the time that the peer may take
        yield letters(1, 1)

    taking = Taking(decide)
    async with (
        router.connect() as connection,
        connection.open_receiver(ADDRESS) as receiver,
        trio.open_nursery() as tasks,
    ):
        tasks.start_soon(taking.run, receiver)
        tally = await Sending(terms(router.url, settle_timeout_s=0.3), slow()).run()
        tasks.cancel_scope.cancel()
    assert (tally.accepted, tally.failure) == (2, "")


async def test_an_error_of_the_row_source_is_raised(router: Router) -> None:
    def broken() -> Iterator[Chunk]:
        yield letters(1)
        raise OSError("the rows end here")

    with pytest.raises(OSError, match="the rows end here"):
        await Sending(terms(router.url, settle_timeout_s=5.0), broken()).run()


async def test_a_row_that_is_no_message_is_reported_and_the_rest_is_sent(router: Router) -> None:
    rows: list[bytes | Unsendable] = [letter(0), Unsendable("content_type: 'é' is not ASCII"), letter(2)]
    tally = await sent_through(router, terms(router.url, dead_letters="dead"), Taking(), rows)
    assert (tally.rows, tally.accepted, tally.refused) == (3, 2, 1)
    assert tally.reasons == ["row 1: cannot be sent: content_type: 'é' is not ASCII"]


async def test_a_sink_without_an_address_sends_each_message_to_its_to(router: Router) -> None:
    here, there = Taking(), Taking()
    async with (
        router.connect() as connection,
        connection.open_receiver("here") as first,
        connection.open_receiver("there") as second,
        trio.open_nursery() as tasks,
    ):
        tasks.start_soon(here.run, first)
        tasks.start_soon(there.run, second)
        rows = [letter(0, to="here"), letter(1, to="there"), letter(2, to="here")]
        tally = await send(terms(router.url, address=""), rows)
        tasks.cancel_scope.cancel()
    assert (tally.accepted, here.order, there.order) == (3, ["q/0/0/0", "q/0/0/2"], ["q/0/0/1"])


async def test_an_address_that_is_refused_is_reported_at_once(guard: trio.Nursery) -> None:
    server = Server()
    server.refusal = Error("amqp:unauthorized-access", "not for you")
    async with serving(server):
        tally = await send(terms(server.url), letters(3))
    assert tally.failure == f"{server.url}: {ADDRESS}: the link ended: amqp:unauthorized-access: not for you"
    assert (tally.accepted, tally.reconnects) == (0, 0)


async def test_a_message_that_is_too_long_for_the_peer_costs_itself_only(guard: trio.Nursery) -> None:
    server = Server()
    server.attach_fields = {"max_message_size": 200}
    server.outcome = ACCEPTED
    async with serving(server):
        tally = await send(terms(server.url), [letter(0), letter(1, size=500), letter(2)])
    assert (tally.accepted, tally.refused, tally.failure) == (2, 1, "")
    assert tally.reasons[0].startswith("row 1: amqp:link:message-size-exceeded: ")


async def test_a_sink_with_tls_verifies_the_certificate_of_the_server(
    start_router: StartRouter, tmp_path: Path
) -> None:
    authority = Authority(tmp_path, "sink")
    certificate, key = authority.pair("127.0.0.1")
    router = await start_router(
        f"""
        router {{ id: R }}
        sslProfile {{ name: tls, certFile: {certificate}, privateKeyFile: {key} }}
        listener {{ host: 127.0.0.1, port: 0, sslProfile: tls, requireSsl: yes, saslMechanisms: ANONYMOUS }}
        listener {{ host: 127.0.0.1, port: 0, saslMechanisms: ANONYMOUS }}
        """
    )
    port = router.process.listeners[0].sockets[0].getsockname()[1]
    inside = f"amqp://127.0.0.1:{router.process.listeners[1].sockets[0].getsockname()[1]}"
    given = {"url": f"amqps://127.0.0.1:{port}", "address": ADDRESS}

    async def sent(**options: str) -> Tally:
        found = peers(Options.parse({**given, **options}, Side.WRITE))
        return await send(Terms(found, ADDRESS, settle_timeout_s=30.0), letters(3))

    async with (
        connect(inside) as connection,
        connection.open_receiver(ADDRESS) as receiver,
        trio.open_nursery() as tasks,
    ):
        tasks.start_soon(Taking().run, receiver)
        trusted = await sent(tlsTrustFile=str(authority.certificate))
        strange = await sent()
        tasks.cancel_scope.cancel()
    assert (trusted.accepted, trusted.failure) == (3, "")
    assert (strange.accepted, strange.reconnects) == (0, 0)
    assert "the server's certificate cannot be trusted" in strange.failure
