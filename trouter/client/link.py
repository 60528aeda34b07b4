"""What senders and receivers share: attaching, detaching, and the errors that end them (AMQP 1.0 part 2, 2.6)."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from enum import IntEnum
from typing import Any, Protocol

import trio

from trouter.engine.faults import Misuse, PeerFault
from trouter.engine.link import IncomingLink, OutgoingLink, add_link
from trouter.engine.ports import LinkHolder, LinkSink
from trouter.engine.states import LinkState
from trouter.wire.performatives import Attach, Error, Source, Target

from .closable import Closable
from .errors import ClientError, LimitReached, LinkDetached
from .ports import ClientSessionPort


class SenderSettleMode(IntEnum):
    """How the sending end settles (part 2, 2.8.2)."""

    UNSETTLED = 0
    SETTLED = 1
    MIXED = 2


class ReceiverSettleMode(IntEnum):
    """When the receiving end settles (part 2, 2.8.3): at once, or after the sender has."""

    FIRST = 0
    SECOND = 1


class AttachedLinkOwner(Protocol):
    """What an attached link calls on the sender or receiver that it belongs to."""

    def _settle_unread(self) -> None:
        """Settle the deliveries that no task has received, before the link is detached."""

    def _forget_deliveries(self) -> None:
        """Forget the deliveries that cannot be settled any more."""


class AttachedLink(Closable, LinkHolder):
    """A link of our session from its attach to the detaches of both sides.

    ValueError if the session has a link of that name in this direction, LimitReached if it has no free handle.
    """

    def __init__(
        self, session: ClientSessionPort, name: str, incoming: bool, kind: str, owner: AttachedLinkOwner
    ) -> None:
        super().__init__(kind)
        engine = session._session
        if (incoming, name) in engine.links.by_name:
            raise ValueError(f"the session has a link named {name!r} in this direction")
        try:
            link = add_link(engine, name, incoming)
        except Misuse as full:
            raise LimitReached(None, str(full)) from None
        link.holder = self
        self.link: IncomingLink | OutgoingLink = link
        self.answer: Attach | None = None
        self._session = session
        self._connection = session.connection
        self._owner = owner

    async def attach(self, source: object, target: object, **fields: Any) -> None:
        """Attach, and wait for the answer; LinkDetached if it is refused."""
        link = self.link
        if isinstance(link, OutgoingLink):
            fields["initial_delivery_count"] = link.delivery_count
        link.attach(source, target, **fields)
        self._session._links.add(self)
        self._connection._flush()
        try:
            await self._wait_until(lambda: self.answer is not None)
        except BaseException:
            self._detach()
            raise

    async def close(self) -> None:
        """Detach, and wait until the peer has detached too; cancellation ends only the wait."""
        self._detach()
        await self._connection._wait_until_over(self)
        await trio.lowlevel.checkpoint()

    def _detach(self) -> None:
        if self.usable:
            self._owner._settle_unread()
            self._end(None)
            self.link.detach(True)
            self._session._links.discard(self)
            self._connection._flush()

    def _end(self, failure: ClientError | None) -> None:
        if self.usable:
            self._owner._forget_deliveries()
        super()._end(failure)

    def _is_over(self) -> bool:
        """Return whether the peer has detached, or cannot any more."""
        return self.link.state is LinkState.END or not self._session._session.mapped

    # --- from the peer

    def on_attached(self, attach: Attach) -> None:
        """Note the peer's attach; without our terminus it refuses, and a detach with the error follows (2.6.3)."""
        if self.usable and (attach.source if self.link.incoming else attach.target) is not None:
            self.answer = attach
            self._changed.unpark_all()

    def on_detached(self, error: Error | None, closed: bool, fault: PeerFault | None) -> None:
        """End the link, because the peer or a fault of the peer detached it."""
        self.link.detach(closed)  # after a fault the engine has sent it already; this only confirms
        if fault is None:
            failure = LinkDetached.from_peer(error, "the peer detached the link")
        else:
            failure = LinkDetached(fault.condition, fault.text)
        self._session._links.discard(self)
        self._end(failure)


class ClientLink(LinkSink):
    """A sender, a receiver or an inlet.

    ``source`` and ``target`` are the peer's, which may grant less than we requested.

    ValueError if the session has a link of that name in this direction, LimitReached if it has no free handle.
    """

    def __init__(
        self, session: ClientSessionPort, name: str | None, *, incoming: bool, sink: LinkSink | None = None
    ) -> None:
        self.name = name or str(uuid.uuid4())
        self._session = session
        self._connection = session.connection
        self._attached = AttachedLink(session, self.name, incoming, type(self).__name__.lower(), self)
        self._attached.link.sink = self if sink is None else sink

    @property
    def usable(self) -> bool:
        """True if neither side has ended it."""
        return self._attached.usable

    @property
    def address(self) -> str:
        """Address at the peer: for a dynamic one, the one that the peer made; "" for none."""
        terminus = self.source if self._attached.link.incoming else self.target
        return "" if terminus.address is None else str(terminus.address)

    @property
    def credit(self) -> int:
        """Deliveries that the receiving end still accepts."""
        return max(0, self._attached.link.credit) if self.usable else 0

    @property
    def source(self) -> Source:
        """Source in the peer's attach."""
        answer = self._attached.answer
        source = None if answer is None else answer.source
        return source if isinstance(source, Source) else Source()

    @property
    def target(self) -> Target:
        """Target in the peer's attach."""
        answer = self._attached.answer
        target = None if answer is None else answer.target
        return target if isinstance(target, Target) else Target()

    @property
    def max_message_size(self) -> int:
        """Largest message that the peer accepts or sends, in bytes; 0 for any."""
        answer = self._attached.answer
        return 0 if answer is None else answer.max_message_size or 0

    @property
    def offered_capabilities(self) -> tuple[str, ...]:
        """Capabilities that the peer offers on this link."""
        answer = self._attached.answer
        return () if answer is None else answer.offered_capabilities

    @property
    def properties(self) -> Mapping[Any, Any]:
        """Properties of the peer's attach."""
        answer = self._attached.answer
        return {} if answer is None else answer.properties or {}

    async def aclose(self) -> None:
        """Detach, and wait until the peer has detached too; cancellation ends only the wait."""
        await self._attached.close()

    async def _attach(self, source: object, target: object, **fields: Any) -> None:
        """Attach, and wait for the answer; LinkDetached if it is refused."""
        await self._attached.attach(source, target, **fields)

    def _check_usable(self) -> None:
        """Raise the error that ended the link; trio.ClosedResourceError if we ended it."""
        self._attached._check_usable()

    async def _wait_until(self, condition: Callable[[], bool], lot: trio.lowlevel.ParkingLot | None = None) -> None:
        """Wait until ``condition`` holds; the code that changes it wakes ``lot``. Raises as ``_check_usable``."""
        await self._attached._wait_until(condition, lot)

    def _settle_unread(self) -> None:
        """See ``AttachedLinkOwner``."""

    def _forget_deliveries(self) -> None:
        """See ``AttachedLinkOwner``."""
        self._session._session.deliveries.drop_link_deliveries(self._attached.link, self._attached.link.incoming)
