"""Consumers: plugins that take messages at an address of the router, and what follows from a message."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Protocol, runtime_checkable

#: What a consumer's decision may order.
DECISION_ACTIONS: Final = ("lock-user", "unlock-user", "block-host", "unblock-host", "slow-tenant", "restore-tenant")


@dataclass(frozen=True, slots=True)
class IncomingMessage:
    """A message that came for a consumer, from a sender that may send it one. All of it is the sender's word."""

    #: The one data section, or the one string in UTF-8; None for any other body, and for none.
    body: bytes | None = field(repr=False)
    subject: str = ""
    content_type: str = ""
    #: Who sent it, as they authenticated.
    user: str = ""


@dataclass(frozen=True, slots=True)
class Decision:
    """What the router is to do about a user, host or tenant for a while; ValueError for what it cannot do.

    ``subject`` is a user, an address of a host or a tenant, as ``action`` (one of ``DECISION_ACTIONS``) has it. An
    ``id`` is obeyed once. The other texts are for people; ``evidence`` are numbers of records.
    """

    id: str
    action: str
    subject: str
    #: When it ends, in microseconds since 1970.
    until_us: int
    #: For a user: only under this vhost, or of this tenant; empty for everywhere.
    vhost: str = ""
    reason: str = ""
    evidence: tuple[int, ...] = ()
    #: Messages a second, for a tenant that is to be slowed down.
    rate: int | None = None

    def __post_init__(self) -> None:
        if self.action not in DECISION_ACTIONS:
            raise ValueError(f"action must be one of {', '.join(DECISION_ACTIONS)}")
        if not self.id or not self.subject:
            raise ValueError("a decision needs an id and a subject")
        if (self.rate is None) == (self.action == "slow-tenant"):
            raise ValueError("rate belongs to slow-tenant, and to nothing else")
        if self.rate is not None and self.rate < 1:
            raise ValueError("rate must be at least 1")
        if self.vhost and not self.action.endswith("-user"):
            raise ValueError(f"vhost does not belong to {self.action}")


@dataclass(frozen=True, slots=True)
class Rejected:
    """A message is not what its consumer takes; the sender hears the ``reason``, under this condition."""

    reason: str
    condition: str = "amqp:invalid-field"


@dataclass(frozen=True, slots=True)
class ConsumerTerms:
    """Where a consumer takes messages, and from which users; ValueError for what is out of bounds.

    Messages of any other sender are rejected before the consumer sees them: of a sender that is not authenticated or
    none of ``senders``, of tenants, of other routers, and of senders whose policy does not let them send there.
    """

    address: str
    senders: frozenset[str]
    #: Larger messages are rejected, and those beyond so many a second released.
    max_bytes: int = 4096
    per_second: int = 10
    #: Decisions in force at one time.
    max_standing: int = 1000

    def __post_init__(self) -> None:
        if not self.address or not self.senders:
            raise ValueError("a consumer needs an address and senders")
        if not (0 < self.max_bytes <= 65536 and 0 < self.per_second <= 1000 and 0 < self.max_standing <= 100_000):
            raise ValueError("a consumer takes up to 64 KiB, 1000 messages a second and 100000 decisions")


@runtime_checkable
class Consumer(Protocol):
    """Takes messages at an address of the router. It is asked on the event loop: no I/O, no waiting."""

    @property
    def terms(self) -> ConsumerTerms:
        """Return the address to consume from, and the senders to accept; the same while the consumer is in use."""

    def consume(self, message: IncomingMessage) -> Decision | Rejected:
        """Return what follows from a message: a decision, or why it was rejected."""
