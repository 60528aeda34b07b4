"""The recorder: every room calls ``Recorder.emit``, and outputs of records are added and removed at run time.

Without takers, emitting costs one check; otherwise a few microseconds. It never waits, and never raises for a peer's
data. Beside it are the events that repeat, and the last denials and alarms, which management shows.
"""

from __future__ import annotations

import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from typing import Final, Generic, NamedTuple, Protocol, TypeVar

from trouter._bugs import BUGS
from trouter.columns.security import AlarmFacts, DenialFacts
from trouter.records import Alarm, Record
from trouter.records.text import clean, tidy

from .allowances import Allowances, Writer
from .clocks import now_us
from .link_records import LinkRecords
from .user_keys import UserKey, user_key

#: Subjects counted at a time; events of further ones are written at once.
MAX_SUBJECTS: Final = 10_000
#: Events of all connections of one user that are written one by one in a second: the first of each connection, and as
#: many of the others. That is more than three connections write that repeat a denial without end.
OF_USER: Final = 64
#: Different denials that are kept, and different alarms.
MAX_REMEMBERED: Final = 100
_LOGIN: Final = "login"
_OPEN: Final = "open"

Thing = TypeVar("Thing", bound=Hashable)


class _Subject:
    """The events of one subject since the last round, and the writer of those held back."""

    __slots__ = ("singly", "together", "write")

    def __init__(self, write: Writer) -> None:
        self.singly = 0
        self.together = 0
        self.write = write

    def hold_back(self, count: int, write: Writer) -> None:
        """Count events to be written with others, by the ``write`` of the first of them."""
        if not self.together:
            self.write = write
        self.together += count


class Repeats:
    """The events of one router that a peer can repeat at will, so that they flood neither the log nor the records.

    In each second the first events of a subject are written one by one; the others are written together at its end.
    """

    def __init__(self) -> None:
        self._subjects: dict[Hashable, _Subject] = {}

    def happened(self, subject: Hashable, singly: int, write: Writer, count: int = 1) -> None:
        """Note an event of ``subject``: write it at once if fewer than ``singly`` came since the last round, else then.

        The ``write`` of the first event held back is called for all that follow it. An event may stand for ``count``.
        """
        known = self._subjects.get(subject)
        if known is None:
            if len(self._subjects) < MAX_SUBJECTS:
                known = self._subjects[subject] = _Subject(write)
            else:
                write(count)
                return
        if known.singly < singly:
            known.singly += 1
            write(count)
            return
        known.hold_back(count, write)

    def happened_to_user(self, user: Hashable, connection: Hashable, singly: int, write: Writer) -> None:
        """Note an event of a ``connection``, as `happened` does, and of its ``user``, who has OF_USER in a second.

        The first event of each connection counts apart from the others, so that connections that repeat theirs hide
        none of a connection that does not. Beyond both, the events of the user are written together.
        """
        of_user = user, connection in self._subjects
        self.happened(connection, singly, lambda count: self.happened(of_user, OF_USER, write, count))

    def write(self) -> None:
        """Write what was held back, and begin anew; called about once a second."""
        if self._subjects:
            subjects, self._subjects = self._subjects, {}
            for each in subjects.values():
                if each.together:
                    each.write(each.together)

    def write_all(self) -> None:
        """Write what was held back, also what that adds to sums of users; nothing comes afterwards."""
        while self._subjects:
            self.write()


class Denied(NamedTuple):
    """The denied operation and its user. ``about`` is the address, or the mechanism of a login."""

    operation: str
    reason: str
    user: str
    host: str
    vhost: str
    rule: str
    about: str

    @property
    def source(self) -> UserKey:
        """The user of a vhost; of an open, which only asks for a vhost, the user, and of a refused login the host."""
        vhost = "" if self.operation == _OPEN else self.vhost
        return user_key(vhost, "" if self.operation == _LOGIN else self.user, self.host)


class Occurrence(NamedTuple, Generic[Thing]):
    """A thing that happened: its number, how often it happened, and when it last did."""

    number: int
    thing: Thing
    times: int
    at_ms: int


@dataclass(slots=True)
class _Seen:
    number: int
    source: Hashable
    count: int = 0
    at_ms: int = 0


class Remembered(Generic[Thing]):
    """The last different things that happened in one router, the newest last.

    One that happens again is one entry with a count, and of those beyond the limit the oldest of the source that has
    most goes: neither one that repeats itself nor one that varies displaces those of others. ``clock`` returns seconds
    since 1970.
    """

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._number = 0
        self._step = 1
        self._remembered: OrderedDict[Thing, _Seen] = OrderedDict()

    def number_from(self, first: int, step: int) -> None:
        """Give every ``step``-th number from ``first`` on to the things that are to come."""
        self._number, self._step = first - step, step

    def note(self, thing: Thing, source: Hashable, count: int = 1) -> None:
        """Note that a thing of ``source`` happened ``count`` times just now."""
        seen = self._remembered.get(thing)
        if seen is None:
            self._number += self._step
            seen = self._remembered[thing] = _Seen(self._number, source)
            if len(self._remembered) > MAX_REMEMBERED:
                self._forget_one()
        seen.count += count
        seen.at_ms = round(self._clock() * 1000)
        self._remembered.move_to_end(thing)

    def _forget_one(self) -> None:
        """Forget the oldest thing of the source that has most; of several such, that of the oldest."""
        counts = Counter(seen.source for seen in self._remembered.values())
        most = max(counts.values())
        del self._remembered[next(each for each, seen in self._remembered.items() if counts[seen.source] == most)]

    def __iter__(self) -> Iterator[Occurrence[Thing]]:
        for thing, seen in self._remembered.items():
            yield Occurrence(seen.number, thing, seen.count, seen.at_ms)


