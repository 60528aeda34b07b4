"""Fixtures of the end-to-end tests: routers as processes, and two clients whose traffic must never be disturbed."""

from __future__ import annotations

from tests.routers import router, start_router  # noqa: F401 - fixtures
