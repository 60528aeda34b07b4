"""The meter over links whose attaches and detaches a router has written together, because a user repeats them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pipeline.tests.generate import HOUR, MINUTE, SECOND, START, Scribe
from trouter.records import ConnectionClosedRecord, ConnectionOpenedRecord, LinkAttachedRecord, LinkDetachedRecord
from trouter_pipeline.compact import compact
from trouter_pipeline.jobs import meter
from trouter_pipeline.metering.engines import Engine, InProcess, OnSpark
from trouter_pipeline.tables import Table

pytestmark = pytest.mark.one_twin

END = START + 3 * HOUR + MINUTE


@pytest.fixture(params=["duckdb", pytest.param("spark", marks=[pytest.mark.spark, pytest.mark.pipeline_long])])
def engine(request: pytest.FixtureRequest) -> Engine:
    return InProcess() if request.param == "duckdb" else OnSpark(request.getfixturevalue("spark"))


def test_links_whose_ends_are_in_one_record_have_ended_and_no_row_is_doubted(engine: Engine, tmp_path: Path) -> None:
    peer: dict[str, Any] = {"conn": 1, "vhost": "acme", "tenant": "acme", "user": "app", "host": "192.0.2.1"}
    about: dict[str, Any] = {"addr": "orders", "dir": "in", **peer}
    scribe = Scribe(tmp_path / "a", "QDR.A", START)
    scribe.write(ConnectionOpenedRecord(t=START, listener="amqp", role="normal", dir="in", mech="PLAIN", **peer))
    for number in range(1, 5):  # attached and detached one after the other; four ends are in the record of the first
        scribe.write(
            LinkAttachedRecord(
                t=START + number * SECOND, link=number, kind="endpoint", dynamic=False, snd_mode=2, rcv_mode=0,
                credit=0, **about,
            )
        )  # fmt: skip
    scribe.write(
        LinkDetachedRecord(
            t=START + 5 * SECOND, link=1, attached_at=START + SECOND, closed=True, reason="peer", repeat=4, **about
        )
    )
    last = START + 2 * HOUR
    scribe.write(
        LinkAttachedRecord(
            t=last, link=5, kind="endpoint", dynamic=False, snd_mode=2, rcv_mode=0, credit=0, repeat=2, **about
        )
    )
    scribe.write(
        ConnectionClosedRecord(
            t=END, opened_at=START, duration_us=END - START, by="peer", bytes_in=1, bytes_out=1, **peer
        )
    )
    scribe.stop()
    again = Scribe(tmp_path / "a", "QDR.A", END + HOUR)
    again.write(ConnectionOpenedRecord(t=END + HOUR, listener="amqp", role="normal", dir="in", mech="PLAIN", **peer))
    again.stop()
    compact([tmp_path / "a"], tmp_path / "root")
    meter.run(engine, tmp_path / "root")
    rows = sorted(Table(tmp_path / "root", "meter_conn").rows().to_pylist(), key=lambda row: row["hour"])
    assert [row["peak_links"] for row in rows] == [4, 0, 1, 1, 0]
    # only link 5 has no end: its traffic after the last record of that start is unknown
    doubted = [row for row in Table(tmp_path / "root", "meter").rows().to_pylist() if not row["complete"]]
    assert [(row["hour"].timestamp() * SECOND - START) // HOUR for row in doubted] == [2.0]
