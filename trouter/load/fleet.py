"""Many connections in one process: dialling, handshakes and waiting; ``pump`` moves their messages.

A fleet has three phases: prepare (connect, attach), work (the measured part), and the end. A harness leads it from
phase to phase by ``Harness``, so that it can read clocks in between.
"""

from __future__ import annotations

import json
import os
import resource
import select
import socket
import ssl
import time
from collections.abc import Callable
from typing import Final

from trouter.engine.connection import Connection
from trouter.engine.events import (
    ConnectionClosed,
    ConnectionOpened,
    Event,
    LinkAttached,
    LinkDetached,
    SaslChallengeReceived,
    SaslFinished,
    SaslInitReceived,
    SaslMechanismsOffered,
    SessionBegun,
    SessionEnded,
)
from trouter.engine.limits import EngineLimits
from trouter.engine.sasl import SaslClient, SaslLayer
from trouter.engine.session import Session
from trouter.tools.progress import Advance, no_progress, progress
from trouter.wire.performatives import Open

from .dialling import Dialling
from .plan import ENDLESS, Harness, Load, LoadError
from .pump import LoadTally, Wire
from .report import LoadReport, report_of

#: Interval of heartbeats, unless a peer's idle time-out demands a shorter one.
_TICK_S: Final = 60.0
#: A receiver that is told to stop reports after this much silence, or at the latest after this time.
_QUIET_S: Final = 0.1
_PATIENCE_S: Final = 10.0
#: Interval at which a sender with a rate looks at the clock.
_PACE_S: Final = 0.001
#: Interval at which a terminal shows progress.
_SHOW_S: Final = 0.5


