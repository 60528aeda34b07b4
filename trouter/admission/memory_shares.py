"""The memory that connections take, by connection, by user or by vhost: what `trouter stat --memory` shows."""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Collection, Mapping
from typing import Final

from trouter.records.text import clean
from trouter.security.policy import ANONYMOUS

from .memory import Consumer, cost_bytes

#: What a row is about, by what it is asked for.
KEYS: Final[Mapping[str, tuple[str, ...]]] = {
    "connection": ("connection", "host", "user", "vhost"),
    "user": ("user", "vhost"),
    "vhost": ("vhost",),
}
MEASURES: Final = ("connections", "sessions", "links", "messages", "output", "bytes")
#: What an idle connection takes; `make bench` (chapter idle) measures it.
CONNECTION_BYTES: Final = 9000
#: The largest are rows of their own, the others are one.
MAX_ROWS: Final = 20


def shares(by: str, consumers: Collection[Consumer]) -> list[dict[str, object]]:
    """Return the memory in octets that connections take, grouped ``by`` a key of KEYS, the largest group first.

    ``messages`` are octets held that came in, ``output`` those that wait to go out, ``bytes`` is everything. What does
    not fit into ``MAX_ROWS`` is one row with the number of groups in ``others``. KeyError for another key.
    """
    keys = KEYS[by]
    groups: defaultdict[tuple[str, ...], list[int]] = defaultdict(lambda: [0] * len(MEASURES))
    for each in consumers:
        about = each.about()
        who = {"connection": each.number, **about, "user": about["user"] or ANONYMOUS}
        _add(groups[tuple(clean(str(who[name] or "")) for name in keys)], _measures(each))
    largest = heapq.nlargest(MAX_ROWS, groups.items(), key=_whole)
    rows: list[dict[str, object]] = [
        {**dict(zip(keys, group, strict=True)), **dict(zip(MEASURES, taken, strict=True))} for group, taken in largest
    ]
    rest = [0] * len(MEASURES)
    for group in groups.keys() - dict(largest).keys():
        _add(rest, groups[group])
    if len(groups) > len(rows):
        others = {**dict.fromkeys(keys, ""), "others": len(groups) - len(rows)}
        rows.append({**others, **dict(zip(MEASURES, rest, strict=True))})
    return rows


def _measures(each: Consumer) -> list[int]:
    engine = each.engine
    whole = CONNECTION_BYTES + cost_bytes(engine)
    return [1, engine.session_count, engine.link_count, engine.buffered_bytes, len(engine.out), whole]


def _add(total: list[int], more: list[int]) -> None:
    total[:] = map(sum, zip(total, more, strict=True))


def _whole(group: tuple[tuple[str, ...], list[int]]) -> int:
    return group[1][-1]
