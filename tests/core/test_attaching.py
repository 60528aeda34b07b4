"""Attaching to a router: routing.md section 1, row by row."""

from __future__ import annotations

import pytest

from trouter.core.addresses import FALLBACK_PHASE
from trouter.core.inprocess import InsideMessage
from trouter.core.table import AddressRule
from trouter.core.terms import PeerTerms
from trouter.testing import MemoryClient, MemoryRouter, compose
from trouter.wire.performatives import Accepted, Coordinator, DeleteOnClose, Released, Source, Target
from trouter.wire.types import Symbol

WAYPOINT = AddressRule("way", is_prefix=True, ingress_phase=0, egress_phase=1)
FALLBACK = AddressRule("fall", is_prefix=True, enable_fallback=True)
UNAVAILABLE = AddressRule("closed", is_prefix=True, distribution="unavailable")


def one(*rules: AddressRule, default: str = "balanced") -> tuple[MemoryRouter, MemoryClient]:
    router = MemoryRouter(rules, default_distribution=default)
    return router, router.connect()


class Taker:
    """A consumer inside the router that accepts each message."""

    def receive(self, received: InsideMessage) -> None:
        received.settle()


def reaches(router: MemoryRouter, sending: str, receiving: str) -> bool:
    """Return whether a message sent to one spelling of an address reaches a receiver on the other."""
    client = router.connect()
    receiver = client.receiver(receiving, credit=1)
    sender = client.sender(sending)
    sent = sender.send(compose(b"x")) if sender.credit else None
    router.pump()
    got = len(receiver.received) == 1
    assert got == (sent is not None and sent.outcome is None)
    client.drop()
    return got


# --- 1.1


@pytest.mark.parametrize(
    ("sending", "receiving"),
    [
        ("foo/bar", "foo/bar"),
        ("/foo", "foo"),
        ("//host/foo", "foo"),
        ("amqp:/foo", "foo"),
        ("other:/foo", "foo"),
        ("amqp://host:5672/foo", "foo"),
        ("a:/b", "b"),
    ],
)
def test_a_scheme_and_host_are_stripped(sending: str, receiving: str) -> None:
    assert reaches(MemoryRouter(), sending, receiving)


def test_a_scheme_without_a_slash_belongs_to_the_address() -> None:
    assert not reaches(MemoryRouter(), "amqp:foo", "foo")
    assert reaches(MemoryRouter(), "amqp:foo", "amqp:foo")


def test_one_trailing_separator_is_dropped() -> None:
    assert reaches(MemoryRouter(), "ta/", "ta")
    assert reaches(MemoryRouter(), "ta.", "ta")
    assert not reaches(MemoryRouter(), "ta//", "ta")


def test_case_and_blanks_count() -> None:
    assert not reaches(MemoryRouter(), "Ta", "ta")
    assert not reaches(MemoryRouter(), " ta", "ta")


@pytest.mark.parametrize("spelling", ["_local/x", "_topo/0/R1/x", "_edge/R1/x"])
def test_local_spellings_meet(spelling: str) -> None:
    assert reaches(MemoryRouter(), spelling, "_local/x")
    assert not reaches(MemoryRouter(), spelling, "x")


def test_an_unknown_reserved_prefix_is_a_mobile_address() -> None:
    router, client = one()
    client.receiver("_unknown/x")
    assert list(router.core.table.entries) == ["M0_unknown/x"]


def test_long_addresses_up_to_the_limit_are_served() -> None:
    assert reaches(MemoryRouter(), "a" * 2019, "a" * 2019)


def test_longer_addresses_are_refused() -> None:
    _, client = one()
    for link in (client.sender("a" * 4097), client.receiver("a" * 4097)):
        assert link.error is not None
        assert link.error.condition == "amqp:invalid-field"


# --- 1.2


@pytest.mark.parametrize("capability", ["qd.router", "qd.router-data"])
def test_a_router_link_on_an_ordinary_connection_is_forbidden(capability: str) -> None:
    router, client = one()
    links = [
        client.sender("x", capabilities=(capability,)),
        client.sender(target=Target(capabilities=(capability,))),
        client.receiver("x", capabilities=(capability,)),
    ]
    for link in links:
        assert link.error is not None
        assert (link.error.condition, link.error.description) == (
            "qd:forbidden",
            "Connectivity to the node is forbidden",
        )
    assert not router.core.table.entries


