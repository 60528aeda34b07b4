"""Targets under atheris, and the files that OSS-Fuzz and ClusterFuzzLite take, come from the targets as declared."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from fuzz import run
from tests.routers import ROOT
from trouter.testing.fuzz import load_file
from trouter.testing.fuzz.command import main
from trouter.testing.fuzz.guided import words_of, write_harness

pytestmark = pytest.mark.slow

#: A fault behind four bytes that must be right one after the other: a fuzzer without guidance takes 2**32 inputs.
DEEP = """
COVERS = ("deep_parser",)
import deep_parser

def check(data):
    deep_parser.parse(data)
"""
PARSER = """
def parse(data):
    if data[:1] == b"d":
        if data[1:2] == b"e":
            if data[2:3] == b"e":
                if data[3:4] == b"p":
                    raise IndexError
"""


@pytest.fixture(scope="module")
def harnesses(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("harnesses")
    for name in run.targets():
        write_harness(run.load(name), folder)
    return folder


@pytest.mark.parametrize("name", run.targets())
def test_a_harness_has_the_targets_check_seeds_and_words(harnesses: Path, name: str) -> None:
    target = run.load(name)
    text = (harnesses / f"{name}_fuzzer.py").read_text()
    compile(text, name, "exec")
    assert f"import fuzz.{name} as target" in text
    with zipfile.ZipFile(harnesses / f"{name}_fuzzer_seed_corpus.zip") as archive:
        assert sorted(archive.read(member) for member in archive.namelist()) == sorted(target.seeds)
    words = words_of(target.seeds)
    written = harnesses / f"{name}_fuzzer.dict"
    lines = written.read_text().splitlines() if words else []
    assert (written.exists(), len(lines)) == (bool(words), len(words))
    assert all(re.fullmatch(r'"(?:[^"\\]|\\x[0-9a-f]{2})+"', line) for line in lines)


def test_atheris_finds_a_fault_behind_bytes_that_must_be_right_in_turn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("atheris")
    (tmp_path / "deep.py").write_text(DEEP)
    (tmp_path / "deep_parser.py").write_text(PARSER)
    monkeypatch.syspath_prepend(tmp_path)
    command = [str(tmp_path / "deep.py"), "--rng-seed", "1", "--executions", "100000"]
    assert main([*command, "--guided"]) == 1
    (crash,) = (tmp_path / "seeds" / "deep").iterdir()
    assert crash.name.startswith("crash-")
    assert crash.read_bytes().startswith(b"deep")
    with pytest.raises(IndexError):
        load_file(tmp_path / "deep.py").check(crash.read_bytes())


def test_a_target_of_the_project_runs_under_atheris() -> None:
    pytest.importorskip("atheris")
    command = [sys.executable, str(ROOT / "fuzz" / "run.py"), "annotations", "--guided", "--executions", "500"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "Done 500 runs" in done.stderr


@pytest.mark.long
@pytest.mark.parametrize("name", run.targets())
def test_every_target_runs_under_atheris(name: str) -> None:
    pytest.importorskip("atheris")
    command = [sys.executable, str(ROOT / "fuzz" / "run.py"), name, "--guided", "--executions", "300"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("folder", [".clusterfuzzlite", "packaging/oss-fuzz"])
def test_the_services_build_script_makes_what_they_take(folder: str, tmp_path: Path) -> None:
    """The commands of their image are replaced by some that note their arguments; `make fuzz-image` has real ones."""
    tools, out, noted = tmp_path / "tools", tmp_path / "out", tmp_path / "noted"
    tools.mkdir()
    out.mkdir()
    (tmp_path / "trouter").symlink_to(ROOT)
    scripts = {tool: f'echo {tool} "$@" >>{noted}' for tool in ("pip3", "compile_python_fuzzer")}
    for tool, line in {**scripts, "python3": f'exec {sys.executable} "$@"'}.items():
        (tools / tool).write_text(f"#!/bin/sh\n{line}\n")
        (tools / tool).chmod(0o755)
    places = {"SRC": str(tmp_path), "WORK": str(tmp_path / "work"), "OUT": str(out)}
    environment = {**os.environ, **places, "PATH": f"{tools}:{os.environ['PATH']}"}
    subprocess.run([ROOT / folder / "build.sh"], env=environment, check=True, capture_output=True)
    made = {path.name for path in out.iterdir()}
    assert {name for name in made if name.endswith(".zip")} == {
        f"{name}_fuzzer_seed_corpus.zip" for name in run.targets()
    }
    assert "http_port_fuzzer.dict" in made
    lines = noted.read_text().splitlines()
    compiled = [line.split()[1] for line in lines if line.startswith("compile_python_fuzzer")]
    assert {Path(path).stem for path in compiled} == {f"{name}_fuzzer" for name in run.targets()}
    assert any(line.startswith("pip3 install --no-build-isolation -e ./pipeline") for line in lines)
