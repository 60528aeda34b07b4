"""Messages of a router, or of a server that a test controls, into a spool."""

from __future__ import annotations

import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import trio

from pipeline.tests.spool.feeds import Feed, receiving, settings_for, until
from pipeline.tests.spool.support import frames, message
from tests.certificates import Authority
from tests.client.support import Router
from trouter.app.process import RouterProcess
from trouter.client import ACCEPTED, AuthenticationFailed, Encoded, Error, LinkDetached, Rejected, Servers
from trouter.config import load
from trouter.engine.ports import Delivery
from trouter.hooks import Plugins
from trouter.wire.performatives import decode_state
from trouter_pipeline.spool import Spool, SpoolReader
from trouter_pipeline.spool.receiver import Progress, receive

OPEN_ROUTER = "router { id: R }\nlistener { host: 127.0.0.1, port: 0, saslMechanisms: ANONYMOUS }\n"


@pytest.fixture
async def router(nursery: trio.Nursery) -> AsyncIterator[Router]:
    process = RouterProcess(load(text=OPEN_ROUTER), Plugins.load())
    async with trio.open_nursery() as own:
        await own.start(process.run)
        with trio.fail_after(60):
            yield Router(process)
        own.cancel_scope.cancel()


async def send(router: Router, count: int, first: int = 0, size: int = 100) -> list[int]:
    """Send messages and return those that were accepted."""
    async with router.connect() as connection, connection.open_sender("orders") as sender:
        numbers = range(first, first + count)
        answers = sender.send_all((Encoded(message(number, size)) for number in numbers), in_flight=500)
        outcomes = [outcome async for _, outcome in answers]
    return [number for number, outcome in zip(numbers, outcomes, strict=True) if outcome == ACCEPTED]


def cut(router: Router) -> None:
    """Shut down the socket of every connection, without a close."""
    listener: Any = router.process.listeners[0]
    for peer in list(listener.peers.values()):
        with suppress(OSError):  # some are closed already
            peer.stream.sock.shutdown(socket.SHUT_RDWR)


def kept(folder: Path) -> list[bytes]:
    return [frame.message for frame in frames(folder)]


async def test_every_message_accepted_to_the_sender_is_in_the_spool(router: Router, spool: Spool, folder: Path) -> None:
    async with receiving(spool, settings_for(router.url)) as progress:
        assert await send(router, 300) == list(range(300))
    assert kept(folder) == [message(number) for number in range(300)]
    assert (progress.accepted, progress.messages, progress.state) == (300, 300, "ended")


@pytest.fixture
async def serve(nursery: trio.Nursery) -> Callable[..., Awaitable[Feed]]:
    """Return a function that starts a feed."""

    async def start(**options: Any) -> Feed:
        feed = Feed(**options)
        await nursery.start(feed.serve)
        return feed

    return start


ServeFeed = Callable[..., Awaitable[Feed]]


# --- the time of acceptance


async def test_no_message_is_accepted_before_a_reader_can_read_the_message(
    serve: ServeFeed, spool: Spool, folder: Path
) -> None:
    reader = SpoolReader(folder)
    durable_when_accepted: list[int] = []

    class Watching(Feed):
        def on_disposition(self, delivery: Delivery) -> None:
            super().on_disposition(delivery)
            durable_when_accepted.append(reader.durable())

    feed = Watching(count=500)
    async with trio.open_nursery() as nursery:
        await nursery.start(feed.serve)
        async with receiving(spool, settings_for(feed.url, credit=50)):
            await feed.until(lambda: len(feed.accepted) == 500)
    assert feed.accepted == list(range(500))
    assert all(number < durable for number, durable in enumerate(durable_when_accepted))


@pytest.mark.parametrize("credit", [1, 7, 100])
async def test_no_more_than_the_credit_is_ever_without_an_outcome(serve: ServeFeed, spool: Spool, credit: int) -> None:
    feed = await serve(count=10 * credit)
    async with receiving(spool, settings_for(feed.url, credit=credit, linger_s=0.0)):
        await feed.until(lambda: len(feed.accepted) == 10 * credit)
    assert feed.max_unsettled == credit


async def test_many_messages_are_settled_by_few_words(serve: ServeFeed, spool: Spool) -> None:
    feed = await serve(count=400)
    async with receiving(spool, settings_for(feed.url, credit=400)) as progress:
        await feed.until(lambda: len(feed.accepted) == 400)
    assert progress.groups <= 20


async def test_presettled_messages_are_kept_and_marked(serve: ServeFeed, spool: Spool, folder: Path) -> None:
    feed = await serve(count=300, settled=True)
    async with receiving(spool, settings_for(feed.url, credit=20)) as progress:
        await until(lambda: progress.messages == 300)
    assert (progress.presettled, progress.accepted, feed.outcomes) == (300, 0, {})
    assert all(frame.presettled for frame in frames(folder))
    assert kept(folder) == [message(number) for number in range(300)]


