"""The columns of ``router.node`` and ``topologyChange``: `stat` (`--nodes`, `--topology`) shows those with a head."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from .column import Column, EntityId, Form, Head

if TYPE_CHECKING:
    from trouter.backbone.changes import NetworkChange

#: The most ids of moved routers that a row has.
MAX_MOVED: Final = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeFacts:
    """One router of the network, as this router sees it."""

    id: str
    protocol_version: int
    #: None until the router has told it.
    instance: int | None
    #: The cost of each of its links, by neighbour.
    links: Mapping[str, int]
    #: When its links or the path to it last changed, in seconds since 1970; 0 for never.
    changed_at_s: int
    #: None for a neighbour.
    next_hop: str | None = None
    #: None for a network that is too large to compute them.
    valid_origins: Sequence[str] | None = ()
    #: The identity of the link to a neighbour.
    router_link: int | None = None
    #: None for this router.
    cost: int | None = None
    index: int | None = None


#: Those of Qpid Dispatch first, in the order of its schema.
NODE: Final[tuple[Column[None, NodeFacts], ...]] = (
    Column("id", str, "Id of the router.", lambda _, node: node.id, head=Head("router-id", needs=False)),
    Column(
        "protocolVersion",
        int,
        "Version of the routing protocol that the router uses.",
        lambda _, node: node.protocol_version,
        head=Head("ver", needs=False, detail=True),
    ),
    Column(
        "instance",
        int,
        "Start time of the router: milliseconds since 1970, for Qpid Dispatch seconds.",
        lambda _, node: node.instance,
        optional=True,
    ),
    Column(
        "linkState",
        list,
        "Ids of the neighbours of the router.",
        lambda _, node: sorted(node.links),
        head=Head("neighbors", Form.LISTED, needs=False, detail=True),
    ),
    Column(
        "nextHop",
        str,
        "Next hop: the neighbour through which the router is reached; `(self)` for this router.",
        lambda _, node: node.next_hop,
        optional=True,
        head=Head("next-hop", Form.DASH_FOR_NONE, needs=False),
    ),
    Column(
        "validOrigins",
        list,
        "Valid origins: routers whose messages to it pass through this one, in networks of up to 300.",
        lambda _, node: None if node.valid_origins is None else list(node.valid_origins),
        optional=True,
        head=Head("valid-origins", Form.LISTED, needs=False, detail=True),
    ),
    Column("address", str, "Address of the router.", lambda _, node: f"amqp:/_topo/0/{node.id}"),
    Column(
        "routerLink",
        EntityId,
        "Link to the router, if it is a neighbour.",
        lambda _, node: node.router_link,
        optional=True,
    ),
    Column(
        "cost",
        int,
        "Cost of the path to the router.",
        lambda _, node: node.cost,
        optional=True,
        head=Head("cost", Form.NONE_FOR_ZERO, needs=False, detail=True),
    ),
    Column(
        "lastTopoChange",
        int,
        "Time of the last change of the topology, in seconds since 1970.",
        lambda _, node: node.changed_at_s,
        unit="seconds since 1970",
    ),
    Column("index", int, "Index of the router in lists by router.", lambda _, node: node.index, optional=True),
    Column(
        "linkCosts",
        dict,
        "Cost of each of the router's links, by neighbour, as the router advertises them.",
        lambda _, node: dict(sorted(node.links.items())),
        extra=True,
    ),
)

CHANGE: Final[tuple[Column[None, NetworkChange], ...]] = (
    Column(
        "began",
        int,
        "Time of the first event, in milliseconds since 1970.",
        lambda _, change: change.began_ms,
        unit="milliseconds since 1970",
        head=Head("began", Form.DATE_OF_MS, needs=False),
    ),
    Column("why", str, "The first event.", lambda _, change: change.why, head=Head("why", needs=False)),
    Column(
        "cause",
        str,
        "Router whose links changed, and the sequence number of its link state; the same at every router.",
        lambda _, change: change.cause or None,
        optional=True,
        head=Head("cause", needs=False, detail=True),
    ),
    Column(
        "settled",
        bool,
        "Whether the change is complete; if not, it is under way.",
        lambda _, change: change.settled,
        head=Head("at rest", Form.YES_NO, needs=False),
    ),
    Column(
        "convergenceMs",
        int,
        "Time from the first event to the last change of a path, in milliseconds.",
        lambda _, change: round(change.took_s * 1000),
        unit="milliseconds",
        head=Head("took", Form.SECONDS_OF_MS, needs=False),
    ),
    Column(
        "rounds",
        int,
        "Number of recomputations of the paths.",
        lambda _, change: change.rounds,
        unit="recomputations",
        head=Head("rounds", needs=False, detail=True),
    ),
    Column(
        "movedCount",
        int,
        "Number of routers whose path changed, that became unreachable, or reachable again.",
        lambda _, change: len(change.moved),
        unit="routers",
        head=Head("moved", needs=False),
    ),
    Column(
        "moved",
        list,
        f"Ids of these routers, at most {MAX_MOVED}.",
        lambda _, change: list(change.moved)[:MAX_MOVED],
        head=Head("who", Form.LISTED, needs=False, detail=True),
    ),
    Column(
        "reachableCount",
        int,
        "Number of reachable routers after the change.",
        lambda _, change: change.reachable,
        unit="routers",
        head=Head("in reach", needs=False),
    ),
    Column("events", list, "What happened: a line for each event, at most 50.", lambda _, change: change.shown_lines()),
)
