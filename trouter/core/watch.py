"""Stuck deliveries and blocked links (routing.md 5.6), found without work on the data path.

The watch goes through all sessions, a portion at a time, and notes what is too old. A count checks the noted deliveries
and links again, so it is current when it is read. A delivery's age counts from its own arrival.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from .egress import Egress
from .links import Endpoint
from .message import IncomingDelivery, OutgoingDelivery

if TYPE_CHECKING:
    from trouter.engine.link import IncomingLink, OutgoingLink
    from trouter.engine.session import Session

STUCK_AFTER_S: Final = 10.0
BLOCKED_AFTER_S: Final = 10.0
#: The least seconds between the starts of two rounds over all sessions.
ROUND_S: Final = 10.0
#: Links and deliveries of one call; a session is never split.
PORTION: Final = 5000

OwnDelivery = IncomingDelivery | OutgoingDelivery


@dataclass(frozen=True, slots=True)
class Notice:
    """A log line about a link, to be logged once."""

    link: IncomingLink | OutgoingLink
    text: str


STUCK_TEXT: Final = (
    "Stuck delivery: At least one delivery on this link has been undelivered/unsettled for more than 10 seconds"
)

OVERDRAWN_TEXT: Final = (
    "The peer sends more than it has credit for; as many deliveries as it has had credit for at once are taken in"
)
UNBLOCKED_TEXT: Final = "Link unblocked"


class _StalledLink:
    """A link that was found without credit or with stuck deliveries, and which notices were logged of it."""

    __slots__ = ("logged_blocked", "logged_stuck", "stuck")

    def __init__(self) -> None:
        self.stuck: list[OwnDelivery] = []
        self.logged_stuck = False
        self.logged_blocked = False


class Watch:
    """The stuck deliveries and blocked links of a router's ``endpoints``."""

    def __init__(self) -> None:
        self._stalled: dict[Endpoint, _StalledLink] = {}
        self._round: list[Session] = []
        self._begun_at_s = float("-inf")

    def scan(self, endpoints: Iterable[Endpoint], now_s: float) -> list[Notice]:
        """Check the next portion and return new notices; to be called about once a second."""
        if not self._round:
            if now_s - self._begun_at_s < ROUND_S:
                return []
            self._begun_at_s = now_s
            sessions = dict.fromkeys(each.link.session for each in endpoints)
            self._round = list(sessions)
        notices: list[Notice] = []
        left = PORTION
        while self._round and left > 0:
            left -= self._check_session(self._round.pop(), now_s, notices)
        return notices

    def forget_link(self, endpoint: Endpoint) -> None:
        """Forget a link that has ended."""
        self._stalled.pop(endpoint, None)

    def count_stuck(self, endpoint: Endpoint | None = None) -> int:
        """Return the number of deliveries that were found stuck and still are: on one link, or on all."""
        if endpoint is None:
            return sum(_still_stuck(stalled) for stalled in self._stalled.values())
        stalled = self._stalled.get(endpoint)
        return 0 if stalled is None else _still_stuck(stalled)

    def count_blocked(self, now_s: float) -> int:
        """Return the number of links that were found without credit for too long, and still are."""
        return sum(zero_credit_s(each, now_s) > BLOCKED_AFTER_S for each in self._stalled)

    def _check_session(self, session: Session, now_s: float, notices: list[Notice]) -> int:
        """Check one session; return the number of its links and deliveries."""
        stuck: dict[Endpoint, list[OwnDelivery]] = {}
        seen = 1
        for delivery in (*session.deliveries.incoming.all(), *session.deliveries.outgoing.all()):
            seen += 1
            sink = delivery.link.sink
            if (
                isinstance(delivery, IncomingDelivery | OutgoingDelivery)
                and isinstance(sink, Endpoint)
                and now_s - delivery.arrived_at_s > STUCK_AFTER_S
                and not _streams(delivery)
            ):
                stuck.setdefault(sink, []).append(delivery)
        for link in session.links.list_links():
            seen += 1
            sink = link.sink
            if isinstance(sink, Endpoint):
                late = stuck.get(sink, [])
                if isinstance(sink, Egress):
                    _add_waiting(sink, late, now_s)
                self._note_stuck(sink, late, now_s, notices)
        return seen

    def _note_stuck(self, endpoint: Endpoint, stuck: list[OwnDelivery], now_s: float, notices: list[Notice]) -> None:
        link = endpoint.link
        stalled = self._stalled.get(endpoint)
        if stalled is None:
            if not stuck and link.credit > 0:
                return
            stalled = self._stalled[endpoint] = _StalledLink()
        stalled.stuck = stuck
        if stuck and not stalled.logged_stuck:
            stalled.logged_stuck = True
            notices.append(Notice(link, STUCK_TEXT))
        account = endpoint if isinstance(endpoint, Egress) else endpoint.account
        if link.credit <= 0 and account.no_credit_since_s < 0:
            account.no_credit_since_s = now_s
        for_s = zero_credit_s(endpoint, now_s)
        if for_s > BLOCKED_AFTER_S and not stalled.logged_blocked:
            stalled.logged_blocked = True
            notices.append(Notice(link, f"Link blocked with zero credit for {for_s:.0f} seconds"))
        elif for_s <= BLOCKED_AFTER_S and stalled.logged_blocked:
            stalled.logged_blocked = False
            notices.append(Notice(link, UNBLOCKED_TEXT))
        if link.credit > 0 and not stalled.logged_stuck:
            del self._stalled[endpoint]


def zero_credit_s(endpoint: Endpoint, now_s: float) -> float:
    """Return the seconds that a link has been without credit; 0 with credit."""
    since_s = (endpoint if isinstance(endpoint, Egress) else endpoint.account).no_credit_since_s
    return max(0.0, now_s - since_s) if endpoint.link.credit <= 0 and since_s >= 0 else 0.0


def _add_waiting(outgoing: Egress, stuck: list[OwnDelivery], now_s: float) -> None:
    """Add the deliveries of the link's queue, oldest first, that are not in the session's ring."""
    for out in outgoing.queue:
        if now_s - out.arrived_at_s <= STUCK_AFTER_S:
            return
        if (out.settled or not out.begun) and not (out.aborted or _streams(out)):
            stuck.append(out)


def _streams(delivery: OwnDelivery) -> bool:
    """Return whether the message is marked as a stream, which may take long."""
    message = delivery.message
    return message is not None and message.annotations is not None and message.annotations.parsed.stream


def _still_stuck(stalled: _StalledLink) -> int:
    stalled.stuck = [delivery for delivery in stalled.stuck if _is_open(delivery)]
    return len(stalled.stuck)


def _is_open(delivery: OwnDelivery) -> bool:
    """Return whether an outcome or a settlement is missing."""
    if delivery.aborted or (delivery.complete and (delivery.settled or delivery.remote_settled)):
        return False
    return delivery.complete or delivery.message is not None
