"""The memory of connections, by connection, by user or by vhost, for `trouter stat --memory`."""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Collection, Mapping
from typing import Final

from trouter.net.view import ConnectionView
from trouter.policy.judge import ANONYMOUS
from trouter.records.text import clean

from .memory import cost_bytes

#: The columns that identify a row, by grouping.
KEYS: Final[Mapping[str, tuple[str, ...]]] = {
    "connection": ("connection", "host", "user", "vhost"),
    "user": ("user", "vhost"),
    "vhost": ("vhost",),
}
MEASURES: Final = ("connections", "sessions", "links", "messages", "kept", "output", "bytes")
#: Octets of an idle connection; `make bench` (chapter idle) measures it.
CONNECTION_BYTES: Final = 9000
#: The largest groups have rows of their own, the others share one.
MAX_ROWS: Final = 20


def shares(by: str, consumers: Collection[ConnectionView]) -> list[dict[str, object]]:
    """Return the memory in octets of connections, grouped ``by`` a key of KEYS, the largest group first.

    ``messages`` are bytes held of received messages, ``kept`` those of opens and attaches beyond ordinary ones,
    ``output`` those that wait to be sent, ``bytes`` is everything.
    Groups beyond ``MAX_ROWS`` share one row, with their number in ``others``. KeyError for another key.
    """
    keys = KEYS[by]
    groups: defaultdict[tuple[str, ...], list[int]] = defaultdict(lambda: [0] * len(MEASURES))
    for each in consumers:
        about = each.describe_connection()
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


def _measures(each: ConnectionView) -> list[int]:
    engine = each.engine
    whole = CONNECTION_BYTES + cost_bytes(engine)
    messages_bytes = engine.buffered_bytes - engine.kept_bytes
    return [1, engine.session_count, engine.link_count, messages_bytes, engine.kept_bytes, len(engine.out), whole]


def _add(total: list[int], more: list[int]) -> None:
    total[:] = map(sum, zip(total, more, strict=True))


def _whole(group: tuple[tuple[str, ...], list[int]]) -> int:
    return group[1][-1]
