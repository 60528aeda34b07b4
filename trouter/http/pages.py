"""The pages by path."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from hmac import compare_digest

import h11
import trio

from trouter._bugs import BUGS
from trouter._seldom import SeldomLine
from trouter.config.hosts import address_of

from . import web_console
from .files import open_file
from .metrics import CONTENT_TYPE
from .ports import Site
from .responses import Response, refusal
from .scrapes import Scrapes
from .settings import HEALTH_S, HttpSettings
from .targets import path_of

log = logging.getLogger("trouter.HTTP")

OK = Response(200, b"OK")
NOT_OK = Response(503, b"NOT OK")
#: Reasons in the answer of /readyz.
MAX_REASONS = 50
#: The methods of pages, and those of probes: the methods that Qpid Dispatch knows, of which HAProxy sends OPTIONS.
READS = ("GET", "HEAD")
ASKS = (*READS, "DELETE", "OPTIONS", "PATCH", "POST", "PUT")


@dataclass(frozen=True, slots=True)
class Visitor:
    """A page's client: its address, and whether its connection has TLS."""

    host: str
    encrypted: bool


class Pages:
    """Answers the requests of one listener."""

    def __init__(self, settings: HttpSettings, site: Site) -> None:
        self._site = site
        self._settings = settings
        self._root = settings.root
        self._scrapes = Scrapes(
            partial(site.metrics_of_workers, settings.tenant), partial(site.exposition, settings.tenant)
        )
        self._pages: dict[tuple[str, ...], Callable[[h11.Request, Visitor], Awaitable[Response]]] = {}
        #: Pages of which probes need only the status.
        self._probes: dict[tuple[str, ...], Callable[[], Awaitable[Response]]] = {}
        if settings.metrics:
            self._pages["metrics",] = self._metrics
        self._refusals = SeldomLine(log, trio.current_time, logging.INFO)
        if settings.healthz:
            self._probes["healthz",] = self._healthz
            self._probes["livez",] = self._livez
            self._probes["readyz",] = self._readyz

    def is_probe(self, request: h11.Request) -> bool:
        """Return whether ``request`` asks for the health of the router, in answers that take little time."""
        return path_of(request.target) in self._probes

    async def answer(self, request: h11.Request, visitor: Visitor) -> Response:
        """Return the answer to ``request``; status 500 for a bug of ours."""
        try:
            return await self._answer(request, visitor)
        except Exception as error:  # noqa: BLE001 - it is reported
            BUGS.report("internal error while answering a request", error)
            return refusal(500)

    async def _answer(self, request: h11.Request, visitor: Visitor) -> Response:
        path = path_of(request.target)
        allowed = ASKS if path in self._probes else READS
        if request.method.decode("ascii") not in allowed:
            return refusal(405, ("Allow", ", ".join(allowed)))
        if path is None:
            return refusal(404)
        if probe := self._probes.get(path):
            return await probe()
        if page := self._pages.get(path):
            return await page(request, visitor)
        if self._root is not None:
            return await trio.to_thread.run_sync(open_file, self._root, path) or refusal(404)
        if self._settings.console:
            compressed = web_console.takes_gzip(request.headers)
            open_console = partial(web_console.open_console, web_console.FOLDER, path, compressed)
            return await trio.to_thread.run_sync(open_console) or refusal(404)
        return refusal(404)

    async def _metrics(self, request: h11.Request, visitor: Visitor) -> Response:
        refused = self._refused(request, visitor)
        if refused is not None:
            self._refusals.write("request for /metrics from %s refused with status %d", visitor.host, refused.status)
            return refused
        return Response(200, await self._scrapes.text(), CONTENT_TYPE)

    def _refused(self, request: h11.Request, visitor: Visitor) -> Response | None:
        """Return the refusal of the metrics to this visitor (security.md R-2.5c); None if it may read them."""
        settings = self._settings
        address = address_of(visitor.host.partition("%")[0])
        if settings.metrics_hosts and not any(each.holds(address) for each in settings.metrics_hosts):
            return refusal(403, why="this host may not read the metrics")
        if not settings.metrics_token:
            return None
        local = address is not None and address.is_loopback
        clear = settings.clear_tokens
        if not (visitor.encrypted or clear == "yes" or (clear == "loopback" and local)):
            return refusal(403, why="send the token over TLS")
        sent = [value for name, value in request.headers if name == b"authorization"]
        scheme, _, token = sent[0].partition(b" ") if len(sent) == 1 else (b"", b"", b"")
        if scheme.lower() == b"bearer" and compare_digest(token.strip(), settings.metrics_token):
            return None
        return refusal(401, ("WWW-Authenticate", 'Bearer realm="metrics"'))

    async def _healthz(self) -> Response:
        with trio.move_on_after(HEALTH_S):
            return OK if await self._site.healthy() else NOT_OK
        return NOT_OK

    async def _livez(self) -> Response:
        return OK if self._site.live() else NOT_OK

    async def _readyz(self) -> Response:
        others = await self._site.reasons_of_workers()
        if self._site.ready() and not others:
            return OK
        reasons = (*self._site.reasons(), *others)
        more = (f"and {len(reasons) - MAX_REASONS} more",) if len(reasons) > MAX_REASONS else ()
        lines = ("NOT OK", *reasons[:MAX_REASONS], *more)
        return Response(503, "\n".join(lines).encode() + (b"\n" if reasons else b""))
