"""Tenants in the core (security.md 5): no tenant's name or address reaches another tenant."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from trouter.core.addresses import parse_address, strip_location
from trouter.core.table import AddressRule, AddressTable
from trouter.core.tenants import MAX_IDLE, MAX_NAME_BYTES, Tenant, Tenants, fault_of, space_of
from trouter.core.terms import PeerTerms
from trouter.testing import MemoryRouter, compose
from trouter.testing.memory import MemoryClient, MemoryReceiver
from trouter.wire.performatives import Accepted, Rejected, Released

NAMES = [
    "t",
    "t1",
    "t1/sub",
    "t1%2Fsub",
    "t1%252Fsub",
    "_local",
    "%5Flocal",
    "_topo",
    "h:",
    "a.b",
    "M0t1",
    "q",
    "%",
    "é",
]
names = st.sampled_from(NAMES) | st.text(st.sampled_from("t1/%_.:é"), min_size=1, max_size=6)
ADDRESSES = [
    "q", "sub/q", "t1/q", "/q", "//h/q", "x:/y", "x:/y:/z", "/x:/y", "_local/q", "_topo/0/R1/q", "_edge/R1/q", "_x",
    "q.", "q/", "q//", "q..", "%2F", "%5Flocal/q", "..", "a.b/q", "local/q", "$management", "h:/q", ":/q", "amqp://h/t1/q",
]  # fmt: skip
addresses = st.sampled_from(ADDRESSES) | st.text(st.sampled_from("q1/%_.:t"), min_size=1, max_size=8)


def canonical(address: str) -> str:
    """Return the key of an address in its space."""
    path = strip_location(address)
    return path[:-1] if path.endswith((".", "/")) else path


def is_closed(address: str) -> bool:
    path = canonical(address)
    return path.startswith("_") or path == "$management"


class Space:
    """Connections to one router, of as many tenants as needed."""

    def __init__(self, *rules: AddressRule) -> None:
        self.router = MemoryRouter(rules, default_distribution="multicast")
        self.tenants = self.router.core.table.tenants

    def connect(self, name: str = "") -> MemoryClient:
        """Connect a client of the tenant of this name, or of no tenant."""
        number = len(self.router.clients) + 1
        return self.router.connect(PeerTerms(tenant=self.tenants.enter_connection(name, number) if name else None))


@example(listening=[("t1/sub", "q"), ("t1", "sub/q")], sending=[("t1", "sub/q", False), ("t1/sub", "q", True)])
@example(listening=[("_local", "q"), ("t1", "q")], sending=[("_local", "q", True), ("t1%2Fsub", "q", True)])
@given(
    listening=st.lists(st.tuples(names, addresses), max_size=6),
    sending=st.lists(st.tuples(names, addresses, st.booleans()), max_size=6),
)
def test_every_message_stays_in_its_space(
    listening: list[tuple[str, str]], sending: list[tuple[str, str, bool]]
) -> None:
    """The model has, for each tenant, its listeners by address and its messages by listener."""
    space = Space()
    clients: dict[str, MemoryClient] = {}
    listeners: dict[str, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    expected: dict[int, list[bytes]] = defaultdict(list)
    receivers: list[MemoryReceiver] = []
    outside = [space.connect().receiver(address, credit=100) for address in ("q", "y", "_x", "_local/q", "%2F")]
    for name, address in listening:
        if not canonical(address):
            continue
        client = clients.setdefault(name, space.connect(name))
        receiver = client.receiver(address, credit=100)
        assert (receiver.error is not None) == is_closed(address)
        if not is_closed(address):
            listeners[name][canonical(address)].append(len(receivers))
            receivers.append(receiver)
    for number, (name, address, anonymous) in enumerate(sending):
        if canonical(address) in ("", "$management"):  # it belongs to the agent
            continue
        client = clients.setdefault(name, space.connect(name))
        body = b"%d" % number
        sender = client.sender() if anonymous else client.sender(address)
        if not anonymous and is_closed(address):
            assert sender.error is not None
            continue
        mine = listeners[name][canonical(address)]
        if not anonymous and not mine:
            assert sender.credit == 0
            continue
        sent = sender.send(compose(body, to=address if anonymous else None), settled=False)
        space.router.pump()
        for each in mine:
            expected[each].append(body)
            receivers[each].received[-1].settle()
        space.router.pump()
        if mine:
            assert sent.outcome == Accepted()
        else:
            assert isinstance(sent.outcome, Released | Rejected)
    assert [each.bodies for each in receivers] == [expected[number] for number in range(len(receivers))]
    assert not any(each.bodies for each in outside)


@example(one=("t1", "sub/q"), other=("t1/sub", "q"))
@example(one=("t1%2Fsub", "q"), other=("t1/sub", "q"))
@given(one=st.tuples(names, addresses), other=st.tuples(names, addresses))
def test_no_two_tenants_come_to_the_same_key(one: tuple[str, str], other: tuple[str, str]) -> None:
    table = AddressTable("R1")
    keys = {(name, canonical(address)): table.parse(address, tenant=Tenant(name)).key for name, address in (one, other)}
    if any(is_closed(address) for _, address in (one, other)):
        return
    assert len(set(keys.values())) == len(keys)


@given(name=names, address=addresses)
def test_an_address_qualified_for_other_routers_has_the_same_key_there(name: str, address: str) -> None:
    table, tenant = AddressTable("R1"), Tenant(name)
    parsed = table.parse(address, tenant=tenant)
    if parsed.letter != "M" or not parsed.rest:
        return
    elsewhere = parse_address(tenant.qualify(address), router_id="R2", mode="interior")
    assert elsewhere.key == parsed.key
    assert tenant.owns_key(parsed.key)


def test_the_qualified_address_has_its_usual_form_where_possible() -> None:
    assert Tenant("mt.org").qualify("q") == "mt.org/q"
    assert Tenant("mt.org").qualify("amqp://host/q/r") == "mt.org/q/r"
    assert Tenant("mt.org").qualify("x:/y:/z") == "amqp:/mt.org/y:/z"


@given(one=names, other=names)
def test_the_spaces_of_names_differ_as_the_names_do(one: str, other: str) -> None:
    assert (space_of(one) == space_of(other)) == (one == other)
    assert "/" not in space_of(one)
    assert not space_of(one).startswith("_")


FAULTS: dict[str, tuple[str, str]] = {
    "none": ("", "must be named"),
    "as long as can be": ("é" * 127 + "x", ""),
    "too long": ("é" * 127 + "xx", "limited to 255 bytes"),
    "a slash": ("a/b", "slash"),
    "a new line": ("a\n", "control"),
    "a delete": ("a\x7f", "control"),
    "of the second set": ("a\x85", "control"),
    "half a character": ("a\ud800", "control"),
    "a blank": ("a b", ""),
    "a percent": ("a%2Fb", ""),
}


@pytest.mark.parametrize(("name", "fault"), FAULTS.values(), ids=FAULTS)
def test_the_name_of_a_tenant_is_checked(name: str, fault: str) -> None:
    assert (fault in fault_of(name)) if fault else not fault_of(name)
    assert MAX_NAME_BYTES == 255


def test_a_tenant_is_one_for_all_its_connections_and_remembered_for_a_while() -> None:
    tenants = Tenants()
    first = tenants.enter_connection("a", 1)
    assert tenants.enter_connection("a", 2) is first
    tenants.leave_connection(first, 1)
    assert first.connections == {2}
    tenants.leave_connection(first, 2)
    assert tenants.get("a") is first
    for number in range(MAX_IDLE):
        tenants.leave_connection(tenants.enter_connection(f"b{number}", 3), 3)
    assert tenants.get("a") is None
    assert len(tenants) == MAX_IDLE
    assert tenants.enter_connection("a", 4) is not first


def test_a_tenant_that_comes_again_is_not_forgotten_for_having_left() -> None:
    tenants = Tenants()
    tenant = tenants.enter_connection("a", 1)
    tenants.leave_connection(tenant, 1)
    assert tenants.enter_connection("a", 2) is tenant
    for number in range(MAX_IDLE + 1):
        tenants.leave_connection(tenants.enter_connection(f"b{number}", 3), 3)
    assert tenants.get("a") is tenant


# --- the memory of targets of anonymous links is separate for each tenant


def anonymous(client: MemoryClient, to: str) -> object:
    sent = client.sender().send(compose(b"x", to=to))
    client.router.pump()
    return sent.outcome


def test_a_remembered_address_of_one_tenant_does_not_serve_another_tenant() -> None:
    space = Space()
    first, second, outside = space.connect("t1"), space.connect("t2"), space.connect()
    receiver = first.receiver("q", credit=10)
    for _ in range(2):
        first.sender().send(compose(b"1", to="q"))
        space.router.pump()
    assert receiver.bodies == [b"1", b"1"]
    assert anonymous(second, "q") == anonymous(outside, "q") == Released()
    table = space.router.core.table
    assert list(table.known_to(first.terms.tenant)) == [b"q"]
    assert not table.known
    receiver.detach()
    assert not table.known_to(first.terms.tenant)
    assert anonymous(first, "q") == Released()


@pytest.mark.parametrize("change", ["rule", "leave"])
def test_remembered_addresses_end_with_the_rules_and_with_the_tenant(change: str) -> None:
    space = Space()
    client, outside = space.connect("t1"), space.connect()
    receiver = outside.receiver("t1/q", credit=10)
    tenant = client.terms.tenant
    assert tenant is not None
    client.sender().send(compose(b"1", to="q"))
    outside.sender().send(compose(b"2", to="t1/q"))
    space.router.pump()
    (record,) = space.router.core.table.entries.values()
    assert len(record.known_as) == 2
    if change == "rule":
        space.router.core.table.add_rule(AddressRule("t1/x"))
        assert not record.known_as
        assert not space.router.core.table.known
    else:
        space.tenants.leave_connection(tenant, 1)
        assert record.known_as == [(space.router.core.table.known, b"t1/q")]
    assert not space.router.core.table.known_to(tenant)
    assert receiver.bodies == [b"1", b"2"]


def test_address_rules_apply_to_the_qualified_address() -> None:
    space = Space(
        AddressRule("t1/un", is_prefix=True, distribution="unavailable"),
        AddressRule("t1/way", is_prefix=True, ingress_phase=0, egress_phase=1),
        AddressRule("t1/back", is_prefix=True, distribution="balanced", enable_fallback=True),
    )
    first, second = space.connect("t1"), space.connect("t2")
    assert first.receiver("un.x").error is not None
    assert isinstance(anonymous(first, "un.x"), Rejected)
    assert second.receiver("un.x").error is None
    assert first.receiver("way").error is None
    fallback = first.receiver("back", capabilities=("qd.fallback",), credit=1)
    second.receiver("back", capabilities=("qd.fallback",), credit=1)
    assert {"M1t1/way", "MFt1/back", "M0t2/un.x", "MFt2/back"} <= set(space.router.core.table.entries)
    first.sender("back").send(compose(b"x"))
    space.router.pump()
    assert fallback.bodies == [b"x"]


def test_the_annotation_for_other_routers_names_the_space() -> None:
    space = Space()
    client = space.connect("t1")
    outside = space.router.connect(PeerTerms(strip_out=False))
    receiver = outside.receiver("t1/q", credit=10)
    client.sender("amqp://host/q").send(compose(b"x"))
    space.router.pump()
    annotations = receiver.received[0].annotations
    assert annotations is not None
    assert annotations["x-opt-qd.to"] == "t1/q"


FORGED: dict[str, Callable[[str], dict[str, object]]] = {
    "to": lambda to: {"x-opt-qd.to": to},
    "phase": lambda to: {"x-opt-qd.to": to, "x-opt-qd.phase": 1},
    "fallback": lambda to: {"x-opt-qd.to": to, "x-opt-qd.phase": ord("F") - ord("0")},
}


@pytest.mark.parametrize("forge", FORGED.values(), ids=FORGED)
@pytest.mark.parametrize("to", ["t2/q", "q", "amqp:/t2/q", "_local/q", "_topo/0/R1/q"])
def test_a_trusted_annotation_stays_in_the_space_too(forge: Callable[[str], dict[str, object]], to: str) -> None:
    space = Space(AddressRule("#", distribution="multicast", enable_fallback=True))
    tenant = space.tenants.enter_connection("t1", 1)
    client = space.router.connect(PeerTerms(strip_in=False, tenant=tenant))
    other, outside = space.connect("t2"), space.connect()
    listening = [other.receiver("q", credit=5), outside.receiver("q", credit=5), outside.receiver("_local/q", credit=5)]
    listening += [each.receiver("q", capabilities=("qd.fallback",), credit=5) for each in (other, outside)]
    client.sender().send(compose(b"x", annotations=forge(to)))
    space.router.pump()
    assert not any(each.bodies for each in listening)


def test_the_addresses_of_a_space_are_known_at_every_time() -> None:
    router = MemoryRouter([])
    tenants = [router.core.table.tenants.enter_connection(name, number) for number, name in enumerate(("t1", "_x"), 1)]
    clients = [router.connect(PeerTerms(tenant=tenant, connection_number=n)) for n, tenant in enumerate(tenants, 1)]
    outside, table = router.connect(), router.core.table

    def keys(tenant: Tenant) -> set[str]:
        return {key for key, record in table.entries.items() if tenant.owns_key(key) or record.space == tenant.space}

    for _ in range(2):  # the first time no other client has sent there
        receivers = [client.receiver(address) for client in clients for address in ("q", "a/b")]
        receivers += [outside.receiver(address) for address in ("t1/q", "t1x/q", "t1", "other")]
        dynamic = [client.receiver(None, dynamic=True) for client in clients]
        router.pump()
        for tenant in tenants:
            assert len(keys(tenant)) == 3
            assert set(table.spaces.keys_of(tenant.space)) == keys(tenant)
        for receiver in [*receivers, *dynamic]:
            receiver.detach()
        router.pump()
        assert [table.spaces.keys_of(tenant.space) for tenant in tenants] == [[], []]