class Fleet:
    """All connections of one process, and the loop that drives them."""

    role = ""

    def __init__(self, load: Load, control: Harness | None = None) -> None:
        self.load = load
        self.tally = LoadTally(0, load.latency)
        self._control = control or Harness(False)
        self._limits = EngineLimits(
            max_frame_bytes=load.frame_bytes,
            session_window_frames=load.session_frames,
            idle_timeout_s=0.0,
            max_links=1 << 20,
        )
        self._dialling = Dialling(load)
        self._epoll = select.epoll()
        self._wires: dict[int, Wire] = {}
        self._blocked: set[int] = set()
        #: Counts the wires that got messages in turn.
        self._turn = 0
        self._tick_s = _TICK_S
        self._tick_at_s = time.monotonic() + _TICK_S
        self._reported = False
        self._advance: Advance = no_progress
        self._show_at_s = float("inf")
        #: Messages that the terminal shows.
        self._shown = 0
        if self._control.led:
            self._epoll.register(self._control.descriptor, select.EPOLLIN)

    def run(self) -> LoadReport:
        """Apply the load and return the report; LoadError."""
        raise_descriptor_limit()
        try:
            self._prepare()
            self._control.print_line(json.dumps(self._prepared()))
            self._await_word(1)
            cpu_from_s = time.process_time()
            try:
                with progress(f"bench {self.role}", self.load.count or None, quiet=not self._shows()) as self._advance:
                    self._show_at_s = float("inf") if self._advance is no_progress else 0.0
                    self._work()
            except KeyboardInterrupt:
                self.tally.left = 0  # the user interrupts, and gets a report of the run so far
            self._reported = True
            report = report_of(self.role, self.tally, time.process_time() - cpu_from_s, self.load.connections)
            self._control.print_line(report.to_json())
            self._await_word(ENDLESS)
        finally:
            self._close()
        return report

    def _prepare(self) -> None:
        """Do everything that comes before the measurement."""

    def _prepared(self) -> dict[str, object]:
        """Return what to print for the harness when prepared."""
        return {"ready": True}

    def _work(self) -> None:
        """Do the measured part."""

    # --- the loop

    def _keep_pace(self, deadline_s: float) -> None:
        """Begin messages at the load's rate until its count or the deadline."""
        count = self.load.count or ENDLESS
        began_s = now_s = time.monotonic()
        while self.tally.begun < count and now_s < deadline_s:
            due = min(count, int((now_s - began_s) * self.load.rate) + 1)
            self._allow_in_turn(due - self.tally.begun)
            self._loop(lambda: False, min(deadline_s, now_s + _PACE_S))
            now_s = time.monotonic()

    def _allow(self, count: int) -> None:
        """Begin up to ``count`` messages, now or when there is room."""
        self.tally.left = count
        for wire in list(self._wires.values()):
            self._drive(wire)

    def _allow_in_turn(self, count: int) -> None:
        """Begin up to ``count`` messages, the same number on each wire; what finds no room goes where there is some."""
        wires = list(self._wires.values())
        share = max(1, count // len(wires))
        left = count
        for _ in range(2 * len(wires)):
            if left <= 0:
                break
            self._turn += 1
            self.tally.left = given = min(share, left)
            self._drive(wires[self._turn % len(wires)])
            left -= given - self.tally.left
        self.tally.left = left

    def _loop(self, done: Callable[[], bool], deadline_s: float = float("inf")) -> None:
        """Drive all wires until ``done`` or the deadline (monotonic seconds); LoadError."""
        while not done():
            now_s = time.monotonic()
            self._tick_if_due(now_s)
            if now_s >= self._show_at_s:
                self._show(now_s)
            if now_s >= deadline_s:
                return
            self._step(min(self._tick_at_s, deadline_s) - now_s)

    def _step(self, wait_s: float) -> None:
        for descriptor, mask in self._epoll.poll(wait_s):
            wire = self._wires.get(descriptor)
            if wire is not None:
                if mask & ~select.EPOLLOUT:
                    wire.read()
                self._drive(wire)
            elif descriptor == self._control.descriptor:
                self._receive_words(descriptor)
            else:
                self._accept(descriptor)

    def _receive_words(self, descriptor: int) -> None:
        self._control.receive()
        if self._control.words >= ENDLESS:
            self._epoll.unregister(descriptor)
            if not self._reported:
                self._abandoned()

    def _abandoned(self) -> None:
        """React to a harness that ended before the report; roles that only wait for its words do nothing."""

    def _drive(self, wire: Wire) -> None:
        """Handle the events of a wire's engine and write; poll for room as long as the socket is full."""
        connection = wire.connection
        while connection.events:
            events = connection.events[:]
            connection.events.clear()
            for event in events:
                self._handle(wire, event)
        descriptor = wire.sock.fileno()
        if descriptor < 0:
            return
        written = wire.write()
        if wire.lost or (written and connection.finished):
            self._lose(wire)
        elif written and descriptor in self._blocked:
            self._blocked.discard(descriptor)
            self._epoll.modify(descriptor, select.EPOLLIN)
        elif not written and descriptor not in self._blocked:
            self._blocked.add(descriptor)
            self._epoll.modify(descriptor, select.EPOLLIN | select.EPOLLOUT)

    def _deadline_s(self) -> float:
        """Return the end of the load's time if it begins now (monotonic seconds), infinite without one."""
        return time.monotonic() + self.load.seconds if self.load.seconds else float("inf")

    def _receive_all(self) -> None:
        """Receive the load's count, for its time, or until told to stop and messages cease."""
        count = self.load.count
        if count or not self._control.led:
            self._loop(lambda: 0 < count <= self.tally.messages, self._deadline_s())
            return
        self._loop(lambda: self._control.words >= 2, self._deadline_s())
        patience_s = time.monotonic() + _PATIENCE_S
        received = -1
        while received != self.tally.wire_in and time.monotonic() < patience_s:
            received = self.tally.wire_in
            self._loop(lambda: False, time.monotonic() + _QUIET_S)

    def _await_word(self, count: int) -> None:
        self._loop(lambda: self._control.words >= count)

    def _shows(self) -> bool:
        """Return whether to show progress: not of held connections, nor of a led receiver beside its sender."""
        return self.role != "hold" and (self.role == "send" or not self._control.led)

    def _show(self, now_s: float) -> None:
        """Show the progress."""
        self._show_at_s = now_s + _SHOW_S
        self._advance(self.tally.messages - self._shown)
        self._shown = self.tally.messages

    def _tick_if_due(self, now_s: float) -> None:
        """Send the heartbeats that peers' idle time-outs demand."""
        if now_s < self._tick_at_s:
            return
        self._tick_at_s = now_s + self._tick_s
        for wire in list(self._wires.values()):
            wire.connection.tick(now_s)
            self._drive(wire)

    def _heed_idle_timeout(self, remote: Open) -> None:
        """Send heartbeats often enough for a peer's idle time-out (AMQP 1.0 part 2, 2.4.5)."""
        if remote.idle_time_out:
            self._tick_s = min(self._tick_s, remote.idle_time_out / 2000)
            self._tick_at_s = min(self._tick_at_s, time.monotonic() + self._tick_s)

    def _accept(self, descriptor: int) -> None:
        """Accept connections on the listening socket ``descriptor``."""

    # --- wires

    def _dial(self) -> Wire:
        return self._add_wire(self._dialling.connect(), SaslClient(), False)

    def _add_wire(self, sock: socket.socket, sasl: SaslLayer, server: bool) -> Wire:
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        introduction = Open(
            container_id=f"trouter-bench-{self.role}-{os.getpid()}-{sock.fileno()}",
            hostname=None if server else self.load.host,
            max_frame_size=self.load.frame_bytes,
            channel_max=self._limits.channel_max,
        )
        wire = Wire(sock, Connection(self._limits, introduction, [], sasl, server), self.tally)
        self._wires[sock.fileno()] = wire
        self._epoll.register(sock.fileno(), select.EPOLLIN)
        self._drive(wire)
        return wire

    def _lose(self, wire: Wire) -> None:
        """Drop a wire whose socket has ended; LoadError, unless the role expects that."""
        self._drop(wire)
        if isinstance(wire.failure, ssl.SSLError):
            raise self._dialling.failed(wire.failure)
        raise LoadError("the connection ended: the peer closed it")

    def _drop(self, wire: Wire) -> None:
        descriptor = wire.sock.fileno()
        if descriptor >= 0:
            self._epoll.unregister(descriptor)
            self._blocked.discard(descriptor)
            del self._wires[descriptor]
            wire.sock.close()

    def _close(self) -> None:
        for wire in list(self._wires.values()):
            wire.connection.close()
            wire.connection.flush()
            wire.write()
            self._drop(wire)
        self._epoll.close()

    # --- what engines report

    def _handle(self, wire: Wire, event: Event) -> None:
        connection = wire.connection
        sasl = connection.sasl
        if isinstance(event, SaslMechanismsOffered) and isinstance(sasl, SaslClient):
            self._dialling.begin(sasl, event.mechanisms)
        elif isinstance(event, SaslChallengeReceived) and isinstance(sasl, SaslClient):
            self._dialling.respond(sasl, event.challenge)
            connection.receive_data(b"")
        elif isinstance(event, SaslFinished):
            self._dialling.finish(sasl, event.code, event.additional)
            connection.open()
            connection.receive_data(b"")
        elif isinstance(event, ConnectionOpened):
            self._heed_idle_timeout(event.open)
            self._opened(wire)
        elif isinstance(event, SessionBegun):
            self._begun(wire, event.session)
        elif isinstance(event, LinkAttached):
            self._attached(wire, event)
        elif isinstance(event, SaslInitReceived):
            self._admit(wire)
        else:
            self._ended(wire, event)

    def _admit(self, wire: Wire) -> None:
        """Admit a client that has sent its SASL init."""

    def _opened(self, wire: Wire) -> None:
        """Continue after the exchange of opens."""

    def _begun(self, wire: Wire, session: Session) -> None:
        """Continue after a session that the peer began or answered."""

    def _attached(self, wire: Wire, event: LinkAttached) -> None:
        """Continue after a link that the peer attached or answered."""

    def _ended(self, wire: Wire, event: Event) -> None:
        """Raise LoadError for a link, session or connection that the peer ended."""
        fault = getattr(event, "fault", None)
        error = getattr(event, "error", None)
        why = fault or (f"{error.condition}: {error.description or ''}" if error is not None else "no reason given")
        what = _ENDED.get(type(event), "the conversation")
        raise LoadError(f"{what} ended: {why}")


_ENDED: Final = {LinkDetached: "the link", SessionEnded: "the session", ConnectionClosed: "the connection"}


def raise_descriptor_limit() -> int:
    """Raise this process's limit of descriptors to the system's maximum; return it."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard
