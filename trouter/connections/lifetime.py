"""The end of one connection: its state, the error of its close, and the reason of its failure for the log."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

import trio

from trouter.hooks import PeerFacts
from trouter.wire.performatives import Error

from .states import PeerState, PeerStep, advance

if TYPE_CHECKING:
    from .transport import Transport

CREDENTIALS_ENDED: Final = Error("amqp:connection:forced", "credentials no longer valid")
FAILED: Final = Error("amqp:internal-error", "the router failed on this connection")

server_log = logging.getLogger("trouter.SERVER")
error_log = logging.getLogger("trouter.ERROR")


class Lifetime:
    """The lifetime of one connection. ``transport`` must be set before the connection is served."""

    __slots__ = ("_facts", "_outgoing", "failure", "farewell", "label", "opened_at_s", "scope", "state", "transport")

    transport: Transport

    def __init__(self, facts: PeerFacts, *, outgoing: bool) -> None:
        """Make a lifetime; if ``outgoing``, an error in the router's own close also counts as a failure."""
        self._facts = facts
        self._outgoing = outgoing
        self.label = f"[C{facts.connection_id}]"
        self.state = PeerState.OPENING
        #: When the opens were exchanged, by trio's clock; None before.
        self.opened_at_s: float | None = None
        #: The error of the router's close; None while the router does not end the connection.
        self.farewell: Error | None = None
        #: The reason of the failure, empty for none.
        self.failure = ""
        #: The scope of serving; its deadline is that of the handshake, then that of the credentials.
        self.scope = trio.CancelScope()

    @property
    def opened(self) -> bool:
        """True once the opens were exchanged."""
        return self.opened_at_s is not None

    @property
    def is_ending(self) -> bool:
        """True if everything that the peer sends is ignored."""
        return self.state >= PeerState.ENDING

    @property
    def remote(self) -> str:
        """Host and port of the peer."""
        return f"{self._facts.remote_host}:{self._facts.remote_port}"

    def admit(self, until_s: float) -> None:
        """Note that the opens are exchanged; the credentials end at ``until_s``, by trio's clock."""
        self.state = advance(self.state, PeerStep.ADMIT)
        self.opened_at_s = trio.current_time()
        self.scope.deadline = until_s

    def postpone(self, seconds: float) -> None:
        """Extend the handshake's deadline by ``seconds``, for which the router made the peer wait."""
        self.scope.deadline += seconds

    # --- ends

    def end(self, error: Error, step: PeerStep = PeerStep.END) -> None:
        """Close the connection with ``error``; the peer has ``LINGER_S`` to answer."""
        self.state = advance(self.state, step)
        if self._outgoing:
            self.failure = self.failure or f"{error.condition} {error.description}"
        self.farewell = error
        self.scope.cancel()

    def expire(self) -> None:
        """End the connection, because the peer's credentials are no longer valid."""
        if self.is_ending:
            return
        self.state = advance(self.state, PeerStep.END)
        self.farewell = CREDENTIALS_ENDED
        server_log.info("%s Connection from %s closed: credentials no longer valid", self.label, self.remote)
        self.scope.cancel()

    def crash(self, error: Exception) -> None:
        """End the connection because of a bug of ours; the peer gets no details."""
        error_log.error("%s internal error, connection dropped", self.label, exc_info=error)
        self.state = advance(self.state, PeerStep.END)
        self.farewell = FAILED
        self.scope.cancel()

    def cut(self, why: str) -> None:
        """Drop the connection without a close."""
        self.transport.lose(why)
        self.scope.cancel()

    def vanish(self) -> None:
        """Drop the connection: the peer has hung up, so no answer will come."""
        self.cut("peer closed the socket")

    def give_up_slow(self) -> None:
        """Drop a connection whose peer sends too slowly before its open."""
        self.log_failure("too slow: less than minHandshakeRate before its open")
        self.transport.gone = True
        self.scope.cancel()

    def forget(self) -> None:
        """Note that the connection has ended completely."""
        self.state = advance(self.state, PeerStep.FORGET)

    def log_failure(self, why: str) -> None:
        """Note and log the reason of the connection's failure."""
        self.failure = why
        listener = self._facts.listener
        way = f"to {self.remote}" if self._outgoing else f"from {self.remote} (to {listener.host}:{listener.port})"
        server_log.info("%s Connection %s failed: %s", self.label, way, why)
