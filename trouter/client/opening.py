"""The opening of links, on a session, or on a connection, which begins the session itself."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final

import trio

from trouter.engine.ports import LinkSink
from trouter.wire.performatives import Source, Target

from .inlet import Inlet
from .link import ReceiverSettleMode, SenderSettleMode
from .ports import ClientSessionPort
from .receiver import Receiver
from .sender import Sender

DEFAULT_CREDIT: Final = 100
#: The largest message of a receiver, in bytes, unless the caller sets it.
DEFAULT_MAX_MESSAGE_SIZE: Final = 64 * 1024 * 1024


class LinkOpener(ABC):
    """The base of objects on which links can be opened."""

    @abstractmethod
    async def _session_for_links(self) -> ClientSessionPort:
        """Return a session that has begun."""

    @abstractmethod
    async def _session_for_stream(self) -> tuple[ClientSessionPort, bool]:
        """Return a session for a streaming receiver, and whether it must end with that receiver."""

    @asynccontextmanager
    async def open_sender(
        self,
        address: str | None = None,
        *,
        dynamic: bool = False,
        name: str | None = None,
        settle_mode: SenderSettleMode = SenderSettleMode.MIXED,
        receiver_settle_mode: ReceiverSettleMode = ReceiverSettleMode.FIRST,
        capabilities: Sequence[str] = (),
        source: Source | None = None,
        target: Target | None = None,
        properties: Mapping[str, Any] | None = None,
    ) -> AsyncIterator[Sender]:
        """Open a sender to ``address``; without one, to the address in each message; if ``dynamic``, to a new address.

        ``settle_mode`` SETTLED sends everything settled, MIXED leaves it to each ``send``. ``target`` replaces address,
        dynamic and capabilities. LinkDetached if the peer refuses.
        """
        if target is None:
            target = Target(address=address, dynamic=dynamic, capabilities=_symbols(capabilities))
        sender = Sender(await self._session_for_links(), name, settle_mode)
        await sender._attach(
            source or Source(address=sender.name),
            target,
            snd_settle_mode=settle_mode.value,
            rcv_settle_mode=receiver_settle_mode.value,
            properties=None if properties is None else dict(properties),
        )
        try:
            yield sender
        finally:
            await sender.aclose()

    @asynccontextmanager
    async def open_receiver(
        self,
        address: str | None = None,
        *,
        dynamic: bool = False,
        name: str | None = None,
        credit: int = DEFAULT_CREDIT,
        settle_mode: ReceiverSettleMode = ReceiverSettleMode.FIRST,
        sender_settle_mode: SenderSettleMode = SenderSettleMode.MIXED,
        stream: bool = False,
        max_message_size: int | None = None,
        filter: Mapping[str, Any] | None = None,  # noqa: A002 - the standard's own word
        capabilities: Sequence[str] = (),
        source: Source | None = None,
        target: Target | None = None,
        properties: Mapping[str, Any] | None = None,
    ) -> AsyncIterator[Receiver]:
        """Open a receiver from ``address``; if ``dynamic``, from a new one, which is in ``receiver.address``.

        ``credit`` is the most deliveries that may be here unsettled, renewed automatically; 0 leaves it to
        ``add_credit``. ``stream`` returns deliveries when their first bytes come. A message of more than
        ``max_message_size`` bytes (0 for any; if None, 64 MiB, or any for streams) ends the link.
        ``receiver.source.filter`` has the filter that the peer applies. ``source`` replaces address, dynamic, filter
        and capabilities. LinkDetached if the peer refuses.
        """
        if source is None:
            source = Source(
                address=address,
                dynamic=dynamic,
                filter=None if filter is None else dict(filter),
                capabilities=_symbols(capabilities),
            )
        if max_message_size is None:
            max_message_size = 0 if stream else DEFAULT_MAX_MESSAGE_SIZE
        session, own = (await self._session_for_stream()) if stream else (await self._session_for_links(), False)
        try:
            receiver = Receiver(session, name, settle_mode, credit, stream=stream)
            await receiver._attach(
                source,
                target or Target(address=receiver.name),
                snd_settle_mode=sender_settle_mode.value,
                rcv_settle_mode=settle_mode.value,
                max_message_size=max_message_size or None,
                properties=None if properties is None else dict(properties),
            )
            try:
                yield receiver
            finally:
                await receiver.aclose()
        finally:
            if own:
                await session.aclose()

    @asynccontextmanager
    async def open_inlet(
        self,
        address: str | None = None,
        *,
        sink: LinkSink,
        name: str | None = None,
        sender_settle_mode: SenderSettleMode = SenderSettleMode.MIXED,
        max_message_size: int = 0,
        filter: Mapping[str, Any] | None = None,  # noqa: A002 - the standard's own word
        capabilities: Sequence[str] = (),
        source: Source | None = None,
        properties: Mapping[str, Any] | None = None,
        close_timeout: float = 5.0,
    ) -> AsyncIterator[Inlet]:
        """Open a receiver from ``address`` whose transfers go to ``sink`` as they come; it begins without credit.

        The peer gets ``max_message_size`` (0 for any), and the sink enforces it. At the end of the block the peer has
        ``close_timeout`` seconds to answer the detach. LinkDetached if the peer refuses.
        """
        if source is None:
            source = Source(
                address=address, filter=None if filter is None else dict(filter), capabilities=_symbols(capabilities)
            )
        inlet = Inlet(await self._session_for_links(), name, sink)
        await inlet._attach(
            source,
            Target(address=inlet.name),
            snd_settle_mode=sender_settle_mode.value,
            rcv_settle_mode=ReceiverSettleMode.FIRST.value,
            max_message_size=max_message_size or None,
            properties=None if properties is None else dict(properties),
        )
        try:
            yield inlet
        finally:
            with trio.move_on_after(close_timeout):
                await inlet.aclose()


def _symbols(names: Sequence[str]) -> tuple[str, ...]:
    """Return capabilities as a tuple, also when the caller gave a single str."""
    return (names,) if isinstance(names, str) else tuple(names)
