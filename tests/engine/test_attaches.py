"""What a link keeps of its peer's attach, what that costs, and what is left of a refused link."""

from __future__ import annotations

import tracemalloc
from typing import Any

import pytest

from tests.engine.talks import attach, attached, begin, begun, flow, opened, transfer, with_limits
from tests.script import Script
from trouter.engine.attaches import FREE_BYTES, charged_bytes, essentials, size_bytes
from trouter.engine.events import LinkAttached, SessionEnded
from trouter.engine.faults import Fault
from trouter.engine.link import IncomingLink
from trouter.engine.link_base import Link
from trouter.engine.session import Session
from trouter.wire import codec
from trouter.wire.performatives import Attach, Coordinator, Detach, Flow, Open, Source, Target
from trouter.wire.types import Array, Described, Symbol, UInt

EMPTY_LISTS: dict[str, list[list[object]]] = {"a": [[] for _ in range(1000)]}


def offered(talk: Script, peer: Attach) -> Link:
    """Return the link that ``peer`` attaches, unanswered."""
    talk.peer_sends(peer)
    (event,) = talk.connection.events
    assert isinstance(event, LinkAttached)
    talk.connection.events.clear()
    return event.link


def refused(talk: Script, name: str, handle: int) -> Link:
    link = offered(talk, attach(name, handle))
    link.refuse(None)
    talk.engine_sends(Attach, Detach)
    return link


# --- refused links


def test_a_refused_link_is_forgotten_although_the_peer_never_detaches_it() -> None:
    talk, session = begun()
    link = refused(talk, "a", 7)
    assert (session.links.by_name, session.links.by_handle, session.links.list_links()) == ({}, {}, [])
    assert link not in session.links.by_remote_handle.values()
    assert (talk.connection.link_count, talk.connection.refused_count) == (0, 1)


def test_frames_of_a_refused_link_are_ignored_until_its_detach_frees_both_handles() -> None:
    talk, session = begun()
    refused(talk, "a", 0)
    talk.peer_sends(transfer(0), flow(handle=0, link_credit=1)).engine_reports().engine_sends()
    other = offered(talk, attach("b", 1))
    assert other.handle == 1  # the peer may still know ours as that of the refused link
    talk.peer_sends(Detach(0, closed=True)).engine_reports()
    assert (talk.connection.link_count, talk.connection.refused_count) == (1, 0)
    again, _ = attached(talk, attach("a", 0))
    assert again.handle == 0
    assert len(session.links.by_remote_handle) == 2


def test_the_handle_of_a_refused_link_is_in_use() -> None:
    talk, _ = begun()
    refused(talk, "a", 0)
    talk.peer_sends(attach("b", 0))
    (event,) = talk.connection.events
    assert isinstance(event, SessionEnded)
    assert event.fault is not None
    assert event.fault.fault is Fault.HANDLE_IN_USE


def test_refused_links_count_until_they_are_detached_or_their_session_ends() -> None:
    talk, session = begun(with_limits(max_links=2))
    refused(talk, "a", 0)
    refused(talk, "b", 1)
    talk.peer_sends(Detach(0, closed=True))
    refused(talk, "c", 0)
    talk.peer_sends(attach("d", 2))
    (event,) = talk.connection.events
    assert isinstance(event, SessionEnded)
    assert event.fault is not None
    assert event.fault.fault is Fault.LINK_COUNT
    talk.connection.drop_references()
    assert (talk.connection.refused_count, session.links.refused_count) == (0, 0)


def test_a_link_whose_holder_waits_for_the_answer_is_not_forgotten() -> None:
    talk, session = begun()
    link = offered(talk, attach("a", 0))
    link.awaited = True
    link.refuse(None)
    assert session.links.list_links() == [link]


# --- what is kept


def with_filter(value: object, name: str = "a", handle: int = 0) -> Attach:
    return Attach(name, handle, True, source=Source("x", filter={"f": value}), target=Target("y"))


