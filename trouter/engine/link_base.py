"""The base of both directions of a link: name, handles, states, flows (AMQP 1.0 part 2, 2.6)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trouter.wire.performatives import Attach, Detach, Error

from .attaches import charged_bytes, charged_essentials, essentials
from .ports import LinkHolder, LinkPort
from .session import Session
from .states import LINK_NEXT, LinkState, LinkStep, advance

if TYPE_CHECKING:
    from cython import Py_ssize_t

    from .unsettled import SessionDeliveries


class Link(LinkPort):
    """One link of a session; ``IncomingLink`` and ``OutgoingLink`` add the direction."""

    __slots__ = (
        # What each message reads or counts, in one cache line with the two fields of LinkPort.
        "_deliveries",
        "attached",
        "flow_due",
        "handle",
        "credit",
        "delivery_count",
        "payload_bytes",
        "name",
        "incoming",
        "remote_handle",
        "remote_attach",
        "kept_bytes",
        "state",
        "closed",
        "reported",
        "awaited",
        "holder",
    )

    session: Session

    def __init__(self, session: Session, name: str, incoming: bool) -> None:
        super().__init__(session)
        self._deliveries: SessionDeliveries = session.deliveries
        self.name = name
        self.incoming = incoming
        self.handle: Py_ssize_t = 0
        self.remote_handle: Py_ssize_t = -1
        #: The peer's attach, and the bytes of it that are charged to the session.
        self.remote_attach: Attach | None = None
        self.kept_bytes: Py_ssize_t = 0
        self.state: LinkState = LinkState.DETACHED
        #: True in state ATTACHED of a mapped session: transfers and flows may pass. Kept for the data path.
        self.attached = False
        #: A detach with closed=true was sent or received.
        self.closed = False
        #: The holder was notified that the link is over without its detach, and has not answered yet. No state: the
        #: link keeps its handle for the holder, whatever the peer has sent meanwhile.
        self.reported = False
        #: The holder wants an event for the peer's answer to its detach, and then detaches once more. No state: it is a
        #: wish of the holder, which it may take back, and changes no frame.
        self.awaited = False
        #: Whatever attached it, or joined it to another link.
        self.holder: LinkHolder | None = None
        #: Bytes of messages that were received or sent on the link.
        self.payload_bytes: Py_ssize_t = 0
        #: Deliveries that the sending end has begun, and that it may still begin.
        self.delivery_count: Py_ssize_t = 0
        self.credit: Py_ssize_t = 0
        #: The link is in the session's queue of links whose flow is due.
        self.flow_due = False

    def advance_state(self, step: LinkStep) -> None:
        """Change the state by ``step``; IllegalStep."""
        self.state = advance(LINK_NEXT, self.state, step)
        self.attached = self.state is LinkState.ATTACHED and self.session.mapped

    def attach(self, source: Any, target: Any, **fields: Any) -> None:
        """Send our attach, as the first or as the answer; ``fields`` as in ``Attach``.

        Do nothing if it was sent before or the link is detached already.
        """
        if (self.state, LinkStep.SEND_ATTACH) not in LINK_NEXT:
            return
        self.advance_state(LinkStep.SEND_ATTACH)
        self.session.write(
            Attach(name=self.name, handle=self.handle, role=self.incoming, source=source, target=target, **fields)
        )

    def keep_attach(self, attach: Attach) -> None:
        """Keep the peer's attach, and charge its bytes to the session; PeerFault beyond a limit."""
        self._charge_bytes(charged_bytes(attach))
        self.remote_attach = attach

    def keep_essentials(self) -> None:
        """Drop from the peer's attach what is not read after its answer."""
        if self.remote_attach is not None:
            self.remote_attach = essentials(self.remote_attach)
            self._charge_bytes(min(self.kept_bytes, charged_essentials(self.remote_attach)))

    def _charge_bytes(self, count: Py_ssize_t) -> None:
        """Charge ``count`` bytes of the attach to the session, instead of those charged before; PeerFault."""
        if count != self.kept_bytes:
            self.session.windows.keep_bytes(count - self.kept_bytes)
            self.kept_bytes = count

    def refuse(self, error: Error | None, target: object = None, source: object = None) -> None:
        """Answer the peer's attach with one that has no source or no target, then a closing detach (2.6.3).

        The session forgets the link then, unless its holder waits for the peer's detach.
        """
        if self.state in _UNANSWERED:
            self.attach(source, target)
            self.detach(True, error)
            self.release_if_refused()

    def release_if_refused(self) -> None:
        """Let the session forget the link if only the peer's detach is due and its holder does not wait for it."""
        if self.state is LinkState.DETACH_SENT and not self.awaited and not self.reported:
            self._charge_bytes(0)
            self.session.links.replace_by_refused(self, self.handle, self.remote_handle, (self.incoming, self.name))

    def detach(self, closed: bool, error: Error | None = None) -> None:
        """Send our detach, as the first or as the answer, after an attach or flow that is still due; only once."""
        if self.state in _UNANSWERED:
            self.attach(None, None)
        if self.reported:
            self.reported = False
            self._drop_detached()
        if (self.state, LinkStep.SEND_DETACH) not in LINK_NEXT:
            return
        if self.flow_due:
            self.write_flow()
        self.advance_state(LinkStep.SEND_DETACH)
        self.closed = self.closed or closed
        self.session.write(Detach(self.handle, closed, error))
        self._drop_detached()

    def receive_detach(self, closed: bool) -> None:
        """Apply the peer's detach; its handle and the name are free again."""
        if self.awaited and self.state in DETACHING:
            self.reported = True
        self.advance_state(LinkStep.RECEIVE_DETACH)
        self.closed = self.closed or closed
        self.session.links.release_remote_handle(self.remote_handle)
        self.session.links.release_name(self, (self.incoming, self.name))
        self._drop_detached()

    def _drop_detached(self) -> None:
        """Release the handle once both sides have detached and the holder has answered."""
        if self.state is LinkState.END and not self.reported:
            self._charge_bytes(0)
            self.session.links.forget_link(self.handle)

    def request_flow(self) -> None:
        """Send the link's state with the next flush."""
        if self.attached:
            session: Session = self.session
            if not self.flow_due:
                self.flow_due = True
                session.request_flow(self)
            else:
                session.request_flush()

    def _write_flow(self, drain: bool) -> bool:
        """Write a flow with delivery-count, credit and ``drain``; return whether the link is still attached."""
        self.flow_due = False
        if self.attached:
            session: Session = self.session
            session.write_link_flow(self.handle, self.delivery_count, self.credit if self.credit > 0 else 0, drain)
        return self.attached


_UNANSWERED = frozenset((LinkState.ATTACH_RECEIVED, LinkState.ATTACH_DETACH_RECEIVED))
DETACHING = frozenset((LinkState.DETACH_SENT, LinkState.DETACH_PIPE))
