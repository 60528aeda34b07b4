"""What becomes of the rows of the workers of one router."""

from __future__ import annotations

import pytest

from trouter.columns.column import Merge
from trouter.management.kinds import kind_of
from trouter.management.merging import has_parts, merged, merged_maps
from trouter.wire.codec import decode_all, encode
from trouter.wire.types import Int

ROUTER = kind_of("org.apache.qpid.dispatch.router")
RECORD_LOG = kind_of("org.apache.qpid.dispatch.recordLog")
WELL = {"uplinkFault": "", "uplinkDownSince": None}


def down(why: str, since_ms: int) -> dict[str, object]:
    return {"uplinkFault": why, "uplinkDownSince": since_ms}


@pytest.mark.parametrize(
    ("workers", "whole"),
    [
        ([WELL, WELL], WELL),
        ([WELL, down("refused", 7)], down("refused", 7)),
        ([down("refused", 9), down("lost", 7)], down("refused", 7)),
        ([{"uplinkFault": None}, {"uplinkFault": None}], {"uplinkFault": None}),
    ],
    ids=["all well", "one down", "all down", "no edge router"],
)
def test_the_uplink_of_a_router_is_down_if_that_of_a_worker_is(
    workers: list[dict[str, object]], whole: dict[str, object]
) -> None:
    assert merged_maps(ROUTER, workers) == whole


@pytest.mark.parametrize(("parts", "kind"), [([1, 2], Int), ([2**31 - 1, 1], int), ([2**31 - 1] * 64, int)])
def test_a_sum_is_a_long_if_it_has_more_than_31_bits(parts: list[int], kind: type) -> None:
    total = merged_maps(RECORD_LOG, [{"maxBytes": Int(each)} for each in parts])["maxBytes"]
    assert (total, type(total)) == (sum(parts), kind)
    assert decode_all(encode([total])) == [sum(parts)]


@pytest.mark.parametrize(
    ("kind", "name", "merge"),
    [
        ("router", "addrCount", Merge.LARGEST),
        ("router", "connectionCount", Merge.SUM),
        ("router", "drainState", Merge.DRAIN),
        ("router", "id", Merge.FIRST),
        ("router.address", "deliveriesIngress", Merge.SUM),
        ("router.address", "subscriberCount", Merge.SUM),
        ("router.address", "remoteHostRouters", Merge.JOIN),
        ("vhostStats", "perUserState", Merge.JOIN),
        ("policy", "totalDenials", Merge.SUM),
        ("policy", "maxConnections", Merge.FIRST),
        ("decision", "rate", Merge.FIRST),
        ("recordLog", "maxBytes", Merge.SUM),
    ],
)
def test_what_becomes_of_a_column_stands_at_the_column(kind: str, name: str, merge: Merge) -> None:
    declared = kind_of(f"org.apache.qpid.dispatch.{kind}")
    attribute = declared.attribute(name)
    assert attribute is not None
    assert (declared.parted, attribute.merge) == (True, merge)


def test_what_lives_at_one_worker_has_no_parts() -> None:
    connection = kind_of("org.apache.qpid.dispatch.connection")
    assert not has_parts(connection)
    assert merged(connection, ["sessionCount"], [[1], [2]]) == [1]