async def test_a_cancelled_receiver_keeps_and_settles_the_received_messages(
    serve: ServeFeed, spool: Spool, folder: Path
) -> None:
    feed = await serve(count=10)
    async with receiving(spool, settings_for(feed.url, linger_s=600.0)):
        await feed.until(lambda: len(feed.deliveries) == 10)
    await feed.until(lambda: feed.link_detached)
    assert feed.accepted == list(range(10))
    assert kept(folder) == [message(number) for number in range(10)]


# --- large messages


async def test_a_message_that_is_too_large_is_rejected_with_the_reason(
    serve: ServeFeed, spool: Spool, folder: Path
) -> None:
    feed = await serve(count=4, sizes={1: 100_000_000, 2: 1 << 20})
    async with receiving(spool, settings_for(feed.url)) as progress:
        await feed.until(lambda: len(feed.outcomes) == 4)
        assert len(spool.frames.gathered) < 1 << 20
    assert feed.outcomes == {0: 0x24, 1: 0x25, 2: 0x24, 3: 0x24}
    octets = feed.deliveries[1].remote_state or b""
    state = decode_state(octets, 0, len(octets))[0]
    assert isinstance(state, Rejected)
    assert state.error is not None
    assert state.error.condition == "amqp:link:message-size-exceeded"
    assert state.error.description == "the message has more than the 67108864 bytes that the spool takes"
    assert (progress.refused, progress.messages) == (1, 3)
    assert kept(folder) == [message(0), message(2, 1 << 20), message(3)]


@pytest.mark.parametrize(("size", "code"), [(1000, 0x24), (1008, 0x25)])
async def test_the_largest_message_is_taken_and_no_larger_one(
    serve: ServeFeed, spool: Spool, size: int, code: int
) -> None:
    feed = await serve(count=1, size=size)
    async with receiving(spool, settings_for(feed.url, max_message_bytes=1000 + 8)):
        await feed.until(lambda: feed.outcomes)
    assert feed.outcomes == {0: code}


async def test_a_message_that_is_cut_off_by_the_end_of_its_link_was_never_there(
    serve: ServeFeed, nursery: trio.Nursery, spool: Spool, folder: Path
) -> None:
    first = Feed(count=1)
    second = Feed(begin=1, count=1)
    await nursery.start(first.serve)
    await nursery.start(second.serve)
    settings = settings_for(first.url, servers=Servers(urls=(first.url, second.url)))
    async with receiving(spool, settings) as progress:
        await first.until(lambda: first.accepted == [0])
        first.send(first.links[0], b"half of it", more=True)
        await first.flush()
        await until(lambda: len(spool.frames.gathered) > 0)
        await first.cut()
        await second.until(lambda: second.accepted == [1])
    assert progress.links == 2
    assert kept(folder) == [message(0), message(1)]


# --- the backlog


async def test_a_full_spool_grants_no_credit_until_messages_are_consumed(serve: ServeFeed, folder: Path) -> None:
    feed = await serve(size=1000, count=2000)
    with Spool.open(folder, segment_bytes=100_000, backlog_bytes=500_000) as spool:
        async with receiving(spool, settings_for(feed.url, credit=100, max_group_bytes=10_000)) as progress:
            await until(lambda: progress.state == "waiting")
            assert "not consumed" in progress.trouble
            stopped_at = spool.durable
            assert 400 < stopped_at < 700
            assert len(feed.accepted) <= stopped_at
            reader = SpoolReader(folder)
            while len(feed.accepted) < 2000:
                reader.consumed(reader.durable())
                accepted = len(feed.accepted)
                await feed.until(lambda accepted=accepted: len(feed.accepted) > accepted)  # type: ignore[misc]
        assert progress.messages == 2000
        assert len(spool._segments) < 10


# --- servers that disconnect and links that detach


async def test_the_next_server_is_tried_when_one_is_gone(serve: ServeFeed, spool: Spool, folder: Path) -> None:
    first, second = await serve(count=5), await serve(begin=5, count=5)
    settings = settings_for(first.url, servers=Servers(urls=("127.0.0.1:1", first.url, second.url)))
    async with receiving(spool, settings) as progress:
        await first.until(lambda: len(first.accepted) == 5)
        assert progress.server == first.url
        await first.cut()
        await second.until(lambda: len(second.accepted) == 5)
        assert (progress.server, progress.links, progress.trouble) == (second.url, 2, "")
    assert kept(folder) == [message(number) for number in range(10)]


async def test_a_link_that_the_server_detaches_is_attached_again(router: Router, spool: Spool) -> None:
    async with receiving(spool, settings_for(router.url)) as progress:
        assert await send(router, 10) == list(range(10))
        cut(router)
        await until(lambda: progress.links == 2)
        assert len(await send(router, 10)) == 10


