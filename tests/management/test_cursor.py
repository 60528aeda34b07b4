"""Pages of a listing that neither repeat nor skip rows, and cursors in bounded number."""

from __future__ import annotations

from trouter.management.cursor import MAX_CURSORS, Cursors, KeyListing

ASKER = ("here", "router.link")


def page(
    cursors: Cursors, asker: tuple[str, ...], keys: list[int], offset: int, count: int, gone: set[int]
) -> list[int]:
    """Return one page, as a query makes it: removed rows leave no hole."""
    listing = cursors.find_listing(asker, offset, 0.0) or cursors.begin_listing([("all", list(keys))], 0.0)
    start = listing.places.get(offset, offset)
    found: list[int] = []
    place = len(listing)
    for at, _, key in listing.walk(start):
        if len(found) == count:
            place = at
            break
        if key not in gone:
            found.append(key)
    cursors.turn_page(asker, listing, (offset, start), (offset + count, place))
    return found


def test_pages_go_on_where_the_last_page_ended_while_rows_disappear() -> None:
    cursors = Cursors()
    keys = list(range(100))
    gone: set[int] = set()
    seen: list[int] = []
    for offset in range(0, 200, 10):
        found = page(cursors, ASKER, keys, offset, 10, gone)
        seen += found
        if len(found) < 10:
            break
        gone |= {offset, offset + 15, offset + 33}
        keys.append(1000 + offset)
    assert len(seen) == len(set(seen))
    assert set(range(100)) - gone <= set(seen)
    assert len(cursors) == 0


def test_a_page_may_be_requested_again() -> None:
    cursors = Cursors()
    keys = list(range(30))
    page(cursors, ASKER, keys, 0, 10, set())
    first = page(cursors, ASKER, keys, 10, 10, set())
    assert page(cursors, ASKER, keys, 10, 10, set()) == first
    assert page(cursors, ASKER, keys, 20, 10, set()) == list(range(20, 30))


def test_requesters_do_not_disturb_each_other() -> None:
    cursors = Cursors()
    keys = list(range(30))
    page(cursors, ("a",), keys, 0, 10, set())
    page(cursors, ("b",), keys, 0, 20, set())
    assert page(cursors, ("a",), keys, 10, 10, {0, 1, 2}) == list(range(10, 20))
    assert page(cursors, ("b",), keys, 20, 20, {0, 1, 2}) == list(range(20, 30))


def test_cursors_of_inactive_clients_are_forgotten() -> None:
    cursors = Cursors()
    for number in range(3 * MAX_CURSORS):
        page(cursors, (str(number),), list(range(30)), 0, 10, set())
    assert len(cursors) == MAX_CURSORS
    assert cursors.find_listing(("0",), 10, 0.0) is None
    assert cursors.find_listing((str(3 * MAX_CURSORS - 1),), 10, 1e6) is None


def test_a_listing_may_have_several_owners() -> None:
    listing = KeyListing([("a", [1, 2]), ("b", []), ("c", [3])], {}, 0.0)
    assert list(listing.walk(0)) == [(0, "a", 1), (1, "a", 2), (2, "c", 3)]
    assert list(listing.walk(1)) == [(1, "a", 2), (2, "c", 3)]
    assert list(listing.walk(3)) == []
