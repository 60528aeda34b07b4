"""The router under the name of Qpid Dispatch's: options, exit statuses, the daemon and its pid file."""

from __future__ import annotations

import os
import pwd
import re
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import trouter
from tests.cli.programs import ROOT, TOO_LONG_S, called, installed
from trouter.cli.qdrouterd import DaemonError, PidFile

#: Linux numbers processes up to 4,194,304.
MORE_THAN_ANY_PROCESS = 4_194_305
LISTENER = "router {{ id: R }}\nlistener {{ host: 127.0.0.1, port: {port}, saslMechanisms: ANONYMOUS }}\n"


@pytest.fixture
def qdrouterd(tmp_path: Path) -> Path:
    return installed(tmp_path, "qdrouterd")


@pytest.fixture
def configuration(tmp_path: Path) -> Path:
    path = tmp_path / "some.conf"
    path.write_text(LISTENER.format(port=0))
    return path


@pytest.fixture
def started() -> Iterator[list[int]]:
    """Collect the ids of daemons; kill those that still run at the end."""
    daemons: list[int] = []
    yield daemons
    for daemon in daemons:
        try:
            os.kill(daemon, signal.SIGKILL)
        except ProcessLookupError:
            pass


def wait_for_the_end_of(daemon: int) -> None:
    watched = os.pidfd_open(daemon)
    try:
        ready, _, _ = select.select([watched], [], [], TOO_LONG_S)
        assert ready, "the daemon does not end"
    finally:
        os.close(watched)


@pytest.mark.parametrize("option", ["-h", "--help"])
def test_help_is_no_failure(qdrouterd: Path, option: str) -> None:
    done = called(qdrouterd, option)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("usage: qdrouterd")
    for name in ("--config", "--include", "--daemon", "--pidfile", "--user", "--test-hooks", "--version"):
        assert name in done.stdout


@pytest.mark.parametrize("option", ["-v", "--version"])
def test_the_version_is_all_that_is_printed(qdrouterd: Path, option: str) -> None:
    done = called(qdrouterd, option)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{trouter.__version__}\n", "")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--unknown"], "unrecognized arguments: --unknown"),
        (["-c"], "expected one argument"),
        (["a", "b"], "Unexpected arguments: a b"),
        (["-c", "x", "stray"], "Unexpected arguments: stray"),
    ],
)
def test_a_wrong_command_line_gives_usage_and_1(qdrouterd: Path, arguments: list[str], message: str) -> None:
    done = called(qdrouterd, *arguments)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("usage: qdrouterd")
    assert message in done.stderr


def test_the_default_configuration_has_the_path_of_qpid_dispatch(qdrouterd: Path) -> None:
    assert "etc/qpid-dispatch/qdrouterd.conf" in re.sub(r"\s+", "", called(qdrouterd, "-h").stdout)


@pytest.mark.parametrize("daemon", [[], ["-d"]])
def test_a_configuration_that_cannot_be_used_gives_1_and_leaves_no_pid_file(
    qdrouterd: Path, tmp_path: Path, daemon: list[str]
) -> None:
    done = called(qdrouterd, *daemon, "-c", "missing.conf", "-P", "pid", cwd=tmp_path)
    assert done.returncode == 1
    assert f"{tmp_path / 'missing.conf'}: cannot be read" in done.stderr
    assert not (tmp_path / "pid").exists()


