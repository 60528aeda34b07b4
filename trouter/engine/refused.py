"""What is left of a refused link until the peer detaches it: its two handles, and nothing of its attach.

A peer may leave a refusal unanswered for as long as it likes, so the link itself must not wait for that (AMQP 1.0 part
2, 2.6.3).
"""

from __future__ import annotations

from typing import Any

from trouter.wire.transfers import FlowReader, TransferReader

from .ports import LinkPort
from .session import Session


class RefusedLink(LinkPort):
    """A refused link of ``session``, which owns it: frames that crossed our detach are ignored."""

    __slots__ = ("_handle", "_session", "incoming")

    def __init__(self, session: Session, handle: int) -> None:
        super().__init__(session)
        self._session = session
        self._handle = handle
        self.incoming = False

    def receive_transfer(self, transfer: TransferReader, data: bytes, end: int) -> None:
        """Ignore it."""

    def receive_flow(self, flow: FlowReader) -> None:
        """Ignore it."""

    def receive_detach(self, remote_handle: int) -> None:
        """Free both handles."""
        self._session.release_remote_handle(remote_handle)
        self._session.count_refused(-1)
        self._session.spare_handle(self._handle)


def bury(session: Session, link: Any) -> None:
    """Replace a link that was refused by a ``RefusedLink``; its name is free at once."""
    if session.links_by_handle.pop(link.handle, None) is None:
        return
    named = link.incoming, link.name
    if session.links.get(named) is link:
        del session.links[named]
    session.release_remote_handle(link.remote_handle)
    session.links_by_remote_handle[link.remote_handle] = RefusedLink(session, link.handle)
    session.connection.link_count -= 1
    session.count_refused(1)
