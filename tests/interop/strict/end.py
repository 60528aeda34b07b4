"""Qpid Dispatch's end of a connection: the AMQP that it writes and accepts, its limits, and its timeouts.

It runs in a thread of its own. It sends each request once, and waits for the answer. If the router at the other end
sends something that Qpid Dispatch refuses, skips or loses, that is a fault; a test must end with none.
"""

from __future__ import annotations

import socket
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self, TypeVar

from tests.interop.recorded.forms import Form, plain, sections, uint, write
from tests.interop.recorded.recording import Frame, take_frame
from tests.interop.strict import reading, writing
from tests.interop.strict.reading import Unread
from tests.interop.strict.writing import ACCEPTED, NO, NULL, REJECTED, YES, described, listed, symbol, text
from tests.routers import DEADLINE_S

MAX_FRAME_BYTES = 16_384
MAX_TAG_BYTES = 32
CAPACITY = 250
PIECE_BYTES = 16_000
TICK_S = 1.0
WIDE = 0x7FFFFFFF
SASL, AMQP = b"AMQP\x03\x01\x00\x00", b"AMQP\x00\x01\x00\x00"
STREAMS = "qd.streaming-links"
T = TypeVar("T")


@dataclass(eq=False)
class Session:
    """A session by the channels of both ends; -1 is one that is not known yet."""

    mine: int
    theirs: int = -1
    frames_in: int = 0
    frames_out: int = 0
    #: Ids of the next deliveries of both ends, and the unsettled deliveries of this end.
    next_in: int = 0
    next_out: int = 0
    sent: dict[int, Delivery] = field(default_factory=dict)
    links: list[Link] = field(default_factory=list)


@dataclass(eq=False)
class Link:
    """A link; ``sends`` if this end does. ``kind`` is its purpose."""

    session: Session
    name: str
    sends: bool
    handle: int
    kind: str = ""
    address: str | None = None
    #: The attach of the other end.
    attach: Frame | None = None
    theirs: int = -1
    credit: int = 0
    count: int = 0
    #: Count of the other end's flows on the link.
    flows: int = 0
    #: Credit that each message renews at once.
    renewed: int = 0
    waiting: deque[Delivery] = field(default_factory=deque)
    came: list[Delivery] = field(default_factory=list)
    #: The detach of the other end: its condition and description, "" for none.
    detached: tuple[str, str] | None = None
    said_detach: bool = False


@dataclass(eq=False)
class Delivery:
    """A message of either end."""

    link: Link
    octets: bytes = b""
    tag: bytes = b""
    number: int = -1
    settled: bool = False
    #: The descriptor of its outcome, and the fields of that.
    outcome: tuple[int, list[object]] | None = None
    whole: bool = True

    @property
    def way(self) -> reading.Annotations:
        """Return the message's annotations."""
        return reading.way_of(self.octets)

    @property
    def value(self) -> object:
        """Return the value of the message's amqp-value section."""
        return plain(sections(self.octets)[reading.VALUE])