@pytest.mark.parametrize("capability", ["qd.router", "qd.router-data", "qd.router-edge-downlink"])
def test_a_router_capability_is_found_among_others(capability: str) -> None:
    _, client = one()
    assert client.sender("x", capabilities=("other", capability)).detached is not None
    assert client.receiver("x", capabilities=(capability, "other")).detached is not None


def test_an_anonymous_sender_has_full_credit_at_once() -> None:
    _, client = one()
    assert client.sender().credit == 250
    assert client.sender(target=Target()).credit == 250
    assert client.sender(target=Target("")).credit == 250


# --- 1.3


def test_a_dynamic_source_is_local_and_balanced() -> None:
    router, client = one(default="multicast")
    receiver = client.receiver(dynamic=True, credit=5)
    head = "amqp:/_topo/0/R1/temp."
    assert receiver.address.startswith(head)
    assert len(receiver.address) == len(head) + 22
    (record,) = router.core.table.entries.values()
    assert record.key == "Ltemp." + receiver.address[-22:]
    assert record.treatment == "balanced"
    sender = client.sender(receiver.address)
    sender.send(compose(b"reply"))
    router.pump()
    assert receiver.bodies == [b"reply"]


def test_a_dynamic_target_is_mobile_and_balanced() -> None:
    router, client = one(default="multicast")
    sender = client.sender(dynamic=True)
    assert sender.address.startswith("amqp:/_$temp.")
    assert len(sender.address) == len("amqp:/_$temp.") + 22
    (record,) = router.core.table.entries.values()
    assert record.key == "M0_$temp." + sender.address[-22:]
    assert record.treatment == "balanced"
    receiver = client.receiver(sender.address, credit=1)
    assert sender.credit == 250
    sender.send(compose(b"x"))
    router.pump()
    assert receiver.bodies == [b"x"]


def test_no_two_dynamic_addresses_are_equal() -> None:
    _, client = one()
    assert len({client.receiver(dynamic=True).address for _ in range(50)}) == 50


def test_a_dynamic_terminus_that_names_a_route_is_refused_without_one() -> None:
    _, client = one()
    wanted = {Symbol("x-opt-qd.address"): "somewhere"}
    receiver = client.receiver(source=Source(dynamic=True, dynamic_node_properties=wanted))
    sender = client.sender(target=Target(dynamic=True, dynamic_node_properties=wanted))
    for link in (receiver, sender):
        assert link.error is not None
        assert link.error.condition == "qd:no-route-to-dest"


def test_only_the_first_node_property_names_a_route() -> None:
    _, client = one()
    other = {Symbol("other"): "x", Symbol("x-opt-qd.address"): "somewhere"}
    empty = {Symbol("x-opt-qd.address"): ""}
    for properties in (other, empty):
        assert client.receiver(source=Source(dynamic=True, dynamic_node_properties=properties)).detached is None


def test_the_configured_phases_part_senders_and_receivers() -> None:
    router, client = one(WAYPOINT)
    client.receiver("way")
    client.sender("way")
    assert set(router.core.table.entries) == {"M1way", "M0way"}


@pytest.mark.parametrize(
    ("capability", "phase"), [("qd.waypoint", 1), *((f"qd.waypoint.{n}", n) for n in range(1, 10))]
)
def test_a_waypoint_takes_from_one_phase_and_gives_to_the_next(capability: str, phase: int) -> None:
    router, client = one()
    client.receiver("x", capabilities=(capability,))
    client.sender("x", capabilities=(capability,))
    assert set(router.core.table.entries) == {f"M{phase - 1}x", f"M{phase}x"}


@pytest.mark.parametrize("ordinal", [".0", ".10", ".", ".x", "s", ".1.2"])
def test_another_ordinal_is_no_waypoint(ordinal: str) -> None:
    router, client = one()
    client.receiver("x", capabilities=("qd.waypoint" + ordinal,))
    assert set(router.core.table.entries) == {"M0x"}


def test_the_first_waypoint_of_an_array_counts() -> None:
    router, client = one()
    client.receiver("x", capabilities=("other", "qd.waypoint.3", "qd.waypoint.5"))
    assert set(router.core.table.entries) == {"M2x"}


