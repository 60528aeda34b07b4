"""The counts of addresses that nobody uses here any more, which a worker keeps for the others."""

from __future__ import annotations

from trouter.core.past import ENTRY_BYTES, PastAddresses
from trouter.core.table import AddressTable


def table_with_past(room: int) -> AddressTable:
    """Return the table of a worker that keeps so many past addresses with keys of four characters."""
    table = AddressTable("R")
    table.past = PastAddresses(room * (ENTRY_BYTES + 8))
    return table


def use(table: AddressTable, text: str, ingress: int = 0, egress: int = 0) -> None:
    """Use an address for so many deliveries, and no longer."""
    entry = table.obtain_entry(text, outgoing=False)
    assert entry is not None
    entry.counters.ingress += ingress
    entry.counters.egress += egress
    table.release_entry(entry)


def kept(table: AddressTable) -> dict[str, tuple[int, int]]:
    assert table.past is not None
    return {key: (each.counters.ingress, each.counters.egress) for key, each in table.past.entries.items()}


def test_a_past_address_has_the_counts_of_all_its_times() -> None:
    table = table_with_past(2)
    use(table, "aa", ingress=2, egress=1)
    use(table, "aa", egress=3)
    assert kept(table) == {"M0aa": (2, 4)}
    assert not table.entries


def test_addresses_without_counts_and_those_of_one_worker_are_not_kept() -> None:
    table = table_with_past(2)
    use(table, "aa")
    use(table, "_local/aa", ingress=1)
    assert kept(table) == {}


def test_a_client_that_makes_addresses_drops_those_that_were_forgotten_first() -> None:
    table = table_with_past(3)
    for text in ("aa", "bb", "cc", "aa", "dd"):
        use(table, text, ingress=1)
    assert kept(table) == {"M0cc": (1, 0), "M0aa": (2, 0), "M0dd": (1, 0)}
    use(table, "e" * 3_000, ingress=1)
    assert kept(table) == {}


def test_a_tenants_past_addresses_are_those_of_its_space() -> None:
    table = table_with_past(3)
    assert table.past is not None
    use(table, "t/aa", ingress=1)
    use(table, "bb", ingress=1)
    assert table.past.spaces.keys_of("t") == ["M0t/aa"]


def test_one_process_keeps_nothing() -> None:
    table = AddressTable("R")
    use(table, "aa", ingress=1)
    assert table.past is None
