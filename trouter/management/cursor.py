"""Pages of a listing, and where the next page starts, so that pages neither repeat nor skip entities.

A listing is a snapshot of keys, taken with its first page. Rows are made with each page, and entities that are gone by
then leave no gap. A listing whose requester stops is dropped when others need its place.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

#: The most listings that are kept; the one unused for longest is dropped first.
MAX_CURSORS: Final = 32
#: The most keys of all listings; a single listing may have more.
MAX_KEYS: Final = 1_000_000
_AGE_S: Final = 60.0

Asker = tuple[str, ...]
#: The owner of keys, and the keys.
Group = tuple[Any, Sequence[Any]]


@dataclass(slots=True)
class KeyListing:
    """The keys of a listing, in groups. ``places`` has the positions of the offsets that may be requested."""

    groups: Sequence[Group]
    places: dict[int, int]
    requested_at_s: float

    def walk(self, place: int) -> Iterator[tuple[int, Any, Any]]:
        """Yield the keys from position ``place`` on, each with its position and its group's owner."""
        start = 0
        for owner, keys in self.groups:
            for index in range(max(place - start, 0), len(keys)):
                yield start + index, owner, keys[index]
            start += len(keys)

    def __len__(self) -> int:
        return sum(len(keys) for _, keys in self.groups)


class Cursors:
    """The listings of all requesters."""

    def __init__(self) -> None:
        self._listings: OrderedDict[Asker, KeyListing] = OrderedDict()

    def find_listing(self, asker: Asker, offset: int, now_s: float) -> KeyListing | None:
        """Return the listing whose page at ``offset`` is next; None if a new one must begin."""
        listing = self._listings.get(asker)
        if listing is None or offset == 0 or offset not in listing.places or now_s - listing.requested_at_s > _AGE_S:
            return None
        listing.requested_at_s = now_s
        self._listings.move_to_end(asker)
        return listing

    def begin_listing(self, groups: Sequence[Group], now_s: float) -> KeyListing:
        """Return a new listing."""
        return KeyListing(groups, {0: 0}, now_s)

    def turn_page(self, asker: Asker, listing: KeyListing, given: tuple[int, int], following: tuple[int, int]) -> None:
        """Note that a page was sent; both arguments are an offset and its position.

        The page may be requested again; earlier ones may not.
        """
        if following[1] >= len(listing):
            self._listings.pop(asker, None)
            return
        listing.places = dict((given, following))
        self._listings[asker] = listing
        self._listings.move_to_end(asker)
        while len(self._listings) > 1 and (
            len(self._listings) > MAX_CURSORS or sum(len(each) for each in self._listings.values()) > MAX_KEYS
        ):
            self._listings.popitem(last=False)

    def __len__(self) -> int:
        return len(self._listings)