def test_messages_pass_through_a_waypoint() -> None:
    router, client = one(WAYPOINT)
    behind = client.receiver("way", credit=10)
    sender = client.sender("way")
    assert sender.credit == 0
    taking = client.receiver("way", capabilities=("qd.waypoint",), credit=10)
    giving = client.sender("way", capabilities=("qd.waypoint",))
    assert sender.credit == 250
    first = sender.send(compose(b"1"))
    router.pump()
    assert taking.bodies == [b"1"]
    assert behind.bodies == []
    taking.received[0].settle()
    second = giving.send(compose(b"2"))
    router.pump()
    assert behind.bodies == [b"2"]
    behind.received[0].settle()
    router.pump()
    assert first.outcome == second.outcome == Accepted()


def test_a_fallback_receiver_binds_to_the_fallback_phase() -> None:
    router, client = one(FALLBACK)
    client.receiver("fall", capabilities=("qd.fallback",))
    assert set(router.core.table.entries) == {f"M{FALLBACK_PHASE}fall"}


def test_a_fallback_in_an_array_is_not_seen() -> None:
    router, client = one()
    client.receiver("x", capabilities=("qd.fallback", "other"))
    assert set(router.core.table.entries) == {"M0x"}


def test_a_fallback_sender_publishes_to_the_normal_phase() -> None:
    router, client = one(FALLBACK)
    receiver = client.receiver("fall", credit=1)
    sender = client.sender("fall", capabilities=("qd.fallback",))
    sender.send(compose(b"x"))
    router.pump()
    assert receiver.bodies == [b"x"]


def test_a_client_may_send_to_a_router_but_not_receive_from_one() -> None:
    router, client = one()
    receiver = client.receiver("_topo/0/R2/x")
    assert receiver.error is not None
    assert receiver.error.condition == "qd:no-route-to-dest"
    sender = client.sender("_topo/0/R2/x")
    assert sender.detached is None
    assert sender.credit == 0
    assert router.core.table.entries["RR2"].treatment == "closest"


def test_an_unknown_address_is_made_with_the_default_treatment() -> None:
    router, client = one(default="multicast")
    client.receiver("anything")
    assert router.core.table.entries["M0anything"].treatment == "multicast"


def test_an_unavailable_address_is_not_made() -> None:
    router, client = one(UNAVAILABLE)
    client.receiver("closed")
    client.sender("closed.too")
    assert not router.core.table.entries


def test_the_fallback_sibling_is_made_alongside() -> None:
    router, client = one(FALLBACK)
    client.sender("fall")
    records = router.core.table.entries
    assert set(records) == {"M0fall", "MFfall"}
    assert records["MFfall"].treatment == "balanced"


# --- 1.4


def test_no_usable_address_is_no_route() -> None:
    _, client = one()
    for source in (Source(), Source(""), Source(17)):
        receiver = client.receiver(source=source)
        assert receiver.error is not None
        assert (receiver.error.condition, receiver.error.description) == (
            "qd:no-route-to-dest",
            "No route to the destination node",
        )
        assert receiver.detached is not None
        assert receiver.detached.closed


def test_an_unavailable_address_is_not_found() -> None:
    _, client = one(UNAVAILABLE)
    for link in (client.sender("closed"), client.receiver("closed/x")):
        assert link.error is not None
        assert (link.error.condition, link.error.description) == ("amqp:not-found", "Node not found")


def test_an_unavailable_default_refuses_addresses_without_a_rule() -> None:
    _, client = one(AddressRule("open", is_prefix=True), default="unavailable")
    assert client.sender("open.x").detached is None
    assert client.sender("x").error is not None
    assert client.sender().credit == 250


@pytest.mark.parametrize("address", ["_local/x", "_topo/0/R1/x", "_topo/all/all/x", "_edge/R1/x"])
def test_an_unavailable_default_is_about_mobile_addresses_only(address: str) -> None:
    router, client = one(default="unavailable")
    receiver, sender = client.receiver(address, credit=1), client.sender(address)
    assert (receiver.error, sender.error, sender.credit) == (None, None, 250)
    client.sender().send(compose(b"x", to=address))
    router.pump()
    assert receiver.bodies == [b"x"]


@pytest.mark.parametrize("address", ["_topo/0/R9/x", "_edge/E9/x"])
def test_an_unavailable_default_leaves_the_ways_to_other_routers(address: str) -> None:
    router, client = one(default="unavailable")
    assert client.sender(address).error is None
    sent = client.sender().send(compose(b"x", to=address))
    router.pump()
    assert sent.outcome == Released()


