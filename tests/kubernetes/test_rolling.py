"""A release whose pods are all replaced, one after the other, while messages pass from edge to edge."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
import trio

from tests.kubernetes.ledger import Ledger
from tests.kubernetes.release import NAME, Release, installed
from tests.routers import DEADLINE_S

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("on_a_node")]
#: `--log-cli-level=info` shows it.
LOG = logging.getLogger(__name__)
#: Messages before, between and after the restarts.
COUNT = 100


async def replace_all(release: Release) -> None:
    """Replace every pod as `kubectl rollout restart` does, interior ones first, with messages under way."""
    ledger = Ledger(release.clients(), "bob.news")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(ledger.receive)
        nursery.start_soon(ledger.send)
        await ledger.wait_for(COUNT)
        first = set(release.cluster.pods.values())
        await release.cluster.restart("StatefulSet", f"{NAME}-interior")
        await ledger.wait_for(COUNT)
        await release.cluster.restart("Deployment", f"{NAME}-edge")
        await ledger.wait_for(COUNT)
        await ledger.close()
        nursery.cancel_scope.cancel()
    assert not first & set(release.cluster.pods.values())
    assert len(release.cluster.pods) == len(first)
    assert not any(pod.restarts for pod in release.cluster.pods.values())
    assert ledger.connections > 2
    assert ledger.crossed >= COUNT
    for number, outcomes in ledger.twice.items():
        LOG.info("message %d came twice, after %s", number, outcomes)
    assert not ledger.contradicted


async def test_every_pod_is_replaced_and_no_message_is_lost(tmp_path: Path) -> None:
    """As fast as it goes: two pods of each kind, which stop a second after they are told to."""
    with trio.fail_after(DEADLINE_S):
        async with installed(tmp_path, "interior.replicas=2", "preStopSeconds=1", "drainOverSeconds=2") as release:
            await replace_all(release)


@pytest.mark.long
async def test_every_pod_of_the_default_values_is_replaced_and_no_message_is_lost(tmp_path: Path) -> None:
    with trio.fail_after(DEADLINE_S):
        async with installed(tmp_path) as release:
            await replace_all(release)
