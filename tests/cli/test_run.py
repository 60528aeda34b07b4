"""`trouter run`, and the first of the examples, from outside: processes, sockets and signals."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Timer

import pytest

ROOT = Path(__file__).parents[2]
TOO_LONG_S = 60  # seconds that only a hang takes; no test waits for them to pass


@contextmanager
def started(configuration: Path) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """Start a router process; return it and the port it listens on."""
    arguments = [sys.executable, "-m", "trouter", "run", "-c", str(configuration)]
    with subprocess.Popen(arguments, cwd=ROOT, stderr=subprocess.PIPE, text=True) as process:
        hang = Timer(TOO_LONG_S, process.kill)
        hang.start()
        try:
            assert process.stderr is not None
            ports = (re.search(r"SERVER \(notice\) Listening on 127\.0\.0\.1:(\d+)", line) for line in process.stderr)
            listening = next(match for match in ports if match)
            yield process, int(listening[1])
        finally:
            hang.cancel()
            process.kill()


@pytest.fixture
def on_a_free_port(tmp_path: Path) -> Path:
    path = tmp_path / "trouter.conf"
    path.write_text("listener {\n    host: 127.0.0.1\n    port: 0\n    saslMechanisms: ANONYMOUS\n}\n")
    return path


def test_the_example_on_the_front_page_prints_its_lines(on_a_free_port: Path) -> None:
    with started(on_a_free_port) as (_, port):
        done = subprocess.run(
            [sys.executable, ROOT / "examples" / "hello.py", f"127.0.0.1:{port}"],
            capture_output=True,
            text=True,
            timeout=TOO_LONG_S,
            check=False,
        )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == ["Hello, world", "Bonjour, le monde", "Hallo, Welt"]


def test_term_ends_the_router_with_status_0(on_a_free_port: Path) -> None:
    with started(on_a_free_port) as (process, port):
        process.send_signal(signal.SIGTERM)
        assert process.wait(TOO_LONG_S) == 0
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port))


def test_a_port_in_use_stops_the_start_with_status_1_and_its_name(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        path = tmp_path / "trouter.conf"
        path.write_text(f"listener {{ host: 127.0.0.1, port: {port} }}\n")
        done = subprocess.run(
            [sys.executable, "-m", "trouter", "run", "-c", path],
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=TOO_LONG_S,
            check=False,
        )
    assert done.returncode == 1
    assert f"127.0.0.1:{port}" in done.stderr
    assert "Traceback" not in done.stderr


def test_an_unsafe_setting_is_reported_at_the_start(tmp_path: Path) -> None:
    path = tmp_path / "open.conf"
    path.write_text("listener { port: 0 }\n")
    arguments = [sys.executable, "-m", "trouter", "run", "-c", str(path)]
    with subprocess.Popen(arguments, cwd=ROOT, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        warning = next(line for line in process.stderr if "listener.authenticatePeer: will let in" in line)
        process.kill()
    assert "MAIN (warning) unsafe: " in warning
    assert "will let in every client from other machines" in warning
