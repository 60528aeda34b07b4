"""The table has the rules of the configuration that it was given last, whatever rules it had before."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from trouter.app.addresses import ConfiguredAddresses
from trouter.config import AddressEntity
from trouter.core.table import AddressTable

WORDS = ("a", "a.b", "a.b.c", "x", "x.b")
DISTRIBUTIONS = ("closest", "multicast", "balanced", "unavailable")
ADDRESSES = st.lists(
    st.builds(AddressEntity, prefix=st.sampled_from(WORDS), distribution=st.sampled_from(DISTRIBUTIONS)),
    unique_by=lambda entity: entity.prefix,
)
CONFIGURATIONS = st.lists(ADDRESSES, min_size=1, max_size=4)
ASKED = (*WORDS, "a.q", "a.b.q", "x.q", "other")


def answers(table: AddressTable) -> list[str]:
    return [table.rule_for(table.parse(address)).distribution for address in ASKED]


def follow(rules: ConfiguredAddresses, addresses: list[AddressEntity]) -> list[str]:
    rules.prepare(addresses).apply()
    return answers(rules.table)


@given(CONFIGURATIONS)
def test_earlier_rules_leave_no_trace(configurations: list[list[AddressEntity]]) -> None:
    rules = ConfiguredAddresses(AddressTable("R"))
    for addresses in configurations:
        rules.prepare([]).drop()
        assert follow(rules, addresses) == follow(ConfiguredAddresses(AddressTable("R")), addresses)


@given(ADDRESSES)
def test_unchanged_rules_are_not_touched(addresses: list[AddressEntity]) -> None:
    rules = ConfiguredAddresses(AddressTable("R"))
    follow(rules, addresses)
    before = list(rules.present.values())
    follow(rules, addresses)
    assert all(one is other for one, other in zip(before, rules.present.values(), strict=True))
