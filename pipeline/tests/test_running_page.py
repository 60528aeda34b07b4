"""The page on running the pipeline: its ten lines run, and the errors that it explains are those of the code."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pipeline.tests.kafkas import Broker, tansu
from pipeline.tests.test_alerts_sent import url_of
from pipeline.tests.test_kafka_page import SPARK_S
from pipeline.tests.test_sink import taking
from tests.house.sources import ROOT
from tests.routers import PLAIN_LISTENER, running
from tests.walks import Shell, steps_in
from trouter.client import Message
from trouter_pipeline.spool import Spool

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PAGE = (ROOT / "docs" / "pipeline-running.md").read_text(encoding="utf-8")
CODE = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "pipeline" / "src").rglob("*.py"))


def test_the_errors_are_those_of_the_code() -> None:
    errors = re.findall(r"^\| `([^`]+)` \|", PAGE.partition("\n## After an error\n")[2], re.MULTILINE)
    assert len(errors) == 20
    source = re.sub(r'"\s*\n\s*f?"', "", CODE)  # strings are continued in the next line
    assert [error for error in errors if error not in source] == []


@pytest.mark.slow
@pytest.mark.pipeline_long
def test_one_spool_is_landed_and_forwarded_as_printed(tmp_path: Path) -> None:
    with tansu(tmp_path) as bootstrap:
        Broker(bootstrap, makes_topics=False).create("changes")
        port = int(bootstrap.rpartition(":")[2])
        Shell(tmp_path, ("5672", "45672"), deadline_s=SPARK_S, brokers={"9092": port}).walk(steps_in(PAGE))


def test_the_ten_lines_run(spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (code,) = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    with Spool.open(tmp_path / "spool", address="orders") as spool:
        for number in range(3):
            spool.append(Message(b'{"id": %d, "amount": 1.50}' % number).encode(), ingest_us=number)
        spool.sync()
    for name in ("spool", "root"):  # Spark's process has another working folder
        code = code.replace(f'"{name}"', repr(str(tmp_path / name)))
    with running(PLAIN_LISTENER, tmp_path) as router, taking(router, "totals") as taker:
        exec(code.replace("amqp://127.0.0.1:5672", url_of(router)), {})
    assert [message.body for message in taker.messages] == ['{"address":"orders","sum(amount)":4.50}']
    assert "orders" in capsys.readouterr().out
