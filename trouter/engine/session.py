"""Sessions: their states, and the frames on them (AMQP 1.0 part 2, 2.5).

A session has its windows, its links and its unsettled deliveries as members. Dispositions and flows of one pass over
the input are merged (neighbouring ids with the same state become one range, all credit of a link one flow); ``flush``
writes them at its end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from trouter.wire.outgoing import write_flow, write_link_flow
from trouter.wire.performatives import Begin, End, Error, Performative
from trouter.wire.transfers import FlowReader

from .limits import EngineLimits
from .ports import ConnectionPort, Delivery, LinkPort, SessionHolder, SessionPort, SessionWindows
from .session_links import SessionLinks
from .states import SESSION_NEXT, SessionState, SessionStep, advance
from .unsettled import SessionDeliveries

if TYPE_CHECKING:
    from cython import Py_ssize_t
    from cython import int as c_int

_MAX_WINDOW: Final[Py_ssize_t] = 0x7FFFFFFF
#: The links of every session of which none waits: replaced, and never changed.
_NO_LINKS: list[LinkPort] = []


class Session(SessionPort):
    """One session; ``windows``, ``links`` and ``deliveries`` say what is on it."""

    __slots__ = (
        "limits",
        "links",
        "deliveries",
        "state",
        "silent",
        "reported",
        "remote_channel",
        "waiting_links",
        "holder",
        "_links_due",
        "_sessions_due",
        "_marked",
        "_flow_due",
    )

    def __init__(
        self, connection: ConnectionPort, channel: c_int, limits: EngineLimits, sessions_due: list[Session]
    ) -> None:
        super().__init__(connection, channel, limits)
        self.limits = limits
        self.links = SessionLinks(connection, limits)
        self.deliveries = SessionDeliveries(connection, channel, limits.first_outgoing_id)
        self.state: SessionState = SessionState.UNMAPPED
        #: One side has sent its end, or the connection is silent: every frame is ignored, except the peer's end. Kept
        #: for the data path; it follows from the two states.
        self.silent = False
        #: The holder was notified that the session is over, and has not dropped it yet. No state: it says what the
        #: holder has done, and a session that the engine itself ended waits for the holder before its END and in it.
        self.reported = False
        self.remote_channel: c_int = -1
        #: Links that wait for the window or for room in the output, and those whose flow is due.
        self.waiting_links: list[LinkPort] = _NO_LINKS
        self._links_due: list[LinkPort] = _NO_LINKS
        #: Whoever began it, if that was us.
        self.holder: SessionHolder | None = None
        self._sessions_due = sessions_due
        self._marked = False
        self._flow_due = False

    def replace_limits(self, limits: EngineLimits) -> None:
        """Replace the limits, before our begin is sent."""
        self.limits = limits
        self.links.handle_max = limits.handle_max
        self.windows.replace_limits(limits)

    # --- states

    def advance_state(self, step: SessionStep) -> None:
        """Change the state by ``step``; IllegalStep."""
        self.state = advance(SESSION_NEXT, self.state, step)
        self.mapped = self.state is SessionState.MAPPED

    def begin(self) -> None:
        """Send our begin, as the first or as the answer; do nothing if it was sent or the session is over."""
        if self.connection.silent or (self.state, SessionStep.SEND_BEGIN) not in SESSION_NEXT:
            return
        self.advance_state(SessionStep.SEND_BEGIN)
        self.windows.promise_first_window(self.limits)
        self.connection.write(
            self.channel,
            Begin(
                remote_channel=self.remote_channel if self.remote_channel >= 0 else None,
                next_outgoing_id=self.windows.next_outgoing_id,
                incoming_window=self.windows.incoming_frames,
                outgoing_window=_MAX_WINDOW,
                handle_max=self.links.handle_max,
            ),
        )

    def end(self, error: Error | None = None) -> None:
        """Send our end after everything gathered; do nothing if it was sent before."""
        if self.state in _UNANSWERED:
            self.begin()
        step = SessionStep.SEND_END if error is None else SessionStep.SEND_END_ERROR
        if (self.state, step) in SESSION_NEXT:
            self.flush()
            self.advance_state(step)
            self.connection.write(self.channel, End(error))
            self.stop_writing()

    def receive_begin(self, begin: Begin) -> None:
        """Apply the peer's begin: windows, ids, handle-max."""
        self.advance_state(SessionStep.RECEIVE_BEGIN)
        self.windows.receive_begin(begin)
        self.links.remote_handle_max = begin.handle_max

    def receive_end(self) -> None:
        """Apply the peer's end: the session is silent from now on."""
        self.advance_state(SessionStep.RECEIVE_END)
        self.stop_writing()

    def stop_writing(self) -> None:
        """Send nothing more on this session or its links."""
        self.mapped = False
        self.silent = True
        self.windows.forget_overrun()
        for link in self.links.by_handle.values():
            link.attached = False

    def drop_references(self) -> None:
        """Drop all links and deliveries, whose owners are done with them."""
        self.stop_writing()
        self.windows.keep_bytes(-self.windows.kept_bytes)
        self._marked = True  # so that no caller asks for a flush
        self.links.drop_all_links()
        self.waiting_links = _NO_LINKS
        self._links_due = _NO_LINKS
        self.deliveries.drop_all_deliveries()
        self.holder = None

    # --- frames of links

    def admit_transfer(self, remote_handle: Py_ssize_t) -> LinkPort:
        """Count one transfer frame, and return the link that it is for; PeerFault."""
        windows: SessionWindows = self.windows
        links: SessionLinks = self.links
        if windows.incoming_frames <= 0:
            windows.check_overrun(links.has_partial_delivery(remote_handle))
        if windows.count_received_frame():
            self.request_flush()
        link: LinkPort | None = links.last_link
        if link is None or links.last_handle != remote_handle:
            link = links.find_link(remote_handle, "transfer")
            links.last_link = link
            links.last_handle = remote_handle
        return link

    def receive_flow(self, flow: FlowReader) -> None:
        """Apply the peer's window and, if it names a handle, that link's state; PeerFault."""
        windows: SessionWindows = self.windows
        shut: bool = windows.outgoing_frames <= 0
        windows.receive_flow(flow)
        if flow.handle >= 0:
            link: LinkPort | None = self.links.by_remote_handle.get(flow.handle)
            if link is None:
                link = self.links.find_link(flow.handle, "flow")
            link.receive_flow(flow)
        elif flow.echo:
            self._flow_due = True
            self.request_flush()
        if shut and windows.outgoing_frames > 0:
            self.resume_links()

    def write(self, performative: Performative) -> None:
        """Write a frame on the session's channel after the gathered settlements, unless the session is over."""
        if self.mapped or self.state is SessionState.BEGIN_SENT:
            self.deliveries.write_dispositions()
            self.connection.write(self.channel, performative)

    def write_link_flow(self, handle: Py_ssize_t, delivery_count: Py_ssize_t, credit: Py_ssize_t, drain: bool) -> None:
        """Write a flow with the state of the session and of one link."""
        windows: SessionWindows = self.windows
        write_link_flow(
            self.connection.out,
            self.channel,
            windows.next_incoming_id,
            windows.advertised_frames(),
            windows.next_outgoing_id,
            _MAX_WINDOW,
            handle,
            delivery_count,
            credit,
            drain,
        )

    # --- what the owners of links decide

    def settle_incoming(self, delivery: Delivery, code: c_int, state: bytes | None, settled: bool) -> None:
        """Send the sender our state for one of its deliveries; with ``settled`` forget it."""
        if delivery.settled or delivery.remote_settled or not self.mapped:
            if settled:
                delivery.mark_settled()
            return
        self.deliveries.settle_incoming(delivery, code, state, settled)
        self.request_flush()

    def settle_outgoing(self, delivery: Delivery, code: c_int, state: bytes | None, settled: bool) -> None:
        """Send the receiver our state for a delivery that we sent; with ``settled`` forget it."""
        if delivery.settled or delivery.remote_settled or not delivery.begun or not self.mapped:
            if settled:
                delivery.mark_settled()
            return
        self.deliveries.settle_outgoing(delivery, code, state, settled)
        self.request_flush()

    def release_bytes(self, count: Py_ssize_t) -> None:
        """Count ``count`` bytes as no longer held; the next flush opens the window again."""
        if self.windows.release_bytes(count):
            self.request_flush()

    # --- the end of a pass

    def request_flow(self, link: LinkPort) -> None:
        """Call ``write_flow`` of ``link`` with the next flush."""
        if not self._links_due:
            self._links_due = []
        self._links_due.append(link)
        self.request_flush()

    def request_flush(self) -> None:
        """Request a flush of this session at the end of the pass."""
        if not self._marked:
            self._marked = True
            self._sessions_due.append(self)
            self.connection.touch()

    def flush(self) -> None:
        """Write the gathered dispositions and every flow that is due."""
        self._marked = False
        if not self.mapped:
            return
        windows: SessionWindows = self.windows
        self.deliveries.write_dispositions()
        if windows.reopen():
            self._flow_due = True
        if self._links_due:
            due: list[LinkPort] = self._links_due
            self._links_due = _NO_LINKS
            for each in due:
                link: LinkPort = each
                if link.write_flow():
                    self._flow_due = False
        if self._flow_due:
            self._flow_due = False
            write_flow(
                self.connection.out,
                self.channel,
                windows.next_incoming_id,
                windows.advertised_frames(),
                windows.next_outgoing_id,
                _MAX_WINDOW,
            )

    def wait_for_room(self, link: LinkPort) -> None:
        """Resume ``link`` once the peer's window and the output have room."""
        if not self.waiting_links:
            self.waiting_links = []
        self.waiting_links.append(link)

    def resume_links(self) -> None:
        """Resume the links that waited for the window or for room in the output, each in turn."""
        waiting: list[LinkPort] = self.waiting_links
        self.waiting_links = _NO_LINKS
        position: Py_ssize_t
        for position in range(len(waiting)):
            full: bool = len(self.connection.out) >= self.connection.high_water
            if full or self.windows.outgoing_frames <= 0:
                self.connection.paused = self.connection.paused or full  # other sessions may have filled it
                self.waiting_links = waiting[position:] + self.waiting_links  # before the links that wait again
                return
            link: LinkPort = waiting[position]
            link.resume_sending()


_UNANSWERED = frozenset((SessionState.BEGIN_RECEIVED, SessionState.BEGIN_END_RECEIVED))
