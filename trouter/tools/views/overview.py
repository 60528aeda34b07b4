"""The router as a whole: its counters, its policy and its memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from trouter.columns.process import ALLOCATOR
from trouter.config.entities import PolicyEntity, RouterEntity
from trouter.tools import formats

from .model import Listing, Row, Rows, View, ViewField, ViewRequest, attribute, attributes_of, fields_of, simple


def _resident(row: Row) -> object:
    """Return the memory of the process; None if it is unknown."""
    return row.get("memoryUsage") or None


def _drain(row: Row) -> object:
    """Return whether the router drains; None, and so no line, if it does not, as qdstat knows no such line."""
    return None if row.get("drainState") == "serving" else row.get("drainState")


#: In the order of qdstat; other columns with a head follow.
_ROUTER_FIELDS = fields_of(
    RouterEntity.type.own,
    (
        "Version", "Mode", "Router Id", "Worker Threads", "Uptime",
        ViewField("VmSize", _resident, formats.size, needs="memoryUsage"),
        "Area",
        "Link Routes", "Auto Links", "Links", "Nodes", "Addresses", "Connections", "Presettled Count",
        "Dropped Presettled Count", "Accepted Count", "Rejected Count", "Released Count", "Modified Count",
        "Deliveries Delayed > 1sec", "Deliveries Delayed > 10sec", "Deliveries Stuck > 10sec",
        "Deliveries to Fallback", "Links Blocked",
        "Ingress Count", "Egress Count", "Transit Count",
        "Deliveries from Route Container", "Deliveries to Route Container",
    ),
)  # fmt: skip

ROUTER_FIELDS = tuple(replace(each, value=_drain) if each.reads == ("drainState",) else each for each in _ROUTER_FIELDS)

POLICY_SETTINGS = fields_of(row for row in PolicyEntity.type.own if row.settable)
POLICY_STATUS = fields_of(row for row in PolicyEntity.type.own if not row.settable)


def _pool(row: Row) -> str:
    """Return the name of the type that a pool is for."""
    identity = row.get("identity")
    return str(identity).partition("/")[2] or str(identity) if identity else "-"


POOL_FIELDS = fields_of(ALLOCATOR, (ViewField("type", _pool, reads=("identity",)),))


def _size_or_dash(value: object) -> str:
    return "-" if value is None else formats.size(value)


POOL_SUMMARY = (attribute("VmSize", "memoryUsage", _size_or_dash), attribute("Pooled", "pooled", formats.size))


def _policy(answers: Sequence[Rows]) -> list[Listing]:
    rows = answers[0][:1]
    return [
        Listing("Policy Configuration", POLICY_SETTINGS, rows, upright=True, table="policy"),
        Listing("\nPolicy Status", POLICY_STATUS, rows, upright=True),
    ]


def _pools(answers: Sequence[Rows]) -> list[Listing]:
    pools, routers = answers
    listings = simple("Memory Pools", POOL_FIELDS, "allocator", sort="type", empty="No memory statistics available")
    if not pools or any(row.get("totalAllocFromHeap") is None for row in pools):
        return listings([()])
    sizes = [(row.get("typeSize"), row.get("totalAllocFromHeap")) for row in pools]
    pooled = sum(each * count for each, count in sizes if isinstance(each, int) and isinstance(count, int))
    usage = routers[0].get("memoryUsage") if routers else None
    summary = {"memoryUsage": usage, "pooled": pooled}
    return [*listings([pools]), Listing("\nMemory Summary", POOL_SUMMARY, [summary], table="memory")]


GENERAL = View(
    "general",
    ("-g", "--general"),
    "show general statistics of the router",
    (ViewRequest("router"),),
    lambda answers: [Listing("Router Statistics", ROUTER_FIELDS, answers[0][:1], upright=True, table="router")],
)

POLICY = View("policy", ("-p", "--policy"), "show the policy and what it denied", (ViewRequest("policy"),), _policy)

POOLS = View(
    "pools",
    ("-m", "--memory"),
    "show the router's pools of memory",
    (
        ViewRequest("allocator", attributes_of(POOL_FIELDS)),
        ViewRequest("router", ("memoryUsage",), optional=True),
    ),
    _pools,
)
