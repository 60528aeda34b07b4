"""The rows of what the network, the policy, the logins and the process report have their declared columns and types."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from tests.core.test_columns import check
from trouter.backbone.changes import MAX_LINES, NetworkChange
from trouter.columns.column import COMMON, Column
from trouter.columns.network import CHANGE, MAX_MOVED, NODE, NodeFacts
from trouter.columns.process import ALLOCATOR, FINDING, LOG_STATS, MemoryPool, ModuleCounts
from trouter.columns.rows import Rows
from trouter.columns.security import (
    ALARM,
    DECISION,
    DENIAL,
    LOCKOUT,
    VHOST,
    AlarmFacts,
    DecisionFacts,
    DenialFacts,
    LockoutFacts,
    VhostCounts,
    VhostFacts,
)
from trouter.config.problems import Problem, Severity, SourcePosition
from trouter.config.strictness import POINTS
from trouter.config.types import type_named

PLACE = SourcePosition("router.conf", 3, 1)


def node(**more: Any) -> NodeFacts:
    return NodeFacts(id="R2", protocol_version=1, changed_at_s=7, **{"instance": 1, "links": {"R1": 4}, **more})


def busy_change() -> NetworkChange:
    change = NetworkChange(1, 1_700_000_000_000, 5.0, "a link was lost", 7.5, cause="R2:9")
    for number in range(MAX_LINES + 2):
        change.add_line(f"line {number}")
    change.moved = dict.fromkeys(f"R{number}" for number in range(MAX_MOVED + 1))
    return change


TABLES: list[tuple[str, Sequence[Column[Any, Any]], Any, list[Any]]] = [
    ("router.node", NODE, None, [node(), node(instance=None, valid_origins=None, router_link=5, cost=2, index=0)]),
    ("topologyChange", CHANGE, None, [NetworkChange(1, 1, 0.0, "w", 0.0), busy_change()]),
    ("allocator", ALLOCATOR, None, [MemoryPool("qd_link_t", 96, 7, 64, 128)]),
    ("logStats", LOG_STATS, None, [ModuleCounts("AGENT", {"error": 3})]),
    ("finding", FINDING, POINTS, [Problem(PLACE, "m"), Problem(PLACE, "m", point="require-tls", entity="e")]),
    ("vhostStats", VHOST, None, [VhostFacts("v", VhostCounts(), 1, {"u": ["h"]}, {"h": ["c"]}, ["rule"])]),
    ("authLockout", LOCKOUT, None, [LockoutFacts("192.0.2.1", None, 3, 0.4, 0.0), LockoutFacts("p", "u", 9, 0, 1.5)]),
    (
        "decision",
        DECISION,
        None,
        [
            DecisionFacts("d", "lock-user", "eve", "", None, "", (), "boss", 1.2),
            DecisionFacts("e", "slow-tenant", "acme", "v", 5, "why", (3, 4), "boss", -1.0),
        ],
    ),
    ("denial", DENIAL, None, [DenialFacts("open", "r", "", "h", "", "", "", 2, 1_700_000_000_000)]),
    ("alarm", ALARM, None, [AlarmFacts("memory", "warning", "75 percent", "raised", "", "", 2, 1_700_000_000_000)]),
]
IDS = [table[0] for table in TABLES]


@pytest.mark.parametrize(("short", "columns", "owner", "things"), TABLES, ids=IDS)
def test_rows_have_their_columns_with_the_declared_types(
    short: str, columns: Sequence[Column[Any, Any]], owner: Any, things: list[Any]
) -> None:
    for thing in things:
        check(Rows(columns, owner).row(thing), columns)


@pytest.mark.parametrize(("short", "columns", "owner", "things"), TABLES, ids=IDS)
def test_a_type_has_the_columns_of_its_table_in_their_order(
    short: str, columns: Sequence[Column[Any, Any]], owner: Any, things: list[Any]
) -> None:
    kind = type_named(short)
    assert kind is not None
    declared = [each.name for each in columns if each.name not in COMMON]
    assert [each.name for each in kind.own] == declared


def test_a_change_shows_how_many_lines_and_routers_were_left_out() -> None:
    row = Rows(CHANGE, None).row(busy_change())
    assert row["events"] == [*(f"line {number}" for number in range(MAX_LINES)), "and 2 more"]
    assert (row["movedCount"], len(row["moved"])) == (MAX_MOVED + 1, MAX_MOVED)  # type: ignore[arg-type]
    assert row["convergenceMs"] == 2500


def test_times_of_lockouts_and_decisions_are_rounded_up_and_not_negative() -> None:
    lockout = Rows(LOCKOUT, None).row(LockoutFacts("192.0.2.1", "u", 3, 0.1, 1.2))
    assert (lockout["delaySeconds"], lockout["lockedSeconds"], lockout["locked"]) == (1, 2, True)
    decision = Rows(DECISION, None).row(DecisionFacts("d", "block-host", "h", "", None, "", (), "b", -3.0))
    assert decision["secondsLeft"] == 0


@pytest.mark.parametrize("severity", Severity)
def test_the_severities_of_findings_are_the_values_of_their_column(severity: Severity) -> None:
    check(Rows(FINDING, POINTS).row(Problem(PLACE, "m", severity=severity)), FINDING)
