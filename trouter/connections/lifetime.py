"""The life of one connection: its state, the error of its close, and the reason of its failure for the log."""

from __future__ import annotations

import logging
from typing import Final

import trio

from trouter._bugs import BUGS
from trouter.hooks import PeerFacts
from trouter.wire.performatives import Error

from .states import PeerState, PeerStep, advance

CREDENTIALS_ENDED: Final = Error("amqp:connection:forced", "credentials no longer valid")
FAILED: Final = Error("amqp:internal-error", "the router failed on this connection")
NO_ROUTER: Final = Error("amqp:connection:forced", "there is no router at the other end")

server_log = logging.getLogger("trouter.SERVER")


class Lifetime:
    """The lifetime of one connection."""

    __slots__ = (
        "_facts",
        "_outgoing",
        "failure",
        "close_error",
        "label",
        "opened_at_s",
        "peer_error",
        "refusal",
        "scope",
        "state",
    )

    def __init__(self, facts: PeerFacts, scope: trio.CancelScope, *, outgoing: bool) -> None:
        """Make a lifetime; if ``outgoing``, an error in the router's own close also counts as a failure.

        ``scope`` is that of the connection's tasks.
        """
        #: The scope of all tasks; its deadline is that of the handshake, then that of the credentials.
        self.scope = scope
        self._facts = facts
        self._outgoing = outgoing
        self.label = f"[C{facts.connection_id}]"
        self.state = PeerState.OPENING
        #: When the opens were exchanged, by trio's clock; None before.
        self.opened_at_s: float | None = None
        #: The error of the router's close; None while the router does not end the connection.
        self.close_error: Error | None = None
        #: The error of the peer's close; None without one.
        self.peer_error: Error | None = None
        #: The reason of the failure, empty for none.
        self.failure = ""
        #: Why the peer may not open the connection, one of the reasons in ``telemetry/refusals.py``; empty for none.
        self.refusal = ""

    @property
    def opened(self) -> bool:
        """True once the opens were exchanged."""
        return self.opened_at_s is not None

    @property
    def was_in_use(self) -> bool:
        """True once the connection was good for what it is for."""
        return self.opened

    @property
    def is_ending(self) -> bool:
        """True if everything that the peer sends is ignored."""
        return self.state >= PeerState.ENDING

    @property
    def closing(self) -> bool:
        """True if an operator or the process ended it."""
        return self.state is PeerState.DELETED

    @property
    def remote(self) -> str:
        """Host and port of the peer."""
        return f"{self._facts.remote_host}:{self._facts.remote_port}"

    @property
    def name(self) -> str:
        """The connection's name in management."""
        return f"connection/{self.remote}"

    def note_refusal(self, reason: str) -> None:
        """Note why the peer is refused, unless a reason is known."""
        self.refusal = self.refusal or reason

    def note_opened(self, until_s: float) -> None:
        """Note that the opens are exchanged; the credentials end at ``until_s``, by trio's clock."""
        self.state = advance(self.state, PeerStep.ADMIT)
        self.opened_at_s = trio.current_time()
        self.scope.deadline = until_s

    # --- ends

    def end_connection(self, error: Error, step: PeerStep = PeerStep.END) -> None:
        """Close the connection with ``error``; the peer has ``LINGER_S`` to answer."""
        self.state = advance(self.state, step)
        if self._outgoing:
            self.failure = self.failure or f"{error.condition} {error.description}"
        self.close_error = error
        self.scope.cancel()

    def end_expired(self) -> None:
        """End the connection, because the peer's credentials are no longer valid."""
        if self.is_ending:
            return
        self.state = advance(self.state, PeerStep.END)
        self.close_error = CREDENTIALS_ENDED
        server_log.info("%s Connection from %s closed: credentials no longer valid", self.label, self.remote)
        self.scope.cancel()

    def end_after_bug(self, error: Exception) -> None:
        """End the connection because of a bug of ours; the peer gets no details."""
        BUGS.report(f"{self.label} internal error, connection dropped", error)
        self.state = advance(self.state, PeerStep.END)
        self.close_error = FAILED
        self.scope.cancel()

    def note_close(self, error: Error | None) -> None:
        """Note the peer's close; its error is why a dialled connection failed."""
        self.peer_error = error
        if self._outgoing and error is not None:
            self.log_failure(f"{error.condition} {error.description or ''}".rstrip())

    def end_unusable(self, why: str) -> None:
        """Close a dialled connection to a peer that is no router; its connector tries again later."""
        self.log_failure(why)
        self.end_connection(NO_ROUTER)

    def mark_ended(self) -> None:
        """Note that the connection has ended completely."""
        self.state = advance(self.state, PeerStep.FORGET)

    def log_failure(self, why: str) -> None:
        """Note and log the reason of the connection's failure."""
        self.failure = why
        listener = self._facts.listener
        way = f"to {self.remote}" if self._outgoing else f"from {self.remote} (to {listener.host}:{listener.port})"
        server_log.info("%s Connection %s failed: %s", self.label, way, why)


class DialledLifetime(Lifetime):
    """The lifetime of a dialled connection, which its connector follows."""

    __slots__ = ("_awaits_router", "established", "serving")

    def __init__(self, facts: PeerFacts, scope: trio.CancelScope, *, awaits_router: bool) -> None:
        """``awaits_router``: the connection is in use only once the other router serves it, else from its open on."""
        super().__init__(facts, scope, outgoing=True)
        self._awaits_router = awaits_router
        #: Set once the opens are exchanged and the connection is admitted.
        self.established = trio.Event()
        #: Set once the connection is in use.
        self.serving = trio.Event()

    @property
    def was_in_use(self) -> bool:
        return self.serving.is_set()

    def note_opened(self, until_s: float) -> None:
        super().note_opened(until_s)
        self.established.set()
        if not self._awaits_router:
            self.serving.set()
