"""The command as an operator types it: in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import trouter
from trouter import _twin
from trouter.config import load
from trouter.config.facts import router_facts

ROOT = Path(__file__).parents[2]


def command(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "trouter", *arguments],
        cwd=ROOT,
        env=os.environ | {"COLUMNS": "100"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def bad_file(tmp_path: Path) -> Path:
    path = tmp_path / "bad.conf"
    path.write_text("listener {\n    prot: 5672\n    role: nrmal\n}\nlistner {\n}\n")
    return path


def errors_in(path: Path) -> list[str]:
    return [
        f"{path}:2:5: listener.prot: unknown attribute (did you mean 'port'?)",
        f"{path}:3:11: listener.role: is not one of the values: 'nrmal' (did you mean 'normal'?)",
        f"{path}:5:1: listner: unknown section (did you mean 'listener'?)",
    ]


@pytest.mark.parametrize("option", ["--version", "-v"])
def test_the_version_names_the_running_twin(option: str) -> None:
    done = command(option)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"trouter {trouter.__version__} ({_twin.running()}, Python 3.")


@pytest.mark.parametrize("option", ["--help", "-h"])
def test_help_names_every_command(option: str) -> None:
    done = command(option)
    assert (done.returncode, done.stderr) == (0, "")
    assert "run " in done.stdout
    assert "check " in done.stdout


@pytest.mark.parametrize("name", ["run", "check"])
def test_every_command_has_help(name: str) -> None:
    done = command(name, "--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert "FILE" in done.stdout


WRONG = {
    "nothing": ([], "give a command: run, init, "),
    "an unknown command": (["rum"], "there is no command 'rum', did you mean 'run'?"),
    "an unknown option": (["run", "--confi-g", "x"], "unrecognized arguments: --confi-g ..."),
    "a stray argument and an unknown option": (["run", "x", "--y", "z"], "unrecognized arguments: x --y ..."),
    "a missing argument": (["run", "-c"], "expected one argument"),
    "a stray argument": (["run", "x"], "unrecognized arguments: x"),
    "no file to check": (["check"], "the following arguments are required: FILE"),
    "an empty name": (["check", ""], "the name of a file is needed"),
}


@pytest.mark.parametrize(("arguments", "message"), WRONG.values(), ids=WRONG)
def test_a_wrong_command_line_gives_usage_and_2(arguments: list[str], message: str) -> None:
    done = command(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith("trouter")
    assert message in line
    assert line.endswith(" --help`)")


def test_check_prints_every_error_and_gives_1(bad_file: Path) -> None:
    done = command("check", bad_file)
    assert (done.returncode, done.stdout) == (1, "")
    *lines, summary = done.stderr.splitlines()
    errors = errors_in(bad_file)
    assert (lines[: len(errors)], summary) == (errors, f"trouter check: {bad_file}: not usable, 3 error(s)")
    assert all(line.startswith(("unsafe: ", "warning: ")) for line in lines[len(errors) :])


def test_check_counts_its_findings_and_prints_warnings(tmp_path: Path) -> None:
    path = tmp_path / "good.conf"
    path.write_text("router { workerThreads: 4 }\nlistener { port: 0 }\naddress { prefix: a }\n")
    done = command("check", path)
    assert done.returncode == 0
    assert done.stdout == f"{path}: good, 1 listener(s), 1 address rule(s), 2 warning(s), 3 unsafe\n"
    *findings, summary = done.stderr.splitlines()
    assert summary.startswith(f"{path}: ")
    assert summary.endswith(" entities served, 3 unsafe, 0 renamed, 1 unused")
    warning = f"warning: {path}:1:25: router.workerThreads: accepted without effect: trouter runs in one thread"
    assert [line for line in findings if "router.workerThreads" in line] == [warning]
    unsafe = [line for line in findings if line.startswith("unsafe: ")]
    assert len(unsafe) == 3
    assert any(f"{path}:2:1: listener.authenticatePeer: will let in every client" in line for line in unsafe)


def test_run_refuses_the_files_that_check_refuses(bad_file: Path) -> None:
    done = command("run", "-c", bad_file)
    assert (done.returncode, done.stdout) == (1, "")
    *errors, last = done.stderr.splitlines()
    assert errors == errors_in(bad_file)
    assert last.endswith("MAIN (critical) Router start-up failed: see the lines above")


def test_run_refuses_a_log_file_that_cannot_be_opened(tmp_path: Path) -> None:
    path = tmp_path / "a.conf"
    path.write_text(f"log {{ module: DEFAULT, outputFile: {tmp_path} }}\n")
    done = command("run", "--config", path)
    assert done.returncode == 1
    assert f"{path}:1:1: log.outputFile: Failed to open log file" in done.stderr


def test_a_plugin_that_refuses_the_configuration_stops_the_start(tmp_path: Path) -> None:
    path = tmp_path / "a.conf"
    path.write_text(f"router {{ usersFile: {tmp_path / 'none'} }}\n")
    done = command("check", path)
    assert done.returncode == 1
    assert f"{path}:1:1: router.usersFile: {tmp_path / 'none'}: No such file or directory" in done.stderr


def test_a_missing_file_is_named() -> None:
    done = command("run", "-c", "missing.conf")
    assert done.returncode == 1
    assert "missing.conf: cannot be read: No such file or directory" in done.stderr


def test_plugins_get_the_facts_of_the_configuration() -> None:
    facts = router_facts(load(text="router { id: a, usersFile: users }"))
    assert (facts.id, facts.mode, facts.sasl_users_file) == ("a", "standalone", "users")
