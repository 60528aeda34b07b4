"""The example programs work, run with the commands in their heads; only the ports are changed to free ones."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.routers import DEADLINE_S, PLAIN_LISTENER, ROOT, RunningRouter, stopped_cleanly, watched

EXAMPLES = ROOT / "examples"
#: The expected output of each, in any order.
PRINTED = {
    "client_request.py": [f"twice {number} is {2 * number}" for number in range(5)],
    "competing_consumers.py": ["20 jobs were done by Ann and Bob"],
    "multicast.py": [f"{name} reads: {text}" for name in ("Ann", "Bob", "Carol") for text in ("rain", "sun")],
    "mobile_service.py": ["noon in the east", "noon in the west", "noon in the east"],
    "tenants.py": ["acme has an order of anvils", "globex has an order of globes"],
    "custom_auth.py": ["blue-key: connected to Keys", "red-key: refused"],
    "custom_vote.py": ["orders are written, the archive is read", "archive/2026: amqp:unauthorized-access"],
    "broker_sharding.py": ["both brokers keep jobs: True", "20 jobs are collected"],
}
PAGE = (EXAMPLES / "README.md").read_text(encoding="utf-8")


@contextmanager
def started(command: str, folder: Path, ports: dict[str, int]) -> Iterator[RunningRouter]:
    """Start the router of a printed command at free ports; `ports` maps those of its file to them."""
    variables, _, rest = command.rpartition("trouter run")
    conf = rest.removeprefix(" -c ").strip()
    text = (ROOT / conf).read_text(encoding="utf-8") if conf else PLAIN_LISTENER
    listening = re.findall(r"(?ms)^listener \{.*?port: (\d+)", text) if conf else ["5672"]
    for port in set(re.findall(r"port: (\d+)", text)):
        text = text.replace(f"port: {port}\n", f"port: {ports.get(port, 0)}\n")
    path = folder / (Path(conf).name or "default.conf")
    path.write_text(text, encoding="utf-8")
    environment = dict(pair.split("=") for pair in variables.split())
    run = [sys.executable, "-m", "trouter", "run", "-c", str(path)]
    with watched(run, path, environment={**os.environ, **environment}) as router:
        router.wait_for_line(r"SERVER \(notice\) Operational")
        ports |= dict(zip(listening, router.ports, strict=True))
        with stopped_cleanly(router):
            yield router


def ran(name: str, urls: Sequence[str]) -> list[str]:
    command = [sys.executable, str(EXAMPLES / name), *urls]
    done = subprocess.run(
        command,
        check=False,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


@pytest.mark.parametrize("name", PRINTED)
def test_an_example_prints_the_documented_lines(name: str, tmp_path: Path) -> None:
    text = (EXAMPLES / name).read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 75
    commands = re.findall(r"^((?:\w+=\S+ )?trouter run.*)$", text, re.MULTILINE)
    assert re.search(rf"^python examples/{name}", text, re.MULTILINE)
    ports: dict[str, int] = {}
    with ExitStack() as stack:
        for command in commands:
            stack.enter_context(started(command, tmp_path, ports))
        urls = [f"amqp://127.0.0.1:{ports[port]}" for port in re.findall(r"\"amqp://127.0.0.1:(\d+)\"", text)]
        assert sorted(ran(name, urls)) == sorted(PRINTED[name])


def test_the_page_lists_examples_that_exist_and_run_somewhere() -> None:
    listed = re.findall(r"^\| \[(.*?)\]\(\1\)", PAGE, re.MULTILINE)
    assert all((EXAMPLES / name).is_file() for name in listed)
    elsewhere = {
        "client_stream.py": "tests/client/test_examples.py",
        "pipeline/demo.py": "pipeline/tests/test_demo.py",
        "pipeline/pictures.ipynb": "pipeline/tests/test_pictures.py",
    }
    assert set(listed) == PRINTED.keys() | elsewhere.keys()
    for name, where in elsewhere.items():
        assert Path(name).stem in (ROOT / where).read_text(encoding="utf-8")
