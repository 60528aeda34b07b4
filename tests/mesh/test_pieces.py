"""Large updates of addresses: read and stored in pieces, in their order, with the same result as in one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from tests.mesh.test_mesh import ME, TIMERS, Bench
from trouter.backbone.backbone import Backbone
from trouter.backbone.contact import MeshClock
from trouter.mesh import pieces as pieces_module
from trouter.mesh.events import AddressesChanged, Forward, RouterLost
from trouter.mesh.faults import MeshFault
from trouter.mesh.messages import (
    ALL_ADDRESSES_TO,
    Hello,
    LinkStateUpdate,
    Message,
    MobileAddressRequest,
    MobileAddressUpdate,
    Newer,
    RouterAdvertisement,
    compose,
    mobile_address,
    parse,
)
from trouter.mesh.pieces import MAX_OTHER_BYTES, PIECE, SMALL_BYTES, PieceQueue, Pieces, parse_in_pieces
from trouter.net.hub import Hub
from trouter.net.timers import TimerQueue
from trouter.testing.memory import MemoryRouter
from trouter.wire.errors import DecodeError

pytestmark = pytest.mark.attack

COUNT = 20_000
KEYS = tuple(f"M0{number}" for number in range(COUNT))
WHOLE = MobileAddressUpdate("R2", 1, exist=KEYS, hints=(1,) * COUNT)
CHANGE = MobileAddressUpdate("R2", 2, added=tuple(f"M1{key}" for key in KEYS), deleted=KEYS[:10], hints=(2,) * COUNT)


def octets(update: Message, to: str = mobile_address(ME)) -> bytes:
    return compose(update, to)


def finish(pieces: Pieces[Message | Newer]) -> tuple[Message | Newer, int]:
    """Return what is read, and in how many pieces."""
    count = 1
    while True:
        try:
            next(pieces)
        except StopIteration as over:
            return over.value, count
        count += 1


@pytest.fixture
def bench() -> Bench:
    """Return a mesh whose neighbour R2 has advertised its addresses."""
    bench = Bench()
    bench.neighbour()
    bench.receive(RouterAdvertisement("R2", 7, 1, 1))
    bench.take_events()
    return bench


def take(bench: Bench, update: Message, to: str = mobile_address(ME)) -> tuple[str, ...]:
    return bench.mesh.take_message(octets(update, to), 1, bench.now_s).hops


def work(bench: Bench) -> None:
    """Do all pieces; none of them changes many addresses."""
    while bench.mesh.has_pieces:
        before = len(bench.mesh.events)
        bench.mesh.do_piece()
        for event in bench.mesh.events[before:]:
            if isinstance(event, AddressesChanged):
                assert max(len(event.added), len(event.deleted)) <= PIECE


@pytest.mark.parametrize(
    "update",
    [WHOLE, CHANGE, replace(WHOLE, hints=()), replace(WHOLE, hints=(1, 2)), replace(WHOLE, exist=("M0a",) * COUNT)],
    ids=["whole", "change", "no hints", "few hints", "one address"],
)
def test_a_message_read_in_pieces_is_that_read_in_one(update: MobileAddressUpdate) -> None:
    data = octets(update)
    assert len(data) > SMALL_BYTES
    result, count = finish(parse_in_pieces(data))
    assert result == parse(data)
    assert count >= COUNT // PIECE


def test_a_later_version_is_noticed_in_a_large_message() -> None:
    data = octets(WHOLE).replace(b"\xa3\x02pv\x55\x01", b"\xa3\x02pv\x55\x02")
    assert finish(parse_in_pieces(data))[0] == parse(data) == Newer("R2", 2)


@pytest.mark.parametrize(
    "data",
    [
        octets(WHOLE)[:-1],
        octets(WHOLE)[: SMALL_BYTES + 1],
        octets(WHOLE).replace(b"M0777", b"M0\xff77"),
        octets(WHOLE).replace(b"\xa1\x06M07777", b"\xa0\x06M07777"),
        octets(WHOLE).replace(b"\xa1\x06M07777", b"\x45\x45\x45\x45\x45\x45\x45\x45"),
        octets(WHOLE).replace(COUNT.to_bytes(4), (COUNT - 1).to_bytes(4), 1),
        octets(WHOLE).replace(b"exist", b"exits"),
        octets(replace(WHOLE, exist=(*KEYS, "M0" + "a" * 4095))),
        octets(replace(WHOLE, exist=(*KEYS, ""))),
        octets(replace(WHOLE, id="")),
    ],
    ids=[
        "cut",
        "cut early",
        "no text",
        "binary",
        "lists",
        "long list",
        "no exist",
        "long address",
        "empty address",
        "no id",
    ],
)
def test_bytes_refused_in_one_piece_are_refused_in_several(data: bytes) -> None:
    with pytest.raises(DecodeError):
        parse(data)
    with pytest.raises(DecodeError):
        finish(parse_in_pieces(data))


def test_only_updates_of_addresses_may_be_large() -> None:
    peers = {f"R{number}": 1 for number in range(COUNT)}
    data = octets(LinkStateUpdate("R2", 7, 2, peers))
    assert len(data) > MAX_OTHER_BYTES
    with pytest.raises(DecodeError, match=f"may have {MAX_OTHER_BYTES}"):
        finish(parse_in_pieces(data))


def test_a_large_update_is_stored_in_pieces_and_hellos_are_answered_meanwhile(bench: Bench) -> None:
    assert take(bench, WHOLE) == ()
    assert bench.mesh.has_pieces
    assert not bench.mesh.addresses_of("R2")
    while not bench.mesh.addresses_of("R2"):
        bench.mesh.do_piece()
    assert len(bench.mesh.addresses_of("R2")) == PIECE
    bench.now_s += 1
    bench.mesh.hearing.receive_message(RouterAdvertisement("R2", 7, 1, 1), 1, bench.now_s)
    assert bench.mesh.routers["R2"].heard_s == bench.now_s
    work(bench)
    assert bench.mesh.addresses_of("R2") == dict.fromkeys(KEYS, 1)
    assert bench.mesh.routers["R2"].mobile_sequence == 1


def test_what_comes_behind_a_large_update_waits_for_it(bench: Bench) -> None:
    bench.mesh.hearing.receive_message(RouterAdvertisement("R2", 7, 1, 3), 1, bench.now_s)
    take(bench, WHOLE)
    take(bench, CHANGE)
    take(bench, MobileAddressUpdate("R2", 3, added=("M0last",), deleted=KEYS[10:20], hints=(5,)))
    work(bench)
    expected = dict.fromkeys(KEYS[20:], 1) | dict.fromkeys(CHANGE.added, 2) | {"M0last": 5}
    assert bench.mesh.addresses_of("R2") == expected
    assert bench.mesh.routers["R2"].mobile_sequence == 3


def test_few_addresses_in_place_of_many_are_stored_in_pieces(bench: Bench) -> None:
    take(bench, WHOLE)
    work(bench)
    bench.mesh.hearing.receive_message(RouterAdvertisement("R2", 7, 1, 2), 1, bench.now_s)
    take(bench, MobileAddressUpdate("R2", 2, exist=KEYS[:1], hints=(1,)))
    assert bench.mesh.has_pieces
    work(bench)
    assert bench.mesh.addresses_of("R2") == {KEYS[0]: 1}


def test_no_request_is_repeated_while_its_answer_is_read(bench: Bench) -> None:
    take(bench, WHOLE)
    for _ in range(5):
        bench.mesh.hearing.receive_message(Hello("R2", 7, (ME,)), 1, bench.now_s)
        bench.tick()
    assert bench.mesh.has_pieces
    assert not bench.sent(MobileAddressRequest)
    work(bench)
    assert len(bench.mesh.addresses_of("R2")) == COUNT


def test_an_update_of_before_a_restart_is_void(bench: Bench) -> None:
    take(bench, WHOLE)
    while not bench.mesh.addresses_of("R2"):
        bench.mesh.do_piece()
    bench.take_events()
    bench.mesh.hearing.receive_message(Hello("R2", 8, (ME,)), 1, bench.now_s)
    work(bench)
    assert not any(event.added for event in bench.take_events() if isinstance(event, AddressesChanged))
    assert not bench.mesh.addresses_of("R2")
    assert bench.mesh.routers["R2"].mobile_sequence == 0
    bench.mesh.hearing.receive_message(RouterAdvertisement("R2", 8, 1, 1), 1, bench.now_s)
    take(bench, WHOLE)
    work(bench)
    assert len(bench.mesh.addresses_of("R2")) == COUNT


def test_a_lost_routers_addresses_are_deleted_in_pieces_before_it_is_reported(bench: Bench) -> None:
    take(bench, WHOLE)
    work(bench)
    bench.mesh.link_down(1, bench.now_s)
    while "R2" in bench.mesh.routers:
        bench.tick()
    bench.take_events()
    assert bench.mesh.has_pieces
    work(bench)
    deleted = [key for event in bench.mesh.events if isinstance(event, AddressesChanged) for key in event.deleted]
    assert set(deleted) | set(KEYS[:PIECE]) == set(KEYS)
    assert bench.mesh.events[-1] == RouterLost("R2")


def test_a_router_that_came_back_meanwhile_is_not_reported_lost(bench: Bench) -> None:
    take(bench, WHOLE)
    work(bench)
    bench.mesh.link_down(1, bench.now_s)
    while "R2" in bench.mesh.routers:
        bench.tick()
    bench.mesh.link_up(1, 1, bench.now_s)
    bench.mesh.hearing.receive_message(RouterAdvertisement("R2", 7, 1, 0), 1, bench.now_s)
    work(bench)
    assert RouterLost("R2") not in bench.mesh.events


def test_a_large_change_is_sent_on_once_it_is_stored(bench: Bench) -> None:
    bench.neighbour("R3", over=2)
    bench.mesh.hearing.receive_message(RouterAdvertisement("R2", 7, 1, 2), 1, bench.now_s)
    take(bench, WHOLE)
    take(bench, CHANGE, f"amqp:/{ALL_ADDRESSES_TO}")
    work(bench)
    [forward] = [event for event in bench.mesh.events if isinstance(event, Forward)]
    assert forward.hops == ("R3",)
    assert parse(forward.data) == CHANGE


def test_messages_beyond_the_room_for_those_that_wait_are_dropped(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pieces_module, "MAX_WAITING_BYTES", 4 * len(octets(WHOLE)))
    for _ in range(3):
        take(bench, WHOLE)
    assert bench.mesh.faults[MeshFault.TOO_MANY] == 1
    work(bench)
    take(bench, WHOLE)
    work(bench)
    assert bench.mesh.faults[MeshFault.TOO_MANY] == 1
    assert len(bench.mesh.addresses_of("R2")) == COUNT


def test_work_of_one_piece_is_over_at_once_unless_other_work_waits() -> None:
    def short() -> Pieces[str]:
        yield from ()
        return "short"

    def long() -> Pieces[str]:
        yield
        return "long"

    queue = PieceQueue()
    assert queue.begin(short(), "R2") == "short"
    assert queue.begin(long(), "R2") is None
    assert queue.begin(short(), "R2") is None
    assert queue.begin(short(), "R3") == "short"
    assert [queue.do_piece(), queue.do_piece(), len(queue)] == ["long", "short", 0]


def test_work_on_routers_and_of_neighbours_takes_turns_and_that_on_one_router_keeps_its_order() -> None:
    def work(name: str) -> Pieces[str]:
        yield
        yield
        return name

    queue = PieceQueue()
    for name, router, neighbour in (
        ("a", "R4", "R2"), ("b", "R5", "R2"), ("c", "R4", "R3"), ("d", "R6", "R3"), ("e", "R4", ""), ("f", "R2", "R2"),
    ):  # fmt: skip
        assert queue.begin(work(name), router, neighbour) is None
    done = [each for each in iter(lambda: queue.do_piece() if len(queue) else "over", "over") if each]
    assert done == ["d", "a", "b", "f", "c", "e"]
    assert list(queue.origins()) == []
    assert queue.has_room(pieces_module.MAX_WAITING_BYTES // 2, "R2")


def forged(update: MobileAddressUpdate) -> bytes:
    """Return an update that names itself as one of R3's, which it is not."""
    return octets(replace(update, id="R3"))


