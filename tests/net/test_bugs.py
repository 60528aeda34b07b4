"""A bug of the router ends no more than the connection, or the piece of work, in which it happens.

Each test plants an exception in one callback of the path, uses it over one connection, and sees a pair of neighbours
send on. The sockets are served both below trio and by a task.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import islice, repeat, takewhile
from pathlib import Path
from typing import Any, NoReturn

import pytest
import trio

from tests.routers import DEADLINE_S
from tests.ways import in_both_ways
from trouter._bugs import BUGS
from trouter.app import periodic
from trouter.client import ACCEPTED, ClientError, Connection, LinkDetached, Message
from trouter.connections import login_checks, membership
from trouter.connections.peer import Peer
from trouter.hooks import hookimpl
from trouter.management.agent import Agent
from trouter.net.view import ConnectionView
from trouter.policy.connection_policy import ConnectionPolicy
from trouter.telemetry import tracing
from trouter.testing import LoopbackRouter, open_router
from trouter.wire.performatives import Error

MESSAGES = 1_000
BROKEN = "broken"
#: The number of its connection, after those of the neighbours.
THIRD = 3
MESSAGE = Message(body=b"x" * 100)
TEXT = """
router {{ id: R, drainTimeoutSeconds: 1 }}
listener {{ host: 127.0.0.1, port: 0, saslMechanisms: ANONYMOUS, idleTimeoutSeconds: 120 }}
recordLog {{ dir: {folder} }}
"""


class Planted(Exception):
    """A bug."""


def fail(*_: object, **__: object) -> NoReturn:
    raise Planted


@dataclass(frozen=True)
class Plant:
    """A bug and its use: ``plant`` comes before the router starts, ``use`` returns after the bug has happened.

    ``ends``: what the bug ends is the connection of the user.
    """

    name: str
    plant: Callable[[pytest.MonkeyPatch], None]
    use: Callable[[LoopbackRouter, Connection], Awaitable[None]]
    ends: bool
    plugins: Callable[[], dict[str, object]] = dict
    count: int = 1


def nothing(_: pytest.MonkeyPatch) -> None:
    """Plant nothing before the start."""


def view(router: LoopbackRouter) -> Any:
    """Return the connection named ``BROKEN``, a Peer."""
    return next(each for each in router.process.services.connections.values() if is_broken(each))


def is_broken(connection: ConnectionView) -> bool:
    """Return whether the peer has named itself ``BROKEN``."""
    remote = connection.engine.remote_open
    return remote is not None and remote.container_id == BROKEN


class FrameLog:
    """A log of frames of which one method has a bug."""

    def __init__(self, broken: str) -> None:
        self._broken = broken

    def received(self, _: bytes) -> None:
        self._call("received")

    def show_output(self) -> None:
        self._call("show_output")

    def dropped(self, _: int) -> None:
        self._call("dropped")

    def _call(self, name: str) -> None:
        if name == self._broken:
            raise Planted


def frame_log(method: str) -> Callable[[LoopbackRouter, Connection], Awaitable[None]]:
    async def use(router: LoopbackRouter, user: Connection) -> None:
        view(router).record.frames = FrameLog(method)
        await attach(user)

    return use


async def attach(user: Connection) -> None:
    """Attach a link and detach it; ClientError if the connection ends."""
    async with user.open_receiver("elsewhere"):
        pass


async def until_reported(_: LoopbackRouter, __: Connection) -> None:
    """Return after the bug was reported."""
    while not BUGS.total:
        await trio.lowlevel.checkpoint()


def heartbeats(monkeypatch: pytest.MonkeyPatch) -> None:
    right = Peer._tick_engine

    def tick(self: Peer, now_s: float) -> float:
        return fail() if is_broken(self) else right(self, now_s)

    monkeypatch.setattr(Peer, "_tick_engine", tick)


async def until_gone(router: LoopbackRouter, _: Connection) -> None:
    """Make the heartbeat due, and return when the connection has ended."""
    broken = view(router)
    router.process.services.timers.advance(broken._timer, trio.current_time())
    await until_reported(router, _)


def periodic_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(periodic, "ROUND_S", 0.01)
    monkeypatch.setattr(periodic, "make_round", fail)


def waiting_row(monkeypatch: pytest.MonkeyPatch) -> None:
    async def recheck(_: object) -> None:
        raise Planted

    monkeypatch.setattr(periodic, "RECHECK_S", 0.01)
    monkeypatch.setattr("trouter.tls.secure.Secure.recheck", recheck)


async def until_closed(user: Connection) -> NoReturn:
    """Attach links until the connection has ended, and raise its ClientError."""
    while True:
        await attach(user)


class BrokenConsumer:
    def receive(self, _: object) -> None:
        raise Planted


async def send_to_broken_sink(router: LoopbackRouter, user: Connection) -> None:
    router.process.router.inside.subscribe("broken.sink", BrokenConsumer())
    async with user.open_sender("broken.sink") as sender:
        await sender.send(MESSAGE)


async def send_one(router: LoopbackRouter, user: Connection) -> None:
    """Send a message to a receiver of the same connection."""
    async with user.open_receiver("broken.one", credit=10), user.open_sender("broken.one") as sender:
        await sender.send(MESSAGE)


class BrokenTap:
    note_received = note_aborted = staticmethod(fail)


def tap(monkeypatch: pytest.MonkeyPatch) -> None:
    right = ConnectionPolicy.make_tap

    def make_tap(self: ConnectionPolicy, log: Any) -> Any:
        return BrokenTap() if self.request.connection_id == THIRD else right(self, log)

    monkeypatch.setattr(ConnectionPolicy, "make_tap", make_tap)


class Tracer:
    ratio, one_in, propagates = 1.0, 1, False

    @hookimpl
    def message_tracer(self) -> Tracer:
        return self

    def export(self, _: object, __: int) -> None:
        """Take the spans."""


def spans(monkeypatch: pytest.MonkeyPatch) -> None:
    right = tracing.describe_source

    def describe_source(link: Any) -> tuple[str, int]:
        source = right(link)
        return fail() if source[0] == BROKEN else source

    monkeypatch.setattr(tracing, "describe_source", describe_source)


async def with_a_broken_forwarder(router: LoopbackRouter, user: Connection) -> None:
    """Send to an address whose forwarder has something else instead of its two consumers."""
    address = "broken.forwarder"
    async with user.open_receiver(address), user.open_receiver(address), user.open_sender(address) as sender:
        entry = router.process.router.table.find_entry(address.encode())
        assert entry is not None
        entry.forwarder.consumers[:] = [object(), object()]  # type: ignore[list-item]  # the bug
        await sender.send(MESSAGE)


class LogHandler(logging.Handler):
    def handle(self, _: logging.LogRecord) -> bool:
        raise Planted


async def with_a_broken_log_handler(_: LoopbackRouter, user: Connection) -> None:
    handler = LogHandler()
    root = logging.getLogger("trouter")
    root.addHandler(handler)
    try:
        await attach(user)
    finally:
        root.removeHandler(handler)


def writer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trouter.telemetry.record_logs.RecordLog._write", fail)


class BrokenTaker:
    put = staticmethod(fail)


async def with_a_broken_taker(router: LoopbackRouter, user: Connection) -> None:
    router.process.services.recorder.add(BrokenTaker())
    await attach(user)


class BrokenPlugin:
    @hookimpl
    def judge_attach(self, request: Any) -> None:
        if request.address == "elsewhere":
            raise Planted

    @hookimpl
    def observe(self, record: object) -> NoReturn:
        raise Planted


async def use_broken_plugin(_: LoopbackRouter, user: Connection) -> None:
    with pytest.raises(LinkDetached):
        await attach(user)


def loss(monkeypatch: pytest.MonkeyPatch) -> None:
    right = membership.Membership.release_steps

    def release_steps(self: Any, owner: Any) -> Iterator[Callable[[], object]]:
        yield from right(self, owner)
        if is_broken(owner):
            yield fail

    monkeypatch.setattr(membership.Membership, "release_steps", release_steps)


async def leave(router: LoopbackRouter, user: Connection) -> None:
    broken = view(router)
    broken.force_close(Error("amqp:connection:forced", "the test is over"))
    await until_reported(router, user)


class OddLogin:
    """A login that cannot be checked again."""

    def __init__(self, login: object) -> None:
        self._login = login

    def __getattr__(self, name: str) -> Any:
        return getattr(self._login, name)

    def is_good(self) -> bool:
        return fail()


def login_check(monkeypatch: pytest.MonkeyPatch) -> None:
    slot: Any = vars(Peer)["login"]

    def login(self: Peer) -> Any:
        right = slot.__get__(self)
        return OddLogin(right) if is_broken(self) else right

    monkeypatch.setattr(login_checks, "CHECK_S", 0.01)
    monkeypatch.setattr(Peer, "login", property(login, slot.__set__))


class OddCertificates:
    """Has a chain, and nothing that a check can read."""

    chain = (b"odd",)


def certificate_check(monkeypatch: pytest.MonkeyPatch) -> None:
    right = Peer.certificates

    def certificates(self: Peer) -> Any:
        return OddCertificates() if is_broken(self) else right.__get__(self)

    monkeypatch.setattr(periodic, "RECHECK_S", 0.01)
    monkeypatch.setattr(Peer, "certificates", property(certificates))
    monkeypatch.setattr("trouter.tls.secure.Secure._objection", fail)


def management(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Agent, "_is_awaited", fail)


async def ask(router: LoopbackRouter, user: Connection) -> None:
    async with user.open_sender("$management") as sender:
        await sender.send(MESSAGE)


def acceptance(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trouter.connections.listen.Listener._facts_of", fail)


PLANTS = [
    Plant("reader", nothing, frame_log("received"), ends=True),
    Plant("output", nothing, frame_log("show_output"), ends=True, count=2),
    Plant("output once written", nothing, frame_log("dropped"), ends=True, count=2),
    Plant("timer", heartbeats, until_gone, ends=True),
    Plant("periodic row", periodic_row, until_reported, ends=False),
    Plant("periodic row that waits", waiting_row, until_reported, ends=False),
    Plant("check of a login", login_check, until_reported, ends=True),
    Plant("check of a certificate", certificate_check, until_reported, ends=True),
    Plant("sink", nothing, send_to_broken_sink, ends=True),
    Plant("forwarder", nothing, with_a_broken_forwarder, ends=True),
    Plant("tap", tap, send_one, ends=True),
    Plant("span", spans, send_one, ends=True, plugins=lambda: {"tracer": Tracer()}),
    Plant("log handler", nothing, with_a_broken_log_handler, ends=False, count=0),
    Plant("writer of records", writer, until_reported, ends=False),
    Plant("output of records", nothing, with_a_broken_taker, ends=False),
    Plant("plugin", nothing, use_broken_plugin, ends=False, plugins=lambda: {"broken": BrokenPlugin()}, count=0),
    Plant("loss of a connection", loss, leave, ends=True),
    Plant("request to management", management, ask, ends=False),
]


@pytest.fixture(autouse=True)
def no_bugs() -> Iterator[None]:
    BUGS.total = 0
    yield
    BUGS.total = 0


async def pass_messages(router: LoopbackRouter) -> None:
    """Pass messages between two clients that were connected before."""
    async with neighbours(router, "others") as pair:
        await pass_between(*pair)


async def pass_between(sender: Any, receiver: Any, over: trio.Event | None = None) -> None:
    """Pass messages until it is over, else a number of them; each is accepted."""
    endless = repeat(MESSAGE)
    messages = islice(endless, MESSAGES) if over is None else takewhile(lambda _: not over.is_set(), endless)

    async def receive() -> None:
        while True:
            await (await receiver.receive()).accept()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(receive)
        async for _, outcome in sender.send_all(messages, in_flight=500):
            assert outcome == ACCEPTED
        nursery.cancel_scope.cancel()


@asynccontextmanager
async def neighbours(router: LoopbackRouter, address: str = "neighbours") -> AsyncIterator[tuple[Any, Any]]:
    async with (
        router.connect() as one,
        router.connect() as other,
        one.open_receiver(address, credit=1000) as receiver,
        other.open_sender(address) as sender,
    ):
        yield sender, receiver


@pytest.mark.parametrize("plant", PLANTS, ids=lambda plant: plant.name)
@in_both_ways
async def test_a_bug_ends_no_more_than_its_connection_or_its_work(
    plant: Plant, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    plant.plant(monkeypatch)
    text = TEXT.format(folder=tmp_path)
    with trio.fail_after(DEADLINE_S):
        async with open_router(text, plant.plugins()) as router, neighbours(router) as pair:
            over = trio.Event()
            async with trio.open_nursery() as nursery:
                nursery.start_soon(pass_between, *pair, over)
                try:
                    async with router.connect(container_id=BROKEN) as user:
                        await plant.use(router, user)
                        if plant.ends:
                            await until_closed(user)
                except ClientError:
                    assert plant.ends
                over.set()
            assert BUGS.total >= plant.count
            assert bool(BUGS.total) == bool(plant.count)
            findings = [each.message for each in router.process.in_force.findings() if "of its own" in each.message]
            assert len(findings) == min(plant.count, 1)
            await pass_between(*pair)
            await pass_messages(router)
            assert not router.process.failed


@in_both_ways
async def test_a_bug_before_the_open_closes_one_socket_and_not_the_listener(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with trio.fail_after(DEADLINE_S):
        async with open_router(TEXT.format(folder=tmp_path)) as router, neighbours(router) as pair:
            with monkeypatch.context() as planted:
                acceptance(planted)
                with pytest.raises((ClientError, OSError)):
                    async with router.connect():
                        pass
            assert BUGS.total == 1
            await pass_between(*pair)
            await pass_messages(router)
