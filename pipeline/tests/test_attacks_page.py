"""The commands of docs/alerts.md, typed as printed: on a noisy day of logins, and on payments with frauds."""

from __future__ import annotations

import json
import re
import shutil
import signal
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipeline.tests.landed import read_with_duckdb
from pipeline.tests.test_audit import Site
from pipeline.tests.test_fraud import day
from pipeline.tests.test_land import fill, letter
from tests.house.sources import ROOT
from tests.walks import Shell
from trouter_pipeline.needs import missing

pytestmark = [pytest.mark.slow, pytest.mark.pipeline_long]
_PAGE = (ROOT / "docs" / "alerts.md").read_text(encoding="utf-8")
_COMMANDS = re.findall(r"^trouter pipeline .*", _PAGE, re.MULTILINE)
#: Seconds that only a hang takes, also where Spark takes a minute to start.
SPARK_S = 600.0


def commands(action: str) -> list[str]:
    """Return the commands of one action, with the folders of the page below that of the test, and with its schema."""
    (schema,) = re.findall(r"--schema ('card .*')$", _PAGE, re.MULTILINE)
    return [
        each.replace("ROOT", "root")
        .replace("'...'", schema)
        .replace("/var/lib/trouter/", "")
        .replace("/var/spool/", "")
        for each in _COMMANDS
        if each.startswith(f"trouter pipeline {action} ")
    ]


class Watch(Shell):
    """A shell that interrupts a command with `--every`, which goes on for ever, when its table is there."""

    def see(self, command: str, table: str) -> int:
        """Type a command; return the number of rows of the table that it wrote."""
        log = self.folder / "root" / "tables" / table / "_delta_log"
        if "--every" in command:
            first = f"until [ -e {log}/00000000000000000001.json ]; do kill -0 $! || exit 9; sleep 0.2; done"
            command = f"{command} & {first}; kill -{signal.SIGINT.name.removeprefix('SIG')} $!; wait $!"
        status, output = self.type(command)
        assert status == 0, f"{command}: {output}"
        ((found,),) = read_with_duckdb(self.folder / "root", table, "count(*)")
        return int(found)


@pytest.fixture
def shell(tmp_path: Path) -> Watch:
    if needs := missing():
        pytest.skip("; ".join(need.what for need in needs))
    return Watch(tmp_path, ports=("9",), brings=(), deadline_s=SPARK_S)


def test_the_commands_for_attacks_work_as_printed(shell: Watch, tmp_path: Path) -> None:
    """Each begins with no alerts."""
    site = Site(tmp_path)
    shutil.copytree(site.folders[0], tmp_path / "records")
    typed = ["trouter pipeline audit root", *commands("audit")]
    assert len(typed) == 3
    for command in typed:
        for folder in ("tables", "checkpoints"):
            shutil.rmtree(tmp_path / "root" / folder, ignore_errors=True)
        assert shell.see(command, "audit_alerts") > 0, command


def test_the_commands_for_frauds_work_as_printed(shell: Watch, tmp_path: Path) -> None:
    paid, cases = day(seed=1, payments=300, planted=10)
    rows = [
        {"card": each.card, "t": datetime.fromtimestamp(each.t_us / 1e6, UTC), "id": each.id, "channel": each.channel,
         "amount": each.amount} for each in paid
    ]  # fmt: skip
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "payments.parquet")
    bodies = [json.dumps(row, default=datetime.isoformat).encode() for row in rows]
    fill(tmp_path / "payments", "payments", *(letter(f"m{number}", body) for number, body in enumerate(bodies)))
    typed = commands("fraud")
    assert len(typed) == 3
    shell.see("trouter pipeline land --spool payments --out root --name payments", "payments")
    for command in typed:
        shutil.rmtree(tmp_path / "root" / "tables" / "fraud_alerts", ignore_errors=True)
        assert shell.see(command, "fraud_alerts") == len(cases), command
