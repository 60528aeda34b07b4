"""`trouter pipeline spool --metrics HOST:PORT`: metrics and health of the receivers over HTTP."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Final

import h11
import trio
from prometheus_client import CONTENT_TYPE_LATEST

from trouter_pipeline.spool.metrics import metrics_of
from trouter_pipeline.spool.reports import Shard

#: Connections at a time; a scraper needs one.
_MAX_CONNECTIONS: Final = 64
_MAX_HEAD_BYTES: Final = 16384
#: Seconds for a request and its answer.
_PATIENCE_S: Final = 30.0
_MAX_PORT: Final = 65535
_PLAIN: Final = "text/plain; charset=utf-8"


def place_of(where: str, option: str) -> tuple[str, int]:
    """Return the host and port of an option's HOST:PORT; ValueError."""
    found = re.fullmatch(r"(\[[^\[\]]+\]|[^\[\]:/@\s]+):(\d{1,5})", where)
    if found is None or int(found[2]) > _MAX_PORT:
        raise ValueError(
            f"{option} {where}: is no HOST:PORT; write an IPv6 address in brackets, and port 0 for any free port"
        )
    return found[1].strip("[]"), int(found[2])


def _answer_to(request: h11.Request, shards: Sequence[Shard]) -> tuple[int, bytes, str]:
    """Return status, body and type of the answer."""
    path = request.target.partition(b"?")[0]
    receives = all(shard.receives for shard in shards)
    health = {b"/healthz": receives, b"/readyz": receives, b"/livez": True}
    if path in health:
        return (200, b"OK", _PLAIN) if health[path] else (503, b"NOT OK", _PLAIN)
    if path != b"/metrics":
        return 404, b"there is no such page\n", _PLAIN
    if request.method not in {b"GET", b"HEAD"}:
        return 405, b"GET reads this page\n", _PLAIN
    return 200, metrics_of(shards), CONTENT_TYPE_LATEST


async def _serve(shards: Sequence[Shard], free: trio.CapacityLimiter, stream: trio.abc.HalfCloseableStream) -> None:
    """Answer one request, and close the connection; the client has a limited time for it."""
    async with stream:
        try:
            free.acquire_on_behalf_of_nowait(stream)
        except trio.WouldBlock:
            return
        try:
            with trio.move_on_after(_PATIENCE_S):
                await _serve_one(shards, stream)
        except (h11.RemoteProtocolError, trio.BrokenResourceError):
            return
        finally:
            free.release_on_behalf_of(stream)


async def _serve_one(shards: Sequence[Shard], stream: trio.abc.HalfCloseableStream) -> None:
    http = h11.Connection(h11.SERVER, max_incomplete_event_size=_MAX_HEAD_BYTES)
    while not isinstance(event := http.next_event(), h11.Request):
        if isinstance(event, h11.ConnectionClosed):
            return
        http.receive_data(bytes(await stream.receive_some(_MAX_HEAD_BYTES)))
    status, body, kind = _answer_to(event, shards)
    heads = [("Content-Type", kind), ("Content-Length", str(len(body))), ("Connection", "close")]
    answer = http.send(h11.Response(status_code=status, headers=heads))
    answer += http.send(h11.Data(data=b"" if event.method == b"HEAD" else body))
    await stream.send_all(answer + http.send(h11.EndOfMessage()))
    await stream.send_eof()


@asynccontextmanager
async def shown(where: str, shards: Sequence[Shard], print_line: Callable[[str], None]) -> AsyncIterator[None]:
    """Serve metrics and health while the block lasts, and print the URL; OSError, ValueError."""
    host, port = place_of(where, "--metrics")
    try:
        listeners = await trio.open_tcp_listeners(port, host=host)
    except OSError as error:
        raise OSError(f"no metrics: cannot listen on {where}: {error.strerror or error}") from None
    free = trio.CapacityLimiter(_MAX_CONNECTIONS)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(partial(trio.serve_listeners, partial(_serve, shards, free), listeners))
        for listener in listeners:
            host, port = listener.socket.getsockname()[:2]
            print_line(f"metrics at http://{f'[{host}]' if ':' in host else host}:{port}/metrics")
        try:
            yield
        finally:
            nursery.cancel_scope.cancel()