def test_the_bytes_of_an_attach_count_until_it_is_answered() -> None:
    talk, session = begun()
    link = offered(talk, with_filter(EMPTY_LISTS))
    whole = size_bytes(link.remote_attach) - FREE_BYTES
    assert whole > 1000 * 56
    assert talk.connection.kept_bytes == talk.connection.buffered_bytes == session.windows.kept_bytes == whole
    # the window stays open, and the messages of other peers too
    assert (session.windows.held_bytes, talk.connection.budget.held) == (0, 0)
    link.attach(Source("x"), Target("y"))
    link.keep_essentials()
    assert talk.connection.kept_bytes == talk.connection.buffered_bytes == session.windows.kept_bytes == 0
    assert link.remote_attach is not None
    assert link.remote_attach.source == Source("x")


@pytest.mark.parametrize("how", ["refused", "detached", "session ended", "connection lost"])
def test_the_bytes_of_an_attach_no_longer_count_when_its_link_is_gone(how: str) -> None:
    talk, session = begun()
    link = offered(talk, with_filter(EMPTY_LISTS))
    assert talk.connection.kept_bytes > 0
    if how == "refused":
        link.refuse(None)
    elif how == "detached":
        talk.peer_sends(Detach(0, closed=True))
        link.detach(True)
    elif how == "session ended":
        session.end()
        talk.connection.drop_session(session)
        talk.connection.drop_references()
    else:
        talk.connection.drop_references()
    assert (talk.connection.buffered_bytes, talk.connection.kept_bytes, session.windows.kept_bytes) == (0, 0, 0)


def test_long_texts_count_as_long_as_the_link_lives() -> None:
    talk, _ = begun()
    link = offered(talk, Attach("n" * 8000, 0, True, source=Source("s" * 4000), target=Target("t" * 4000)))
    link.attach(None, None)
    link.keep_essentials()
    assert 14_000 < talk.connection.kept_bytes < 17_000
    talk.peer_sends(Detach(0, closed=True))
    link.detach(True)
    assert talk.connection.kept_bytes == 0


def test_a_session_that_brings_more_attaches_than_the_connection_may_hold_is_ended() -> None:
    talk, _ = begun(with_limits(max_buffered_bytes=200_000))
    talk.peer_sends(*[with_filter(EMPTY_LISTS, str(number), number) for number in range(3)])
    *attaches, end = talk.connection.events
    assert len(attaches) == 2
    assert isinstance(end, SessionEnded)
    assert end.fault is not None
    assert end.fault.fault is Fault.BUFFERED
    assert talk.connection.buffered_bytes <= 200_000
    talk.connection.drop_session(end.session)
    talk.connection.drop_references()
    assert talk.connection.buffered_bytes == 0


def test_the_bytes_of_an_open_count_as_long_as_the_connection_lives() -> None:
    talk = opened(peer=Open("p", properties={"a": [[] for _ in range(900)]}))
    assert talk.connection.open_bytes == talk.connection.buffered_bytes == talk.connection.kept_bytes > 900 * 56
    talk.connection.drop_references()
    assert (talk.connection.kept_bytes, talk.connection.buffered_bytes) == (0, 0)


def test_the_properties_of_begins_and_flows_are_not_kept() -> None:
    talk, session = begun(properties=EMPTY_LISTS | {"b": "x"})
    talk.peer_sends(begin(properties={"a": [[] for _ in range(900)]}), channel=1)
    talk.peer_sends(Flow(incoming_window=1, next_outgoing_id=0, outgoing_window=1, properties={"a": [[]] * 900}))
    assert isinstance(session, Session)
    assert talk.connection.kept_bytes == 0


def test_a_router_drops_the_field_that_it_never_reads() -> None:
    talk, _ = begun(with_limits(whole_attaches=False))
    peer = attach("a", 0)
    peer.unsettled = EMPTY_LISTS
    link = offered(talk, peer)
    assert link.remote_attach is not None
    assert link.remote_attach.unsettled is None
    assert talk.connection.kept_bytes == 0