@pytest.mark.parametrize("rules", [(), (AddressRule("#", distribution="unavailable"),)])
def test_addresses_that_the_router_serves_itself_are_available(rules: tuple[AddressRule, ...]) -> None:
    router, client = one(*rules, default="unavailable")
    router.core.inside.subscribe("$management", Taker())
    assert client.sender("$management").credit == 250
    sent = client.sender().send(compose(b"x", to="$management"))
    router.pump()
    assert sent.outcome == Accepted()


def test_an_unavailable_default_leaves_existing_addresses() -> None:
    router, client = one(default="unavailable")
    sender = client.sender(target=Target(dynamic=True))
    assert sender.attach is not None
    assert isinstance(sender.attach.target, Target)
    address = str(sender.attach.target.address)
    assert client.receiver(address, credit=1).error is None
    sender.detach()
    router.core.network.change_addresses("R2", {"M0known": 3}, ())
    assert client.sender("known").error is None
    assert client.sender("unknown").error is not None
    sent = client.sender().send(compose(b"x", to="known"))
    router.pump()
    assert sent.outcome == Released()


@pytest.mark.parametrize("default", ["balanced", "unavailable"])
def test_a_coordinator_is_refused(default: str) -> None:
    _, client = one(default=default)
    sender = client.sender(target=Coordinator(), source=Source("me"))
    assert sender.error is not None
    assert sender.error.condition == "amqp:precondition-failed"
    assert sender.error.description == (
        "The router can't coordinate transactions by itself, a linkRoute to a coordinator must be configured to "
        "use transactions."
    )
    assert sender.attach is not None
    assert sender.attach.source == Source("me")
    assert sender.attach.target is None


@pytest.mark.parametrize("address", ["_$qd.addr_lookup", "_$qd.edge_addr_tracking", "_$qd.edge_heartbeat"])
def test_the_routers_own_addresses_are_closed_without_a_word(address: str) -> None:
    _, client = one()
    for link in (client.sender(address), client.receiver(address)):
        assert link.error is None
        assert link.detached is not None
        assert link.detached.closed


def test_a_refused_sender_gets_no_termini() -> None:
    _, client = one(UNAVAILABLE)
    sender = client.sender("closed", source=Source("me"))
    assert sender.attach is not None
    assert (sender.attach.source, sender.attach.target) == (None, None)


def test_a_refused_receiver_gets_its_target_only() -> None:
    _, client = one(UNAVAILABLE)
    receiver = client.receiver("closed", target=Target("me"))
    assert receiver.attach is not None
    assert receiver.attach.source is None
    assert receiver.attach.target == Target("me")


# --- 1.5


def test_termini_are_echoed() -> None:
    _, client = one()
    source = Source(
        "amqp://host/q.",
        durable=2,
        expiry_policy="never",
        timeout=5,
        distribution_mode="copy",
        outcomes=("amqp:accepted:list",),
        capabilities=("a", "b"),
        dynamic_node_properties={Symbol("p"): 1},
    )
    target = Target("/t", durable=1, timeout=3, expiry_policy="link-detach", capabilities=("c",))
    receiver = client.receiver(source=source, target=target)
    sender = client.sender(source=source, target=target)
    for link in (receiver, sender):
        assert link.attach is not None
        assert link.attach.source == source
        assert link.attach.target == target


def test_a_filter_is_not_echoed_because_none_is_applied() -> None:
    _, client = one()
    receiver = client.receiver(source=Source("q", filter={Symbol("selector"): "x = 1"}))
    assert receiver.attach is not None
    assert receiver.attach.source == Source("q")


def test_a_dynamic_source_keeps_its_properties() -> None:
    _, client = one()
    properties = {Symbol("lifetime-policy"): DeleteOnClose()}
    receiver = client.receiver(source=Source(dynamic=True, dynamic_node_properties=properties))
    assert receiver.attach is not None
    assert isinstance(receiver.attach.source, Source)
    assert receiver.attach.source.dynamic
    assert receiver.attach.source.dynamic_node_properties == properties


def test_an_anonymous_senders_missing_target_is_answered_with_an_empty_one() -> None:
    _, client = one()
    sender = client.sender()
    assert sender.attach is not None
    assert sender.attach.target == Target()


