"""The reports of a receiver: the line, the metrics, the manual."""

from __future__ import annotations

import argparse
import os
import pty
import re
import subprocess
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from pipeline.tests.spool.support import fill
from pipeline.tests.spool.test_commands import SPOOL
from trouter_pipeline.commands import spool as command
from trouter_pipeline.spool import Spool
from trouter_pipeline.spool.cursors import Lag
from trouter_pipeline.spool.metrics import metrics_of, write_metrics
from trouter_pipeline.spool.receiver import Progress
from trouter_pipeline.spool.reports import Shard, amount_of, line_of, stalled

MANUAL = (Path(__file__).parents[3] / "docs" / "spool.md").read_text(encoding="utf-8")


def shard(number: int = 0, address: str = "orders", **values: object) -> Shard:
    progress = Progress(state="receiving", server="amqp://x:5672")
    for name, value in values.items():
        setattr(progress, name, value)
    return Shard(number, address, progress)


def test_the_line_shows_the_progress() -> None:
    one = shard(messages=1_234_567, backlog_bytes=5_000_000, groups=10, sync_s=0.02)
    assert line_of([one], 12_345.6, 1_500_000.0) == (
        "12,346 messages/s (1.5 MB/s), 1,234,567 kept, 5.0 MB not consumed, sync 2.0 ms, receiving"
    )
    down = shard(1, refused=2)
    down.running = False
    line = line_of([one, down], 0.0, 0.0)
    assert line.startswith("2 shards, 0 messages/s (0 B/s), 1,234,567 kept, 2 too large,")
    assert line.endswith("1 down 1 receiving")


@pytest.mark.parametrize(
    ("octets", "text"), [(0, "0 B"), (999, "999 B"), (1000, "1.0 kB"), (123_456, "123 kB"), (5e15, "5000 TB")]
)
def test_an_amount_has_three_digits_or_so(octets: float, text: str) -> None:
    assert amount_of(octets) == text


def test_a_cursor_for_which_a_message_waits_too_long_is_told() -> None:
    lag = Lag("tables", 3, 2000, 5_000_000, 1_000_000)
    assert not stalled(lag, 3601, 3600)
    assert stalled(lag, 7201, 3600) == (
        "cursor tables keeps 2,000 messages (5.0 MB), the oldest for 2.0 h: run its consumer, or remove it with "
        "`trouter pipeline cursors`"
    )
    assert not stalled(Lag("tables", 3, 0, 0, 0), 1e9, 1)


def test_the_metrics_are_such_as_prometheus_reads(tmp_path: Path) -> None:
    hostile = 'a "b" \\ c\nd'
    path = tmp_path / "spool.prom"
    behind = shard(1, hostile)
    behind.lags = [Lag("tables", 3, 2, 100, 1_500_000), Lag("kafka", 5, 0, 0, 0)]
    write_metrics(path, [shard(0, hostile, messages=3, sync_s=0.5), behind])
    families = {family.name: family for family in text_string_to_metric_families(path.read_text())}
    samples = families["trouter_spool_messages"].samples
    assert [(sample.labels, sample.value) for sample in samples] == [
        ({"address": hostile, "shard": "0"}, 3.0),
        ({"address": hostile, "shard": "1"}, 0.0),
    ]
    oldest = families["trouter_spool_cursor_oldest_timestamp_seconds"].samples
    assert {sample.labels["cursor"]: sample.value for sample in oldest} == {"tables": 1.5, "kafka": 0.0}
    assert families["trouter_spool_messages"].type == "counter"
    assert families["trouter_spool_up"].samples[0].value == 1
    assert [entry.name for entry in tmp_path.iterdir()] == ["spool.prom"]


def test_metrics_that_cannot_be_written_leave_nothing_behind(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="Is a directory"):
        write_metrics(tmp_path, [shard()])
    assert list(tmp_path.parent.glob(f".{tmp_path.name}.*")) == []


def test_the_manual_has_every_metric_and_every_option() -> None:
    lagging = shard(fault="disk")
    lagging.lags = [Lag("tables", 3, 2, 100, 1_000_000)]
    metrics = set(re.findall(r"^(trouter_\w+)\{", metrics_of([lagging]).decode(), re.MULTILINE))
    assert set(re.findall(r"`(trouter_spool_\w+)`", MANUAL)) == metrics
    parser = argparse.ArgumentParser()
    command.add_parser(parser.add_subparsers())
    actions = parser._subparsers._group_actions[0].choices["spool"]._actions  # type: ignore[union-attr, index]

    def is_told(option: str) -> bool:
        family = re.sub(r"^(--sasl|--ssl)-.*", r"\1-*", option)  # those of all commands stand there as `--ssl-*`
        return f"`{option}`" in MANUAL or f"`{family}`" in MANUAL

    untold = [action.option_strings for action in actions if not any(map(is_told, action.option_strings))]
    assert untold == [["-h", "--help"]]


def test_the_reader_of_the_manual_reads(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with Spool.open(folder) as spool:
        fill(spool, 2)
    code = MANUAL.split("```python\n")[1].split("```")[0].replace("/var/lib/trouter/orders", str(folder))
    exec(compile(code, "docs/spool.md", "exec"), {})
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == ["0", "1"]
    with Spool.open(folder) as spool:
        assert spool.consumed == 2


def test_on_a_terminal_the_line_is_written_again_and_again(folder: Path) -> None:
    ours, theirs = pty.openpty()
    arguments = [*SPOOL, "--url", "127.0.0.1:1", "--address", "orders", "--dir", str(folder)]
    with subprocess.Popen(arguments, stderr=theirs) as process:
        os.close(theirs)
        output = b""
        while output.count(b"\r\x1b[K0 messages/s") < 2:
            output += os.read(ours, 4096)
        process.terminate()
        assert process.wait() == 0
    os.close(ours)
    assert b"Connection refused" in output
