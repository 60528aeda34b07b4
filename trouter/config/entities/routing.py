"""How addresses are treated: distribution, and the links, brokers and exchanges behind them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from trouter.columns.column import Head
from trouter.config.entities.base import DISTRIBUTIONS, Numbered, entity
from trouter.config.point import Point, with_points
from trouter.config.problems import Severity
from trouter.config.schema import NEXT, Kind, boolean, choice, integer, reported, string

DIRECTIONS: Final = ("in", "out")
CREATE_DELETE: Final = ("CREATE", "DELETE")


def phase_of(doc: str, default: int | None = 0, default_doc: str = "") -> Any:
    return integer(doc, default, default_doc=default_doc, high=9, update=False, reload=NEXT)


def hop_phase(doc: str) -> Any:
    """Return a phase of what exchanges send to, and take from."""
    return integer(doc, 0, high=9, wrong="phase must be in the range 0-9", update=False)


def down_since_attribute(state: str) -> Any:
    """Return the attribute that shows since when ``state`` lasts."""
    return reported(
        Kind.INTEGER,
        f"Since when {state}, in milliseconds since 1970; absent while it is.",
        extra=True,
        unit="milliseconds since 1970",
    )


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

    prefix: str | None = with_points(
        string("Matches this address and every address below it.", text_only=True, update=False, reload=NEXT),
        Point(
            name="same-addresses",
            compatible="if two address sections have the same prefix or pattern, the first counts",
            strict="the file is refused",
            warning="this section will not be added",
            cure="make one section of the two",
            severity=Severity.NOTE,
        ),
    )
    pattern: str | None = string(
        "Matches by tokens between `.` or `/`: `*` is one token, `#` any number of them.",
        text_only=True,
        update=False,
        reload=NEXT,
    )
    distribution: str = choice(
        "Distribution: which consumers get a message.", "balanced", values=DISTRIBUTIONS, update=False, reload=NEXT
    )
    waypoint: bool = boolean("Messages to the address pass through a broker.", False, update=False, reload=NEXT)
    ingress_phase: int = phase_of("The phase of the address that senders use; to be given together with egressPhase.")
    egress_phase: int = phase_of(
        "The phase of the address that receivers use; to be given together with ingressPhase.",
        default_doc="1 for a waypoint, else 0",
    )
    priority: int | None = phase_of("Overrides the priority in the messages.", None, "the message's own")
    enable_fallback: bool = boolean(
        "Messages that find no consumer go to consumers with the capability `qd.fallback`.",
        False,
        old_names=("fallback",),
        twin="fallback",
        update=False,
        reload=NEXT,
    )
    metrics: bool = boolean(
        "The page /metrics counts the messages of all addresses that this section governs, under the section's name.",
        False,
        update=False,
        extra=True,
    )


@entity(
    "router.config.linkRoute",
    "A link route: links to some addresses are routed to a broker as a whole. Any number.",
    "linkRoute",
    schema_key="linkRoute",
    operations=CREATE_DELETE,
    core=True,
    points=(
        Point(
            name="left-out",
            compatible="an address, linkRoute, autoLink, exchange or binding with a contradiction or an "
            "impossible value, and an sslProfile or authServicePlugin without a name, is left "
            "out, and the rest serves",
            strict="the file is refused",
            warning="this section will be left out",
            cure="mend it or remove it",
            severity=Severity.PROBLEM,
        ),
    ),
)
@dataclass(frozen=True, slots=True, kw_only=True)
class LinkRouteEntity(Numbered):
    """Links to matching addresses are routed. Exactly one of prefix and pattern is given."""

    prefix: str | None = string("Matches this address and every address below it.", text_only=True, update=False)
    pattern: str | None = string(
        "Matches by tokens between `.` or `/`: `*` is one token, `#` any number of them.", text_only=True, update=False
    )
    add_external_prefix: str | None = string(
        "The router puts this text before the address that it sends to the broker.",
        update=False,
        head=Head("add-ext-prefix", needs=False),
    )
    del_external_prefix: str | None = string(
        "The router removes this text from the beginning of the address that it sends to the broker.",
        update=False,
        head=Head("del-ext-prefix", needs=False),
    )
    container_id: str | None = string("The container id of the broker; not together with connection.", update=False)
    connection: str | None = with_points(
        string(
            "The name of the connector or listener where the broker is; not together with containerId.", update=False
        ),
        Point(
            name="connection-elsewhere",
            compatible="a linkRoute whose connection only another router of the network has leads there",
            warning="there is no connector or listener '{name}' here: its links go to other routers alone",
            cure="leave out connection, or add a connector with this name and role: route-container",
            page="link-routing.md",
            severity=Severity.NOTE,
        ),
        Point(
            name="not-for-routes",
            compatible="an autoLink or linkRoute whose connection has another role than route-container stays inactive",
            warning="'{name}' has the role {role}: will stay inactive",
            cure="write role: route-container there",
            page="link-routing.md",
            severity=Severity.PROBLEM,
        ),
    )
    distribution: str = choice(
        "How the router chooses one of several brokers for a link.",
        "linkBalanced",
        values=("linkBalanced",),
        update=False,
        head=Head("distrib", needs=False),
    )
    direction: str = choice(
        "Direction of the links: `in` for clients that send, `out` for clients that receive.",
        values=DIRECTIONS,
        old_names=("dir",),
        twin="dir",
        required=True,
        missing="No 'direction' attribute provided - it is mandatory",
        update=False,
        head=Head("dir", needs=False),
    )
    oper_status: None = with_points(
        reported(
            Kind.ENUM,
            "Operational state: `active` while the broker is connected.",
            values=("inactive", "active"),
            head=Head("status", needs=False),
        ),
        Point(
            name="reported-attribute",
            compatible="an attribute that only management shows is ignored in a file",
            strict="the file is refused",
            warning="it will be ignored",
            cure="leave it out",
            severity=Severity.NOTE,
        ),
    )
    down_since: None = down_since_attribute("the broker is not connected")


@entity(
    "router.config.autoLink",
    "An auto link: a link that the router attaches to a broker by itself. Any number.",
    "autoLink",
    schema_key="autoLink",
    operations=CREATE_DELETE,
    core=True,
)
@dataclass(frozen=True, slots=True, kw_only=True)
class AutoLinkEntity(Numbered):
    """A link that the router attaches to a broker by itself."""

    address: str = string(
        "The address of the link in this network.",
        old_names=("addr",),
        twin="addr",
        head=Head("addr", needs=False),
        required=True,
        missing="address and direction fields are mandatory",
        update=False,
    )
    direction: str = choice(
        "Direction: `in` takes messages from the broker, `out` sends them there.",
        values=DIRECTIONS,
        old_names=("dir",),
        twin="dir",
        head=Head("dir", needs=False),
        required=True,
        missing="address and direction fields are mandatory",
        update=False,
    )
    phase: int = integer(
        "The phase of the address.",
        0,
        default_doc="1 for `in`, 0 for `out` and for a fallback",
        high=9,
        update=False,
        head=Head("phs", needs=False),
    )
    container_id: str | None = string("The container id of the broker; not together with connection.", update=False)
    connection: str | None = with_points(
        string(
            "The name of the connector or listener where the broker is; not together with containerId.", update=False
        ),
        Point(
            name="unknown-connection",
            compatible="an autoLink or linkRoute whose connection does not exist waits for it: management "
            "may create it",
            warning="there is no connector or listener '{name}': will stay inactive",
            cure="add a connector or listener with this name and role: route-container",
            page="link-routing.md",
            severity=Severity.PROBLEM,
        ),
    )
    external_address: str | None = string(
        "The address at the broker.",
        default_doc="the same",
        old_names=("externalAddr",),
        twin="externalAddr",
        head=Head("extAddr", needs=False),
        update=False,
    )
    fallback: bool = boolean("The broker receives the messages that have no other consumer.", False, update=False)
    link_ref: None = reported(Kind.STRING, "Identity of the link.", head=Head("link", needs=False))
    oper_status: None = reported(
        Kind.ENUM,
        "Operational state of the link.",
        values=("inactive", "attaching", "failed", "active", "quiescing", "idle"),
        head=Head("status", needs=False),
    )
    last_error: None = reported(Kind.STRING, "Last error of the link.", head=Head("lastErr", needs=False, alarm=True))
    attempts: None = reported(
        Kind.INTEGER, "Attempts to attach the link since the auto link exists.", extra=True, graph=True
    )
    down_since: None = down_since_attribute("the link is not active")


@entity(
    "router.config.exchange",
    "An exchange: an address whose messages are distributed by their subjects. Any number.",
    "exchange",
    schema_key="exchange",
    operations=CREATE_DELETE,
    core=True,
)
@dataclass(frozen=True, slots=True, kw_only=True)
class ExchangeEntity(Numbered):
    """An address whose messages are distributed by their subjects."""

    address: str = string(
        "The address that senders use.", required=True, missing="exchange address is mandatory", update=False
    )
    phase: int = hop_phase("The phase of that address.")
    alternate_address: str | None = string("The address for messages that have no other receiver.", update=False)
    alternate_phase: int = hop_phase("The phase of that address.")
    match_method: str = choice(
        "How binding keys are written: `a.*.#` (amqp) or `a/+/#` (mqtt).",
        "amqp",
        values=("amqp", "mqtt"),
        wrong="Exchange matchMethod must be either 'amqp' or 'mqtt'",
        update=False,
    )
    binding_count: None = reported(Kind.INTEGER, "Number of bindings of the exchange.")
    received_count: None = reported(Kind.INTEGER, "Messages received by the exchange.")
    dropped_count: None = reported(Kind.INTEGER, "Received messages that had no receiver.")
    forwarded_count: None = reported(Kind.INTEGER, "Received messages that had a receiver.")
    diverted_count: None = reported(Kind.INTEGER, "Received messages that went only to the alternate address.")


@entity(
    "router.config.binding",
    "A binding: where an exchange sends messages with some subjects. Any number.",
    "binding",
    schema_key="binding",
    operations=CREATE_DELETE,
    core=True,
)
@dataclass(frozen=True, slots=True, kw_only=True)
class BindingEntity(Numbered):
    """Where an exchange sends messages with some subjects."""

    exchange_name: str = string(
        "The name of the exchange.", required=True, missing="Binding configuration requires an exchange", update=False
    )
    binding_key: str | None = string("Pattern of the subjects, by tokens.", default_doc="`#`, all", update=False)
    next_hop_address: str = string(
        "The address to which the messages go.", required=True, missing="No next hop specified", update=False
    )
    next_hop_phase: int = hop_phase("The phase of that address.")
    matched_count: None = reported(Kind.INTEGER, "Messages whose subject matched the key.")
