"""Connections of one user that ask the management node for all links again and again.

`python -m bench.querying PORT USER PASSWORD` asks until SIGTERM; it prints a line when it has begun, and at its end the
answers in a second.
"""

from __future__ import annotations

import signal
import sys
import time
from typing import Final

import trio

from trouter.tools.failures import ConnectionException, Timeout
from trouter.tools.node import open_node
from trouter.tools.options import ConnectionOptions

CONNECTIONS: Final = 64
_PATIENCE_S: Final = 60.0


async def ask_all(options: ConnectionOptions) -> float:
    """Ask on all connections until SIGTERM, or until the router ends one; return the answers in a second."""
    answers, begun, all_begun = 0, 0, trio.Event()

    async def ask(scope: trio.CancelScope) -> None:
        nonlocal answers, begun
        try:
            async with open_node(options) as node:
                begun += 1
                if begun == CONNECTIONS:
                    all_begun.set()
                while True:
                    await node.query("org.apache.qpid.dispatch.router.link")
                    answers += 1
        except (ConnectionException, Timeout):
            scope.cancel()

    began_s = time.monotonic()
    with trio.open_signal_receiver(signal.SIGTERM) as signals:
        async with trio.open_nursery() as nursery:
            for _ in range(CONNECTIONS):
                nursery.start_soon(ask, nursery.cancel_scope)
            await all_begun.wait()
            print("begun", flush=True)
            answers, began_s = 0, time.monotonic()
            await anext(signals)
            nursery.cancel_scope.cancel()
    return answers / (time.monotonic() - began_s)


if __name__ == "__main__":
    _, port, user, password = sys.argv
    print(
        trio.run(
            ask_all,
            ConnectionOptions(
                host="127.0.0.1", port=int(port), user=user, password=password, timeout_s=_PATIENCE_S, sasl=True
            ),
        )
    )
