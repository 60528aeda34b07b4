"""Which page answers which path."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

import h11
import trio

from .files import open_file
from .metrics import CONTENT_TYPE, exposition, tenant_exposition
from .ports import Site
from .responses import Response, refusal
from .scrapes import Scrapes
from .settings import HEALTH_S, HttpSettings
from .targets import path_of

log = logging.getLogger("trouter.HTTP")

OK = Response(200, b"OK")
NOT_OK = Response(503, b"NOT OK")
READS = frozenset({b"GET", b"HEAD"})


class Pages:
    """Answers the requests of one listener."""

    def __init__(self, settings: HttpSettings, site: Site) -> None:
        self._site = site
        self._root = settings.root
        self._tenant = settings.tenant
        self._scrapes = Scrapes(self._exposition)
        self._pages: dict[tuple[str, ...], Callable[[], Awaitable[Response]]] = {}
        #: The pages for machines that only look at the status, and may ask by any method.
        self._probes: dict[tuple[str, ...], Callable[[], Awaitable[Response]]] = {}
        if settings.metrics:
            self._pages["metrics",] = self._metrics
        if settings.healthz:
            self._probes["healthz",] = self._healthz
            self._probes["livez",] = self._livez
            self._probes["readyz",] = self._readyz

    async def answer(self, request: h11.Request) -> Response:
        """The answer to ``request``; a bug of ours is one of 500."""
        try:
            return await self._answer(request)
        except Exception:
            log.exception("internal error while answering a request")
            return refusal(500)

    async def _answer(self, request: h11.Request) -> Response:
        path = path_of(request.target)
        if path is None or request.method == b"CONNECT":
            return refusal(404)
        if probe := self._probes.get(path):
            return await probe()
        if request.method not in READS:
            return refusal(405, ("Allow", "GET, HEAD"))
        if page := self._pages.get(path):
            return await page()
        if self._root is None:
            return refusal(404)
        return await trio.to_thread.run_sync(open_file, self._root, path) or refusal(404)

    def _exposition(self) -> bytes:
        return tenant_exposition(self._site.tenant(self._tenant)) if self._tenant else exposition(self._site.figures())

    async def _metrics(self) -> Response:
        return Response(200, await self._scrapes.text(), CONTENT_TYPE)

    async def _healthz(self) -> Response:
        with trio.move_on_after(HEALTH_S):
            return OK if await self._site.healthy() else NOT_OK
        return NOT_OK

    async def _livez(self) -> Response:
        return OK if self._site.live() else NOT_OK

    async def _readyz(self) -> Response:
        return OK if self._site.ready() else NOT_OK