@pytest.mark.parametrize(
    ("sends", "asked", "answered"),
    [
        (True, (0, 0), (0, 0)),
        (True, (1, 0), (1, 0)),
        (True, (2, 0), (2, 0)),
        (True, (1, 1), (1, 0)),  # the router settles when the receivers do
        (False, (0, 0), (2, 0)),  # messages that came settled go settled
        (False, (1, 0), (1, 0)),
        (False, (2, 1), (2, 1)),
        (False, (1, 1), (1, 1)),
        (True, (9, 9), (2, 0)),
        (False, (9, 9), (2, 0)),
    ],
)
def test_settle_modes_are_those_asked_where_the_router_can(
    sends: bool, asked: tuple[int, int], answered: tuple[int, int]
) -> None:
    _, client = one()
    link = (client.sender if sends else client.receiver)("x", snd_settle_mode=asked[0], rcv_settle_mode=asked[1])
    assert link.attach is not None
    assert (link.attach.snd_settle_mode, link.attach.rcv_settle_mode) == answered


def test_a_receiver_that_wants_settled_gets_settled_and_the_sender_an_acceptance() -> None:
    router, client = one()
    receiver = client.receiver("x", credit=1, snd_settle_mode=1)
    sent = client.sender("x").send(compose(b"x"))
    router.pump()
    assert receiver.received[0].settled
    assert sent.history == [(Accepted(), True)]


def test_an_attach_has_the_counts_and_sizes_of_a_router_without_limits() -> None:
    _, client = one()
    receiver, sender = client.receiver("x"), client.sender("x")
    assert receiver.attach is not None
    assert sender.attach is not None
    assert not sender.attach.max_message_size
    assert not receiver.attach.max_message_size
    assert receiver.attach.initial_delivery_count == receiver.link.delivery_count


def test_an_answering_attach_has_no_further_fields() -> None:
    _, client = one()
    mine = {Symbol("p"): 1}
    for link in (
        client.sender("x", properties=mine, offered_capabilities=("o",), desired_capabilities=("d",), unsettled={}),
        client.receiver("x", properties=mine, offered_capabilities=("o",), desired_capabilities=("d",)),
    ):
        attach = link.attach
        assert attach is not None
        assert (attach.properties, attach.unsettled) == (None, None)
        assert (attach.offered_capabilities, attach.desired_capabilities) == ((), ())


# --- 1.6


@pytest.mark.parametrize(("capacity", "credit"), [(10, 10), (0, 250), (1, 1)])
def test_the_capacity_is_the_first_credit(capacity: int, credit: int) -> None:
    router = MemoryRouter()
    client = router.connect(PeerTerms(link_capacity=capacity))
    client.receiver("x")
    assert client.sender("x").credit == credit
    assert client.sender().credit == credit


def test_without_a_consumer_there_is_no_credit() -> None:
    _, client = one()
    sender = client.sender("x")
    assert sender.credit == 0
    assert sender.detached is None


def test_a_fallback_consumer_is_enough() -> None:
    _, client = one(FALLBACK)
    client.receiver("fall", capabilities=("qd.fallback",))
    assert client.sender("fall").credit == 250


def test_capacity_is_per_link() -> None:
    _, client = one()
    client.receiver("x")
    assert [client.sender("x").credit for _ in range(3)] == [250, 250, 250]


# --- 1.7


def test_a_name_in_use_closes_the_connection() -> None:
    router, client = one()
    client.sender("x", name="mine")
    del client.session.links.by_name[False, "mine"]
    client.sender("y", name="mine")
    assert [fault.condition for fault in client.faults] == ["amqp:invalid-field"]
    assert client.faults[0].text == "link name already attached: mine"
    assert client.closed is not None
    assert not router.core.table.entries


def test_the_same_name_serves_each_direction_session_and_connection() -> None:
    router, client = one()
    other = client.add_session()
    router.pump()
    links = [
        client.sender("x", name="mine"),
        client.receiver("x", name="mine"),
        client.sender("x", name="mine", session=other),
        router.connect().sender("x", name="mine"),
    ]
    assert all(link.attach is not None and link.detached is None for link in links)


@pytest.mark.parametrize("closed", [True, False])
def test_a_detach_is_answered_in_kind(closed: bool) -> None:
    router, client = one()
    for link in (client.sender("x"), client.receiver("x")):
        link.detach(closed)
        assert link.link.closed == closed
    assert not client.session.links.by_handle
    assert not client.server.sessions()[0].links.by_handle
    assert not router.core.table.entries


