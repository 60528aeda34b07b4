"""Consumers, which plugins provide: they take messages at an address of the router and answer with decisions."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Protocol, runtime_checkable

#: The actions that a decision may order.
DECISION_ACTIONS: Final = ("lock-user", "unlock-user", "block-host", "unblock-host", "slow-tenant", "restore-tenant")


@dataclass(frozen=True, slots=True)
class IncomingMessage:
    """A message for a consumer from a permitted sender; all but ``user`` is untrusted."""

    #: The only data section, or the only string in UTF-8; None for any other body, and without one.
    body: bytes | None = field(repr=False)
    subject: str = ""
    content_type: str = ""
    #: The authenticated user of the sender.
    user: str = ""


@dataclass(frozen=True, slots=True)
class Decision:
    """An action about a user, host or tenant that holds for a time; ValueError for an impossible one.

    ``subject`` is a user, an address of a host or a tenant, depending on ``action`` (one of ``DECISION_ACTIONS``). An
    ``id`` is carried out once. ``reason`` is text for operators; ``evidence`` holds numbers of records.
    """

    id: str
    action: str
    subject: str
    #: The end of the decision, in microseconds since 1970.
    until_us: int
    #: For a user: the only vhost or tenant to which the decision applies; empty for all.
    vhost: str = ""
    reason: str = ""
    evidence: tuple[int, ...] = ()
    #: Messages per second that a slowed tenant may send; None for other actions.
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
    """The rejection of a message; its outcome gives the sender ``condition`` and ``reason``."""

    reason: str
    condition: str = "amqp:invalid-field"


@dataclass(frozen=True, slots=True)
class ConsumerTerms:
    """The address and the permitted senders of a consumer, with its limits; ValueError if a value is out of bounds.

    The router rejects messages of other senders: of users that are not authenticated or not in ``senders``, of tenants,
    of other routers, and of users that the policy does not let send to the address.
    """

    address: str
    senders: frozenset[str]
    #: Larger messages are rejected; messages beyond ``per_second`` are released.
    max_bytes: int = 4096
    per_second: int = 10
    #: Limit of the decisions in force at one time.
    max_standing: int = 1000

    def __post_init__(self) -> None:
        if not self.address or not self.senders:
            raise ValueError("a consumer needs an address and senders")
        if not (0 < self.max_bytes <= 65536 and 0 < self.per_second <= 1000 and 0 < self.max_standing <= 100_000):
            raise ValueError("a consumer takes up to 64 KiB, 1000 messages a second and 100000 decisions")


@runtime_checkable
class Consumer(Protocol):
    """A plugin's object that takes messages at an address. It is called on the event loop: no I/O, no waiting."""

    @property
    def terms(self) -> ConsumerTerms:
        """The address to consume from and the senders to accept; the same while the consumer is in use."""

    def consume(self, message: IncomingMessage) -> Decision | Rejected:
        """Return the decision that a message asks for, or its rejection."""
