"""Pages of one listing: what the next page goes on from, so that pages neither repeat nor skip.

A listing is a snapshot of keys, taken at its first page; the rows are made when a page is asked for, and what is gone
by then leaves no hole in its page. A requester that stops asking is forgotten when others need the place.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

#: Listings that are remembered; the one that was not asked for longest goes first.
MAX_CURSORS: Final = 32
#: Keys that they may hold together; a listing is kept all the same when it is the only one.
MAX_KEYS: Final = 1_000_000
_AGE_S: Final = 60.0

Asker = tuple[str, ...]


@dataclass(slots=True)
class Listing:
    """The keys of a listing. ``places`` says for an offset that a requester may ask for where in ``keys`` that is."""

    keys: Sequence[Any]
    places: dict[int, int]
    asked_at_s: float

    def walk(self, offset: int) -> Iterator[tuple[int, Any]]:
        """The keys from ``offset`` on, each with its place."""
        for place in range(self.places[offset], len(self.keys)):
            yield place, self.keys[place]


class Cursors:
    """The listings of all requesters."""

    def __init__(self) -> None:
        self._listings: OrderedDict[Asker, Listing] = OrderedDict()

    def open(self, asker: Asker, offset: int, now_s: float) -> Listing | None:
        """The listing whose page at ``offset`` comes next, None when a new one has to be begun."""
        listing = self._listings.get(asker)
        if listing is None or offset == 0 or offset not in listing.places or now_s - listing.asked_at_s > _AGE_S:
            return None
        listing.asked_at_s = now_s
        self._listings.move_to_end(asker)
        return listing

    def begin(self, keys: Sequence[Any], offset: int, now_s: float) -> Listing:
        """A new listing, the first page of which starts at ``offset``."""
        return Listing(keys, {offset: min(offset, len(keys))}, now_s)

    def turn(self, asker: Asker, listing: Listing, offset: int, next_offset: int, place: int) -> None:
        """A page from ``offset`` was given; the next one, at ``next_offset``, begins at ``place``.

        The page that was given may be asked for again; the ones before it are forgotten.
        """
        if place >= len(listing.keys):
            self._listings.pop(asker, None)
            return
        listing.places = {offset: listing.places[offset], next_offset: place}
        self._listings[asker] = listing
        self._listings.move_to_end(asker)
        while len(self._listings) > 1 and (
            len(self._listings) > MAX_CURSORS or sum(len(each.keys) for each in self._listings.values()) > MAX_KEYS
        ):
            self._listings.popitem(last=False)

    def __len__(self) -> int:
        return len(self._listings)
