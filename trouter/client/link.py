"""What senders and receivers share: attaching, detaching, and what ends them (AMQP 1.0 part 2, 2.6)."""

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
    """A link of ours. ``source`` and ``target`` are what the peer answered, which may be less than we asked for."""

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
        """Return the source as the peer sees it."""
        source = None if self._answer is None else self._answer.source
        return source if isinstance(source, Source) else Source()

    @property
    def target(self) -> Target:
        """Return the target as the peer sees it."""
        target = None if self._answer is None else self._answer.target
        return target if isinstance(target, Target) else Target()

    @property
    def max_message_size(self) -> int:
        """Return the largest message that the peer says it takes or sends, in octets; 0 for any."""
        return 0 if self._answer is None else self._answer.max_message_size or 0

    @property
    def offered_capabilities(self) -> tuple[str, ...]:
        """Return what the peer offers on this link."""
        return () if self._answer is None else self._answer.offered_capabilities

    @property
    def properties(self) -> Mapping[Any, Any]:
        """Return the peer's properties of the link."""
        return {} if self._answer is None else self._answer.properties or {}

    async def _attach(self, source: object, target: object, **fields: Any) -> None:
        """Attach and wait for the answer; LinkDetached if it is a refusal."""
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
        """Detach, and wait until the peer has done so too; if that is cancelled, it is detached all the same."""
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
        """Settle what is to be settled before the link goes."""

    def _forget(self) -> None:
        """Drop what the engine still holds for this link."""

    def _end(self, failure: ClientError | None) -> None:
        if self.usable and self._link is not None:
            self._forget()
        super()._end(failure)

    def _gone(self) -> bool:
        """Return whether the peer has no more to say on this link."""
        return self._link is None or self._link.state is LinkState.DETACHED or not self._session._session.mapped

    # --- what the peer did

    def _attached(self, attach: Attach) -> None:
        """The peer answered; without our terminus it refuses, and a detach with the reason follows (2.6.3)."""
        if self.usable and (attach.source if self._incoming else attach.target) is not None:
            self._answer = attach
            self._changed.unpark_all()

    def _detached(self, error: Error | None, closed: bool, fault: PeerFault | None) -> None:
        self._link.detach(closed)  # after a fault the engine has said so already: it only hears that we know
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
    """A link on which messages come."""

    @property
    def address(self) -> str:
        """Return where messages come from; of a dynamic source, the address the peer made for it."""
        return terminus_address(self.source)

    @property
    def credit(self) -> int:
        """Return how many more deliveries the peer may send just now."""
        return max(0, self._link.credit) if self.usable else 0
