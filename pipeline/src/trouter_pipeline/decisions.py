"""Decisions about alerts and quotas: made from tables, and sent to routers, which enforce them.

Only rules of the audit and quotas of tenants that the operator names lead to decisions. A decision ends within a day.
The same rows make the same decisions with the same ids, and a router obeys an id once, so they may be made and sent
again at any time; those that a router has accepted are remembered, and not sent to it again. A decision that the tables
no longer support is lifted. `docs/decisions.md` has the message.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec
import trio

from trouter.client import ACCEPTED, RELEASED, ClientError, Message, Modified, Properties, Rejected, connect
from trouter.records.text import clean
from trouter_pipeline.connecting import Peer
from trouter_pipeline.files import locked, make_folder, replace

SUBJECT: Final = "trouter.decision.v1"
CONTENT_TYPE: Final = "application/json"
ADDRESS: Final = "trouter.decisions"
MAX_BYTES: Final = 4096
MAX_EVIDENCE: Final = 100
#: Limit of one run; the latest alerts come first.
MAX_DECISIONS: Final = 1000
#: How long a router may release decisions because too many come at once, and the pause between attempts.
RELEASED_FOR_S: Final = 120.0
RETRY_S: Final = 1.0
_DAY: Final = timedelta(days=1)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)

#: The action that lifts each action.
OPPOSITE: Final = {"lock-user": "unlock-user", "block-host": "unblock-host", "slow-tenant": "restore-tenant"}
#: The column of an alert with the subject of an action.
_ABOUT: Final = {"lock-user": "user", "block-host": "host", "slow-tenant": "vhost"}


class Answer(NamedTuple):
    """The action for a rule, and its length in minutes after the last violation."""

    action: str
    minutes: int


#: Default action by rule of the audit. Guessing hosts are blocked. A user is locked only if many hosts guess or a guess
#: was right; otherwise any client could lock out any user by guessing.
ANSWERS: Final[Mapping[str, Answer]] = {
    "brute-force": Answer("block-host", 15),
    "brute-force-host": Answer("block-host", 15),
    "distributed": Answer("lock-user", 15),
    "spray": Answer("block-host", 60),
    "low-and-slow": Answer("block-host", 720),
    "low-and-slow-host": Answer("block-host", 720),
    "success-after": Answer("lock-user", 60),
    "denial-burst": Answer("block-host", 15),
}


class Quota(NamedTuple):
    """A tenant's messages in each hour, day or month (UTC); beyond that it is slowed to ``rate`` a second."""

    vhost: str
    messages: int
    period: str
    rate: int


class Decision(msgspec.Struct, frozen=True):
    """The body of a message, with its field names. ``until_us``: its end, in microseconds since 1970."""

    id: str
    action: str
    subject: str
    until_us: int
    reason: str
    vhost: str | None = None
    evidence: list[int] = []
    rate: int | None = None
    v: int = 1


class Made(NamedTuple):
    """A decision and its cause: ``rule:NAME`` or ``quota:VHOST``."""

    decision: Decision
    cause: str


class Standing(msgspec.Struct, frozen=True):
    """A decision that a router has accepted and that has not ended."""

    action: str
    subject: str
    vhost: str | None
    until_us: int
    cause: str


def parse_answer(text: str) -> dict[str, Answer]:
    """Parse RULE, RULE=ACTION or RULE=ACTION:MINUTES; ``all`` stands for all rules with their defaults. ValueError."""
    if text == "all":
        return dict(ANSWERS)
    rule, _, rest = text.partition("=")
    if rule not in ANSWERS:
        raise ValueError(f"there is no rule {rule[:64]!r}; there are: all, {', '.join(ANSWERS)}")
    action, _, minutes = rest.partition(":")
    default = ANSWERS[rule]
    action = action or default.action
    if action not in {"lock-user", "block-host"}:
        raise ValueError(f"{rule}: the action is lock-user or block-host, not {action[:64]!r}")
    if minutes and not re.fullmatch(r"[1-9]\d{0,3}", minutes):
        raise ValueError(f"{rule}: {minutes[:64]!r} is no number of minutes from 1 to 1440")
    number = int(minutes) if minutes else default.minutes
    if number > 1440:
        raise ValueError(f"{rule}: {number} minutes are more than a day (1440)")
    return {rule: Answer(action, number)}


def parse_quota(text: str) -> Quota:
    """Parse VHOST=MESSAGES/PERIOD:RATE, as in acme=1000000/day:50; ValueError."""
    found = re.fullmatch(r"(.+)=(\d{1,18})/(hour|day|month):(\d{1,9})", text)
    if found is None:
        raise ValueError(
            "write VHOST=MESSAGES/PERIOD:RATE, as in acme=1000000/day:50; the period is hour, day or month"
        )
    return Quota(found[1], int(found[2]), found[3], int(found[4]))


