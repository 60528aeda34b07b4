"""Folders that the program of before Delta tables made are taken over in place, also after kills.

`data/before_delta.tar.xz` was made by that program: three days of a router compacted twice, every job, a landed spool
in three batches, and a prune of the first day of the records and the meter. `expected.json` has the number of rows of
each.
"""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import tarfile
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from tests.house.sources import ROOT
from trouter.cli import main
from trouter_pipeline.compact import compact
from trouter_pipeline.datasets import Records
from trouter_pipeline.delta import BadTable
from trouter_pipeline.jobs import meter
from trouter_pipeline.metering.engines import InProcess
from trouter_pipeline.migrate import columns_of, migrate, type_of
from trouter_pipeline.pruned import frozen_by
from trouter_pipeline.tables import Table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ARCHIVE = Path(__file__).with_name("data") / "before_delta.tar.xz"
PRUNED = date(2026, 3, 1)


@pytest.fixture
def old(tmp_path: Path) -> Path:
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(tmp_path, filter="data")
    return tmp_path


def counted(root: Path) -> dict[str, int]:
    """Return the rows of each table, by its log and by its files, and the segments."""
    records = Records(root)
    found = {f"records/{kind}": sum(f.rows for f in records.files(kind)) for kind in records.kinds}
    for folder in sorted((root / "tables").iterdir()):
        table = DeltaTable(str(folder))
        paths = table.file_uris()
        found[f"tables/{folder.name}"] = sum(pq.read_metadata(path).num_rows for path in paths)
        assert table.to_pyarrow_table().num_rows == found[f"tables/{folder.name}"]
    return {**found, "segments": len(records.segments)}


def test_everything_is_there_and_goes_on(old: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = old / "root"
    with pytest.raises(BadTable, match=re.escape(f"run `trouter pipeline migrate {root}`")):
        Records(root)
    with pytest.raises(BadTable, match="an earlier program made this table"):
        Table(root, "meter").rows()
    assert main(["pipeline", "migrate", str(root)]) == 0
    assert "meter is a Delta table now" in capsys.readouterr().out
    assert counted(root) == json.loads((old / "expected.json").read_text())
    left = {path.name for path in root.rglob("*") if path.name in {"_manifest.json", "_land.json", "LOCK", "data"}}
    assert left == set()
    assert main(["pipeline", "migrate", str(root)]) == 0
    assert capsys.readouterr().out == f"All tables of {root} are Delta tables.\n"

    # The jobs know what they have done, and what was pruned.
    again = compact([old / "in"], root)
    assert (again.segments, again.errors) == (0, [])
    assert meter.run(InProcess(), root).nothing == "nothing is new"
    assert frozen_by(Records(root), "meter") == {PRUNED}
    commit = Table(root, "meter").last_commit()
    assert commit is not None
    assert (commit.job, commit.pruned) == ("meter", {"2026-03-01": ["*"]})
    before = counted(root)
    meter.run(InProcess(), root, meter.Parameters(again=True))
    assert counted(root) == before
    assert main(["pipeline", "vacuum", str(root), "--keep", "0", "--yes"]) == 0
    assert counted(root) == before


def counted_by_us(root: Path) -> int:
    """Return the number of tables that are Delta tables; BadTable."""
    names = [folder.name for folder in (root / "tables").iterdir() if not folder.name.startswith("landed")]
    return len([Records(root), *(Table(root, name).version() for name in names)])


KILLED = """
import os, signal, sys
from pathlib import Path
from trouter_pipeline import delta, migrate
name, when = sys.argv[2], int(sys.argv[3])
home = {"_remove": migrate, "_linked": migrate, "_append": delta.Folder}[name]
former = getattr(home, name)
count = []
def killing(*given, **named):
    count.append(given)
    if len(count) == when:
        os.kill(os.getpid(), signal.SIGKILL)
    return former(*given, **named)
setattr(home, name, killing)
migrate.migrate(Path(sys.argv[1]))
"""


@pytest.mark.parametrize("step", [("_linked", 1), ("_append", 1), ("_remove", 1), ("_append", 5), ("_remove", 6)])
def test_a_run_that_was_killed_is_continued(old: Path, step: tuple[str, int]) -> None:
    root = old / "root"
    words = [sys.executable, "-c", KILLED, str(root), step[0], str(step[1])]
    assert subprocess.run(words, cwd=ROOT, check=False).returncode == -signal.SIGKILL
    with pytest.raises(BadTable, match="run `trouter pipeline migrate"):  # of the table at which it was killed
        counted_by_us(root)
    migrate(root)
    assert counted(root) == json.loads((old / "expected.json").read_text())


def test_landing_goes_on_at_its_checkpoint(spark: SparkSession, old: Path) -> None:
    from trouter_pipeline.jobs import land
    from trouter_pipeline.landing import landed

    root = old / "root"
    migrate(root)
    offsets = root / "checkpoints" / "landed"
    assert (offsets / "metadata").exists()
    parameters = land.Parameters(spools=[str(old / "spool")], source={"maxRowsPerBatch": "5"})
    assert land.run(spark, root, parameters) == land.Summary()
    assert landed(spark, root, "landed").count() == 9
    rows = landed(spark, root, "landed", dead=True).select("address", "date").distinct().collect()
    days = [date(2026, 1, 31), date(2026, 2, 1)]
    assert sorted(tuple(row) for row in rows) == [("changes/east side", day) for day in days]


def test_types_are_read_as_spark_spells_them() -> None:
    assert columns_of("`a` bigint, `b` decimal(10,2), `c` map<string,array<int>>") == {
        "a": "long",
        "b": "decimal(10,2)",
        "c": {
            "type": "map",
            "keyType": "string",
            "valueType": {"type": "array", "elementType": "integer", "containsNull": True},
            "valueContainsNull": True,
        },
    }
    inner: Any = type_of("struct<x:decimal(3,1),y:struct<z:string>>")
    assert [(field["name"], field["nullable"]) for field in inner["fields"]] == [("x", True), ("y", True)]
    with pytest.raises(BadTable, match="has the type interval"):
        type_of("interval")
