"""With secureDefaults the log goes only to files of root and the router's user, and follows no link to another one."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.logs.talk import configured
from trouter import logs
from trouter.config import ConfigurationError, load
from trouter.config.keepers import keepers_of_process

pytestmark = pytest.mark.attack

STRANGER = 65534
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file to another user")


def text(output: object, secure: str = "yes") -> str:
    logged = f"log {{ module: ROUTER, outputFile: {output}, timestamp: no }}"
    return f"router {{\n id: A\n secureDefaults: {secure}\n}}\n{logged}"


def by_a_link(log: Path, target: Path) -> None:
    log.symlink_to(target)


def by_another_name(log: Path, target: Path) -> None:
    target.write_text("")
    os.link(target, log)


def of_a_stranger(log: Path, target: Path) -> None:
    log.write_text("")
    os.chown(log, STRANGER, 0)


FOREIGN = (
    pytest.param(by_a_link, "it is a symbolic link", id="link"),
    pytest.param(by_another_name, "it has another name besides", id="hard link"),
    pytest.param(of_a_stranger, "neither root nor the router's user", id="stranger", marks=as_root),
)


@pytest.mark.parametrize(("put", "message"), FOREIGN)
def test_a_log_file_that_may_be_another_file_is_refused_at_the_start(
    tmp_path: Path, put: Callable[[Path, Path], None], message: str
) -> None:
    log, target = tmp_path / "router.log", tmp_path / "target"
    put(log, target)
    with pytest.raises(ConfigurationError, match=message):
        configured(text(log))
    assert not target.exists() or target.read_text() == ""
    if put is not of_a_stranger:
        configured(text(log, "no"))
        logs.of("ROUTER").info("served as on the older router")
        assert target.read_text() == "ROUTER (info) served as on the older router\n"


@pytest.mark.parametrize(("put", "message"), FOREIGN)
def test_a_log_file_that_may_be_another_file_is_not_opened_again(
    tmp_path: Path, put: Callable[[Path, Path], None], message: str, capfd: pytest.CaptureFixture[str]
) -> None:
    log, target = tmp_path / "router.log", tmp_path / "target"
    configured(text(log))
    rotated = log.rename(tmp_path / "router.log.1")
    put(log, target)
    logs.reopen()
    logs.of("ROUTER").info("after")
    assert rotated.read_text() == "ROUTER (info) after\n"
    assert not target.exists() or target.read_text() == ""
    told = capfd.readouterr().err
    assert message in told
    assert "the log goes on in the file opened before" in told


def test_a_link_in_a_folder_of_the_router_leads_a_log_elsewhere_if_it_is_part_of_the_path(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "log").symlink_to("disk")
    configured(text(tmp_path / "log" / "router.log"))
    logs.of("ROUTER").info("x")
    assert (tmp_path / "disk" / "router.log").read_text() == "ROUTER (info) x\n"


def test_a_pipe_takes_lines(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    configured(text(tmp_path / "pipe"))
    logs.of("ROUTER").info("x")
    logs.reopen()
    logs.of("ROUTER").info("y")
    assert os.read(reader, 1000) == b"ROUTER (info) x\nROUTER (info) y\n"
    os.close(reader)


@pytest.mark.parametrize("output", ["/dev/null", "/dev/full"])
def test_a_device_takes_lines(output: str) -> None:
    configured(text(output))
    logs.reopen()
    logs.of("ROUTER").info("x")


@pytest.mark.parametrize("output", ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"])
def test_the_streams_of_the_process_take_lines_by_their_names_in_dev(tmp_path: Path, output: str) -> None:
    program = (
        "import sys; from tests.logs.talk import configured; from trouter import logs\n"
        "configured(sys.argv[1]); logs.of('ROUTER').info('x')"
    )
    root = Path(__file__).parents[2]
    command = [sys.executable, "-c", program, text(output)]
    piped = subprocess.run(command, check=True, capture_output=True, text=True, cwd=root, timeout=60)
    assert piped.stdout == "ROUTER (info) x\n"
    with (tmp_path / "out").open("w") as out:
        subprocess.run(command, check=True, stdout=out, cwd=root, timeout=60)
    assert (tmp_path / "out").read_text() == "ROUTER (info) x\n"


@as_root
def test_the_log_that_was_given_to_the_user_of_the_router_is_opened_at_the_next_start(tmp_path: Path) -> None:
    log = tmp_path / "router.log"
    os.chown(tmp_path, STRANGER, STRANGER)
    for _ in range(2):
        keepers = keepers_of_process(STRANGER)
        logs.configure(load(text=text(log), keepers=keepers), keepers)
        logs.give(STRANGER, STRANGER)
        logs.reopen()
        logs.of("ROUTER").info("x")
        logs.configure(load(text=""))
    assert log.read_text() == "ROUTER (info) x\n" * 2
    assert log.stat().st_uid == STRANGER
