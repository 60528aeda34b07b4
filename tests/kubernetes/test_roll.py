"""The interior pods of a release, replaced by `trouter network roll` as the page says."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest
import trio

from tests.kubernetes.commands import Commands
from tests.kubernetes.pod import Pod
from tests.kubernetes.release import NAME, Release, installed
from tests.kubernetes.test_page import PAGE, YAML
from tests.routers import DEADLINE_S, ROOT

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("on_a_node")]

VALUES: Final = next(text for text in YAML.findall(PAGE) if "OnDelete" in text)
#: The pod through which each command of the page goes, and the command.
ROLLS: Final = re.findall(r"port-forward pod/(\S+) 5672 &\ntrouter (network roll .*)", PAGE)


async def rolled(through: Pod, words: str, programs: Path) -> str:
    """Type a roll behind `kubectl port-forward` to a pod; return what it prints."""

    def type_it() -> str:
        with through.inside():
            done = subprocess.run(
                [sys.executable, "-m", "trouter", *shlex.split(words)],
                cwd=ROOT,
                env={**os.environ, "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"},
                capture_output=True,
                text=True,
                timeout=DEADLINE_S,
                check=False,
            )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return await trio.to_thread.run_sync(type_it)


async def test_the_interior_pods_are_replaced_by_the_commands_of_the_page(tmp_path: Path) -> None:
    values, programs = tmp_path / "values.yaml", tmp_path / "bin"
    values.write_text(VALUES)
    programs.mkdir()
    settings = ("interior.replicas=2", "edge.replicas=1", "preStopSeconds=0", "drainOverSeconds=0")
    with trio.fail_after(DEADLINE_S):
        async with installed(tmp_path, *settings, files=[values]) as release, trio.open_nursery() as nursery:
            await nursery.start(Commands(release.cluster, tmp_path, programs).serve)
            assert strategy_of(release) == {"type": "OnDelete"}
            before = dict(release.cluster.pods)
            assert [through for through, _ in ROLLS] == [f"{NAME}-interior-0", f"{NAME}-interior-1"]
            for through, words in ROLLS:
                out = await rolled(release.cluster.pods[through], words, programs)
                assert "done, restarted" in out
            after = release.cluster.pods
            assert [name for name in before if after.get(name) is before[name]] == [
                name for name in before if "-edge-" in name
            ]
            for pod in after.values():
                await pod.wait_ready()
            nursery.cancel_scope.cancel()


def strategy_of(release: Release) -> object:
    return release.cluster.find("StatefulSet", f"{NAME}-interior")["spec"]["updateStrategy"]