class End:
    """One end; if it ``dials``, it also opens the links. Its ``faults`` are those of the other end."""

    role = ""

    def __init__(self, sock: socket.socket, name: str, *, dials: bool, **options: object) -> None:
        """Start the end's thread; ``options`` may have ``offers`` and ``properties`` (forms) for its open."""
        self.name = name
        self.dials = dials
        self.faults: list[str] = []
        self.opened: Frame | None = None
        self.closed: tuple[str, str] | None = None
        self.sessions: list[Session] = []
        self.links: list[Link] = []
        #: Every frame of the other end, in order, with the link that each is about.
        self.heard: list[tuple[Frame, Link | None]] = []
        self.changed = threading.Condition(threading.RLock())
        self._options = options
        self._sock = sock
        self._input = bytearray()
        self._coming: dict[Link, Delivery] = {}
        self._tags = 0
        self._leaving = False
        self._failure: BaseException | None = None
        self._tick_s = time.monotonic()
        sock.settimeout(TICK_S)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.leave()

    def leave(self) -> None:
        """End the connection without a close."""
        self._leaving = True
        with suppress(OSError):
            self._sock.shutdown(socket.SHUT_RDWR)
        self._thread.join(DEADLINE_S)
        self._sock.close()

    def wait(self, look: Callable[[], T], what: str = "it") -> T:
        """Wait until ``look`` returns a true value, and return it; fail after ``DEADLINE_S``."""
        with self.changed:
            found = self.changed.wait_for(lambda: self._failure or look(), DEADLINE_S)
            assert self._failure is None, f"{self.name} broke: {self._failure!r}"
            assert found, f"{what[:100]} did not come to {self.name}; faults: {self.faults}"
            return look()

    # --- called in its thread

    def _run(self) -> None:
        try:
            with self.changed:
                if self.dials:
                    self._sock.sendall(SASL)
            while not self._leaving and self.closed is None:
                self._hear()
                if time.monotonic() >= self._tick_s + TICK_S:
                    with self.changed:
                        self._tick_s = time.monotonic()
                        self.tick()
        except BaseException as failure:  # noqa: BLE001 - raised where a test waits
            with self.changed:
                if not self._leaving:
                    self._failure = failure
                self.changed.notify_all()

    def _hear(self) -> None:
        self._sock.settimeout(max(0.01, self._tick_s + TICK_S - time.monotonic()))
        try:
            octets = self._sock.recv(1 << 18)
        except TimeoutError:
            return
        if not octets:
            if self._leaving:
                return
            raise ConnectionError("the router closed the socket")
        self._input += octets
        with self.changed:
            while (frame := take_frame(self._input)) is not None:
                self._take(frame)
            self.changed.notify_all()

    def tick(self) -> None:
        """Do the work of each second: send an empty frame."""
        if self.opened is not None:
            self._sock.sendall(b"\x00\x00\x00\x08\x02\x00\x00\x00")

    def fault(self, what: str) -> None:
        """Record something that Qpid Dispatch would not accept."""
        self.faults.append(what)

    # --- input

    def _take(self, frame: Frame) -> None:
        if len(frame.octets) > MAX_FRAME_BYTES:
            self.fault(f"a frame of {len(frame.octets)} bytes")
            self.close("amqp:connection:framing-error", "frame too large")
            return
        self._note(frame)
        getattr(self, f"_take_{frame.kind}")(frame)

    def _note(self, frame: Frame) -> None:
        """Store a frame of a session or of the connection's end."""
        if frame.kind in ("begin", "attach", "flow", "transfer", "disposition", "detach", "end", "close"):
            known = frame.kind != "attach" and frame.fields.get("handle") is not None
            self.heard.append((frame, self._link(frame) if known else None))

    def _take_empty(self, frame: Frame) -> None:
        """Ignore an empty frame; the other end is alive."""

    def _take_header(self, frame: Frame) -> None:
        if not self.dials:
            self._sock.sendall(frame.octets)
            if frame.octets == SASL:
                self._say_sasl(0x40, ("array8", [("sym8", "ANONYMOUS")]))
            else:
                self._say_open()

    def _take_mechanisms(self, frame: Frame) -> None:
        self._say_sasl(0x41, symbol("ANONYMOUS"), ("vbin8", b"anonymous@there"))

    def _take_init(self, frame: Frame) -> None:
        self._say_sasl(0x44, ("ubyte", 0))

    def _take_outcome(self, frame: Frame) -> None:
        assert frame.fields["code"] == 0
        self._sock.sendall(AMQP)
        self._say_open()

    def _say_sasl(self, code: int, *fields: Form) -> None:
        body = write(described(code, listed(*fields)))
        self._sock.sendall((len(body) + 8).to_bytes(4, "big") + b"\x02\x01\x00\x00" + body)

    def _say_open(self) -> None:
        offered = [("sym32", "ANONYMOUS-RELAY"), ("sym32", STREAMS)]
        capabilities: Form = ("array32", self._options.get("offers", offered))
        own: list[tuple[Form, Form]] = self._options.get("properties", [])  # type: ignore[assignment]
        entries = [(symbol("product"), text("qpid-dispatch-router")), (symbol("version"), text("1.19.0")), *own]
        entries.append((symbol("qd.annotations-version"), writing.integer(1)))
        self._say(
            0x10,
            text(self.name), NULL, uint(MAX_FRAME_BYTES), ("ushort", 32767), uint(8000), NULL, NULL,
            capabilities, capabilities, writing.mapped(*entries),
        )  # fmt: skip

    def _take_open(self, frame: Frame) -> None:
        self.opened = frame
        if not self.dials:
            return
        self.begin_links()

    def begin_links(self) -> None:
        """Attach the links of the dialling end."""

    def _take_begin(self, frame: Frame) -> None:
        channel = frame.fields.get("remote-channel")
        if channel is None:
            session = self._add_session()
            session.theirs = frame.channel
            self._say(0x11, ("ushort", session.theirs), *_WINDOWS, channel=session.mine)
        else:
            session = next(each for each in self.sessions if each.mine == channel)
            session.theirs = frame.channel
        session.next_in = frame.fields["next-outgoing-id"]
        session.frames_in = frame.fields["next-outgoing-id"]

    def _take_attach(self, frame: Frame) -> None:
        session = self._session(frame)
        name, sends = frame.fields["name"], bool(frame.fields["role"])
        handle = frame.fields["handle"]
        if any(each.theirs == handle for each in session.links if each.detached is None):
            self.fault(f"the handle {handle} is taken")
        link = next((each for each in session.links if (each.name, each.sends, each.theirs) == (name, sends, -1)), None)
        if link is None:
            link = self._add_link(session, name, sends)
            link.attach, link.theirs = frame, handle
            link.address = reading.address(reading.terminus(frame, mine=True))
            self.asked(link, frame)
        else:
            link.attach, link.theirs = frame, handle
            self.answered(link, frame)
        if link.said_detach or link.detached:
            return
        if link.renewed:
            self.grant(link, link.renewed)

    def asked(self, link: Link, frame: Frame) -> None:
        """Accept or refuse an attach of the other end."""
        self.accept(link, "ordinary", CAPACITY)

    def answered(self, link: Link, frame: Frame) -> None:
        """Handle the other end's answer to an attach of this end."""

    def accept(self, link: Link, kind: str, credit: int = 0, *, made: str | None = None) -> None:
        """Answer an attach with its own termini; ``made`` is the address of a dynamic source."""
        assert link.attach is not None
        link.kind, link.renewed = kind, 0 if link.sends else credit
        there = [reading.item(link.attach.form, place) for place in (reading.SOURCE, reading.TARGET)]
        if there[0] == NULL:
            there[0] = writing.source()
        if there[1] == NULL:
            there[1] = writing.target()
        if made is not None:
            there[0], link.address = writing.source(made, dynamic=True), made
        self._say_attach(link, there[0], there[1])

    def refuse(self, link: Link, condition: str, description: str) -> None:
        """Answer an attach with a null terminus, and detach."""
        ends = (NULL, writing.target()) if link.sends else (writing.source(), NULL)
        self._say_attach(link, *ends)
        self.detach(link, condition, description)

    def _take_flow(self, frame: Frame) -> None:
        session = self._session(frame)
        if frame.fields.get("handle") is None:
            if frame.fields.get("echo"):
                self._say_flow(session)
            return
        link = self._link(frame)
        if link is None or not link.sends:
            return
        link.flows += 1
        link.credit = (frame.fields.get("delivery-count") or 0) + frame.fields["link-credit"] - link.count
        self._pour(link)
        if frame.fields.get("drain") and link.credit > 0:
            link.count, link.credit = link.count + link.credit, 0
            self._say_flow(session, uint(link.handle), uint(link.count), uint(0), NULL, YES)
        if frame.fields.get("echo"):
            self._say_flow(session)

    def _take_transfer(self, frame: Frame) -> None:
        session, link = self._session(frame), self._link(frame)
        session.frames_in = (session.frames_in + 1) & 0xFFFFFFFF
        if link is None:
            return
        delivery = self._coming.get(link)
        if delivery is None:
            delivery = self._coming[link] = Delivery(link, tag=frame.fields["delivery-tag"] or b"", whole=False)
            delivery.number = frame.fields["delivery-id"]
            if delivery.number != session.next_in:
                self.fault(f"delivery {delivery.number} instead of {session.next_in} on {link.kind}")
            session.next_in = (delivery.number + 1) & 0xFFFFFFFF
            link.credit, link.count = link.credit - 1, link.count + 1
            if link.credit < 0:
                self.fault(f"a message without credit on {link.kind}")
            if link.renewed:
                self.grant(link, link.renewed)
            link.came.append(delivery)
        delivery.octets += frame.payload
        delivery.settled = delivery.settled or bool(frame.fields.get("settled"))
        if frame.fields.get("more") and not frame.fields.get("aborted"):
            return
        del self._coming[link]
        delivery.whole = True
        if frame.fields.get("aborted"):
            link.came.remove(delivery)
        elif len(delivery.tag) > MAX_TAG_BYTES:
            self.fault(f"a tag of {len(delivery.tag)} bytes")
            why = writing.error("amqp:invalid-field", "delivery tag length exceeded")
            self.settle(delivery, REJECTED, why)
        else:
            self._read(delivery)

    def _read(self, delivery: Delivery) -> None:
        try:
            if delivery.link.kind != "routed" and (lost := delivery.way.lost):
                self.fault(f"annotations behind those of routers: {lost}")
            self.received(delivery)
        except Unread as unread:
            self.fault(str(unread))
            self.settle(delivery, REJECTED, writing.error("amqp:invalid-field", str(unread)))

    def received(self, delivery: Delivery) -> None:
        """Settle a message that has arrived."""
        self.settle(delivery, ACCEPTED)

    def _take_disposition(self, frame: Frame) -> None:
        session, fields = self._session(frame), frame.fields
        if not fields["role"]:
            return
        last = fields["first"] if fields.get("last") is None else fields["last"]
        state = reading.item(frame.form, 4)
        for number in range(fields["first"], last + 1):
            delivery = session.sent.get(number)
            if delivery is None:
                continue
            if state[0] == "described":
                delivery.outcome = state[1][0][1], plain(state[1][1])
            if fields.get("settled"):
                delivery.settled = True
                del session.sent[number]
            elif delivery.outcome is not None:
                del session.sent[number]
                delivery.settled = True
                self._say(0x15, NO, uint(number), NULL, YES, state, channel=session.mine)

    def _take_detach(self, frame: Frame) -> None:
        link = self._link(frame)
        if link is None:
            self.fault("a detach of no link")
            return
        found = reading.item(frame.form, 2)
        link.detached = (found[1][1][1][0][1], found[1][1][1][1][1] or "") if found[0] == "described" else ("", "")
        link.session.links.remove(link)
        if not link.said_detach:
            self.gone(link)
        if not link.said_detach:
            self.detach(link)

    def gone(self, link: Link) -> None:
        """Handle a detach of the other end."""

    def _take_end(self, frame: Frame) -> None:
        session = self._session(frame)
        self._say(0x17, channel=session.mine)
        self.sessions.remove(session)

    def _take_close(self, frame: Frame) -> None:
        found = reading.item(frame.form, 0)
        self.closed = (found[1][1][1][0][1], found[1][1][1][1][1]) if found[0] == "described" else ("", "")
        self._say(0x18)

    # --- output

    def begin(self) -> Session:
        """Begin a session."""
        with self.changed:
            session = self._add_session()
            self._say(0x11, NULL, *_WINDOWS, channel=session.mine)
            return session

    def attach(
        self, session: Session, name: str, kind: str, source: Form, target: Form, *, sends: bool, credit: int = 0
    ) -> Link:
        """Attach a link; grant ``credit`` after the answer, and again for each message."""
        with self.changed:
            link = self._add_link(session, name, sends)
            link.kind, link.renewed = kind, 0 if sends else credit
            self._say_attach(link, source, target)
            return link

    def detach(self, link: Link, condition: str = "", description: str = "") -> None:
        """Close a link."""
        with self.changed:
            link.said_detach = True
            error = writing.error(condition, description) if condition else NULL
            self._say(0x16, uint(link.handle), YES, error, channel=link.session.mine)

    def close(self, condition: str = "", description: str = "") -> None:
        """Close the connection."""
        with self.changed:
            self._say(0x18, writing.error(condition, description) if condition else NULL)

    def grant(self, link: Link, credit: int) -> None:
        """Set the credit of a link."""
        with self.changed:
            link.credit = credit
            self._say_flow(link.session, uint(link.handle), uint(link.count), uint(credit))

    def send(self, link: Link, octets: bytes, *, settled: bool = False, tag: bytes | None = None) -> Delivery:
        """Send a message as soon as there is credit for it."""
        with self.changed:
            self._tags += 1
            delivery = Delivery(link, octets, self._tags.to_bytes(8, "little") if tag is None else tag, settled=settled)
            link.waiting.append(delivery)
            self._pour(link)
            return delivery

    def start(self, link: Link, octets: bytes) -> Delivery:
        """Send the beginning of a message at once; the link must have credit."""
        with self.changed:
            self._tags += 1
            delivery = Delivery(link, octets, self._tags.to_bytes(8, "little"), whole=False)
            self._transfer(delivery)
            return delivery

    def finish(self, delivery: Delivery, octets: bytes) -> None:
        """Send the rest of a message."""
        with self.changed:
            delivery.whole = True
            self._say_pieces(delivery, octets, first=False)

    def settle(self, delivery: Delivery, code: int, *fields: Form) -> None:
        """Settle a message of the other end."""
        with self.changed:
            if delivery.settled:
                return
            delivery.settled = True
            state = described(code, listed(*fields))
            channel = delivery.link.session.mine
            self._say(0x15, YES, uint(delivery.number), NULL, YES, state, channel=channel)

    def _pour(self, link: Link) -> None:
        while link.waiting and link.credit > 0:
            self._transfer(link.waiting.popleft())

    def _transfer(self, delivery: Delivery) -> None:
        link, session = delivery.link, delivery.link.session
        delivery.number = session.next_out
        session.next_out += 1
        link.credit, link.count = link.credit - 1, link.count + 1
        if not delivery.settled:
            session.sent[delivery.number] = delivery
        self._say_pieces(delivery, delivery.octets, first=True)

    def _say_pieces(self, delivery: Delivery, octets: bytes, *, first: bool) -> None:
        link = delivery.link
        starts = range(0, len(octets), PIECE_BYTES)
        for at in starts:
            fields = [uint(link.handle), uint(delivery.number), ("vbin8", delivery.tag), uint(0)]
            if not first or at:
                fields[1:] = [NULL, NULL, NULL]
            more = at != starts[-1] or not delivery.whole
            fields += [YES if delivery.settled else NO, YES if more else NO]
            link.session.frames_out += 1
            self._say(0x14, *fields, channel=link.session.mine, payload=octets[at : at + PIECE_BYTES])

    def _say_attach(self, link: Link, source: Form, target: Form) -> None:
        fields = [text(link.name), uint(link.handle), NO if link.sends else YES, ("ubyte", 2), ("ubyte", 0)]
        self._say(0x12, *fields, source, target, NULL, NULL, uint(0), ("ulong0", 0), channel=link.session.mine)

    def _say_flow(self, session: Session, *fields: Form) -> None:
        windows = [uint(session.frames_in), uint(WIDE), uint(session.frames_out), uint(WIDE)]
        self._say(0x13, *windows, *fields, channel=session.mine)

    def _say(self, code: int, *fields: Form, channel: int = 0, payload: bytes = b"") -> None:
        body = write(described(code, listed(*fields))) + payload
        self._sock.sendall((len(body) + 8).to_bytes(4, "big") + b"\x02\x00" + channel.to_bytes(2, "big") + body)

    # --- state

    def _add_session(self) -> Session:
        taken = {each.mine for each in self.sessions}
        session = Session(next(number for number in range(len(taken) + 1) if number not in taken))
        self.sessions.append(session)
        return session

    def _add_link(self, session: Session, name: str, sends: bool) -> Link:
        taken = {each.handle for each in session.links}
        link = Link(session, name, sends, next(number for number in range(len(taken) + 1) if number not in taken))
        session.links.append(link)
        self.links.append(link)
        return link

    def _session(self, frame: Frame) -> Session:
        return next(each for each in self.sessions if each.theirs == frame.channel)

    def _link(self, frame: Frame) -> Link | None:
        handle = frame.fields["handle"]
        return next((each for each in self._session(frame).links if each.theirs == handle), None)


_WINDOWS = (uint(0), uint(WIDE), uint(WIDE))
