"""Find withdrawals that follow a small payment with the same card: each pair of payments is compared."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from decimal import Decimal
from typing import NamedTuple


class Paid(NamedTuple):
    """A payment."""

    id: int
    card: str
    t_us: int
    channel: str
    amount: str
    place: str


def frauds(
    paid: Iterable[Paid],
    *,
    within_us: int = 3_600_000_000,
    testers: int = 1,
    mute_us: int = 0,
    elsewhere: bool = False,
) -> set[tuple[str, int, int]]:
    """Return card, the withdrawal, and the last of the small payments before it."""
    cards = defaultdict(list)
    for each in sorted(set(paid), key=lambda each: (each.t_us, each.channel == "atm", str(each.id))):
        cards[each.card].append(each)
    found = set()
    for card, payments in cards.items():
        spoken: int | None = None
        for large in payments:
            if large.channel != "atm" or Decimal(large.amount) < 500:
                continue
            small = [
                each
                for each in payments
                if each.channel == "online"
                and Decimal(each.amount) <= 2
                and 0 <= large.t_us - each.t_us <= within_us
                and (not elsewhere or each.place != large.place)
            ]
            if len(small) >= testers and (spoken is None or not mute_us or large.t_us > spoken + mute_us):
                spoken = large.t_us
                found.add((card, large.id, small[-1].id))
    return found
