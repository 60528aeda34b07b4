"""The outputs of the log, and failures of writing (docs/logging.md, "What the log promises")."""

from __future__ import annotations

import io
import os
import resource
import stat
import sys
import syslog
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.logs.talk import configured, entities, say_everything
from trouter import logs
from trouter.config import ConfigurationError, LogEntity, RouterEntity

ROUTER = RouterEntity(id="r")
PLAIN = "log { module: DEFAULT, includeTimestamp: no }"


def descriptors() -> set[str]:
    """Return the open descriptors of this process."""
    found = set()
    for each in Path("/proc/self/fd").iterdir():
        try:
            found.add(str(each.readlink()))
        except FileNotFoundError:
            continue  # the listing's own
    return found


def test_standard_output(capfd: pytest.CaptureFixture[str]) -> None:
    configured("log { module: DEFAULT, outputFile: stdout, includeTimestamp: no }")
    sys.stdout.write("before ")
    logs.of("ROUTER").info("x")
    assert capfd.readouterr() == ("before ROUTER (info) x\n", "")


def test_modules_share_a_file_which_is_appended_to(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "router.log"
    path.write_text("before\n")
    text = f"log {{ module: ROUTER, outputFile: {path}, timestamp: no }}\n"
    configured(text + text.replace("ROUTER", "AGENT"))
    logs.of("ROUTER").info("a")
    logs.of("AGENT").info("b")
    assert path.read_text() == "before\nROUTER (info) a\nAGENT (info) b\n"
    assert capfd.readouterr().err == ""


def test_a_relative_name_is_relative_to_the_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    configured("log { module: ROUTER, outputFile: router.log, timestamp: no }")
    logs.of("ROUTER").info("a")
    assert (tmp_path / "router.log").read_text() == "ROUTER (info) a\n"


@pytest.mark.parametrize(
    ("router", "mode"),
    [
        ("", 0o644),
        ("secureDefaults: yes", 0o640),
        ("logFileMode: 0600", 0o600),
        ("secureDefaults: yes, logFileMode: 0644", 0o644),
    ],
)
def test_a_new_log_file_has_the_mode_of_the_older_router_unless_defaults_are_secure(
    tmp_path: Path, router: str, mode: int
) -> None:
    kept = tmp_path / "kept"
    kept.write_text("")
    kept.chmod(0o604)
    before = os.umask(0)
    try:
        logged = f"log {{ module: ROUTER, outputFile: {tmp_path / 'x'} }}\nlog {{ module: SERVER, outputFile: {kept} }}"
        configured(f"router {{ id: A, {router} }}\n{logged}" if router else logged)
        logs.reopen()
        (tmp_path / "x").unlink()
        logs.reopen()
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "x").stat().st_mode) == mode
    assert stat.S_IMODE(kept.stat().st_mode) == 0o604


def test_an_unencodable_text_is_written_escaped(tmp_path: Path) -> None:
    configured(f"log {{ module: ROUTER, outputFile: {tmp_path / 'x'}, timestamp: no }}")
    logs.of("ROUTER").info("a%sb", "\udc80")
    assert (tmp_path / "x").read_bytes() == b"ROUTER (info) a\\udc80b\n"


def test_a_file_that_cannot_be_opened_is_an_error_with_its_place(tmp_path: Path) -> None:
    before = descriptors()
    with pytest.raises(ConfigurationError) as caught:
        configured(
            f"log {{ module: SERVER, outputFile: {tmp_path / 'fine'} }}\n"
            f"log {{ module: ROUTER, outputFile: {tmp_path} }}\nlog {{ module: AGENT, outputFile: {tmp_path} }}"
        )
    assert [str(problem) for problem in caught.value.problems] == [
        f"(text):{line}:1: log.outputFile: Failed to open log file '{tmp_path}': Is a directory" for line in (2, 3)
    ]
    assert descriptors() == before


def test_an_empty_name_is_no_file() -> None:
    with pytest.raises(ConfigurationError, match="Failed to open log file ''"):
        logs.apply([LogEntity(module="AGENT", output_file="")], ROUTER)


def test_a_pipe_without_a_reader_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ConfigurationError, match=r"Failed to open log file '.*pipe': No such device or address"):
        configured(f"log {{ module: ROUTER, outputFile: {tmp_path / 'pipe'} }}")


def test_a_line_that_cannot_be_written_is_counted_and_not_fatal(capfd: pytest.CaptureFixture[str]) -> None:
    configured("log { module: DEFAULT, outputFile: /dev/full }\nlog { module: AGENT, outputFile: stderr }")
    before = logs.book.lost
    logs.of("ROUTER").info("lost")
    logs.of("ROUTER").info("lost")
    assert logs.book.lost == before + 2
    logs.of("AGENT").info("not lost")
    assert "not lost" in capfd.readouterr().err


