"""`trouter pipeline spool --metrics HOST:PORT`: metrics and health of the receivers over HTTP."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Final

import trio

from trouter.config import ListenerEntity
from trouter.http import HttpListener, PagesOnly
from trouter.net.sockets import ListenError, open_for, place_of
from trouter_pipeline.spool.metrics import metrics_of
from trouter_pipeline.spool.reports import Shard

#: Connections at a time; a scraper needs one.
_MAX_CONNECTIONS: Final = 64
_MAX_PORT: Final = 65535


def entity_of(where: str) -> ListenerEntity:
    """Return the listener at HOST:PORT; ValueError."""
    found = re.fullmatch(r"(\[[^\[\]]+\]|[^\[\]:/@\s]+):(\d{1,5})", where)
    if found is None or int(found[2]) > _MAX_PORT:
        raise ValueError(
            f"--metrics {where}: is no HOST:PORT; write an IPv6 address in brackets, and port 0 for any free port"
        )
    return ListenerEntity(
        name="metrics",
        host=found[1].strip("[]"),
        port=found[2],
        http=True,
        websockets=False,
        max_connections=_MAX_CONNECTIONS,
    )


class _Receivers(PagesOnly):
    """The receivers, as the HTTP server queries them."""

    def __init__(self, shards: Sequence[Shard]) -> None:
        self._shards = shards

    def exposition(self, tenant: str) -> bytes:
        """Return the metrics, as in the metrics file."""
        return metrics_of(self._shards)

    def ready(self) -> bool:
        """Return whether every shard receives."""
        return all(shard.receives for shard in self._shards)

    async def healthy(self) -> bool:
        """Return the same as ``ready``: a receiver does nothing else."""
        await trio.lowlevel.checkpoint()
        return self.ready()

    def live(self) -> bool:
        """Return True: the answer itself proves that the event loop runs."""
        return True


@asynccontextmanager
async def shown(where: str, shards: Sequence[Shard], print_line: Callable[[str], None]) -> AsyncIterator[None]:
    """Serve metrics and health while the block lasts, and print the URL; OSError, ValueError."""
    entity = entity_of(where)
    try:
        sockets = await open_for(entity)
    except ListenError as error:
        raise OSError(f"no metrics: {error}") from None
    listener = HttpListener(entity, sockets, _Receivers(shards))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(listener.run)
        for sock in listener.sockets:
            host, port = place_of(sock)
            print_line(f"metrics at http://{f'[{host}]' if ':' in host else host}:{port}/metrics")
        try:
            yield
        finally:
            nursery.cancel_scope.cancel()
