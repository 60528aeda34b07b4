"""Alerts that leave by the commands: by real routers to python-qpid-proton, and to topics of Kafka."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipeline.tests.attacked import login
from pipeline.tests.generate import DAY, SECOND, START, Scribe
from pipeline.tests.kafkas import Broker, mock_cluster, records_in
from pipeline.tests.test_sink import Taker, taking
from tests.routers import PLAIN_LISTENER, RunningRouter, running
from trouter.cli import main
from trouter_pipeline.compact import compact, here
from trouter_pipeline.tables import Table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.usefixtures("spark")

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.fixture(scope="module")
def router(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningRouter]:
    with running(PLAIN_LISTENER, tmp_path_factory.mktemp("router")) as started:
        yield started


def url_of(router: RunningRouter) -> str:
    return f"amqp://127.0.0.1:{router.port}"


def pay(folder: Path, *cards: str) -> None:
    """Write a small and a large payment of each card."""
    rows = []
    for number, card in enumerate(cards):
        t = NOON + timedelta(minutes=number)
        rows.append({"id": f"{card}-1", "card": card, "t": t, "channel": "online", "amount": "1.00"})
        rows.append({"id": f"{card}-2", "card": card, "t": t, "channel": "atm", "amount": "900.00"})
    folder.mkdir(exist_ok=True)
    pq.write_table(pa.Table.from_pylist(rows), folder / f"{'-'.join(cards)}.parquet")


def bodies(taker: Taker) -> list[dict[str, Any]]:
    return [json.loads(bytes(message.body)) for message in taker.messages]


def test_new_frauds_are_messages_each_once_with_their_id(router: RunningRouter, tmp_path: Path) -> None:
    words = ["pipeline", "fraud", str(tmp_path), "--events", str(tmp_path / "payments"), "--quiet"]
    to = ["--alerts-to", "alarms", "-b", url_of(router)]
    with taking(router, "alarms") as taker:
        pay(tmp_path / "payments", "b", "a")
        assert main([*words, *to]) == 0
        assert main([*words, *to]) == 0  # nothing is new
        pay(tmp_path / "payments", "c")
        assert main([*words, *to]) == 0
    assert [body["key"] for body in bodies(taker)] == ["b", "a", "c"]  # by time
    first = taker.messages[0]
    assert (first.subject, first.content_type) == ("fraud", "application/json")
    assert bodies(taker)[0] == {
        "key": "b", "large_n": None, "large_id": "b-2", "tester_id": "b-1", "tester_t": "2026-03-01T12:00:00.000Z",
        "large_t": "2026-03-01T12:00:00.000Z", "tester_amount": 1.0, "large_amount": 900.0, "tester_place": None,
        "large_place": None,
    }  # fmt: skip
    assert len(set(taker.ids)) == 3
    assert all(each.startswith("fraud-") and "b-2" not in each for each in taker.ids)


def test_alerts_that_no_receiver_takes_stay_new(
    spark: SparkSession, router: RunningRouter, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pay(tmp_path / "payments", "a")
    words = ["pipeline", "fraud", str(tmp_path), "--events", str(tmp_path / "payments"), "--quiet"]
    to = ["--alerts-to", "picky", "-b", url_of(router)]
    with taking(router, "picky", lambda _: False):
        assert main([*words, *to]) == 1
    assert "the batch to picky: 0 rows accepted, 1 refused" in capsys.readouterr().err
    assert Table(tmp_path, "fraud_alerts").last_commit() is None
    with taking(router, "picky") as taker:
        assert main([*words, *to]) == 0
    assert [body["large_id"] for body in bodies(taker)] == ["a-2"]
    assert Table(tmp_path, "fraud_alerts").read(spark).count() == 1


def test_a_stream_sends_a_batch_again_that_no_receiver_took(
    spark: SparkSession, router: RunningRouter, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["pipeline", "fraud", str(tmp_path), "--events", str(tmp_path / "payments"), "--quiet", "--json"]
    words += ["--stream", "--checkpoint", str(tmp_path / "checkpoint"), "--late-by", "86400"]
    words += ["--alerts-to", "later", "-b", url_of(router)]
    pay(tmp_path / "payments", "a")
    with taking(router, "later", lambda _: False) as refusing:
        assert main(words) == 1
    assert "1 refused" in capsys.readouterr().err
    assert Table(tmp_path, "fraud_alerts").read(spark).count() == 1
    pay(tmp_path / "payments", "b")
    with taking(router, "later") as taker:
        assert main(words) == 0
    assert [body["key"] for body in bodies(taker)] == ["a", "b"]
    assert taker.ids[:1] == refusing.ids
    assert [json.loads(line)["key"] for line in capsys.readouterr().out.splitlines()] == ["a", "b"]
    assert Table(tmp_path, "fraud_alerts").read(spark).count() == 2


def test_attacks_are_messages_when_noticed_and_when_over(router: RunningRouter, tmp_path: Path) -> None:
    scribe = Scribe(tmp_path / "segments", "QDR.A")
    scribe.write_all([login(START + n * SECOND, "alice", "h") for n in range(25)], 25)
    words = ["pipeline", "audit", str(tmp_path / "root"), "--quiet", "--alerts-to", "attacks", "-b", url_of(router)]
    with taking(router, "attacks") as taker:
        for later in (None, DAY):
            if later:
                scribe.write_all([login(START + later, "bob", "other")], 1)
            compact([tmp_path / "segments"], tmp_path / "root", run=here)
            assert main(words) == 0
    of_alice = [body for body in bodies(taker) if body["rule"] == "brute-force"]
    assert [(body["user"], body["host"], body["failures"], body["ended"]) for body in of_alice] == [
        ("alice", "h", 20, False),  # as soon as it is one
        ("alice", "h", 25, True),
    ]
    subjects = {message.subject for message in taker.messages}
    assert "brute-force" in subjects
    alert = of_alice[0]["alert_id"]
    assert {each for each in taker.ids if each.startswith(alert)} == {alert, f"{alert}-ended"}


def test_alerts_go_to_a_topic_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pay(tmp_path / "payments", "a", "b")
    words = ["pipeline", "fraud", str(tmp_path), "--events", str(tmp_path / "payments"), "--quiet"]
    with mock_cluster() as bootstrap:
        Broker(bootstrap, makes_topics=True).create("alarms")
        to = ["--alerts-topic", "alarms", "--kafka", bootstrap]
        assert main([*words, *to]) == 0
        found = [each for records in records_in(bootstrap, "alarms").values() for each in records]
    assert sorted(json.loads(each.value or b"")["large_id"] for each in found) == ["a-2", "b-2"]
    for each in found:
        assert each.key == each.headers["amqp-message-id"]
        assert each.headers["amqp-subject"] == b"fraud"
    pay(tmp_path / "payments", "c")
    to = ["--alerts-topic", "alarms", "--kafka", bootstrap, "--kafka-timeout", "2"]  # which is away now
    assert main([*words, *to]) == 1
    assert f"topic alarms at {bootstrap}: " in capsys.readouterr().err