@contextmanager
def no_file_beyond(octets: int) -> Iterator[None]:
    """Make each write fail that would enlarge a file beyond ``octets``, as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (octets, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_when_lines_can_be_written_again_the_gap_is_reported_once(tmp_path: Path) -> None:
    path = tmp_path / "log"
    configured(f"log {{ module: DEFAULT, outputFile: {path}, includeTimestamp: no }}")
    warnings = logs.book.counts()["MAIN"]["warning"]
    log = logs.of("ROUTER")
    log.info("a")
    with no_file_beyond(24):
        log.info("torn")
        log.info("lost")
    log.info("b")
    log.info("c")
    assert path.read_text().splitlines() == [
        "ROUTER (info) a",
        "ROUTER (",
        f"MAIN (warning) 2 log lines could not be written to {path}: File too large",
        "ROUTER (info) b",
        "ROUTER (info) c",
    ]
    assert logs.book.counts()["MAIN"]["warning"] == warnings + 1
    assert [entry.module for entry in logs.book.recent(3)] == ["ROUTER", "MAIN", "ROUTER"]


def test_one_lost_line_is_one_line(tmp_path: Path) -> None:
    configured(f"log {{ module: DEFAULT, outputFile: {tmp_path / 'log'}, includeTimestamp: no }}")
    with no_file_beyond(0):
        logs.of("ROUTER").info("lost")
    logs.of("ROUTER").info("b")
    assert "MAIN (warning) 1 log line could not" in (tmp_path / "log").read_text()


def test_a_pipe_that_is_read_no_more_holds_nothing_up(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb", buffering=0) as reader:  # noqa: PTH123
        configured(f"log {{ module: DEFAULT, outputFile: {path}, includeTimestamp: no }}")
        before = logs.book.lost
        while logs.book.lost < before + 3:
            logs.of("ROUTER").info("x" * 10_000)
        while reader.read(65536):
            pass
        logs.of("ROUTER").info("a")
        logs.of("ROUTER").info("b")
        assert reader.read(65536).decode().splitlines()[-3:] == [
            f"MAIN (warning) 3 log lines could not be written to {path}: no process reads it",
            "ROUTER (info) a",
            "ROUTER (info) b",
        ]


def test_the_reader_of_stderr_may_go_away(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    configured(PLAIN)
    before = logs.book.lost
    with open(writer, "w", encoding="utf-8") as stream:  # noqa: PTH123
        monkeypatch.setattr(sys, "stderr", stream)
        logs.of("ROUTER").info("lost")
    logs.of("ROUTER").info("lost: it is closed")
    monkeypatch.setattr(sys, "stderr", None)
    logs.of("ROUTER").info("lost: it is gone")
    assert logs.book.lost == before + 3
    monkeypatch.undo()
    logs.of("ROUTER").info("x")
    assert capfd.readouterr().err == (
        "MAIN (warning) 3 log lines could not be written to stderr: closed\nROUTER (info) x\n"
    )


def test_a_stream_in_memory_takes_lines_too(monkeypatch: pytest.MonkeyPatch) -> None:
    configured(PLAIN)
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    logs.of("ROUTER").info("x")
    assert stream.getvalue() == "ROUTER (info) x\n"


def test_files_that_were_renamed_are_left_and_begun_anew_on_request(tmp_path: Path) -> None:
    path, old = tmp_path / "log", tmp_path / "log.1"
    configured(f"log {{ module: DEFAULT, outputFile: {path}, includeTimestamp: no }}")
    logs.of("ROUTER").info("a")
    path.rename(old)
    logs.of("ROUTER").info("b")
    logs.reopen()
    logs.of("ROUTER").info("c")
    assert old.read_text() == "ROUTER (info) a\nROUTER (info) b\n"
    assert path.read_text() == "ROUTER (info) c\n"


def test_a_log_file_that_cannot_be_reopened_stays_in_use(tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    path = folder / "log"
    configured(f"log {{ module: DEFAULT, outputFile: {path}, includeTimestamp: no }}")
    folder.rename(tmp_path / "moved")
    logs.reopen()
    logs.of("ROUTER").info("a")
    assert (tmp_path / "moved" / "log").read_text() == (
        f"MAIN (error) Failed to open log file '{path}': No such file or directory; "
        "the log goes on in the file opened before\nROUTER (info) a\n"
    )


def test_files_that_are_used_no_more_are_closed_and_others_stay_open(tmp_path: Path) -> None:
    a, b = (f"log {{ module: {module}, outputFile: {tmp_path / module} }}\n" for module in ("ROUTER", "AGENT"))
    configured(a + b)
    (tmp_path / "AGENT").unlink()
    logs.apply(entities(b), ROUTER)
    assert str(tmp_path / "ROUTER") not in descriptors()
    assert f"{tmp_path / 'AGENT'} (deleted)" in descriptors()
    configured(PLAIN)
    assert not [each for each in descriptors() if each.startswith(str(tmp_path))]


def test_syslog_gets_no_time_and_the_nearest_priority(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[tuple[int, str]] = []
    write: Callable[[int, str], None] = lambda priority, text: sent.append((priority, text))  # noqa: E731
    monkeypatch.setattr(syslog, "syslog", write)
    configured("log { module: DEFAULT, outputFile: syslog, enable: trace debug notice }")
    say_everything("ROUTER")
    assert sent == [
        (syslog.LOG_DEBUG, "ROUTER (trace) at trace"),
        (syslog.LOG_DEBUG, "ROUTER (debug) at debug"),
        (syslog.LOG_NOTICE, "ROUTER (notice) at notice"),
    ]