def test_a_detached_link_leaves_nothing_to_resume() -> None:
    router, client = one()
    receiver = client.receiver("x", name="r", credit=5)
    sender = client.sender("x")
    sent = sender.send(compose(b"1"))
    router.pump()
    receiver.detach(closed=False)
    assert sent.settled
    again = client.receiver("x", name="r", credit=5)
    assert again.received == []


def test_messages_sent_before_the_detach_are_delivered() -> None:
    router, client = one()
    receiver = client.receiver("x")
    sender = client.sender("x")
    for number in range(5):
        sender.send(compose(b"%d" % number))
    sender.link.detach(True)
    router.pump()
    receiver.grant(10)
    router.pump()
    assert receiver.bodies == [b"0", b"1", b"2", b"3", b"4"]


def test_the_end_of_a_session_loses_its_links() -> None:
    router, client = one()
    other = client.add_session()
    router.pump()
    client.receiver("x", credit=1, session=other)
    client.sender("y", session=other)
    sent = client.sender("x").send(compose(b"x"))
    router.pump()
    client.end(other)
    assert sent.settled
    assert sent.outcome != Released()
    assert set(router.core.table.entries) == {"M0x"}
    assert client.closed is None


def test_the_loss_of_the_connection_loses_its_links() -> None:
    router, client = one()
    other = router.connect()
    other.receiver("x", credit=1)
    other.sender("y")
    sent = client.sender("x").send(compose(b"x"))
    router.pump()
    other.drop()
    assert sent.settled
    assert set(router.core.table.entries) == {"M0x"}


def test_no_terminus_outlives_its_link() -> None:
    router, client = one()
    receiver = client.receiver(source=Source("x", durable=2, expiry_policy="never", timeout=1000))
    receiver.detach(closed=False)
    assert not router.core.table.entries


# --- attaching at scale (5.5)


class CountingDict(dict[str, object]):
    """A dict that counts how often it is iterated."""

    walks = 0

    def __iter__(self) -> object:  # type: ignore[override]
        CountingDict.walks += 1
        return super().__iter__()

    def values(self) -> object:  # type: ignore[override]
        CountingDict.walks += 1
        return super().values()

    def items(self) -> object:  # type: ignore[override]
        CountingDict.walks += 1
        return super().items()


def test_addresses_come_and_go_without_looking_at_the_others() -> None:
    router, client = one()
    router.core.table.entries = CountingDict()  # type: ignore[assignment]
    receivers = [client.receiver(f"a{number}", pump=False) for number in range(2000)]
    router.pump()
    assert len(router.core.table.entries) == 2000
    for receiver in receivers:
        receiver.link.detach(True)
    router.pump()
    assert len(router.core.table.entries) == 0
    assert CountingDict.walks == 0


def test_a_record_goes_with_its_last_user() -> None:
    router, client = one(FALLBACK)
    receiver = client.receiver("fall.x")
    fallback = client.receiver("fall.x", capabilities=("qd.fallback",))
    sender = client.sender("fall.x")
    receiver.detach()
    assert set(router.core.table.entries) == {"M0fall.x", "MFfall.x"}
    sender.detach()
    assert set(router.core.table.entries) == {"MFfall.x"}
    assert client.sender("fall.x").credit == 250
    fallback.detach()
    assert set(router.core.table.entries) == {"M0fall.x", "MFfall.x"}
    client.drop()
    assert not router.core.table.entries


def test_an_address_may_be_a_symbol() -> None:
    router, client = one()
    receiver = client.receiver(Symbol("q"), credit=1)
    sent = client.sender("q").send(compose(b"x"))
    router.pump()
    assert len(receiver.received) == 1
    assert sent.outcome is None
    assert reaches(router, Symbol("other"), "other")


def test_anonymous_traffic_makes_no_record() -> None:
    router, client = one()
    sent = client.sender().send(compose(b"x", to="nowhere"))
    router.pump()
    assert sent.outcome == Released()
    assert not router.core.table.entries


def test_the_spellings_remembered_for_an_address_are_bounded() -> None:
    router, client = one()
    client.receiver("x", credit=1_000_000)
    table = router.core.table
    (record,) = table.entries.values()
    for number in range(200_000):
        assert table.find_entry(b"s%d:/x" % number) is record
    assert len(record.known_as) == len(table.known) == 4
    assert table.find_entry(b"t" * 3000 + b":/x") is record
    assert max(map(len, record.known_as)) <= 512
    client.drop()
    assert not table.known
    assert table.find_entry(b"x") is None
