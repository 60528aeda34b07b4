"""What is left of a refused link until the peer detaches it: its two handles, and nothing of its attach.

A peer may leave a refusal unanswered for as long as it likes, so the link itself must not wait for that (AMQP 1.0 part
2, 2.6.3).
"""

from __future__ import annotations

from trouter.wire.transfers import FlowReader, TransferReader

from .ports import LinkPort, SessionPort


class RefusedLink(LinkPort):
    """A refused link of ``session``, which owns it: frames that crossed our detach are ignored."""

    __slots__ = ("_handle", "incoming")

    def __init__(self, session: SessionPort, handle: int) -> None:
        super().__init__(session)
        self._handle = handle
        self.incoming = False

    def receive_transfer(self, transfer: TransferReader, data: bytes, end: int) -> None:
        """Ignore it."""

    def receive_flow(self, flow: FlowReader) -> None:
        """Ignore it."""

    def receive_detach(self, remote_handle: int) -> None:
        """Free both handles."""
        self.session.release_remote_handle(remote_handle)
        self.session.count_refused(-1)
        self.session.release_handle(self._handle)
