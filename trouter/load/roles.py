"""The roles of fleets: senders, receivers, a sink, held connections, handshakes."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from functools import partial
from typing import Final

from trouter.engine.events import ConnectionClosed, Event, LinkAttached, LinkDetached, SessionEnded
from trouter.engine.link import IncomingLink, OutgoingLink, add_link
from trouter.engine.sasl import SASL_OK, SaslServer
from trouter.engine.session import Session
from trouter.wire.performatives import Error, Source, Target

from .fleet import Fleet
from .messages import make_messages
from .plan import ENDLESS, Harness, Load, LoadError
from .pump import LoadReceiver, LoadSender, Wire

_BACKLOG: Final = 1024


class ClientFleet(Fleet):
    """Clients with one session each and a link for each address (or one without an address)."""

    def __init__(self, load: Load, control: Harness | None = None) -> None:
        super().__init__(load, control)
        self._links_due = 0

    def _prepare(self) -> None:
        self._links_due = sum(len(self._link_addresses(number)) for number in range(self.load.connections))
        for number in range(self.load.connections):
            wire = self._dial()
            wire.context = number
            self._step(0.0)
            self._tick_if_due(time.monotonic())
        while (due := self._links_due) > 0:
            self._loop(lambda: self._links_due < due, time.monotonic() + self._dialling.timeout_s)
            if self._links_due == due:
                raise self._dialling.failed(TimeoutError())

    def _link_addresses(self, number: int) -> tuple[str, ...]:
        """Return the address of each link on connection ``number``; one without sessions counts as one link."""
        return ("",) if self.load.bare else self.load.addresses_of(number)

    def _opened(self, wire: Wire) -> None:
        if self.load.bare:
            self._links_due -= 1
        else:
            wire.connection.add_session().begin()

    def _begun(self, wire: Wire, session: Session) -> None:
        number: int = wire.context  # type: ignore[assignment]  # set right after dialling
        for address in self._link_addresses(number):
            self._attach(session, address)

    def _attach(self, session: Session, address: str) -> None:
        """Attach one link."""

    def _attached(self, wire: Wire, event: LinkAttached) -> None:
        terminus = event.attach.source if event.link.incoming else event.attach.target
        if terminus is not None:
            self._links_due -= 1
            self._linked(wire, event.link)

    def _linked(self, wire: Wire, link: object) -> None:
        """Use a link that the peer accepted."""


class SendFleet(ClientFleet):
    """Sends ``count`` messages, or for ``seconds``, and waits for every outcome."""

    role = "send"

    def _work(self) -> None:
        tally = self.tally
        deadline_s = self._deadline_s()
        if self.load.rate:
            self._keep_pace(deadline_s)
        else:
            self._allow(self.load.count or ENDLESS)
            self._loop(lambda: tally.left <= 0 and not self._busy(), deadline_s)
        tally.left = 0
        self._loop(lambda: not self._busy())
        tally.mark()

    def _abandoned(self) -> None:
        raise LoadError("the parent process has ended")

    def _busy(self) -> bool:
        wires = self._wires.values()
        return any(wire.connection.out or (wire.sender is not None and wire.sender.busy) for wire in wires)

    def _link_addresses(self, number: int) -> tuple[str, ...]:
        return ("",) if self.load.anonymous else self.load.addresses_of(number)

    def _begun(self, wire: Wire, session: Session) -> None:
        load = self.load
        number: int = wire.context  # type: ignore[assignment]  # set right after dialling
        messages = make_messages(load.size, load.addresses_of(number) if load.anonymous else ())
        wire.sender = LoadSender(
            self.tally, messages.each, load.window, load.presettled, messages.filler, messages.repeats
        )
        super()._begun(wire, session)

    def _attach(self, session: Session, address: str) -> None:
        link = add_link(session, f"bench-{address}", False)
        link.attach(
            Source(address or None),
            Target(address or None),
            snd_settle_mode=1 if self.load.presettled else 0,
            initial_delivery_count=0,
        )

    def _linked(self, wire: Wire, link: object) -> None:
        if isinstance(link, OutgoingLink) and wire.sender is not None:
            wire.sender.add(link)


class ReceiveFleet(ClientFleet):
    """Receives ``count`` messages, or for ``seconds``, or until told to stop and messages cease.

    The role hold is the same with no messages: connections that are kept until told to stop.
    """

    role = "receive"

    def __init__(self, load: Load, control: Harness | None = None, role: str = role) -> None:
        super().__init__(load, control)
        self.role = role
        self._receiver = LoadReceiver(self.tally, load.credit)
        self._receiver.stalled = load.stalled

    def _work(self) -> None:
        self._receive_all()

    def _attach(self, session: Session, address: str) -> None:
        add_link(session, f"bench-{address}", True).attach(Source(address), Target(address), snd_settle_mode=2)

    def _linked(self, wire: Wire, link: object) -> None:
        if isinstance(link, IncomingLink):
            self._receiver.add(link)


class SinkFleet(Fleet):
    """A server that admits every client, gives credit on every link it receives on, and accepts every message."""

    role = "sink"

    def __init__(self, load: Load, control: Harness | None = None) -> None:
        super().__init__(load, control)
        self._receiver = LoadReceiver(self.tally, load.credit)
        self._receiver.stalled = load.stalled
        try:
            self._listener = socket.create_server((load.host, load.port), backlog=_BACKLOG)
        except OSError as error:
            raise LoadError(f"cannot listen on {load.host}:{load.port}: {error.strerror}") from error
        self._listener.setblocking(False)
        self._epoll.register(self._listener.fileno())
        self.port: int = self._listener.getsockname()[1]

    def _prepared(self) -> dict[str, object]:
        return {"ready": True, "port": self.port}

    def _work(self) -> None:
        self._receive_all()

    def _accept(self, descriptor: int) -> None:
        while True:
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            self._add_wire(sock, SaslServer(("ANONYMOUS", "PLAIN"), False), True)

    def _admit(self, wire: Wire) -> None:
        sasl = wire.connection.sasl
        if isinstance(sasl, SaslServer):
            sasl.send_outcome(SASL_OK)
            wire.connection.receive_data(b"")

    def _opened(self, wire: Wire) -> None:
        wire.connection.open()

    def _begun(self, wire: Wire, session: Session) -> None:
        session.begin()

    def _attached(self, wire: Wire, event: LinkAttached) -> None:
        link = event.link
        if isinstance(link, IncomingLink):
            link.attach(event.attach.source, event.attach.target)
            self._receiver.add(link)
        else:
            link.refuse(Error("amqp:not-implemented", "a sink has nothing to send"))

    def _ended(self, wire: Wire, event: Event) -> None:
        if isinstance(event, LinkDetached):
            event.link.detach(event.closed)
        elif isinstance(event, SessionEnded):
            event.session.end()
        elif isinstance(event, ConnectionClosed):
            wire.connection.close()

    def _lose(self, wire: Wire) -> None:
        self._drop(wire)

    def _close(self) -> None:
        super()._close()
        self._listener.close()


class HandshakeFleet(Fleet):
    """Opens and closes ``count`` connections, a few at a time; each counts as a message."""

    role = "handshakes"

    def _work(self) -> None:
        tally = self.tally
        tally.mark()
        tally.left = self.load.count or ENDLESS
        deadline_s = self._deadline_s()
        for _ in range(self.load.handshakes_at_once):
            self._next()
        while self._wires and time.monotonic() < deadline_s:
            self._loop_on(deadline_s)
        tally.left = 0
        while self._wires:
            self._loop_on()

    def _loop_on(self, deadline_s: float = float("inf")) -> None:
        """Drive all connections until one more has ended, or the deadline; LoadError if none does in time."""
        before, patience_s = self.tally.messages, time.monotonic() + self._dialling.timeout_s
        self._loop(lambda: self.tally.messages > before or not self._wires, min(deadline_s, patience_s))
        if self.tally.messages == before and self._wires and patience_s <= min(deadline_s, time.monotonic()):
            raise self._dialling.failed(TimeoutError())

    def _abandoned(self) -> None:
        raise LoadError("the parent process has ended")

    def _next(self) -> None:
        if self.tally.left > 0:
            self.tally.left -= 1
            self._dial()

    def _opened(self, wire: Wire) -> None:
        wire.connection.close()

    def _ended(self, wire: Wire, event: Event) -> None:
        if not isinstance(event, ConnectionClosed) or event.fault is not None or event.error is not None:
            super()._ended(wire, event)

    def _lose(self, wire: Wire) -> None:
        if not wire.connection.finished:
            super()._lose(wire)
        self._drop(wire)
        self.tally.messages += 1
        self.tally.mark()
        self._next()


#: The fleet of each role, made of a load and what controls it.
FLEETS: Final[dict[str, Callable[..., Fleet]]] = {
    **{fleet.role: fleet for fleet in (SendFleet, ReceiveFleet, SinkFleet, HandshakeFleet)},
    "hold": partial(ReceiveFleet, role="hold"),
}
