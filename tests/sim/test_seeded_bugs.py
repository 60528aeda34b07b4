"""Bugs planted on purpose: the storms detect each of them, so that a storm without findings means something."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest

from tests.sim import test_mesh, test_routers
from trouter.backbone.backbone import Backbone
from trouter.core.router import Router
from trouter.mesh import knowledge, paths, requests
from trouter.mesh.events import AddressesChanged, Event, PathsChanged
from trouter.mesh.hearing import Hearing
from trouter.mesh.nodes import MeshNode
from trouter.mesh.paths import Paths

#: Storms that detect each bug.
SEEDS = range(60)

#: Storms that detect a bug of the sources detect it on either twin.
pytestmark = pytest.mark.slow

Patch = pytest.MonkeyPatch


def the_later_of_equal_ways(patch: Patch) -> None:
    """Of paths with the same cost, take the one through the router whose id comes last."""
    patch.setattr(paths, "sorted", lambda routers: sorted(routers, reverse=True), raising=False)


def every_way_costs_one(patch: Patch) -> None:
    def flat(me: str, links: Mapping[str, Mapping[str, int]]) -> Paths:
        return Paths(me, {router: dict.fromkeys(peers, 1) for router, peers in links.items()})

    patch.setattr(knowledge, "Paths", flat)


def everybody_lies_behind_us(patch: Patch) -> None:
    """Ignore the valid origins."""
    patch.setattr(Paths, "routers_beyond", lambda self, origin: frozenset(self.next_hop))


def no_router_lies_behind_this_one(patch: Patch) -> None:
    """Do not forward messages of other routers."""
    beyond = Paths.routers_beyond
    patch.setattr(
        Paths, "routers_beyond", lambda self, origin: beyond(self, origin) if origin == self._me else frozenset()
    )


def a_lost_question_is_not_asked_again(patch: Patch) -> None:
    patch.setattr(requests, "REQUEST_AGAIN_S", float("inf"))


def link_requests_are_not_answered(patch: Patch) -> None:
    patch.setattr(Hearing, "_answer_links", lambda self, router: None)


def a_restart_voids_nothing(patch: Patch) -> None:
    def keep(self: knowledge.Knowledge, node: MeshNode, now_s: float) -> None:
        node.older_in_a_row = 0

    patch.setattr(knowledge.Knowledge, "restart_node", keep)


def addresses_outlive_their_router(patch: Patch) -> None:
    def keep(self: knowledge.Knowledge, node: MeshNode) -> None:
        node.mobile_sequence = 0

    patch.setattr(knowledge.Knowledge, "delete_addresses", keep)


def changes_of_links_are_not_counted(patch: Patch) -> None:
    patch.setattr(knowledge.Knowledge, "count_links", lambda self: False)


BUGS: list[Callable[[Patch], None]] = [
    the_later_of_equal_ways,
    every_way_costs_one,
    everybody_lies_behind_us,
    no_router_lies_behind_this_one,
    a_lost_question_is_not_asked_again,
    link_requests_are_not_answered,
    a_restart_voids_nothing,
    addresses_outlive_their_router,
    changes_of_links_are_not_counted,
]


def lost_sessions_settle_nothing(patch: Patch) -> None:
    patch.setattr(Router, "lose_session", lambda self, session, error=None: None)


def addresses_that_are_withdrawn_stay(patch: Patch) -> None:
    do = Backbone._do

    def keep(self: Backbone, event: Event) -> None:
        do(self, replace(event, deleted=()) if isinstance(event, AddressesChanged) else event)

    patch.setattr(Backbone, "_do", keep)


def new_ways_are_not_taken(patch: Patch) -> None:
    """Ignore all paths after the first."""
    do = Backbone._do

    def take_first(self: Backbone, event: Event) -> None:
        if not isinstance(event, PathsChanged) or len(self.mesh.paths.next_hop) < 2:
            do(self, event)

    patch.setattr(Backbone, "_do", take_first)


BUGS_OF_ROUTERS: list[Callable[[Patch], None]] = [
    everybody_lies_behind_us,
    no_router_lies_behind_this_one,
    lost_sessions_settle_nothing,
    addresses_that_are_withdrawn_stay,
    new_ways_are_not_taken,
]


@pytest.mark.parametrize(
    ("storm", "bug"),
    [(test_mesh.storm, bug) for bug in BUGS] + [(test_routers.storm, bug) for bug in BUGS_OF_ROUTERS],
    ids=lambda value: value.__name__ if value.__name__ != "storm" else value.__module__.removeprefix("tests.sim.test_"),
)
def test_the_storms_find_a_bug(storm: Callable[[int], None], bug: Callable[[Patch], None], monkeypatch: Patch) -> None:
    bug(monkeypatch)
    for seed in SEEDS:
        try:
            storm(seed)
        except (AssertionError, AttributeError):
            return
    pytest.fail(f"{len(SEEDS)} storms have not found it")