# --- decisions by the tables


def from_alerts(alerts: Iterable[Mapping[str, Any]], answers: Mapping[str, Answer], now: datetime) -> list[Made]:
    """Return decisions for rows of ``audit_alerts`` that have not ended, the latest first."""
    found = []
    for row in sorted(alerts, key=lambda row: (row["last_at"], row["alert_id"]), reverse=True):
        answer = answers.get(row["rule"])
        if answer is None:
            continue
        subject, until = row[_ABOUT[answer.action]], row["last_at"] + timedelta(minutes=answer.minutes)
        if not subject or until <= now:
            continue
        spoken = f"{row['failures']} failures, rule {row['rule']}, from {row['first_at']:%H:%M:%S} on"
        # A continued attack gets another decision, because it ends later.
        decision = Decision(
            id=f"{row['alert_id']}-{_us(row['last_at'])}",
            action=answer.action,
            subject=clean(subject),
            until_us=_us(until),
            reason=spoken,
            evidence=[*_numbers(row["evidence"] or ())][:MAX_EVIDENCE],
        )
        found.append(Made(decision, f"rule:{row['rule']}"))
    return found


def from_quotas(used: Callable[[str, datetime], int], quotas: Iterable[Quota], now: datetime) -> list[Made]:
    """Return decisions for tenants beyond their quotas. ``used`` returns a vhost's messages since a time."""
    found = []
    for quota in quotas:
        start, end = period_of(quota.period, now)
        sent = used(quota.vhost, start)
        if sent <= quota.messages:
            continue
        # At most to the end of the day: a longer period gets a decision each day.
        until = min(end, period_of("day", now)[1])
        spoken = f"{quota.vhost} {quota.messages} {quota.rate} {_us(until)}"
        decision = Decision(
            id=f"quota-{hashlib.sha256(spoken.encode()).hexdigest()[:24]}",
            action="slow-tenant",
            subject=clean(quota.vhost),
            until_us=_us(until),
            reason=f"{sent} messages this {quota.period}, of {quota.messages} agreed",
            rate=quota.rate,
        )
        found.append(Made(decision, f"quota:{quota.vhost}"))
    return found


def period_of(period: str, now: datetime) -> tuple[datetime, datetime]:
    """Return start and end of the hour, day or month (UTC) that contains ``now``."""
    hour = now.astimezone(UTC).replace(minute=0, second=0, microsecond=0)
    if period == "hour":
        return hour, hour + timedelta(hours=1)
    day = hour.replace(hour=0)
    if period == "day":
        return day, day + _DAY
    first = day.replace(day=1)
    return first, (first + 31 * _DAY).replace(day=1)


def lifted(standing: Mapping[str, Standing], made: Iterable[Made], causes: Iterable[str], now: datetime) -> list[Made]:
    """Return decisions that lift those standing at a router for ``causes`` and not in ``made``."""
    wanted = {(each.decision.action, each.decision.subject, each.decision.vhost) for each in made}
    lifting, now_us = set(causes), _us(now)
    return [
        Made(
            Decision(
                id=f"lift-{name}"[:256],
                action=OPPOSITE[each.action],
                subject=each.subject,
                until_us=each.until_us,
                reason="the tables no longer support this decision",
                vhost=each.vhost,
            ),
            each.cause,
        )
        for name, each in standing.items()
        if each.action in OPPOSITE
        and each.cause in lifting
        and each.until_us > now_us
        and (each.action, each.subject, each.vhost) not in wanted
    ]


def _numbers(evidence: Iterable[object]) -> Iterator[int]:
    """Yield the numbers of records, which are written as router~boot~number."""
    for each in evidence:
        number = str(each).rpartition("~")[2]
        if number.isdecimal():
            yield int(number)


def _us(when: datetime) -> int:
    return (when - _EPOCH) // _MICROSECOND


