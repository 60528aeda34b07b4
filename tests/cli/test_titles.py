"""Passwords in the addresses of routers that commands of the pipeline take: the process's title hides them at once."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SECRET = "s3cr3t-in-the-title"
URL = f"amqp://ann:{SECRET}@127.0.0.1:1"
CODE = (
    "import sys; from trouter.cli import main; status = main(sys.argv[1:]);"
    "print(status, open('/proc/self/cmdline').read().replace(chr(0), ' '))"
)
#: Each ends by itself: there are no tables, and the folder of the spool is a file.
COMMANDS = {
    "publish": ("pipeline", "publish", "{folder}", "--on", "all", "--url", URL),
    "publish to several": ("pipeline", "publish", "{folder}", "--on", "all", "--url", "amqp://h:1", f"--url={URL}"),
    "publish to one of two": ("pipeline", "publish", "{folder}", "--on", "all", "--url", f"amqps://h:1,{URL}"),
    "spool": ("pipeline", "spool", "--url", URL, "--address", "a", "--dir", "{folder}/file/spool"),
}


@pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="this system shows no titles in /proc")
@pytest.mark.parametrize("command", COMMANDS)
def test_a_password_in_an_address_is_not_in_the_title_of_the_process(tmp_path: Path, command: str) -> None:
    (tmp_path / "file").touch()
    arguments = [each.format(folder=tmp_path) for each in COMMANDS[command]]
    done = subprocess.run(
        [sys.executable, "-c", CODE, *arguments], capture_output=True, text=True, check=False, timeout=120
    )
    assert f"ann:{'x' * len(SECRET)}@127.0.0.1:1" in done.stdout, done.stderr
    assert SECRET not in done.stdout + done.stderr
