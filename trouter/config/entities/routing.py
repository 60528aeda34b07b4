"""How addresses are treated: distribution, and the links, brokers and exchanges behind them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from trouter.config.entities.base import (
    DISTRIBUTIONS,
    Numbered,
    entity,
)
from trouter.config.schema import Kind, Reload, attribute, reported

DIRECTIONS: Final = ("in", "out")
CREATE_DELETE: Final = ("CREATE", "DELETE")


def phase_of(doc: str, default: int | None = 0, default_doc: str = "") -> Any:
    return attribute(Kind.INTEGER, doc, default, default_doc=default_doc, high=9, update=False, reload=Reload.NEXT)


def hop_phase(doc: str) -> Any:
    """A phase of what exchanges send to, and take from."""
    return attribute(Kind.INTEGER, doc, 0, high=9, wrong="phase must be in the range 0-9", update=False)


@entity(
    "router.config.address",
    "How messages to some addresses are distributed. Any number.",
    "address",
    schema_key="address",
    operations=CREATE_DELETE,
    core=True,
)
@dataclass(frozen=True, slots=True, kw_only=True)
class AddressEntity(Numbered):
    """How messages to matching addresses are distributed. Exactly one of prefix and pattern is given."""

    prefix: str | None = attribute(
        Kind.STRING, "Matches this address and everything below it.", text_only=True, update=False, reload=Reload.NEXT
    )
    pattern: str | None = attribute(
        Kind.STRING,
        "Matches by tokens between `.` or `/`: `*` is one token, `#` any number of them.",
        text_only=True,
        update=False,
        reload=Reload.NEXT,
    )
    distribution: str = attribute(
        Kind.ENUM,
        "To which consumers a message goes.",
        "balanced",
        values=DISTRIBUTIONS,
        update=False,
        reload=Reload.NEXT,
    )
    waypoint: bool = attribute(
        Kind.BOOLEAN, "Messages pass through a broker on their way.", False, update=False, reload=Reload.NEXT
    )
    ingress_phase: int = phase_of("The phase of the address that senders use; to be given together with egressPhase.")
    egress_phase: int = phase_of(
        "The phase of the address that receivers use; to be given together with ingressPhase.",
        default_doc="1 for a waypoint, else 0",
    )
    priority: int | None = phase_of("Overrides the priority in the messages.", None, "the message's own")
    enable_fallback: bool = attribute(
        Kind.BOOLEAN,
        "Messages that find no consumer go to consumers with the capability `qd.fallback`.",
        False,
        old_names=("fallback",),
        twin="fallback",
        update=False,
        reload=Reload.NEXT,
    )


@entity(
    "router.config.linkRoute",
    "Links to some addresses are routed to a broker as a whole.",
    "linkRoute",
    schema_key="linkRoute",
    operations=CREATE_DELETE,
    core=True,
)
@dataclass(frozen=True, slots=True, kw_only=True)
class LinkRouteEntity(Numbered):
    """Links to matching addresses are routed. Exactly one of prefix and pattern is given."""

    prefix: str | None = attribute(
        Kind.STRING, "Matches this address and everything below it.", text_only=True, update=False
    )
    pattern: str | None = attribute(
        Kind.STRING,
        "Matches by tokens between `.` or `/`: `*` is one token, `#` any number of them.",
        text_only=True,
        update=False,
    )
    add_external_prefix: str | None = attribute(Kind.STRING, "Put before the address towards the broker.", update=False)
    del_external_prefix: str | None = attribute(Kind.STRING, "Taken from the address towards the broker.", update=False)
    container_id: str | None = attribute(
        Kind.STRING, "The container id of the broker; not together with connection.", update=False
    )
    connection: str | None = attribute(
        Kind.STRING,
        "The name of the connector or listener where the broker is; not together with containerId.",
        update=False,
    )
    distribution: str = attribute(
        Kind.ENUM, "Which of several brokers gets a link.", "linkBalanced", values=("linkBalanced",), update=False
    )
    direction: str = attribute(
        Kind.ENUM,
        "Whose links: `in` of clients that send, `out` of clients that receive.",
        values=DIRECTIONS,
        old_names=("dir",),
        twin="dir",
        required=True,
        missing="No 'direction' attribute provided - it is mandatory",
        update=False,
    )
    oper_status: None = reported(Kind.ENUM, "Whether its broker is there.", values=("inactive", "active"))


@entity(
    "router.config.autoLink",
    "A link that the router attaches to a broker by itself.",
    "autoLink",
    schema_key="autoLink",
    operations=CREATE_DELETE,
    core=True,
)
@dataclass(frozen=True, slots=True, kw_only=True)
class AutoLinkEntity(Numbered):
    """A link that the router attaches to a broker by itself."""

    address: str = attribute(
        Kind.STRING,
        "The address of the link, as this router's clients call it.",
        old_names=("addr",),
        twin="addr",
        required=True,
        missing="address and direction fields are mandatory",
        update=False,
    )
    direction: str = attribute(
        Kind.ENUM,
        "`in` takes messages from the broker, `out` sends them there.",
        values=DIRECTIONS,
        old_names=("dir",),
        twin="dir",
        required=True,
        missing="address and direction fields are mandatory",
        update=False,
    )
    phase: int = attribute(
        Kind.INTEGER,
        "The phase of the address.",
        0,
        default_doc="1 for `in`, 0 for `out` and for a fallback",
        high=9,
        update=False,
    )
    container_id: str | None = attribute(
        Kind.STRING, "The container id of the broker; not together with connection.", update=False
    )
    connection: str | None = attribute(
        Kind.STRING,
        "The name of the connector or listener where the broker is; not together with containerId.",
        update=False,
    )
    external_address: str | None = attribute(
        Kind.STRING,
        "What the broker calls the address.",
        default_doc="the same",
        old_names=("externalAddr",),
        twin="externalAddr",
        update=False,
    )
    fallback: bool = attribute(Kind.BOOLEAN, "The broker takes what finds no other consumer.", False, update=False)
    link_ref: None = reported(Kind.STRING, "The identity of its link.")
    oper_status: None = reported(
        Kind.ENUM,
        "How far the link has come.",
        values=("inactive", "attaching", "failed", "active", "quiescing", "idle"),
    )
    last_error: None = reported(Kind.STRING, "Why it has failed.")


@entity(
    "router.config.exchange",
    "An address whose messages are distributed by their subjects.",
    "exchange",
    schema_key="exchange",
    operations=CREATE_DELETE,
    core=True,
)
@dataclass(frozen=True, slots=True, kw_only=True)
class ExchangeEntity(Numbered):
    """An address whose messages are distributed by their subjects."""

    address: str = attribute(
        Kind.STRING,
        "The address that senders use.",
        required=True,
        missing="exchange address is mandatory",
        update=False,
    )
    phase: int = hop_phase("The phase of that address.")
    alternate_address: str | None = attribute(Kind.STRING, "Where messages without another receiver go.", update=False)
    alternate_phase: int = hop_phase("The phase of that address.")
    match_method: str = attribute(
        Kind.ENUM,
        "How binding keys are written: `a.*.#` (amqp) or `a/+/#` (mqtt).",
        "amqp",
        values=("amqp", "mqtt"),
        wrong="Exchange matchMethod must be either 'amqp' or 'mqtt'",
        update=False,
    )
    binding_count: None = reported(Kind.INTEGER, "Its bindings.")
    received_count: None = reported(Kind.INTEGER, "Messages that came to it.")
    dropped_count: None = reported(Kind.INTEGER, "Those of them that had no receiver.")
    forwarded_count: None = reported(Kind.INTEGER, "Those of them that had a receiver.")
    diverted_count: None = reported(Kind.INTEGER, "Those of them that only the alternate address got.")


@entity(
    "router.config.binding",
    "Where an exchange sends messages with some subjects.",
    "binding",
    schema_key="binding",
    operations=CREATE_DELETE,
    core=True,
)
@dataclass(frozen=True, slots=True, kw_only=True)
class BindingEntity(Numbered):
    """Where an exchange sends messages with some subjects."""

    exchange_name: str = attribute(
        Kind.STRING,
        "The name of the exchange.",
        required=True,
        missing="Binding configuration requires an exchange",
        update=False,
    )
    binding_key: str | None = attribute(Kind.STRING, "The subjects, by tokens.", default_doc="`#`, all", update=False)
    next_hop_address: str = attribute(
        Kind.STRING, "Where the messages go.", required=True, missing="No next hop specified", update=False
    )
    next_hop_phase: int = hop_phase("The phase of that address.")
    matched_count: None = reported(Kind.INTEGER, "Messages whose subject fitted the key.")
