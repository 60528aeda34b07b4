"""The names of tenants' dynamic addresses, by which the workers of a router know whose they are."""

from __future__ import annotations

import re

import pytest

from trouter.core.addresses import TEMPORARY_NAMES, temporary_source, temporary_target, temporary_token
from trouter.core.marks import Marks
from trouter.core.table import AddressTable
from trouter.core.tenants import Tenant

KEY = bytes(range(64))
ONE, TWO = Tenant("one"), Tenant("two")


@pytest.mark.parametrize("prefix", TEMPORARY_NAMES)
def test_a_name_is_of_the_tenant_that_it_was_made_for(prefix: str) -> None:
    made_by, read_by = Marks(KEY), Marks(KEY)
    name = prefix + made_by.make_token("one")
    assert read_by.is_of(name, "one")
    assert not read_by.is_of(name, "two")
    assert not Marks(bytes(64)).is_of(name, "one")


def test_names_look_like_any_and_never_repeat() -> None:
    tokens = [Marks(KEY).make_token("one") for _ in range(2000)]
    assert len({token[:11] for token in tokens}) == len({token[11:] for token in tokens}) == len(tokens)
    assert all(re.fullmatch(r"[a-zA-Z0-9+_]{22}", token) for token in tokens)


@pytest.mark.parametrize(
    "name",
    ["", "temp.", "temp.x", "_$temp.", "temp." + "a" * 21 + "\u00e9", "temp." + "a" * 10_000, "queue", "a" * 22],
)
def test_other_names_are_of_no_tenant(name: str) -> None:
    assert not Marks(KEY).is_of(name, "one")


def test_a_name_cannot_be_changed_into_another() -> None:
    marks = Marks(KEY)
    token = marks.make_token("one")
    for place in range(len(token)):
        other = "b" if token[place] == "a" else "a"
        assert not marks.is_of(f"temp.{token[:place]}{other}{token[place + 1 :]}", "one")


@pytest.fixture(params=[True, False], ids=["confined", "free"])
def table(request: pytest.FixtureRequest) -> AddressTable:
    """Return the addresses of a worker that has made none of the dynamic ones."""
    made = AddressTable("R", "interior")
    made.tenants_confined = request.param
    made.marks = Marks(KEY, {"R.2", "with/slash"})
    return made


def is_open(table: AddressTable, tenant: Tenant, text: str) -> bool:
    return table.is_open_to(tenant, table.parse(text, tenant=tenant))


@pytest.mark.parametrize("text", ["amqp:/_topo/0/R.2/temp.{}", "_topo/all/R.2/temp.{}", "//host/_topo/0/R.2/temp.{}"])
def test_a_tenant_may_answer_at_its_dynamic_address_of_another_worker(table: AddressTable, text: str) -> None:
    own, nobodys = text.format(Marks(KEY).make_token("one")), text.format(temporary_token())
    assert is_open(table, ONE, own)
    assert not is_open(table, TWO, own)
    assert not is_open(table, ONE, nobodys)


def test_a_worker_with_a_slash_in_its_id_is_one_too(table: AddressTable) -> None:
    table.obtain_remote("Rwith/slash", None)
    own = temporary_source("with/slash", Marks(KEY).make_token("one"))
    assert is_open(table, ONE, own)
    assert not is_open(table, TWO, own)


def test_addresses_that_other_routers_made_are_open_as_before(table: AddressTable) -> None:
    for tenant in (ONE, TWO):
        assert is_open(table, tenant, temporary_source("Q", temporary_token()))


def test_a_tenant_may_receive_from_a_dynamic_target_of_another_worker(table: AddressTable) -> None:
    own = temporary_target(Marks(KEY).make_token("one"))
    assert is_open(table, ONE, own)
    if table.tenants_confined:
        assert not is_open(table, TWO, own)
        assert not is_open(table, ONE, temporary_target(temporary_token()))


def test_the_own_dynamic_addresses_that_are_gone_are_closed(table: AddressTable) -> None:
    assert not is_open(table, ONE, temporary_source("R", Marks(KEY).make_token("one")))
    assert not is_open(table, ONE, f"_local/temp.{Marks(KEY).make_token('one')}")
