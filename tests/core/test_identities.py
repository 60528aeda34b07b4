"""The numbers that tenants see: one for each, none that shows how many there are."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trouter.core.identities import Identities, Permutation

pytestmark = pytest.mark.attack

#: So many numbers are in ascending order by chance once in 20! times.
MANY = 20
ONE = Permutation(b"k" * 32, b"connection")


@given(st.integers(0, 2**63))
def test_a_number_is_found_by_what_is_shown_of_it(number: int) -> None:
    shown = ONE.show(number)
    assert ONE.find(shown) == number
    assert shown >> 31 == number >> 31


def test_no_two_numbers_are_shown_alike() -> None:
    assert len({ONE.show(number) for number in range(20_000)}) == 20_000


@pytest.mark.parametrize("first", [0, 1, 2**15 - MANY // 2, 2**31 - MANY])
def test_what_is_shown_of_numbers_in_a_row_is_in_no_order(first: int) -> None:
    shown = [ONE.show(first + each) for each in range(MANY)]
    assert shown != sorted(shown)
    steps = {later - earlier for earlier, later in pairwise(shown)}
    assert len(steps) == MANY - 1


def test_connections_and_links_and_other_routers_are_shown_otherwise() -> None:
    key = b"secret" * 4
    same, other = Identities(key), Identities(key)
    assert [same.links.show(n) for n in range(MANY)] == [other.links.show(n) for n in range(MANY)]
    assert [same.links.show(n) for n in range(MANY)] != [same.connections.show(n) for n in range(MANY)]
    assert [Identities().links.show(n) for n in range(MANY)] != [Identities().links.show(n) for n in range(MANY)]
