"""The page of the manual: its commands, typed in their order, with the pods that they make."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import trio
import yaml

from tests.kubernetes.cluster import Cluster
from tests.kubernetes.commands import Commands
from tests.routers import DEADLINE_S, ROOT
from tests.walks import Shell, steps_in

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("on_a_node")]
PAGE = (ROOT / "docs" / "kubernetes.md").read_text(encoding="utf-8")
YAML = re.compile(r"^```yaml\n(.*?)^```", re.MULTILINE | re.DOTALL)


@pytest.mark.long
async def test_the_page_works_as_printed(tmp_path: Path) -> None:
    steps = steps_in(PAGE)
    assert len(steps) >= 25
    (tmp_path / "values.yaml").write_text(YAML.findall(PAGE)[0], encoding="utf-8")
    shell = Shell(tmp_path, ["65535"])
    with trio.fail_after(DEADLINE_S):
        async with trio.open_nursery() as nursery:
            cluster = Cluster(tmp_path / "pods", nursery, "messaging")
            try:
                await nursery.start(Commands(cluster, tmp_path, tmp_path / "bin").serve)
                await trio.to_thread.run_sync(shell.walk, steps)
                assert all(pod.ready for pod in cluster.pods.values())
            finally:
                nursery.cancel_scope.cancel()
                cluster.close()


def test_the_values_on_the_page_are_values_of_the_chart() -> None:
    known = yaml.safe_load((ROOT / "packaging" / "helm" / "trouter" / "values.yaml").read_text(encoding="utf-8"))
    for text in YAML.findall(PAGE):
        given = yaml.safe_load(text)
        if "kind" not in given:
            assert given.keys() <= known.keys()
            assert all(value.keys() <= known[key].keys() for key, value in given.items() if isinstance(value, dict))
