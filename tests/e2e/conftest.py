"""What the end-to-end tests share: routers as processes, and a pair of neighbours who must not notice a thing."""

from __future__ import annotations

import pytest

pytest.register_assert_rewrite("tests.routers", "tests.e2e.peer", "tests.e2e.neighbours")

from tests.routers import router, start_router  # noqa: E402, F401 - fixtures; asserts in them are rewritten first
