"""Start the installed `trouter`, route one message through it and stop it: `python packaging/smoke.py [PORT]`.

With a port, use the router that listens there. It needs only the standard library and the installed package.
"""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import trio

from trouter.client import Message, connect

CONFIGURATION = "router { id: smoke }\nlistener { host: 127.0.0.1, port: 0, saslMechanisms: ANONYMOUS }\n"
DEADLINE_S = 30


async def route(port: int) -> None:
    """Send one message from a sender to a receiver; fail unless it arrives and is accepted."""
    with trio.fail_after(DEADLINE_S):
        async with (
            connect(f"amqp://127.0.0.1:{port}") as connection,
            connection.open_receiver("smoke") as receiver,
            connection.open_sender("smoke") as sender,
        ):
            tracker = await sender.submit(Message("smoke"))
            delivery = await receiver.receive()
            await delivery.accept()
            print(delivery.message.body, type(await tracker.outcome()).__name__)


def start() -> None:
    """Start a router on a free port, route through it, and stop it with SIGTERM; fail unless it exits with 0."""
    command = Path(sys.executable).with_name("trouter")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "smoke.conf")
        path.write_text(CONFIGURATION, encoding="utf-8")
        found = None
        with subprocess.Popen([command, "run", "-c", path], stderr=subprocess.PIPE, text=True) as router:
            try:
                for line in router.stderr or ():
                    if found := re.search(r"Listening on 127\.0\.0\.1:(\d+)", line):
                        trio.run(route, int(found[1]))
                        break
            finally:
                router.send_signal(signal.SIGTERM)
                end = router.stderr.read() if router.stderr else ""
        if not found or router.returncode:
            raise SystemExit(f"the router did not serve, or ended with {router.returncode}:\n{end}")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        trio.run(route, int(sys.argv[1]))
    else:
        start()
