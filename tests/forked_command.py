"""The `trouter` of a walk: it has the command forked from a process that has imported it, and lends it its place.

The command has the streams, the folder and the environment of this process, which passes on signals and ends as the
command does. With other variables for Python itself, in another network, and for a command of another distribution
this process becomes `python -m trouter`.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
from contextlib import suppress

_PASSED_ON = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2)


def main(python: str, *words: str) -> int:
    """Run the command; return its exit status."""
    told = json.loads(os.environ["TROUTER_TEST_STOCK"])
    early = {name: value for name, value in os.environ.items() if name.startswith(tuple(told["prefixes"]))}
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as stock:
        forked = early == told["early"] and not {*words[:1]} - {*told["names"]}
        try:
            if forked:
                stock.connect(bytes.fromhex(told["address"]))
        except OSError:
            forked = False
        if not forked:
            os.execv(python, [python, "-m", "trouter", *words])
        socket.send_fds(stock, [json.dumps(_wanted(words)).encode()], [0, 1, 2])
        pid = int(stock.recv(64))

        def pass_on(number: int, _: object) -> None:
            with suppress(ProcessLookupError):
                os.kill(pid, number)

        for each in _PASSED_ON:
            signal.signal(each, pass_on)
        status = int(stock.recv(64))
    if status < 0:
        signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    return status


def _wanted(words: tuple[str, ...]) -> dict[str, object]:
    mask = os.umask(0o077)
    os.umask(mask)
    folder = os.getcwd()  # noqa: PTH109  # pathlib takes longer to import than all else here
    return {"command": ["trouter", *words], "folder": folder, "umask": mask, "environment": dict(os.environ)}


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