def test_properties_and_capabilities_of_a_link_are_charged_until_its_answer() -> None:
    talk, _ = begun(with_limits(whole_attaches=False))
    peer = attach("a", 0)
    peer.properties = EMPTY_LISTS
    peer.desired_capabilities = peer.offered_capabilities = tuple(f"c{number}" for number in range(1000))
    link = offered(talk, peer)
    kept = link.remote_attach
    assert kept is not None
    assert (kept.properties, kept.desired_capabilities) == (EMPTY_LISTS, peer.desired_capabilities)
    assert talk.connection.kept_bytes > 2 * 1000 * 50
    link.attach(None, None)
    link.keep_essentials()
    assert link.remote_attach is not None
    assert (link.remote_attach.properties, link.remote_attach.offered_capabilities) == (None, ())
    assert talk.connection.kept_bytes == 0


def test_a_client_may_attach_with_fewer_values_than_a_router() -> None:
    talk, _ = begun(with_limits(max_attach_nodes=500))
    talk.peer_sends(with_filter(EMPTY_LISTS))
    assert talk.connection.failed


def test_the_essentials_have_what_is_read_after_the_answer() -> None:
    whole = Attach(
        "name",
        3,
        True,
        snd_settle_mode=1,
        rcv_settle_mode=1,
        source=Source("s", 1, "never", 5, True, EMPTY_LISTS, "copy", EMPTY_LISTS, None, ("o",), ("c", "d", "c")),
        target=Coordinator(("local",)),
        properties=EMPTY_LISTS,
        initial_delivery_count=9,
    )
    assert essentials(whole) == Attach(
        "name",
        3,
        True,
        snd_settle_mode=1,
        rcv_settle_mode=1,
        source=Source("s", expiry_policy="never", timeout=5, dynamic=True, capabilities=("c", "d")),
        target=Coordinator(),
        initial_delivery_count=9,
    )


@pytest.mark.parametrize("other", [None, Described(UInt(1), [[]] * 100), Target(["x"] * 100)])
def test_the_essentials_of_an_odd_terminus_are_small(other: Any) -> None:
    kept = essentials(Attach("name", 0, False, source=Source([[]] * 100), target=other))
    assert kept.source == Source()
    assert kept.target == (None if other is None else Target())


@pytest.mark.parametrize(
    "value",
    [
        [[] for _ in range(1000)],
        [{number: []} for number in range(1000)],
        [{} for _ in range(1000)],
        [Described(UInt(number), []) for number in range(500)],
        {f"key {number}": b"value %d" % number for number in range(500)},
        Array("symbol", [Symbol(f"s{number}") for number in range(1000)]),
        Array("list", [[] for _ in range(1000)]),
        "x" * 10_000,
        [1.5 * number for number in range(1000)],
    ],
    ids=["lists", "maps", "empty maps", "described", "texts", "symbols", "array of lists", "text", "floats"],
)
def test_the_measured_size_is_that_of_the_memory(value: object) -> None:
    octets = codec.encode(value)
    codec.decode(octets, 0, len(octets))
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        decoded = codec.decode(octets, 0, len(octets))[0]
        taken = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert taken * 0.8 <= size_bytes(decoded) <= taken * 1.5 + 200


def test_ordinary_attaches_and_opens_cost_nothing() -> None:
    outcomes = tuple(f"amqp:{name}:list" for name in ("accepted", "rejected", "released", "modified"))
    assert not charged_bytes(
        Attach(
            "qpid-jms:receiver:ID:7d0e1a37-23a5-4f2b-a1c2-0f1d1b5a7a11:1:1:1:queue://some.address", 0, True,
            source=Source("queue://some.address", outcomes=outcomes, capabilities=("queue",)), target=Target(),
        )
    )  # fmt: skip
    talk, _ = begun()
    assert isinstance(offered(talk, attach("a", 0)), IncomingLink)
    assert talk.connection.buffered_bytes == 0