class Denials:
    """The last denials and refused logins of one router, each told apart by its user. ``clock`` is as of Remembered."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self.logins_denied = 0
        self._remembered: Remembered[Denied] = Remembered(clock)

    def number_from(self, first: int, step: int) -> None:
        """Give every ``step``-th number from ``first`` on to the denials that are to come."""
        self._remembered.number_from(first, step)

    def note_denial(self, denied: Denied, count: int = 1) -> None:
        """Record a denial that happened ``count`` times just now."""
        denied = Denied(*map(clean, denied))
        self._remembered.note(denied, denied.source, count)

    def login(self, reason: str, user: str, host: str, listener: str, mechanism: str) -> None:
        """Count and record a refused login."""
        self.logins_denied += 1
        self.note_denial(Denied(_LOGIN, reason, user, host, "", f"listener:{listener}", mechanism))

    def rows(self) -> Iterator[tuple[int, DenialFacts]]:
        """Yield the denials by number, the newest last."""
        for number, denied, times, at_ms in self._remembered:
            yield number, DenialFacts(*denied, times, at_ms)


class Alarms:
    """The last alarms of one router, raised and cleared, each told apart by its name. ``clock`` is as of Remembered."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._remembered: Remembered[tuple[str, str, str, str, str, str]] = Remembered(clock)

    def number_from(self, first: int, step: int) -> None:
        """Give every ``step``-th number from ``first`` on to the alarms that are to come."""
        self._remembered.number_from(first, step)

    def note_alarm(self, alarm: Alarm) -> None:
        """Record an alarm that was raised or cleared just now."""
        subject, value, limit = clean(alarm.subject), clean(alarm.value or ""), clean(alarm.limit or "")
        self._remembered.note((alarm.name, alarm.severity, subject, alarm.state, value, limit), alarm.name)

    def rows(self) -> Iterator[tuple[int, AlarmFacts]]:
        """Yield the alarms by number, the newest last."""
        for number, alarm, times, at_ms in self._remembered:
            yield number, AlarmFacts(*alarm, times, at_ms)


class Taker(Protocol):
    """A receiver of records."""

    def put(self, record: Record) -> None:
        """Accept a record without waiting; neither its emitter nor a taker changes it any more."""


class Recorder:
    """The distributor of records to all takers."""

    def __init__(self) -> None:
        #: Whether there are takers; a caller may check it before it makes a costly record.
        self.active = False
        self._takers: tuple[Taker, ...] = ()
        #: The numbers of connections about which there are no records.
        self._left_out: set[int] = set()
        #: The recorded counts of links.
        self.links = LinkRecords(self)
        #: Events that peers can repeat, for log and records.
        self.repeats = Repeats()
        #: What users may have told one by one of what they are allowed.
        self.allowances = Allowances(self.repeats.happened)
        #: The last denials, kept without takers too.
        self.denials = Denials()
        #: The last alarms, likewise.
        self.alarms = Alarms()

    def number_from(self, first: int, step: int) -> None:
        """Give every ``step``-th number from ``first`` on to the denials and alarms that are to come."""
        self.denials.number_from(first, step)
        self.alarms.number_from(first, step)

    def add(self, taker: Taker) -> None:
        """Pass every record to ``taker`` from now on."""
        self._takers = (*self._takers, taker)
        self.active = True

    def remove(self, taker: Taker) -> None:
        """Pass no more records to ``taker``; does nothing if it is not a taker."""
        self._takers = tuple(other for other in self._takers if other is not taker)
        self.active = bool(self._takers)

    def leave_out(self, connection_number: int) -> None:
        """Pass on no records about a connection, which is within the router."""
        self._left_out.add(connection_number)

    def forget_connection(self, connection_number: int) -> None:
        """Forget whether a connection is left out, because it has ended."""
        self._left_out.discard(connection_number)

    def alarm(self, alarm: Alarm) -> None:
        """Keep an alarm that was raised or cleared, and pass it to all takers."""
        self.alarms.note_alarm(alarm)
        self.emit(alarm)

    def emit(self, record: Record) -> None:
        """Pass a record, dated now if it has no time, to all takers; the caller must not change it any more."""
        takers = self._takers
        if not takers or (self._left_out and getattr(record, "conn", None) in self._left_out):
            return
        tidy(record)
        if record.t < 0:
            record.t = now_us()
        for taker in takers:
            try:
                taker.put(record)
            except Exception as error:  # noqa: BLE001 - a bug in an output must not end what is recorded
                self.remove(taker)
                BUGS.report("internal error: an output of records gets no more of them", error)
