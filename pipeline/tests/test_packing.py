"""The archive for workers has what they import, and what workers say is judged with the cure."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from trouter.cli import main
from trouter_pipeline import __version__
from trouter_pipeline.needs import Found, Need, found_in, probe_text
from trouter_pipeline.packing import FOLDER
from trouter_pipeline.workers import CLOCK_CURE, SHIP, clocks_off, differing, lacking

pytestmark = pytest.mark.one_twin

HERE = Found((3, 11, 2), {"pyspark": "4.3.0"}, ours=__version__, compiled=True)


def test_the_archive_is_enough_for_a_python_that_has_spark(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "workers.zip"
    assert main(["pipeline", "pack", str(file)]) == 0
    said = capsys.readouterr().out
    assert f"--conf spark.archives={file}#{FOLDER} --conf spark.executorEnv.PYTHONPATH={FOLDER}" in said
    assert [path.name for path in tmp_path.iterdir()] == ["workers.zip"]
    with zipfile.ZipFile(file) as archive:
        archive.extractall(tmp_path / FOLDER)
    names = {path.name for path in (tmp_path / FOLDER).iterdir()}
    assert {"trouter", "trouter_pipeline", "msgspec", "trio", "outcome"} <= names
    assert not {"pyspark", "pyarrow", "deltalake"} & names
    there = [sys.executable, "-c", f"import sys\nsys.path.insert(0, {str(tmp_path / FOLDER)!r})\n{probe_text()}"]
    found = found_in(subprocess.run(there, capture_output=True, text=True, check=True).stdout)
    assert found is not None
    assert found.ours == __version__


def test_another_package_is_packed_with_its_needs_if_it_is_installed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["pipeline", "pack", str(tmp_path / "a.zip"), "--with", "H11", "--with", "no-such-thing"]) == 1
    assert "no-such-thing: not installed here" in capsys.readouterr().err
    assert main(["pipeline", "pack", str(tmp_path / "a.zip"), "--with", "wsproto"]) == 0
    with zipfile.ZipFile(tmp_path / "a.zip") as archive:
        assert {"wsproto/__init__.py", "h11/__init__.py"} <= set(archive.namelist())


def test_sources_alone_are_for_py_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "sources.zip"
    assert main(["pipeline", "pack", "--py-files", str(file)]) == 0
    assert f"--conf spark.submit.pyFiles={file}" in capsys.readouterr().out
    with zipfile.ZipFile(file) as archive:
        names = archive.namelist()
    assert {name.partition("/")[0] for name in names} == {"trouter", "trouter_pipeline"}
    assert {Path(name).suffix for name in names} == {".py"}
    code = f"import sys; sys.path.insert(0, {str(file)!r}); import trouter_pipeline.slices as s; print(s.__file__)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.startswith(str(file))


def test_a_folder_that_is_not_there_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["pipeline", "pack", str(tmp_path / "none" / "a.zip")]) == 1
    assert "No such file or directory" in capsys.readouterr().err


def test_a_worker_without_trouter_is_told_to_get_it() -> None:
    here = (*sys.version_info[:3],)
    good: dict[str, str | None] = {"pyspark": "4.3.0", "pyarrow": "26.0.0", "pandas": "2.3.1", "protobuf": "6.30.0"}
    output = json.dumps(Found(here, good, why="No module named 'trouter_pipeline'", lacks="trouter_pipeline")._asdict())
    assert lacking({"w1": {output}}) == [
        Need(
            "trouter_pipeline cannot be imported at the worker w1 (No module named 'trouter_pipeline')",
            f"{SHIP} at the worker w1",
        )
    ]


@pytest.mark.parametrize(
    ("there", "needs"),
    [
        (HERE, []),
        (HERE._replace(packages={"pyspark": "4.0.1"}), ["Spark at the worker w1 is 4.0.1, and here 4.3.0"]),
        (
            HERE._replace(compiled=False),
            ["the worker w1 runs trouter interpreted, which decodes messages at a tenth of the speed"],
        ),
        (HERE._replace(ours=None, compiled=False), []),
    ],
)
def test_what_workers_have_otherwise_is_said(there: Found, needs: list[str]) -> None:
    assert [need.what for need in differing(HERE, {"w1": {json.dumps(there._asdict())}})] == needs


def test_clocks_are_compared_as_far_as_that_is_certain() -> None:
    told = [("a", 100.0), ("b", 101.5), ("c", 97.0), ("d", 160.0), ("e", 99.5)]
    assert clocks_off(told, before=99.0, after=101.0) == [
        Need("the clock at the worker c is 2 s behind", CLOCK_CURE),
        Need("the clock at the worker d is 59 s ahead", CLOCK_CURE),
    ]
