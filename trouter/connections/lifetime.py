"""When and why one connection ends: its state, what its close says, and why it failed, for the log."""

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
    """One connection's. ``transport`` must be set before the connection is served."""

    __slots__ = ("_facts", "_outgoing", "failure", "farewell", "label", "opened_at_s", "scope", "state", "transport")

    transport: Transport

    def __init__(self, facts: PeerFacts, *, outgoing: bool) -> None:
        """``outgoing``: the router dialled; then the reason of its own close is why the connection failed, too."""
        self._facts = facts
        self._outgoing = outgoing
        self.label = f"[C{facts.connection_id}]"
        self.state = PeerState.OPENING
        #: When the opens were exchanged, by the clock of the event loop; None before.
        self.opened_at_s: float | None = None
        #: What the router's close says; None while the router does not end the connection.
        self.farewell: Error | None = None
        #: Why the connection failed, empty if it did not.
        self.failure = ""
        #: What serving the connection is done in; its deadline is that of the handshake, then that of the credentials.
        self.scope = trio.CancelScope()

    @property
    def opened(self) -> bool:
        """Return whether the opens were exchanged."""
        return self.opened_at_s is not None

    @property
    def is_ending(self) -> bool:
        """Return whether nothing that the peer sends counts any more."""
        return self.state >= PeerState.ENDING

    @property
    def remote(self) -> str:
        """Return where the other end is: host and port."""
        return f"{self._facts.remote_host}:{self._facts.remote_port}"

    def admit(self, until_s: float) -> None:
        """Note that the opens are exchanged; the credentials end at ``until_s``, by the clock of the event loop."""
        self.state = advance(self.state, PeerStep.ADMIT)
        self.opened_at_s = trio.current_time()
        self.scope.deadline = until_s

    def postpone(self, seconds: float) -> None:
        """Give the handshake so much longer: the peer was made to wait."""
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
        """End the connection: the credentials that the peer came in with are good no longer."""
        if self.is_ending:
            return
        self.state = advance(self.state, PeerStep.END)
        self.farewell = CREDENTIALS_ENDED
        server_log.info("%s Connection from %s closed: credentials no longer valid", self.label, self.remote)
        self.scope.cancel()

    def crash(self, error: Exception) -> None:
        """End the connection for a bug of ours; the peer hears no details."""
        error_log.error("%s internal error, connection dropped", self.label, exc_info=error)
        self.state = advance(self.state, PeerStep.END)
        self.farewell = FAILED
        self.scope.cancel()

    def cut(self, why: str) -> None:
        """Drop the connection without a word to the other end."""
        self.transport.lose(why)
        self.scope.cancel()

    def vanish(self) -> None:
        """Drop the connection: the peer has hung up, so no answer need be waited for."""
        self.cut("peer closed the socket")

    def give_up_slow(self) -> None:
        """Drop a connection whose peer sends too slowly before its open."""
        self.log_failure("too slow: less than minHandshakeRate before its open")
        self.transport.gone = True
        self.scope.cancel()

    def forget(self) -> None:
        """Let go of the connection, of which nothing is left."""
        self.state = advance(self.state, PeerStep.FORGET)

    def log_failure(self, why: str) -> None:
        """Note and log that the connection ends for no good reason."""
        self.failure = why
        listener = self._facts.listener
        way = f"to {self.remote}" if self._outgoing else f"from {self.remote} (to {listener.host}:{listener.port})"
        server_log.info("%s Connection %s failed: %s", self.label, way, why)