@pytest.mark.parametrize("flood", [octets, forged], ids=["of its own", "forged"])
def test_updates_of_one_neighbour_do_not_delay_those_of_another(
    flood: Callable[[MobileAddressUpdate], bytes], bench: Bench
) -> None:
    bench.neighbour("R3", over=2)
    bench.mesh.hearing.receive_message(RouterAdvertisement("R2", 7, 1, 1), 1, bench.now_s)
    for _ in range(3):
        bench.mesh.take_message(flood(WHOLE), 1, bench.now_s)
    bench.mesh.hearing.receive_message(RouterAdvertisement("R3", 7, 1, 1), 2, bench.now_s)
    update = MobileAddressUpdate("R3", 1, added=("M0honest",), deleted=(), hints=(1,))
    bench.mesh.take_message(octets(update, f"amqp:/{ALL_ADDRESSES_TO}"), 2, bench.now_s)
    assert bench.mesh.addresses_of("R3") == {"M0honest": 1}
    assert bench.mesh.has_pieces


def test_small_messages_that_wait_have_a_bound_too(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Behind a large update everything else of its router waits: without end it would fill the memory."""
    monkeypatch.setattr(pieces_module, "MAX_WAITING_BYTES", 4 * len(octets(WHOLE)))
    bench.neighbour("R3", over=2)
    take(bench, WHOLE)
    small = MobileAddressUpdate("R2", 9, added=("M0a" + "x" * 1000,), deleted=(), hints=(1,))
    for _ in range(2 * len(octets(WHOLE)) // len(octets(small)) + 1):
        take(bench, small)
    assert bench.mesh.faults[MeshFault.TOO_MANY] > 0
    assert bench.mesh._known.later._bytes.total() <= 2 * len(octets(WHOLE))
    bench.mesh.hearing.receive_message(RouterAdvertisement("R3", 7, 1, 1), 2, bench.now_s)
    honest = MobileAddressUpdate("R3", 1, added=("M0honest",), deleted=(), hints=(1,))
    bench.mesh.take_message(octets(honest, f"amqp:/{ALL_ADDRESSES_TO}"), 2, bench.now_s)
    assert bench.mesh.addresses_of("R3") == {"M0honest": 1}


async def test_the_clock_of_the_backbone_does_the_pieces(mock_clock: MockClock) -> None:
    core = MemoryRouter(router_id=ME, mode="interior").core
    queue = TimerQueue()
    backbone = MeshClock(queue, partial(Backbone, core, 1, TIMERS, trio.current_time)).backbone
    async with trio.open_nursery() as nursery:
        nursery.start_soon(queue.run, Hub(core))
        await wait_all_tasks_blocked()
        now_s = trio.current_time()
        node = backbone.mesh._known.nodes.obtain_node("R2", now_s)
        assert node is not None
        node.addresses.update(dict.fromkeys(KEYS, 1))
        backbone.mesh._known.delete_addresses(node)
        backbone._work()
        assert node.addresses
        while node.addresses:
            await trio.lowlevel.checkpoint()
        assert not backbone.mesh.has_pieces
        nursery.cancel_scope.cancel()
