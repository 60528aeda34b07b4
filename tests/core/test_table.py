"""Address rules that come and go while the router runs (routing.md 5.1: what exists keeps its treatment)."""

from __future__ import annotations

import pytest

from trouter.core.table import AddressRule, AddressTable
from trouter.testing import MemoryRouter, compose

A = AddressRule("a", is_prefix=True, distribution="multicast")
B = AddressRule("b.*", distribution="closest")


def treatment(table: AddressTable, text: str) -> str:
    return table.rule_for(table.parse(text)).distribution


def make_table(*rules: AddressRule) -> AddressTable:
    table = AddressTable("R")
    for rule in rules:
        table.add_rule(rule)
    return table


def test_a_removed_rule_matches_no_more() -> None:
    table = make_table(A, B)
    table.remove_rule(A)
    assert [treatment(table, text) for text in ("a", "a.x", "b.x")] == ["balanced", "balanced", "closest"]
    with pytest.raises(KeyError):
        table.remove_rule(A)
    table.add_rule(A)
    assert treatment(table, "a.x") == "multicast"


def test_an_address_in_use_keeps_its_treatment_until_it_is_created_again() -> None:
    router = MemoryRouter((A,))
    client = router.connect()
    first = client.receiver("a.x", credit=10)
    second = client.receiver("a.x", credit=10)
    router.core.table.remove_rule(A)
    sender = client.sender("a.x")
    sender.send(compose(b"1"))
    router.pump()
    assert (first.bodies, second.bodies) == ([b"1"], [b"1"])
    for link in (first, second, sender):
        link.detach()
    client.receiver("a.x")
    assert router.core.table.entries["M0a.x"].treatment == "balanced"


def test_anonymous_messages_follow_the_rules_of_the_moment() -> None:
    phased = AddressRule("w", ingress_phase=0, egress_phase=1)
    router = MemoryRouter((phased,))
    client = router.connect()
    waypoint = client.receiver("w", credit=10, capabilities=("qd.waypoint",))
    consumer = client.receiver("w", credit=10)
    sender = client.sender()
    sender.send(compose(b"1", to="w"))
    router.pump()
    assert (waypoint.bodies, consumer.bodies) == ([b"1"], [])
    router.core.table.remove_rule(phased)
    router.core.table.add_rule(AddressRule("w", ingress_phase=1, egress_phase=1))
    sender.send(compose(b"2", to="w"))
    router.pump()
    assert (waypoint.bodies, consumer.bodies) == ([b"1"], [b"2"])
    consumer.detach()
    waypoint.detach()
    assert router.core.table.known == {}
