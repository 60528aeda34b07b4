"""The client's examples work as processes of their own."""

from __future__ import annotations

import os
import sys
from inspect import signature
from pathlib import Path

import trio

from tests.client.support import Router
from trouter import client

ROOT = Path(__file__).parents[2]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT)}


async def run(name: str, *arguments: object) -> list[str]:
    command = [sys.executable, str(ROOT / "examples" / name), *map(str, arguments)]
    done = await trio.run_process(command, cwd=ROOT, env=ENVIRONMENT, capture_stdout=True, capture_stderr=True)
    assert done.stderr == b""
    return done.stdout.decode().splitlines()


async def test_hello(router: Router) -> None:
    lines = await run("client_hello.py", router.url)
    assert [line for line in lines if line != "Accepted()"] == ["Hello, world", "Bonjour, le monde", "Hallo, Welt"]
    assert lines.count("Accepted()") == 3


async def test_request(router: Router) -> None:
    assert await run("client_request.py", router.url) == [f"twice {number} is {2 * number}" for number in range(5)]


async def test_stream(router: Router, tmp_path: Path) -> None:
    original, copy = tmp_path / "original", tmp_path / "copy"
    original.write_bytes(bytes(range(256)) * 4000)
    lines = await run("client_stream.py", original, copy, router.url)
    assert sorted(lines) == ["arrived", "original is stored"]
    assert copy.read_bytes() == original.read_bytes()


async def test_the_manual_names_every_argument_and_every_public_exception() -> None:
    manual = (ROOT / "docs" / "client.md").read_text(encoding="utf-8")
    for name in signature(client.connect).parameters:
        assert f"`{name}`" in manual or f"({name}" in manual, name
    errors = [
        name
        for name in client.__all__
        if isinstance(found := getattr(client, name), type) and issubclass(found, Exception)
    ]
    for name in errors:
        assert name in manual, name


async def test_the_first_example_of_the_manual_works(router: Router, tmp_path: Path) -> None:
    manual = (ROOT / "docs" / "client.md").read_text(encoding="utf-8")
    code = manual.split("```python\n")[1].split("```")[0].replace("amqp://localhost", router.url)
    script = tmp_path / "first.py"
    script.write_text(code, encoding="utf-8")
    assert await run(str(script)) == ["Hello", "Accepted()"]
