"""What becomes of the rows of the workers of one router."""

from __future__ import annotations

import pytest

from trouter.management.kinds import kind_of
from trouter.management.merging import merged_maps

ROUTER = kind_of("org.apache.qpid.dispatch.router")
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
