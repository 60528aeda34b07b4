"""The way by which a change of the whole configuration comes to a router with secureDefaults."""

from __future__ import annotations

import pytest
import trio

from tests.management.still import Asker, serve

SECURE = "router { id: R1, secureDefaults: yes }\n"
STEPS = {"APPLY": {"change": "c1", "state": "s"}, "CONFIRM-CHANGE": {"change": "c1"}, "REVERT-CHANGE": {"change": "c1"}}
NODE = {"type": "org.amqp.management", "name": "self"}


async def answers(text: str) -> list[str]:
    """Return what a router answers to each step, sent by a connection that is not known to have TLS."""
    async with trio.open_nursery() as nursery:
        asker: Asker = await serve(nursery, text)
        found = [(await asker.ask(step, "text", **NODE, **words))[1] for step, words in STEPS.items()]
        nursery.cancel_scope.cancel()
    return found


async def test_without_tls_no_step_of_a_change_comes_to_a_router_with_secure_defaults() -> None:
    assert all("a change over the network comes by TLS" in each for each in await answers(SECURE))


@pytest.mark.parametrize(
    "text",
    ["router { id: R1 }\n", SECURE.replace("yes", "yes, allowNetworkChanges: yes")],
    ids=["compatible", "allowed"],
)
async def test_without_secure_defaults_or_with_allow_network_changes_they_come_by_any_way(text: str) -> None:
    assert await answers(text) == ["this router has no file", "no change is open", "no change is open"]
