"""Run commands of the manual as they are printed, and print how long each took.

    packaging/fresh-machine.sh sh -c 'make running && unshare --net python3 packaging/walk.py docs/tutorial.md'
    python3 packaging/walk.py '$ trouter run &' 'README.md#A first message' examples/tenants.py

A word is a page, a chapter of one, an example, whose head has its commands, or a command behind `$ `. One shell types
all commands, in this folder, with the programs of `.venv`; it ends at the first that fails. It needs only Python and
bash. If the loopback interface is down, as in a network namespace, the program brings it up.
"""

from __future__ import annotations

import fcntl
import os
import re
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

CODE = re.compile(r"^```(?:sh|console)\n(.*?)^```", re.MULTILINE | re.DOTALL)
FILE = re.compile(r"Write this to `([\w./]+)`:\n\n```\n(.*?)^```", re.MULTILINE | re.DOTALL)
#: A router in the background, and a query whose answer changes while routers find each other.
RUNS_ON = re.compile(r"(\w+=\S+ )?(trouter run|qdrouterd) .*&$|trouter run &$")
ASKS = re.compile(r"(trouter stat|qdstat) ")
LONGEST_S = 180
#: Linux: the request that sets the flags of an interface, and the flag IFF_UP.
SET_FLAGS, UP = 0x8914, 1
END_ALL = "kill $(jobs -p)"


class Shell:
    """One bash, whose output goes to a file."""

    def __init__(self) -> None:
        self.output = Path(tempfile.mkdtemp(), "output")
        programs = Path(".venv/bin").absolute()
        self.bash = subprocess.Popen(
            ["/bin/bash"],
            stdin=subprocess.PIPE,
            bufsize=0,
            stdout=self.output.open("wb"),
            stderr=subprocess.STDOUT,
            env={**os.environ, "PATH": f"{programs}:{os.environ['PATH']}"},
        )
        self.count = 0
        self.type("set -m")

    def type(self, command: str) -> tuple[int, str]:
        """Type a command; return its exit status and its output, for a router the output until it is operational."""
        self.count += 1
        begun, end = self.output.stat().st_size, re.compile(rf"@@{self.count} (\d+)\n")
        if command.startswith("kill "):
            command += "; wait"  # so that job numbers start again, as in a new terminal
        typed = f"{{ {command}\n}} </dev/null; echo @@{self.count} $?\n"
        if self.bash.stdin is not None:
            self.bash.stdin.write(typed.encode())
        deadline = time.monotonic() + LONGEST_S
        while time.monotonic() < deadline:
            said = self.output.read_bytes()[begun:].decode(errors="replace")
            found = end.search(said)
            if found and (not RUNS_ON.match(command) or "Operational" in said):
                return int(found[1]), end.sub("", said)
            time.sleep(0.1)
        return 124, said

    def step(self, command: str, wanted: Sequence[str]) -> bool:
        """Type a command and print how long it took; return whether its status and output were as the page says."""
        begun = time.monotonic()
        while True:
            status, said = self.type(command)
            good = status == 0 and all(line.strip() in said for line in wanted)
            if good or not ASKS.match(command) or time.monotonic() - begun > LONGEST_S:
                break
        print(f"{time.monotonic() - begun:6.1f} s  {'good' if good else 'BAD '}  $ {command}", flush=True)
        if not good:
            print(f"exit status {status}; expected {wanted}\n{said}", flush=True)
        return good


def steps_of(word: str) -> Sequence[tuple[str, Sequence[str]]]:
    """Return the commands for a word of the command line, with the expected lines; write the files that it shows."""
    if word.startswith("$ "):
        return [(word.removeprefix("$ "), [])]
    page, _, chapter = word.partition("#")
    text = Path(page).read_text(encoding="utf-8")
    if page.endswith(".py"):
        lines = [re.sub(r" \[.*", "", line) for line in text.split('"""')[1].splitlines()[1:] if line.strip()]
        return [(f"{line} &" if "trouter run" in line else line, []) for line in lines] + [(END_ALL, [])]
    if chapter:
        text = text.partition(f"\n## {chapter}\n")[2].partition("\n## ")[0]
    for name, content in FILE.findall(text):
        Path(name).write_text(content, encoding="utf-8")
    typed = [each.splitlines() for block in CODE.findall(text) for each in re.split(r"^\$ ", block, flags=re.MULTILINE)]
    return [(lines[0], lines[1:]) for lines in typed if lines]


def loopback_up() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, SET_FLAGS, struct.pack("16sH14x", b"lo", UP))


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    loopback_up()
    shell = Shell()
    for argument in sys.argv[1:]:
        print(f"{'':10}{argument}", flush=True)
        if not all(shell.step(*each) for each in steps_of(argument)):
            shell.type(END_ALL)
            sys.exit(1)
    shell.type(END_ALL)
