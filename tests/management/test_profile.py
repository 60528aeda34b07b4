"""The profile of the agent: it counts while a request is processed, and leaves nothing behind."""

from __future__ import annotations

import subprocess
import sys

from tests.routers import DEADLINE_S, ROOT

TWICE = """
from trouter.management.profile import WorkProfile
profile = WorkProfile()
for _ in range(2):
    with profile.working():
        profile.start()
with profile.working():
    sorted(range(10), key=str)
with profile.working():
    print(profile.stop())
"""


def test_a_profile_begun_twice_and_ended_once_leaves_nothing_at_the_exit() -> None:
    ended = subprocess.run(
        [sys.executable, "-X", "dev", "-c", TWICE],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=True,
    )
    assert "built-in method builtins.sorted" in ended.stdout
    assert ended.stderr == ""