def encode(decision: Decision) -> bytes:
    """Return the body; evidence is cut from its end until the body has at most MAX_BYTES."""
    while len(body := msgspec.json.encode(decision)) > MAX_BYTES and decision.evidence:
        decision = msgspec.structs.replace(decision, evidence=decision.evidence[: len(decision.evidence) // 2])
    return body


# --- decisions that routers have accepted


class Book:
    """``ROOT/decisions.json``: the decisions that each router has accepted and that have not ended.

    ``publish`` locks it against other processes.
    """

    def __init__(self, root: Path) -> None:
        self._path = root / "decisions.json"

    def read(self) -> dict[str, dict[str, Standing]]:
        """Return the standing decisions, by router, then by id; ValueError, OSError."""
        try:
            return msgspec.json.decode(self._path.read_bytes(), type=dict[str, dict[str, Standing]])
        except FileNotFoundError:
            return {}
        except msgspec.DecodeError as error:
            raise ValueError(f"{self._path}: these are no decisions that were sent: {error}") from None

    def write(self, standing: Mapping[str, Mapping[str, Standing]], now: datetime) -> None:
        """Write the decisions that have not ended; OSError."""
        now_us = _us(now)
        kept = {
            url: {name: each for name, each in found.items() if each.until_us > now_us}
            for url, found in standing.items()
        }
        make_folder(self._path.parent)
        replace(self._path, msgspec.json.format(msgspec.json.encode(kept), indent=1))


class Result(NamedTuple):
    """The result of a decision at a router; ``why`` is None if it was accepted."""

    router: str
    made: Made
    why: str | None


async def send(peer: Peer, address: str, decisions: Sequence[Made]) -> list[Result]:
    """Send to one router, in order; ClientError, OSError, trio.TooSlowError if it cannot be reached or refuses."""
    results: list[Result] = []
    with trio.CancelScope() as patience:
        async with connect(peer.url, **peer.arguments) as connection, connection.open_sender(address) as sender:
            for each in decisions:
                patience.deadline = trio.current_time() + RELEASED_FOR_S
                results.append(Result(peer.url, each, await _settled(sender, each.decision)))
    if patience.cancelled_caught:
        raise trio.TooSlowError(f"nothing was settled for {RELEASED_FOR_S:.0f} s")
    return results


async def _settled(sender: Any, decision: Decision) -> str | None:
    """Send ``decision`` until the router accepts or rejects it; return the reason of a rejection, or None."""
    message = Message(
        encode(decision), properties=Properties(subject=SUBJECT, content_type=CONTENT_TYPE, message_id=decision.id)
    )
    while True:
        outcome = await sender.send(message)
        if outcome == ACCEPTED:
            return None
        if isinstance(outcome, Rejected):
            error = outcome.error
            return "rejected" if error is None else f"{error.condition}: {error.description}"
        if outcome != RELEASED and not isinstance(outcome, Modified):
            return f"settled without an outcome ({outcome})"
        await trio.sleep(RETRY_S)


@dataclass(frozen=True)
class Plan:
    """The messages for one router: new decisions, sent after those that lift."""

    peer: Peer
    lifts: list[Made]
    news: list[Made]


def plan(
    peers: Iterable[Peer],
    book: Mapping[str, Mapping[str, Standing]],
    made: Sequence[Made],
    causes: Sequence[str],
    now: datetime,
) -> list[Plan]:
    """Return plans without the decisions that each router has accepted already."""
    plans = []
    for peer in peers:
        standing = book.get(peer.url, {})
        news = [each for each in made if each.decision.id not in standing]
        plans.append(Plan(peer, lifted(standing, made, causes, now), news[:MAX_DECISIONS]))
    return plans


def publish(
    root: Path, peers: Sequence[Peer], address: str, made: Sequence[Made], causes: Sequence[str], now: datetime
) -> Iterator[Result | tuple[str, Exception]]:
    """Send each router its new decisions, and remember those that it accepted.

    Yield the result of each decision, or URL and error of a router that could not be reached. TableBusy if another
    process sends; OSError, ValueError if the book cannot be read or written.
    """
    book = Book(root)
    make_folder(root)
    with locked(root / "decisions.lock"):
        standing = {url: dict(found) for url, found in book.read().items()}
        for each in plan(peers, standing, made, causes, now):
            if not each.lifts and not each.news:
                continue
            try:
                results = trio.run(send, each.peer, address, [*each.lifts, *each.news])
            except (ClientError, OSError, trio.TooSlowError) as error:
                yield each.peer.url, error
                continue
            known = standing.setdefault(each.peer.url, {})
            for one in results:
                if one.why is None:
                    _remember(known, one.made)
            book.write(standing, now)
            yield from results


def _remember(known: dict[str, Standing], made: Made) -> None:
    decision = made.decision
    if decision.action in OPPOSITE:
        known[decision.id] = Standing(decision.action, decision.subject, decision.vhost, decision.until_us, made.cause)
    else:
        known.pop(decision.id.removeprefix("lift-"), None)


def messages_of(meter: Any) -> Callable[[str, datetime], int]:
    """Return a function from vhost and start to the messages sent since then, by the rows of the meter."""
    import pyarrow.compute as pc  # noqa: PLC0415  # not needed by a caller that only acts on alerts

    def used(vhost: str, since: datetime) -> int:
        chosen = pc.and_(
            pc.and_(pc.equal(meter["vhost"], vhost), pc.equal(meter["dir"], "in")),
            pc.greater_equal(meter["hour"], since),
        )
        return int(pc.sum(meter.filter(chosen)["msgs"]).as_py() or 0)

    return used


def first_date(quotas: Iterable[Quota], now: datetime) -> date:
    """Return the first date of the meter that matters to these quotas."""
    return min((period_of(quota.period, now)[0] for quota in quotas), default=now).date()
