"""What the end-to-end tests share: routers as processes, and a pair of neighbours who must not notice a thing."""

from __future__ import annotations

from tests.routers import router, start_router  # noqa: F401 - fixtures
