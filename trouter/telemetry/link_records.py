"""Records links: attach, detach, and the counts in between.

The counters are the core's, and are only read. Each link is read once in each interval, spread over it, and a last time
when it ends. The counts already recorded are kept here, for the differences.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, Protocol

from trouter.columns.links import undelivered_of, unsettled_of
from trouter.core.egress import Egress
from trouter.core.links import Endpoint
from trouter.core.watch import OVERDRAWN_TEXT, STUCK_AFTER_S, UNBLOCKED_TEXT, Notice
from trouter.net.view import owner_of
from trouter.records import DeliveryInterval, LinkAttachedRecord, LinkDetachedRecord, LinkStalled, Record
from trouter.wire.performatives import Attach

from .allowances import Writer
from .clocks import mono_us, now_us

if TYPE_CHECKING:
    from trouter.core.router import Router
    from trouter.engine.link_base import Link


#: Counters: name in the record, and in the core.
COUNTED: Final = {
    "msgs": "deliveries",
    "undeliverable": "undeliverable",
    "accepted": "accepted",
    "rejected": "rejected",
    "released": "released",
    "modified": "modified",
    "presettled": "presettled",
    "dropped_presettled": "dropped_presettled",
    "delayed1s": "delayed_1s",
    "delayed10s": "delayed_10s",
}
Counts = tuple[int, ...]
#: The bytes of messages come last; the link counts them.
_NAMES: Final = (*COUNTED, "bytes")
_NONE: Final[Counts] = (0,) * len(_NAMES)
_DELTAS: Final = tuple(f"d_{name}" for name in _NAMES)
_CUMULATIVE: Final = tuple(f"c_{name}" for name in _NAMES)


class _Recorded:
    """The recorded state of one link: address, time of the attach, counts, and when they were read."""

    __slots__ = ("address", "attached_us", "counts", "until_us")

    def __init__(self, endpoint: Endpoint, attached_us: int, counts: Counts) -> None:
        entry = endpoint.entry
        self.address = None if entry is None else entry.text
        self.attached_us = attached_us
        self.counts = counts
        #: By the monotonic clock.
        self.until_us = mono_us()


class Emitter(Protocol):
    """A receiver of the records that are made here; see ``Recorder``."""

    @property
    def active(self) -> bool:
        """Whether there are takers of records."""

    def emit(self, record: Record) -> None:
        """Hand a record to all takers; the caller must not change it any more."""


class LinkRecords:
    """The records of one router's links. It keeps no state while there are no takers."""

    def __init__(self, recorder: Emitter) -> None:
        self._recorder = recorder
        self._recorded: dict[int, _Recorded] = {}
        self._round: Iterator[Endpoint] = iter(())
        self._stalled: set[int] = set()

    def __len__(self) -> int:
        return len(self._recorded)

    def _emit(self, record: LinkAttachedRecord | LinkDetachedRecord, count: int) -> None:
        """Record the first of ``count`` such events."""
        record.repeat = count
        self._recorder.emit(record)

    def attached(self, link: Link, attach: Attach) -> Writer | None:
        """Note that a link was accepted; return what writes the record of this and others, None without takers."""
        endpoint = link.sink
        if not self._recorder.active or not isinstance(endpoint, Endpoint):
            return None
        last = self._recorded[endpoint.identity] = _Recorded(endpoint, now_us(), _NONE)
        terminus: Any = attach.target if link.incoming else attach.source
        record = LinkAttachedRecord(
            **_about(link),
            link=endpoint.identity,
            addr=last.address,
            dir=_direction(endpoint),
            kind="endpoint",
            dynamic=bool(getattr(terminus, "dynamic", False)),
            snd_mode=attach.snd_settle_mode,
            rcv_mode=attach.rcv_settle_mode,
            max_message=attach.max_message_size or None,
            credit=max(0, endpoint.link.credit),
        )
        return partial(self._emit, record)

    def gone(
        self, router: Router, link: Link, reason: str, *, closed: bool, condition: str | None = None
    ) -> Writer | None:
        """Record the last counts of a link that was detached, or lost with its session.

        Return what writes the record of this end and others, None without takers.
        """
        endpoint = link.sink
        if not self._recorder.active or not isinstance(endpoint, Endpoint):
            return None
        self._stalled.discard(endpoint.identity)
        last = self._recorded.pop(endpoint.identity, None) or _Recorded(endpoint, 0, _counts(endpoint))
        self._record(router, endpoint, last, final=True)
        record = LinkDetachedRecord(
            **_about(link),
            link=endpoint.identity,
            addr=last.address,
            dir=_direction(endpoint),
            attached_at=last.attached_us,
            closed=closed,
            reason=reason,
            condition=condition,
        )
        return partial(self._emit, record)

    def stalled(self, router: Router, notice: Notice) -> None:
        """Record that a link is stuck or without credit, or has recovered."""
        endpoint = notice.link.sink
        if not self._recorder.active or not isinstance(endpoint, Endpoint) or notice.text == OVERDRAWN_TEXT:
            return
        ended = notice.text == UNBLOCKED_TEXT
        if ended == (endpoint.identity not in self._stalled):
            return
        (self._stalled.discard if ended else self._stalled.add)(endpoint.identity)
        entry = endpoint.entry
        for_s = max(router.zero_credit_s(notice.link), 0.0 if ended else STUCK_AFTER_S)
        self._recorder.emit(
            LinkStalled(
                conn=endpoint.connection_number,
                link=endpoint.identity,
                addr=None if entry is None else entry.text,
                since=now_us() - int(for_s * 1_000_000),
                unsettled=endpoint.unsettled,
                state="end" if ended else "start",
            )
        )

    def record_counts(self, router: Router, limit: int) -> None:
        """Record the traffic of the next ``limit`` links, for those that had any."""
        portion = list(islice(self._round, limit))
        if len(portion) < limit:
            self._round = iter(list(router.links.values()))
            portion += islice(self._round, limit - len(portion))
        for endpoint in portion:
            if endpoint.identity in router.links:
                last = self._recorded.get(endpoint.identity)
                if last is not None:
                    self._record(router, endpoint, last, final=False)
                else:  # the link is older than the recording, which begins now
                    self._recorded[endpoint.identity] = _Recorded(endpoint, 0, _counts(endpoint))

    def forget_links(self) -> None:
        """Forget all links, because there are no takers any more."""
        self._recorded.clear()
        self._stalled.clear()

    def _record(self, router: Router, endpoint: Endpoint, last: _Recorded, *, final: bool) -> None:
        """Record the counts that changed; at the end of a link, unless it never had any."""
        counts, until_us = _counts(endpoint), mono_us()
        since_us, last.until_us = last.until_us, until_us
        if counts == (_NONE if final else last.counts):
            return
        numbers: dict[str, Any] = dict(zip(_CUMULATIVE, counts, strict=True))
        numbers.update(zip(_DELTAS, map(operator.sub, counts, last.counts), strict=True))
        last.counts = counts
        peer = _about(endpoint.link)
        now = now_us()
        self._recorder.emit(
            DeliveryInterval(
                conn=peer["conn"],
                vhost=peer["vhost"],
                user=peer["user"],
                tenant=peer["tenant"],
                link=endpoint.identity,
                addr=last.address,
                dir=_direction(endpoint),
                t0=now - (until_us - since_us),
                t1=now,
                **numbers,
                unsettled=int(unsettled_of(endpoint)),
                undelivered=int(undelivered_of(endpoint)),
                credit0_us=int(router.zero_credit_s(endpoint.link) * 1_000_000),
                final=final,
            )
        )


def _counts(endpoint: Endpoint) -> Counts:
    counters = endpoint.counters
    return (*[getattr(counters, name) for name in COUNTED.values()], endpoint.link.payload_bytes)


def _direction(endpoint: Endpoint) -> str:
    return "out" if isinstance(endpoint, Egress) else "in"


def _about(link: Any) -> dict[str, Any]:
    """Return the fields of every record about a link's connection."""
    owner = owner_of(link)
    assert owner is not None  # noqa: S101 - a link that is there has a connection
    return owner.describe_connection()
