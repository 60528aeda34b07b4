"""The errors that refuse an attach (routing.md 1.4)."""

from __future__ import annotations

from typing import Final

from trouter.wire.performatives import Error

NO_ROUTE: Final = Error("qd:no-route-to-dest", "No route to the destination node")
#: In the words of Qpid Dispatch's policy, whose denials have it too.
LINK_DENIED: Final = Error("amqp:unauthorized-access", "link disallowed by local policy")
LINK_EXPIRATION: Final = Error("qd:link-expiration", "Requested link expiration not allowed")
CONTAINER_FULL: Final = Error("amqp:resource-limit-exceeded", "the container accepts no more links or sessions")
FRAME_TOO_SMALL: Final = Error(
    "amqp:connection:framing-error", "the attach is larger than the frames that the other end accepts"
)
#: The error for one end of a routed link when the other is lost.
LINK_LOST: Final = Error("qd:routed-link-lost", "Connectivity to the peer container was lost")


class AttachRefused(Exception):
    """The attach cannot be accepted; with ``error`` None the detach has no error."""

    def __init__(self, error: Error | None) -> None:
        self.error = error
        super().__init__("" if error is None else error.condition)
