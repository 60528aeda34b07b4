"""The base of senders and receivers: attaching, detaching, and the errors that end them (AMQP 1.0 part 2, 2.6)."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from enum import IntEnum
from typing import Any

import trio

from trouter.engine.faults import Misuse, PeerFault
from trouter.engine.link import IncomingLink, OutgoingLink, add_link
from trouter.engine.ports import LinkSink
from trouter.engine.states import LinkState
from trouter.wire.performatives import Attach, Error, Source, Target

from .ends import End
from .errors import ClientError, LimitReached, LinkDetached
from .ports import SessionPort


class SenderSettleMode(IntEnum):
    """How the sending end settles (part 2, 2.8.2)."""

    UNSETTLED = 0
    SETTLED = 1
    MIXED = 2


class ReceiverSettleMode(IntEnum):
    """When the receiving end settles (part 2, 2.8.3): at once, or after the sender has."""

    FIRST = 0
    SECOND = 1


class Link(End, LinkSink):
    """A link of ours. ``source`` and ``target`` are the peer's, which may grant less than we requested."""

    _incoming = False

    def __init__(self, session: SessionPort, name: str | None) -> None:
        super().__init__()
        self._session = session
        self._connection = session.connection
        self.name = name or str(uuid.uuid4())
        self._answer: Attach | None = None
        self._link: Any = None

    @property
    def source(self) -> Source:
        """Source in the peer's attach."""
        source = None if self._answer is None else self._answer.source
        return source if isinstance(source, Source) else Source()

    @property
    def target(self) -> Target:
        """Target in the peer's attach."""
        target = None if self._answer is None else self._answer.target
        return target if isinstance(target, Target) else Target()

    @property
    def max_message_size(self) -> int:
        """Largest message that the peer accepts or sends, in bytes; 0 for any."""
        return 0 if self._answer is None else self._answer.max_message_size or 0

    @property
    def offered_capabilities(self) -> tuple[str, ...]:
        """Capabilities that the peer offers on this link."""
        return () if self._answer is None else self._answer.offered_capabilities

    @property
    def properties(self) -> Mapping[Any, Any]:
        """Properties of the peer's attach."""
        return {} if self._answer is None else self._answer.properties or {}

    async def _attach(self, source: object, target: object, **fields: Any) -> None:
        """Attach and wait for the answer; LinkDetached if it is refused, LimitReached, ValueError for a name in use."""
        session = self._session._session
        if (self._incoming, self.name) in session.links:
            raise ValueError(f"the session has a link named {self.name!r} in this direction")
        try:
            link = add_link(session, self.name, self._incoming)
        except Misuse as full:
            raise LimitReached(None, str(full)) from None
        self._link = link
        link.context = self
        link.sink = self
        if isinstance(link, OutgoingLink):
            fields["initial_delivery_count"] = link.delivery_count
        link.attach(source, target, **fields)
        self._session._links.add(self)
        self._connection._flush()
        try:
            await self._until(lambda: self._answer is not None)
        except BaseException:
            self._detach()
            raise

    async def aclose(self) -> None:
        """Detach, and wait until the peer has detached too; cancellation ends only the wait."""
        self._detach()
        await self._connection._until_gone(self)
        await trio.lowlevel.checkpoint()

    def _detach(self) -> None:
        if self.usable:
            self._leave()
            self._end(None)
            self._link.detach(True)
            self._session._links.discard(self)
            self._connection._flush()

    def _leave(self) -> None:
        """Settle deliveries before the link is detached."""

    def _forget(self) -> None:
        """Forget the engine's deliveries of this link."""

    def _end(self, failure: ClientError | None) -> None:
        if self.usable and self._link is not None:
            self._forget()
        super()._end(failure)

    def _gone(self) -> bool:
        """Return whether the peer has detached, or cannot any more."""
        return self._link is None or self._link.state is LinkState.END or not self._session._session.mapped

    # --- from the peer

    def _attached(self, attach: Attach) -> None:
        """Note the peer's attach; without our terminus it refuses, and a detach with the error follows (2.6.3)."""
        if self.usable and (attach.source if self._incoming else attach.target) is not None:
            self._answer = attach
            self._changed.unpark_all()

    def _detached(self, error: Error | None, closed: bool, fault: PeerFault | None) -> None:
        self._link.detach(closed)  # after a fault the engine has sent it already; this only confirms
        if fault is None:
            failure = LinkDetached.of(error, "the peer detached the link")
        else:
            failure = LinkDetached(fault.condition, fault.text)
        self._session._links.discard(self)
        self._end(failure)


def terminus_address(terminus: Source | Target) -> str:
    """Return the address as text; "" for none."""
    return "" if terminus.address is None else str(terminus.address)


__all__ = ["IncomingLink", "Link", "OutgoingLink", "ReceiverSettleMode", "SenderSettleMode"]


class ReceivingLink(Link):
    """A link on which we receive."""

    @property
    def address(self) -> str:
        """Address of the source; for a dynamic source, the one that the peer made."""
        return terminus_address(self.source)

    @property
    def credit(self) -> int:
        """Deliveries that the peer may still send."""
        return max(0, self._link.credit) if self.usable else 0
