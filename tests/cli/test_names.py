"""The tools under the names of Qpid Dispatch's: their output when they cannot connect."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
from pathlib import Path

import pytest

import trouter
from tests.cli.programs import ROOT, TOO_LONG_S, called, installed

pytestmark = pytest.mark.slow

SECRET = "s3cret-w0rd"
TOOLS = ("qdstat", "qdmanage")


@pytest.fixture
def closed_port() -> int:
    """Return a port that no process listens on."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
    return port


def asking(name: str) -> list[str]:
    return ["query"] if name == "qdmanage" else ["-c"]


@pytest.mark.parametrize("name", TOOLS)
def test_version_and_help_end_well(tmp_path: Path, name: str) -> None:
    program = installed(tmp_path, name)
    done = called(program, "--version")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{trouter.__version__}\n", "")
    for option in ("-h", "--help"):
        done = called(program, option)
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.startswith(f"usage: {name} ")
        assert f"\n{name}" not in done.stdout.replace(f"  {name}", "")
        assert "trouter " not in done.stdout


@pytest.mark.parametrize("name", TOOLS)
def test_every_option_of_the_older_tools_is_there(tmp_path: Path, name: str) -> None:
    text = called(installed(tmp_path, name), "--help").stdout
    for option in (
        *("--bus", "--timeout", "--router", "--edge-router", "--ssl-certificate", "--ssl-key", "--ssl-password"),
        *("--ssl-password-file", "--ssl-trustfile", "--ssl-disable-peer-name-verify", "--sasl-mechanisms"),
        *("--sasl-username", "--sasl-password", "--sasl-password-file", "--verbose", "--version", "--help"),
    ):
        assert f"{option} " in text or f"{option}\n" in text or f"{option}]" in text
    own = {
        "qdmanage": ("--type", "--name", "--identity", "--indent", "--stdin", "--body", "--properties"),
        "qdstat": (
            *("--general", "--connections", "--links", "--nodes", "--edge", "--address", "--memory", "--policy"),
            *("--autolinks", "--linkroutes", "--vhosts", "--vhostgroups", "--vhoststats", "--log", "--all-entities"),
            *("--all-routers", "--limit", "--csv"),
        ),
    }
    for option in own[name]:
        assert option in text


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("qdmanage", [], "OPERATION"),
        ("qdmanage", ["query", "--nonsense"], "unrecognized arguments: --nonsense"),
        ("qdmanage", ["read", "stray"], "unexpected arguments: stray"),
        ("qdmanage", ["delete", "--name", "x", "stray"], "unexpected arguments: stray"),
        ("qdmanage", ["get-types", "listener", "connector"], "unexpected arguments: connector"),
        ("qdmanage", ["get-mgmt-nodes", "stray"], "unexpected arguments: stray"),
        ("qdmanage", ["query", "-r", "A", "-d", "B"], "not allowed with"),
        ("qdmanage", ["query", "--indent", "x"], "--indent"),
        ("qdmanage", ["query", "-t", "never"], "--timeout"),
        ("qdstat", ["--nonsense"], "unrecognized arguments: --nonsense"),
        ("qdstat", ["stray"], "unrecognized arguments: stray"),
        ("qdstat", ["-c", "-l"], "not allowed with"),
        ("qdstat", ["-r", "A", "--all-routers"], "not allowed with"),
    ],
)
def test_a_wrong_command_line_gives_usage_on_stderr_and_2(
    tmp_path: Path, name: str, arguments: list[str], message: str
) -> None:
    done = called(installed(tmp_path, name), *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"usage: {name}")
    assert message in done.stderr


@pytest.mark.parametrize("name", TOOLS)
def test_a_server_that_is_not_there_is_reported_on_stdout_at_once(tmp_path: Path, closed_port: int, name: str) -> None:
    done = called(installed(tmp_path, name), *asking(name), "-b", f"127.0.0.1:{closed_port}", "-t", "1000")
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout == (
        f"ConnectionException: Connection amqp://127.0.0.1:{closed_port} disconnected: Connection refused\n"
    )


@pytest.mark.parametrize("name", TOOLS)
def test_a_debug_variable_gives_a_traceback(tmp_path: Path, closed_port: int, name: str) -> None:
    variables = {"_QPID_DISPATCH_TOOLS_DEBUG_": "1"}
    done = called(installed(tmp_path, name), *asking(name), "-b", f"127.0.0.1:{closed_port}", environment=variables)
    assert done.returncode == 1
    assert "Traceback" in done.stderr
    assert "ConnectionException" in done.stderr