async def test_refused_credentials_end_the_receiver(serve: ServeFeed, spool: Spool) -> None:
    feed = await serve(mechanisms=("PLAIN",))
    feed.sasl_answers = [1]
    settings = settings_for(feed.url, servers=Servers(urls=(feed.url,), user="me", password="wrong"))
    progress = Progress()
    with trio.fail_after(60), pytest.raises(AuthenticationFailed, match="did not accept the credentials"):
        await receive(spool, settings, progress)
    assert (progress.state, "wrong" in progress.trouble, "wrong" in repr(settings)) == ("failed", False, False)


async def test_credentials_that_cannot_be_looked_at_now_are_shown_again(serve: ServeFeed, spool: Spool) -> None:
    first, second = await serve(mechanisms=("PLAIN",)), await serve(mechanisms=("PLAIN",), count=1)
    first.sasl_answers = [4]
    servers = Servers(urls=(first.url, second.url), user="me", password="right")
    async with receiving(spool, settings_for(first.url, servers=servers)):
        await second.until(lambda: second.accepted)
    assert second.responses == [b"\0me\0right"]


async def test_a_refused_address_ends_the_receiver(serve: ServeFeed, spool: Spool) -> None:
    feed = await serve()
    feed.refusal = Error("amqp:unauthorized-access", "not for you")
    with trio.fail_after(60), pytest.raises(LinkDetached, match="amqp:unauthorized-access: not for you"):
        await receive(spool, settings_for(feed.url), Progress())


async def test_a_refusal_that_may_pass_is_borne_for_as_many_attempts(nursery: trio.Nursery, spool: Spool) -> None:
    feeds = [Feed() for _ in range(3)]
    for feed in feeds:
        feed.refusal = Error("amqp:resource-limit-exceeded", "too many")
        await nursery.start(feed.serve)
    settings = settings_for(feeds[0].url, servers=Servers(urls=tuple(feed.url for feed in feeds)), attempts=1)
    with trio.fail_after(60), pytest.raises(LinkDetached, match="too many"):
        await receive(spool, settings, Progress())
    assert all(feed.link_detached or feed.links for feed in feeds)


async def test_two_receivers_share_the_messages_that_the_router_distributes(router: Router, tmp_path: Path) -> None:
    with Spool.open(tmp_path / "a") as one, Spool.open(tmp_path / "b") as other:
        async with (
            receiving(one, settings_for(router.url)) as first,
            receiving(other, settings_for(router.url)) as second,
        ):
            await until(lambda: first.state == second.state == "receiving")
            assert len(await send(router, 400)) == 400
        assert one.durable + other.durable == 400
        assert min(one.durable, other.durable) > 0
    assert sorted(kept(tmp_path / "a") + kept(tmp_path / "b")) == [message(number) for number in range(400)]


# --- TLS


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"), "authority")


async def test_a_receiver_connects_over_tls_with_a_client_certificate(
    serve: ServeFeed, spool: Spool, authority: Authority, folder: Path
) -> None:
    context = authority.server("127.0.0.1")
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(authority.certificate)
    certificate, key = authority.pair("127.0.0.2")
    feed = await serve(count=100, size=3000, tls=context, mechanisms=("EXTERNAL",))
    servers = Servers(urls=(feed.url,), trust_file=authority.certificate, certificate=certificate, key=key)
    async with receiving(spool, settings_for(feed.url, servers=servers)):
        await feed.until(lambda: len(feed.accepted) == 100)
    assert kept(folder) == [message(number, 3000) for number in range(100)]


async def test_an_untrusted_server_ends_the_receiver(serve: ServeFeed, spool: Spool, authority: Authority) -> None:
    feed = await serve(tls=authority.server("127.0.0.9"))
    for servers, why in [
        (Servers(urls=(feed.url.replace("amqp", "amqps"),)), "certificate"),
        (Servers(urls=(feed.url,), trust_file=authority.certificate.with_name("none")), "No such file"),
        (Servers(urls=(feed.url,), trust_file=Path(__file__)), "no certificates in the trust file"),
        (Servers(urls=(feed.url,), certificate=authority.certificate), "not a certificate and its key"),
    ]:
        with trio.fail_after(60), pytest.raises(OSError, match=why):
            await receive(spool, settings_for(feed.url, servers=servers), Progress())


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("credit", 0),
        ("max_message_bytes", (1 << 31) + 1),
        ("max_group_bytes", 0),
        ("linger_s", -1.0),
        ("first_pause_s", 0.0),
        ("address", ""),
        ("attempts", -1),
    ],
)
def test_settings_that_make_no_sense_are_refused(field: str, value: object) -> None:
    with pytest.raises(ValueError, match=field):
        settings_for("127.0.0.1:1", **{field: value})
