"""All endings: refusals, detaches, ends, closes and lost sockets, during each kind of wait."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from functools import partial

import pytest
import trio
import trio.testing

from tests.client.conftest import StartRouter
from tests.client.support import Router, Server, serving
from trouter.client import (
    ACCEPTED,
    AuthenticationFailed,
    ClientError,
    Connection,
    ConnectionClosed,
    LimitReached,
    LinkDetached,
    Message,
    Receiver,
    ReceiverSettleMode,
    Sender,
    Session,
    SessionEnded,
    Source,
    Target,
    connect,
)
from trouter.engine.limits import EngineLimits
from trouter.wire.performatives import Coordinator, Error, Transfer

pytestmark = pytest.mark.usefixtures("guard")

GONE = Error("amqp:resource-deleted", "it is gone", {"why": "test"})


# --- refusals


async def test_a_refused_receiver_raises_the_reason(start_router: StartRouter) -> None:
    router = await start_router(
        "router { id: R }\nlistener { host: 127.0.0.1, port: 0, saslMechanisms: ANONYMOUS }\n"
        "address { prefix: nowhere, distribution: unavailable }\n"
    )
    async with router.connect() as connection:
        with pytest.raises(LinkDetached) as refused:
            async with connection.open_receiver("nowhere/at/all"):
                pytest.fail("it was refused")
        assert refused.value.condition == "amqp:not-found"
        assert str(refused.value) == "amqp:not-found: Node not found"
        with pytest.raises(LinkDetached):
            async with connection.open_sender("nowhere"):
                pytest.fail("it was refused")
        async with connection.open_receiver("somewhere") as receiver:
            assert receiver.usable


async def test_other_termini_may_be_requested_and_refused(connection: Connection) -> None:
    with pytest.raises(LinkDetached) as refused:
        async with connection.open_sender(target=Coordinator()):  # type: ignore[arg-type]
            pytest.fail("it was refused")
    assert refused.value.condition == "amqp:precondition-failed"
    async with (
        connection.open_receiver(source=Source("q"), target=Target("mine")) as receiver,
        connection.open_sender(target=Target("q"), source=Source("mine"), properties={"a": 1}) as sender,
    ):
        assert (receiver.address, receiver.target.address) == ("q", "mine")
        assert (sender.address, sender.source.address) == ("q", "mine")


async def test_the_fields_of_the_peers_open_and_attach_are_readable() -> None:
    server = Server()
    server.attach_fields = {"max_message_size": 5000, "offered_capabilities": ("queue",), "properties": {"a": 1}}
    async with (
        serving(server),
        connect(server.url, container_id="me", properties={"b": 2}, desired_capabilities=["c"]) as connection,
        connection.open_sender("q") as sender,
        connection.open_receiver("q") as receiver,
    ):
        assert (connection.container_id, connection.remote.container_id) == ("me", "server")
        opened = server.engine.remote_open
        assert (opened.container_id, opened.hostname, opened.properties) == ("me", "127.0.0.1", {"b": 2})
        assert opened.desired_capabilities == ("c",)
        assert (sender.max_message_size, sender.offered_capabilities, sender.properties) == (5000, ("queue",), {"a": 1})
        assert (receiver.max_message_size, receiver.offered_capabilities, receiver.properties) == (0, (), {})


async def enter(opening: AbstractAsyncContextManager[object]) -> None:
    """Wait for a session that does not begin."""
    async with opening:
        pytest.fail("no session has begun")


async def test_a_session_that_does_not_begin_may_be_given_up() -> None:
    server = Server()
    async with serving(server), connect(server.url) as connection:
        asked = trio.Event()
        server._answer = lambda event: asked.set()  # type: ignore[method-assign]
        for opening in (connection.session(), connection.open_receiver("q", stream=True), connection.open_sender("q")):
            asked = trio.Event()
            async with trio.open_nursery() as nursery:
                nursery.start_soon(enter, opening)
                await asked.wait()
                nursery.cancel_scope.cancel()
            assert nursery.cancel_scope.cancelled_caught
        server.engine.close()
        await server.flush()


async def test_a_cancelled_attach_leaves_nothing_behind() -> None:
    server = Server()
    server.answers_attaches = False
    async with serving(server), connect(server.url) as connection:
        for _ in range(3):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(open_and_close, connection, "q")
                await server.until(lambda: server.links)
                nursery.cancel_scope.cancel()
            link = server.links.pop()
            link.attach(Source("q"), Target("q"), initial_delivery_count=0)  # a late answer
            await server.flush()
        server.answers_attaches = True
        async with connection.open_receiver("q"):
            assert len(connection._default._links) == 1  # type: ignore[union-attr]
        assert server.engine.link_count == 0


async def open_and_close(connection: Connection, address: str) -> None:
    async with connection.open_receiver(address):
        pass


async def test_names_are_unique_in_a_session(connection: Connection) -> None:
    async with connection.open_receiver("a", name="one"), connection.open_sender("a", name="one"):
        with pytest.raises(ValueError, match="a link named 'one'"):
            async with connection.open_receiver("b", name="one"):
                pytest.fail("the name is in use")
        async with connection.session() as session, session.open_receiver("b", name="one"):
            pass
    async with connection.open_receiver("a", name="one"):
        pass


async def test_the_limits_of_the_peer_are_reported() -> None:
    server = Server(EngineLimits(channel_max=1, handle_max=1, idle_timeout_s=0.0))
    async with (
        serving(server),
        connect(server.url) as connection,
        connection.session() as session,
        connection.session(),
    ):
        with pytest.raises(LimitReached, match="no channel above 1"):
            async with connection.session():
                pytest.fail("no more sessions")
        async with session.open_sender("a"), session.open_receiver("b"):
            with pytest.raises(LimitReached, match="no handle above 1"):
                async with session.open_sender("c"):
                    pytest.fail("no more links")
        async with session.open_sender("d"):
            pass


# --- endings during waits


async def wait_in_line(sender: Sender, receiver: Receiver) -> None:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(sender.send, Message("behind"))
        await sender.send(Message("without credit"))


async def wait_for_outcome(sender: Sender, receiver: Receiver) -> None:
    await sender.send(Message("unanswered"))


async def wait_half_sent(sender: Sender, receiver: Receiver) -> None:
    await sender.send(Message(bytes(5_000_000)))


async def wait_streaming(sender: Sender, receiver: Receiver) -> None:
    async def endless() -> AsyncIterator[bytes]:
        while True:
            await trio.lowlevel.checkpoint()
            yield bytes(1000)

    await sender.send_stream(endless())


async def wait_pipelined(sender: Sender, receiver: Receiver) -> None:
    async for _ in sender.send_all(Message(number) for number in range(100_000)):
        pass


async def wait_for_a_delivery(sender: Sender, receiver: Receiver) -> None:
    async for _ in receiver:
        pass


async def wait_for_the_drain(sender: Sender, receiver: Receiver) -> None:
    await receiver.drain()


async def wait_to_open_a_sender(sender: Sender, receiver: Receiver) -> None:
    assert isinstance(sender._session, Session)
    async with sender._session.open_sender("another"):
        await trio.sleep_forever()


async def wait_to_open_a_receiver(sender: Sender, receiver: Receiver) -> None:
    assert isinstance(sender._session, Session)
    async with sender._session.open_receiver("another"):
        await trio.sleep_forever()


WAITS = [
    wait_in_line,
    wait_for_outcome,
    wait_half_sent,
    wait_streaming,
    wait_pipelined,
    wait_for_a_delivery,
    wait_for_the_drain,
    wait_to_open_a_sender,
    wait_to_open_a_receiver,
]


async def detach_all(server: Server) -> None:
    for link in server.links[:2]:
        link.detach(True, GONE)
    await server.flush()


async def end_session(server: Server) -> None:
    server.links[0].session.end(GONE)
    await server.flush()


async def close(server: Server) -> None:
    server.engine.close(GONE)
    await server.flush()


async def cut(server: Server) -> None:
    await server.cut()


async def talk_nonsense(server: Server) -> None:
    server.engine.out += b"\0\0\0\x08\1\0\0\0"
    await server.flush()


async def transfer_on_no_link(server: Server) -> None:
    server.engine.write(server.links[0].session.channel, Transfer(99, delivery_id=5, delivery_tag=b"t"))
    await server.flush()


ENDS = [
    (transfer_on_no_link, SessionEnded, "amqp:session:unattached-handle"),
    (detach_all, LinkDetached, GONE.condition),
    (end_session, SessionEnded, GONE.condition),
    (close, ConnectionClosed, GONE.condition),
    (cut, ConnectionClosed, None),
    (talk_nonsense, ConnectionClosed, "amqp:connection:framing-error"),
]
OPENING = {wait_to_open_a_sender, wait_to_open_a_receiver}


@pytest.mark.parametrize(
    ("wait", "end", "error", "condition"),
    # a link that is being opened cannot be detached
    [(wait, *end) for wait in WAITS for end in ENDS if not (wait in OPENING and end[0] is detach_all)],
)
async def test_every_ending_ends_every_wait(
    wait: Callable[[Sender, Receiver], Awaitable[None]],
    end: Callable[[Server], Awaitable[None]],
    error: type[ClientError],
    condition: str | None,
) -> None:
    server = Server(EngineLimits(session_window_frames=64, max_frame_bytes=512, idle_timeout_s=0.0))
    server.credit = 0 if wait is wait_in_line else 10
    caught: list[ClientError] = []

    async def expect(sender: Sender, receiver: Receiver) -> None:
        try:
            await wait(sender, receiver)
        except* ClientError as group:
            caught.extend(each for each in leaves(group) if isinstance(each, ClientError))

    async with (
        serving(server),
        connect(server.url) as connection,
        connection.open_sender("q") as sender,
        connection.open_receiver("q", credit=5) as receiver,
    ):
        await server.until(lambda: len(server.links) == 2)
        if wait is wait_half_sent:
            server.links[0].session.windows.hold_bytes(20_000)
        server.answers_attaches = False
        async with trio.open_nursery() as nursery:
            nursery.start_soon(expect, sender, receiver)
            if wait is wait_half_sent:
                await server.until(lambda: server.links[0].session.windows.incoming_frames == 0)
            elif wait is wait_streaming:
                await server.until(lambda: sum(map(len, server.payloads)) > 20_000)
            else:
                await trio.testing.wait_all_tasks_blocked(0.01)
            await end(server)
        assert caught
        assert {type(each) for each in caught} == {error}
        assert {each.condition for each in caught} == {condition}
        if condition == GONE.condition:
            assert caught[0].description == "it is gone"
            assert caught[0].info == {"why": "test"}
        for after in (sender.send(Message("after")), receiver.receive(), receiver.drain()):
            with pytest.raises(error):
                await after
        with pytest.raises(error):
            sender.send_nowait(Message("after"))
        assert not sender.usable
        assert (sender.credit, receiver.credit) == (0, 0)


def leaves(group: BaseExceptionGroup[BaseException]) -> list[BaseException]:
    found: list[BaseException] = []
    for each in group.exceptions:
        found += leaves(each) if isinstance(each, BaseExceptionGroup) else [each]
    return found


@pytest.mark.parametrize(("end", "error", "condition"), ENDS)
async def test_an_outcome_that_reaches_no_sender_is_an_error(
    end: Callable[[Server], Awaitable[None]], error: type[ClientError], condition: str | None
) -> None:
    server = Server()
    async with (
        serving(server),
        connect(server.url) as connection,
        connection.open_receiver("q", settle_mode=ReceiverSettleMode.SECOND) as receiver,
        connection.open_receiver("q") as other,
    ):
        await server.until(lambda: server.links[0].credit and server.links[1].credit)
        sent = server.send(server.links[0], Message("a").encode())
        server.send(server.links[1], Message("b").encode())
        server.send(server.links[1], Message("c").encode(), settled=True)
        server.send(server.links[1], Message("d").encode())
        await server.flush()
        first, second = await receiver.receive(), await other.receive()
        async with trio.open_nursery() as nursery:

            async def wait() -> None:
                with pytest.raises(error) as ended:
                    await first.accept()
                assert ended.value.condition == condition

            nursery.start_soon(wait)
            await server.until(lambda: sent.remote_code)
            await end(server)
        with pytest.raises(error):
            await second.accept()
        assert (await other.receive()).message.body == "c"  # settled before, so it stays with the receiver that gets it
        with pytest.raises(error):
            await other.receive()


async def test_a_router_that_goes_away_ends_everything(router: Router) -> None:
    async with (
        router.connect() as connection,
        connection.open_receiver("q") as receiver,
        connection.open_sender("q") as sender,
    ):
        async with trio.open_nursery() as nursery:

            async def wait(what: Callable[[], Awaitable[object]]) -> None:
                with pytest.raises(ConnectionClosed):
                    await what()

            await sender.submit(Message("a"))
            unheard = await sender.submit(Message("b"))
            await receiver.receive()
            await receiver.receive()
            nursery.start_soon(wait, receiver.receive)
            nursery.start_soon(wait, unheard.outcome)
            await trio.testing.wait_all_tasks_blocked(0.01)
            router.cut()
        with pytest.raises(ConnectionClosed):
            async with connection.open_sender("q"):
                pytest.fail("there is no connection")
        with pytest.raises(ConnectionClosed):
            async with connection.session():
                pytest.fail("there is no connection")


async def test_a_session_that_ended_is_replaced_for_the_links_to_come() -> None:
    async with serving(Server()) as server, connect(server.url) as connection:
        async with connection.open_sender("q") as sender:
            await end_session(server)
            with pytest.raises(SessionEnded):
                await sender.send(Message("a"))
        async with connection.open_sender("q") as sender:
            server.outcome = ACCEPTED
            assert await sender.send(Message("a")) == ACCEPTED


async def test_a_detach_without_a_reason_is_reported_as_one() -> None:
    async with (
        serving(Server()) as server,
        connect(server.url) as connection,
        connection.open_sender("q") as sender,
    ):
        server.links[0].detach(False)
        await server.flush()
        with pytest.raises(LinkDetached, match="the peer detached the link") as ended:
            await sender.send(Message("a"))
        assert ended.value.condition is None


async def test_a_server_that_begins_sessions_or_links_by_itself_is_refused() -> None:
    from trouter.engine.events import LinkDetached as Detached
    from trouter.engine.events import SessionEnded as Ended
    from trouter.engine.link import add_link

    async with serving(Server()) as server, connect(server.url) as connection, connection.session():
        (session,) = server.engine.sessions()
        add_link(session, "pushed", False).attach(Source("a"), Target("b"), initial_delivery_count=0)
        server.engine.add_session().begin()
        await server.flush()
        await server.until(lambda: {type(event) for event in server.events} >= {Detached, Ended})
        errors = [event.error for event in server.events if isinstance(event, Detached | Ended)]
        assert [error and error.condition for error in errors] == ["amqp:not-allowed"] * 2


# --- endings by the client


async def test_a_locally_closed_link_raises_closed_resource_error(connection: Connection) -> None:
    async with connection.session() as session:
        async with session.open_sender("q") as sender, session.open_receiver("q") as receiver:
            await sender.submit(Message("a"))
            delivery = await receiver.receive()
            unheard = await sender.submit(Message("b"))
            await sender.aclose()
        for after in (sender.send(Message("c")), receiver.receive(), receiver.drain(), unheard.outcome()):
            with pytest.raises(trio.ClosedResourceError):
                await after
        with pytest.raises(trio.ClosedResourceError):
            await delivery.accept()
        await sender.aclose()
    with pytest.raises(trio.ClosedResourceError):
        async with session.open_sender("q"):
            pytest.fail("the session is closed")
    await connection.aclose()
    with pytest.raises(trio.ClosedResourceError):
        async with connection.open_sender("q"):
            pytest.fail("the connection is closed")
    await connection.aclose()


async def test_closing_wakes_the_other_tasks(connection: Connection) -> None:
    async with connection.open_receiver("q") as receiver, trio.open_nursery() as nursery:

        async def wait() -> None:
            with pytest.raises(trio.ClosedResourceError):
                await receiver.receive()

        nursery.start_soon(wait)
        await trio.testing.wait_all_tasks_blocked()
        await receiver.aclose()


async def test_a_link_is_detached_although_its_close_is_cancelled() -> None:
    server = Server()
    server.answers_detaches = False
    async with (
        serving(server),
        connect(server.url, close_timeout=0.01) as connection,
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(open_and_close, connection, "q")
        await server.until(lambda: server.links and server.links[0].closed)
        nursery.cancel_scope.cancel()


async def test_an_exception_of_the_block_is_raised_unchanged(router: Router) -> None:
    with pytest.raises(LookupError, match="mine") as caught:
        async with (
            router.connect() as connection,
            connection.open_sender("q"),
            connection.open_receiver("q", stream=True),
        ):
            raise LookupError("mine")
    assert not isinstance(caught.value, BaseExceptionGroup)


async def test_a_cancelled_block_closes_and_hangs_on_nothing() -> None:
    server = Server()
    server.answers_close = False
    async with serving(server):
        with trio.CancelScope() as scope:
            async with connect(server.url, close_timeout=100.0) as connection, connection.open_sender("q") as sender:
                scope.cancel()
                await trio.sleep_forever()
        assert scope.cancelled_caught
        assert not sender.usable
        assert not connection.usable


async def test_a_server_that_does_not_answer_the_close_is_disconnected() -> None:
    server = Server()
    server.answers_close = False
    async with serving(server), connect(server.url, close_timeout=0.01):
        pass


# --- connecting


async def test_a_missing_server_is_an_os_error() -> None:
    (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
    port = listener.socket.getsockname()[1]
    await listener.aclose()
    with pytest.raises(OSError, match=r"127\.0\.0\.1"):
        async with connect(f"amqp://127.0.0.1:{port}"):
            pytest.fail("no server is there")


async def test_a_silent_server_times_out() -> None:
    (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
    async with listener:
        with pytest.raises(trio.TooSlowError):
            async with connect(f"amqp://127.0.0.1:{listener.socket.getsockname()[1]}", timeout=0.01):
                pytest.fail("no server answers")


@pytest.mark.parametrize(
    ("words", "condition"),
    [(b"HTTP/1.1 400 Bad Request\r\n\r\n", "amqp:connection:framing-error"), (b"", None)],
)
async def test_another_protocol_of_the_server_raises_its_own_condition(words: bytes, condition: str | None) -> None:
    async def serve(stream: trio.SocketStream) -> None:
        await stream.receive_some()
        await stream.send_all(words)

    async with trio.open_nursery() as nursery:
        (listener,) = await nursery.start(partial(trio.serve_tcp, serve, 0, host="127.0.0.1"))
        with pytest.raises(ConnectionClosed) as closed:
            async with connect(f"amqp://127.0.0.1:{listener.socket.getsockname()[1]}"):
                pytest.fail("it is no AMQP server")
        assert closed.value.condition == condition
        nursery.cancel_scope.cancel()


async def test_a_server_may_close_right_after_its_open() -> None:
    server = Server()

    async def close_at_once() -> None:
        await server.until(lambda: server.engine is not None and server.engine.remote_open is not None)
        await close(server)

    async with serving(server), trio.open_nursery() as nursery:
        nursery.start_soon(close_at_once)
        with pytest.raises(ConnectionClosed) as closed:
            async with connect(server.url) as connection, connection.open_sender("q"):
                await trio.sleep_forever()
        assert closed.value.condition == GONE.condition


async def test_a_server_that_falls_silent_is_given_up(autojump_clock: trio.testing.MockClock) -> None:
    async with (
        serving(Server()) as server,
        connect(server.url, idle_timeout=60.0) as connection,
        connection.open_receiver("q") as receiver,
    ):
        start_s = trio.current_time()
        with pytest.raises(ConnectionClosed) as closed:
            await receiver.receive()
        assert closed.value.condition == "amqp:resource-limit-exceeded"
        assert 60.0 <= trio.current_time() - start_s <= 80.0


async def test_a_quiet_connection_is_kept_alive(autojump_clock: trio.testing.MockClock) -> None:
    server = Server()
    server.open.idle_time_out = 10_000
    async with serving(server), connect(server.url, idle_timeout=0.0) as connection:
        received_at_s: list[float] = []
        receive = server.engine.receive_data
        server.engine = Listening(server.engine, receive, received_at_s)
        await trio.sleep(60.0)
        assert len(received_at_s) >= 10
        assert connection.usable


class Listening:
    """An engine, and the time of its last input."""

    def __init__(self, engine: object, receive: Callable[[bytes], None], received_at_s: list[float]) -> None:
        self._engine = engine
        self._receive = receive
        self._received_at_s = received_at_s

    def receive_data(self, data: bytes) -> None:
        self._received_at_s.append(trio.current_time())
        self._receive(data)

    def __getattr__(self, name: str) -> object:
        return getattr(self._engine, name)


async def test_urls_are_checked_first() -> None:
    with pytest.raises(ValueError, match="scheme"):
        async with connect("http://127.0.0.1"):
            pytest.fail("a wrong scheme")
    with pytest.raises(ValueError, match="a user without a password"):
        async with connect("amqp://somebody@127.0.0.1"):
            pytest.fail("no password")


async def test_errors_read_well() -> None:
    assert str(ConnectionClosed(None, "the server closed the socket")) == "the server closed the socket"
    assert str(LinkDetached("amqp:not-found")) == "amqp:not-found"
    assert str(AuthenticationFailed(None)) == "the peer gave no reason"
    assert issubclass(ssl.SSLError, OSError)