@pytest.mark.parametrize("name", TOOLS)
@pytest.mark.parametrize("debug", [{}, {"_QPID_DISPATCH_TOOLS_DEBUG_": "1"}], ids=["plain", "debug"])
@pytest.mark.parametrize(
    "arguments",
    [
        ["-b", f"u:{SECRET}@127.0.0.1:{{port}}"],
        ["-b", f"u:{SECRET}@127.0.0.1:nonsense"],
        ["-b", f"u:{SECRET}@"],
        ["-b", "127.0.0.1:{port}", "--sasl-username", "u", "--sasl-password", SECRET],
        [f"--sasl-p={SECRET}"],
        [f"--sasl-pasword={SECRET}"],
        [f"--version={SECRET}"],
        ["-b", "127.0.0.1:{port}", "--ssl-password", SECRET, "--ssl-certificate", "/dev/null"],
    ],
)
def test_no_password_is_ever_printed(
    tmp_path: Path, closed_port: int, name: str, debug: dict[str, str], arguments: list[str]
) -> None:
    variables = {**debug, "TROUTER_SASL_PASSWORD": SECRET, "TROUTER_SSL_PASSWORD": SECRET}
    given = [each.format(port=closed_port) for each in arguments]
    done = called(installed(tmp_path, name), *asking(name), *given, environment=variables)
    assert done.returncode in {1, 2}
    assert SECRET not in done.stdout + done.stderr


@pytest.mark.parametrize("name", TOOLS)
def test_an_interrupt_ends_quietly(tmp_path: Path, name: str) -> None:
    program = installed(tmp_path, name)
    with socket.create_server(("127.0.0.1", 0)) as server:
        command: list[str | Path] = [program, *asking(name), "-b", f"127.0.0.1:{server.getsockname()[1]}", "-t", "1000"]
        environment = os.environ | {"PYTHONPATH": f"{ROOT}:{ROOT / 'plugins'}"}
        with subprocess.Popen(
            command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as process:
            try:
                connection, _ = server.accept()
                with connection:
                    assert connection.recv(8) == b"AMQP\0\1\0\0"
                    process.send_signal(signal.SIGINT)
                    assert process.communicate(timeout=TOO_LONG_S) == ("\n", "")
            finally:
                process.kill()
        assert process.returncode == 1


def test_a_reader_that_goes_away_is_no_failure_to_talk_about(tmp_path: Path) -> None:
    program = installed(tmp_path, "qdmanage")
    done = subprocess.run(
        f"{program} query -b 127.0.0.1:1 | true",
        shell=True,
        env=os.environ | {"PYTHONPATH": f"{ROOT}:{ROOT / 'plugins'}"},
        capture_output=True,
        text=True,
        check=True,
        timeout=TOO_LONG_S,
    )
    assert done.stderr == ""


def test_qdmanage_reports_wrong_arguments_before_it_connects(tmp_path: Path, closed_port: int) -> None:
    program = installed(tmp_path, "qdmanage")
    bus = ("-b", f"127.0.0.1:{closed_port}")
    for arguments, message in (
        (("create", "--type", "listener", "cost=cheap"), "ValueError: cost is an integer, not 'cheap'"),
        (("create", "--type", "listener", "prot=1"), "ValidationError: no attribute 'prot' in "),
        (("update", "=x"), "ValueError: an attribute without a name"),
        (("callme", "--properties", "[1]"), "ValueError: --properties is not a JSON map"),
        (("callme", "--body", "{"), "ValueError: this is not JSON"),
        (("create", "--stdin"), "JSONDecodeError: "),
    ):
        done = called(program, *arguments, *bus, given="nonsense")
        assert (done.returncode, done.stderr) == (1, "")
        assert done.stdout.startswith(message)


@pytest.mark.parametrize("given", ["1", '"x"', "[1]", '[{"a": 1}, 2]', "null"])
def test_stdin_is_a_map_or_a_list_of_maps(tmp_path: Path, given: str) -> None:
    done = called(installed(tmp_path, "qdmanage"), "create", "--stdin", given=given)
    assert (done.returncode, done.stdout) == (1, "ValueError: stdin is not a JSON map or a list of maps\n")


def test_stdin_that_is_nested_too_deeply_is_refused(tmp_path: Path) -> None:
    done = called(installed(tmp_path, "qdmanage"), "create", "--stdin", given="[" * 100_000)
    assert (done.returncode, done.stdout) == (1, "ValueError: the JSON on stdin is nested too deeply\n")


def test_another_name_is_trouter_itself(tmp_path: Path) -> None:
    done = called(installed(tmp_path, "something"), "--version")
    assert done.stdout.startswith("trouter ")