@pytest.mark.parametrize("daemon", [[], ["-d"]])
def test_a_port_in_use_gives_1_and_leaves_no_pid_file(qdrouterd: Path, tmp_path: Path, daemon: list[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        (tmp_path / "some.conf").write_text(LISTENER.format(port=port))
        done = called(qdrouterd, *daemon, "-c", "some.conf", "-P", "pid", cwd=tmp_path)
    assert done.returncode == 1
    assert f"127.0.0.1:{port}" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "pid").exists()


@pytest.mark.parametrize("daemon", [[], ["-d"]])
def test_the_reason_of_a_failed_start_is_on_stderr_and_in_the_log_wherever_that_is(
    qdrouterd: Path, tmp_path: Path, daemon: list[str]
) -> None:
    log = "log {{ module: DEFAULT, enable: critical+, outputFile: {log} }}\n"
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        (tmp_path / "some.conf").write_text((LISTENER + log).format(port=port, log=tmp_path / "log"))
        done = called(qdrouterd, *daemon, "-c", "some.conf", cwd=tmp_path)
    reason = f"Router start-up failed: cannot listen on 127.0.0.1:{port}: Address already in use"
    assert (done.returncode, done.stderr) == (1, f"{reason}\n")
    assert reason in (tmp_path / "log").read_text()


@pytest.mark.parametrize(("ended_by", "status"), [(signal.SIGTERM, 0), (signal.SIGINT, -signal.SIGINT)])
def test_in_the_foreground_the_pid_file_lasts_as_long_as_the_router(
    qdrouterd: Path, configuration: Path, tmp_path: Path, ended_by: signal.Signals, status: int
) -> None:
    pid_file = tmp_path / "pid"
    command: list[str | Path] = [qdrouterd, "-c", configuration, "-I", "ignored", "-T", "-P", pid_file]
    variables = os.environ | {"PYTHONPATH": f"{ROOT}:{ROOT / 'plugins'}"}
    with subprocess.Popen(command, env=variables, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            lines = list(iter_until(process.stderr, "Operational"))
            assert pid_file.read_text() == f"{process.pid}\n"
            assert any("no test hooks" in line for line in lines)
            process.send_signal(ended_by)
            assert process.wait(TOO_LONG_S) == status
        finally:
            process.kill()
    assert not pid_file.exists()


def iter_until(lines: Iterator[str], word: str) -> Iterator[str]:
    for line in lines:
        yield line
        if word in line:
            return
    raise AssertionError(f"no line with {word}")


@pytest.mark.parametrize("ended_by", [signal.SIGTERM, signal.SIGINT, signal.SIGQUIT])
def test_the_daemon_stands_when_its_caller_ends(
    qdrouterd: Path, configuration: Path, tmp_path: Path, started: list[int], ended_by: signal.Signals
) -> None:
    done = called(qdrouterd, "--daemon", "--config", configuration.name, "--pidfile", "pid", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "")
    daemon = int((tmp_path / "pid").read_text())
    started.append(daemon)
    assert (tmp_path / "pid").stat().st_mode & 0o777 == 0o644
    listening = re.search(r"Listening on 127\.0\.0\.1:(\d+)", done.stderr)
    assert listening is not None
    socket.create_connection(("127.0.0.1", int(listening[1]))).close()
    about = Path(f"/proc/{daemon}")
    assert (about / "cwd").readlink() == Path("/")
    assert [str((about / "fd" / str(number)).readlink()) for number in range(3)] == [os.devnull] * 3
    assert os.getsid(daemon) not in {os.getsid(0), daemon}  # it has a session of its own, and is not its leader
    os.kill(daemon, ended_by)
    wait_for_the_end_of(daemon)
    assert not (tmp_path / "pid").exists()


@pytest.mark.parametrize("daemon", [[], ["-d"]])
def test_a_second_start_that_fails_leaves_the_pid_file_to_the_router_that_runs(
    qdrouterd: Path, configuration: Path, tmp_path: Path, started: list[int], daemon: list[str]
) -> None:
    command = ["-P", "pid", "-c", configuration.name]
    first = called(qdrouterd, "-d", *command, cwd=tmp_path)
    started.append(int((tmp_path / "pid").read_text()))
    listening = re.search(r"Listening on 127\.0\.0\.1:(\d+)", first.stderr)
    assert listening is not None
    configuration.write_text(LISTENER.format(port=listening[1]))
    assert called(qdrouterd, *daemon, *command, cwd=tmp_path).returncode == 1
    assert (tmp_path / "pid").read_text() == f"{started[0]}\n"
    os.kill(started[0], signal.SIGTERM)
    wait_for_the_end_of(started[0])
    assert not (tmp_path / "pid").exists()


def test_the_daemon_keeps_nothing_open_that_its_caller_waits_for(
    qdrouterd: Path, configuration: Path, tmp_path: Path, started: list[int]
) -> None:
    reads, writes = os.pipe()
    command: list[str | Path] = [qdrouterd, "-d", "-c", configuration, "-P", tmp_path / "pid"]
    variables = os.environ | {"PYTHONPATH": f"{ROOT}:{ROOT / 'plugins'}"}
    subprocess.run(command, env=variables, pass_fds=[writes], capture_output=True, check=True, timeout=TOO_LONG_S)
    started.append(int((tmp_path / "pid").read_text()))
    os.close(writes)
    ready, _, _ = select.select([reads], [], [], TOO_LONG_S)
    assert ready
    assert os.read(reads, 1) == b""
    os.close(reads)
    os.kill(started[0], signal.SIGTERM)
    wait_for_the_end_of(started[0])


def test_a_user_that_there_is_not_gives_1(qdrouterd: Path, configuration: Path, tmp_path: Path) -> None:
    done = called(qdrouterd, "-c", configuration, "-U", "no-such-user", "-P", tmp_path / "pid")
    assert (done.returncode, done.stderr) == (1, "qdrouterd: there is no user 'no-such-user'\n")
    assert not (tmp_path / "pid").exists()


def test_the_option_of_the_current_user_needs_no_switch_of_users(qdrouterd: Path, tmp_path: Path) -> None:
    me = pwd.getpwuid(os.getuid()).pw_name
    done = called(qdrouterd, "-U", me, "-c", tmp_path / "missing.conf")
    assert "missing.conf: cannot be read" in done.stderr


def ran(code: str) -> subprocess.CompletedProcess[str]:
    """Run code in a process of its own."""
    command = [sys.executable, "-c", code]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=TOO_LONG_S)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may become somebody else")
def test_user_and_groups_are_given_up_for_good() -> None:
    code = (
        "import os; from trouter.app.privileges import account_of, switch_user;"
        "os.setgroups([0, 1]); account = account_of('nobody'); switch_user(account);"
        "print(os.getresuid() == (account.uid,) * 3, os.getresgid() == (account.gid,) * 3, 0 in os.getgroups())\n"
        "try: os.setuid(0)\n"
        "except PermissionError: print('for good')\n"
    )
    done = ran(code)
    assert (done.stderr, done.stdout) == ("", "True True False\nfor good\n")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may become somebody else")
def test_a_peer_that_may_not_become_another_user_is_refused_with_that_reason() -> None:
    code = (
        "from trouter.app.privileges import PrivilegeError, account_of, switch_user\n"
        "switch_user(account_of('nobody'))\n"
        "try: switch_user(account_of('root'))\n"
        "except PrivilegeError as refused: print(refused)\n"
    )
    done = ran(code)
    assert (done.stderr, done.stdout) == ("", "the process may not become user root, group root\n")


# --- the pid file


def test_a_pid_file_is_not_written_through_a_link(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("kept")
    (tmp_path / "pid").symlink_to(precious)
    with pytest.raises(DaemonError, match="pid cannot be written"):
        PidFile(tmp_path / "pid", None)
    assert precious.read_text() == "kept"


def test_a_pid_file_in_no_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DaemonError, match="No such file or directory"):
        PidFile(tmp_path / "missing" / "pid", None)


def test_a_pid_file_that_another_process_has_written_since_stays(tmp_path: Path) -> None:
    file = PidFile(tmp_path / "pid", None)
    (tmp_path / "pid").write_text("1\n")
    file.remove()
    assert (tmp_path / "pid").read_text() == "1\n"


@pytest.mark.parametrize("left", [f"{MORE_THAN_ANY_PROCESS}\n", "no number", ""])
def test_what_no_running_process_has_left_in_a_pid_file_is_not_given_back(tmp_path: Path, left: str) -> None:
    (tmp_path / "pid").write_text(left)
    PidFile(tmp_path / "pid", None).remove()
    assert not (tmp_path / "pid").exists()


def test_the_pid_file_of_a_router_that_has_stood_is_gone_at_its_end(tmp_path: Path) -> None:
    (tmp_path / "pid").write_text(f"{os.getppid()}\n")  # a process that runs
    file = PidFile(tmp_path / "pid", None)
    file.keep()
    file.remove()
    assert not (tmp_path / "pid").exists()


def test_a_pid_file_that_is_gone_may_be_removed(tmp_path: Path) -> None:
    file = PidFile(tmp_path / "pid", None)
    file.remove()
    file.remove()
    assert not (tmp_path / "pid").exists()
