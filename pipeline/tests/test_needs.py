"""Each missing requirement of Spark is named with its cure; present ones are not mentioned."""

from __future__ import annotations

import json
import os
import platform
import stat
import subprocess
import sys
from pathlib import Path

import pytest

import trouter
from trouter._twin import is_compiled
from trouter.cli import main
from trouter_pipeline import __version__, needs
from trouter_pipeline.needs import CURE, JAVA_CURE, Need, found_in, judged, judged_output, missing, probe_text, scarce

pytestmark = pytest.mark.one_twin

GOOD = {"pyspark": "4.3.0", "pyarrow": "26.0.0", "pandas": "2.3.1", "protobuf": "6.30.0"}


def program(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def test_nothing_is_missing_here(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PYSPARK_PYTHON", "SPARK_HOME"):
        monkeypatch.delenv(name, raising=False)
    if found := missing():
        pytest.skip("; ".join(need.what for need in found))


def test_a_checkout_in_the_working_folder_beside_an_installed_package_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert "working folder" not in str(missing())
    (tmp_path / "trouter").mkdir()
    (tmp_path / "trouter/__init__.py").write_text("")
    need = missing()[-1]
    assert need.what.startswith(f"Spark's Pythons would import {tmp_path / 'trouter'} of the working folder, and not ")
    assert need.cure == "run the command in another folder, or with PYTHONSAFEPATH=1"
    monkeypatch.setenv("PYTHONSAFEPATH", "1")
    assert "working folder" not in str(missing())
    monkeypatch.delenv("PYTHONSAFEPATH")
    monkeypatch.chdir(Path(trouter.__file__).parents[1])
    assert "working folder" not in str(missing())  # this very package


@pytest.mark.parametrize("text", ['openjdk version "11.0.2" 2019-01-15', "Segmentation fault", ""])
def test_a_java_that_is_too_old_or_broken_is_named(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    java = program(tmp_path / "bin" / "java", f"echo '{text}' >&2")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert missing()[0] == Need(f"{java} is too old or does not run: {text.splitlines()[:1] or ['']}", JAVA_CURE)


@pytest.mark.parametrize(
    ("name", "has", "what"),
    [
        ("pyspark", None, "the package pyspark is not installed"),
        ("pyspark", "3.5.1", "the package pyspark is 3.5.1, and 4.0 or newer is needed"),
        ("pyspark", "4.0.0", None),
        ("pyarrow", "14.9.9", "the package pyarrow is 14.9.9, and 15.0 or newer is needed"),
        ("pandas", "2.1.4", "the package pandas is 2.1.4, and 2.2 or newer is needed"),
        ("pandas", "3.0.0", "the package pandas is 3.0.0, and one below 3 is needed"),
        ("protobuf", "4.25.1", "the package protobuf is 4.25.1, and 5.0 or newer is needed"),
        ("protobuf", "5.0rc1", None),
    ],
)
def test_versions_are_held_to_both_ends(name: str, has: str | None, what: str | None) -> None:
    assert list(judged({**GOOD, name: has})) == ([] if what is None else [Need(what, CURE)])


def test_one_cure_of_several_needs_is_named_once(monkeypatch: pytest.MonkeyPatch) -> None:
    found = [*judged({"pandas": "3.0.0", "protobuf": "5.1"}), Need("there is no Java", JAVA_CURE)]
    monkeypatch.setattr(needs, "missing", lambda: found)
    with pytest.raises(needs.Missing) as caught:
        needs.require()
    assert str(caught.value) == (
        "the packages pyspark, pyarrow are not installed, the package pandas is 3.0.0, and one below 3 is needed: "
        f"{CURE}; there is no Java: {JAVA_CURE}"
    )


def test_a_python_of_the_workers_that_is_not_there_or_has_nothing_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYSPARK_PYTHON", str(tmp_path / "python"))
    assert [need.what for need in needs._workers_python()] == [
        f"PYSPARK_PYTHON is {tmp_path / 'python'}, which is not there"
    ]
    broken = program(tmp_path / "broken", "echo cannot; exit 3")
    monkeypatch.setenv("PYSPARK_PYTHON", str(broken))
    assert [need.what for need in needs._workers_python()] == [
        f"PYSPARK_PYTHON is {broken}, which does not run: ['cannot']"
    ]
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "empty"], check=True)
    bare = tmp_path / "empty" / "bin" / "python"
    monkeypatch.setenv("PYSPARK_PYTHON", str(bare))
    monkeypatch.delenv("PYTHONPATH", raising=False)
    monkeypatch.chdir(tmp_path)
    what = [need.what for need in needs._workers_python()]
    assert what[0] == f"the packages {', '.join(GOOD)} are not installed for {bare}"
    assert what[1].startswith(f"trouter_pipeline cannot be imported for {bare}")


def test_a_python_within_an_archive_is_checked_on_the_cluster_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYSPARK_PYTHON", "./environment/bin/python")
    assert needs._workers_python() == []


def told(**other: object) -> str:
    """Return what a Python prints for the probe that has all, but for ``other``."""
    return json.dumps({"python": sys.version_info[:3], "packages": GOOD, "ours": __version__, **other})


def test_a_worker_of_another_python_is_named() -> None:
    (need,) = judged_output(told(python=[3, 9, 1]), " at the worker w1")
    assert (
        need.what == f"the Python at the worker w1 is 3.9, and this one is {sys.version_info[0]}.{sys.version_info[1]}"
    )
    assert [need.what for need in judged_output("Traceback\nboom", " at w2")] == [
        "the Python at w2 does not run: ['boom']"
    ]


def test_a_worker_without_our_package_or_with_another_version_of_it_is_named() -> None:
    lacks = told(ours=None, why="No module named 'msgspec'", lacks="msgspec")
    assert list(judged_output(lacks, " at w1", cure="ship it")) == [
        Need("trouter_pipeline cannot be imported at w1 (No module named 'msgspec')", "ship it at w1")
    ]
    assert list(judged_output(told(ours="0.0.9"), " at w1", cure="ship it")) == [
        Need(f"trouter_pipeline at w1 is 0.0.9, and this one is {__version__}", "ship it at w1")
    ]


def test_a_package_that_keeps_ours_from_importing_is_named_once() -> None:
    output = told(packages={**GOOD, "pyarrow": None}, ours=None, why="No module named 'pyarrow'", lacks="pyarrow.lib")
    assert [need.what for need in judged_output(output, " at w1")] == ["the package pyarrow is not installed at w1"]


def test_this_python_answers_the_probe() -> None:
    output = subprocess.run([sys.executable, "-c", probe_text()], capture_output=True, text=True, check=True).stdout
    assert list(judged_output(output, "")) == []
    found = found_in(output)
    assert found is not None
    assert str(found).startswith(f"Python {platform.python_version()}, Java unknown, Spark ")
    assert found.compiled == is_compiled("trouter_pipeline.decoding")


def test_a_spark_of_another_version_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    assert needs._spark_home()[0].what == f"there is no Spark in {tmp_path}: it has no jars/spark-core_*.jar"
    (tmp_path / "jars").mkdir()
    (tmp_path / "jars" / "spark-core_2.12-3.5.1.jar").touch()
    what = [need.what for need in needs._spark_home()]
    assert what[0].startswith(f"Spark in {tmp_path} is 3.5.1, and the package pyspark is ")
    assert what[1] == f"{tmp_path / 'jars'} has no rocksdbjni-*.jar, which keeps the state of streams"


def test_little_memory_and_no_scratch_are_reported_and_stop_no_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(needs, "_free_memory_mb", lambda: 700)
    monkeypatch.setenv("SPARK_LOCAL_DIRS", os.fspath(tmp_path / "none"))
    assert [need.what for need in scarce()] == [
        "700 MB of memory are free, and Spark and Python want about 1,500 MB",
        f"{tmp_path / 'none'}: No such file or directory",
    ]
    if not missing():
        assert main(["pipeline", "doctor"]) == 0
        assert "700 MB" in capsys.readouterr().err


def test_the_file_for_spark_submit_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["pipeline", "doctor", "--submit"]) == 0
    script = capsys.readouterr().out.strip()
    done = subprocess.run([sys.executable, script, "doctor", "--submit"], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == script, done.stderr


def test_a_setting_that_is_none_of_sparks_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["pipeline", "doctor", "--conf", "memory=4g"])
    assert "write spark.NAME=VALUE" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("path", "why"),
    [("s3://bucket/root", "the jobs check an object store themselves"), ("/shared", "--path is for a cluster")],
)
def test_a_path_that_cannot_be_compared_is_refused(path: str, why: str, capsys: pytest.CaptureFixture[str]) -> None:
    for more in ([], ["--json"]):
        with pytest.raises(SystemExit):
            main(["pipeline", "doctor", "--path", path, *more])
        assert why in capsys.readouterr().err


def test_a_cluster_that_cannot_be_used_is_in_the_document(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(needs, "_free_memory_mb", lambda: 700)
    assert main(["pipeline", "doctor", "--json", "--master", "sc://host"]) == 1
    printed = capsys.readouterr()
    assert printed.err == ""
    told = json.loads(printed.out)
    assert "name the cluster itself with --master" in told["missing"][0]["what"]
    assert "700 MB of memory are free" in told["warnings"][0]["what"]
