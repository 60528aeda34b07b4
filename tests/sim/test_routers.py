"""Storms over networks of whole routers under load: no message is lost or duplicated, and credit is kept.

TROUTER_SIM_ROUTER_SEEDS is the count of storms, TROUTER_SIM_SEED the seed of a single one.
"""

from __future__ import annotations

import itertools
import random
from collections import Counter

import networkx as nx
import pytest

from tests.sim.oracle import check, oracle
from tests.sim.routers import IDLE_S, TREATMENTS, Network, Site
from tests.sim.seeds import chosen_seeds
from trouter.core.egress import Egress
from trouter.core.ingress import Ingress
from trouter.engine.connection import Connection
from trouter.engine.link import IncomingLink, OutgoingLink
from trouter.wire.performatives import Accepted, Modified, Rejected, Released

SEEDS = chosen_seeds("TROUTER_SIM_ROUTER_SEEDS", 30)
#: Seconds for silent routers to expire, for half-dead lines to be closed, and a reserve.
CALM_S = 20.0 + 10.0 + IDLE_S + 15.0
ADDRESSES = [f"{treatment}.{name}" for treatment in TREATMENTS for name in "ab"]


def shape(names: list[str], chance: random.Random) -> list[tuple[str, str]]:
    """Return the pairs of neighbours: a line, ring, star, tree, full mesh, or random."""
    at_random = [(name, chance.choice(names[:place])) for place, name in enumerate(names) if place]
    at_random += [(chance.choice(names[1:]), names[0]) for _ in names]
    pairs: dict[str, list[tuple[str, str]]] = {
        "line": list(itertools.pairwise(names)),
        "ring": [*itertools.pairwise(names), (names[-1], names[0])],
        "star": [(names[0], name) for name in names[1:]],
        "tree": [(names[(number - 1) // 2], names[number]) for number in range(1, len(names))],
        "mesh": list(itertools.combinations(names, 2)),
        "random": at_random,
    }
    return list(dict.fromkeys(pairs[chance.choice(sorted(pairs))]))


class Storm:
    """One network, and the random source for all its events."""

    def __init__(self, seed: int) -> None:
        self.chance = chance = random.Random(seed)
        self.network = Network()
        self.network.judge = self._judge
        names = [f"R{number}" for number in chance.sample(range(100), chance.randint(2, 6))]
        self.network.start(*names)
        for one, other in shape(names, chance):
            self._connect(one, other)
        for number in range(chance.choice([0, 0, 1, 3])):
            self.network.start(f"E{number}")
            for interior in chance.sample(names, chance.randint(1, min(2, len(names)))):
                self._connect(f"E{number}", interior)

    def _connect(self, one: str, other: str) -> None:
        self.network.connect(
            one, other, self.chance.choice([1, 1, 1, 2, 5]), self.chance.choice([0.0, 0.001, 0.05, 0.2])
        )

    def _judge(self) -> tuple[object, float]:
        """Return a receiver's outcome for a message, and its delay."""
        outcome = self.chance.choice([Accepted(), Accepted(), Accepted(), Released(), Rejected(), Modified(True)])
        return outcome, self.chance.choice([0.0, 0.0, 0.01, 0.4, 2.0])

    def rage(self) -> None:
        """Cause random events and failures."""
        chance, network = self.chance, self.network
        for _ in range(chance.randint(0, 10)):
            self._listen()
        network.run(chance.choice([0.0, 1.0, 6.0, 6.0]))
        for _ in range(chance.randint(20, 60)):
            network.run(chance.choice([0.0, 0.0, 0.001, 0.02, 0.3, 1.0, 3.0]))
            kind = chance.choice(
                ["post"] * 10
                + ["listen", "listen", "listen", "leave", "hang_up", "cut", "reconnect", "die", "stall", "restart"]
            )
            getattr(self, f"_{kind}")()

    def _site(self) -> str:
        return self.chance.choice(sorted(self.network.sites))

    def _line(self) -> int | None:
        return self.chance.choice(sorted(self.network.lines)) if self.network.lines else None

    def _post(self) -> None:
        chance = self.chance
        name, address = self._site(), chance.choice(ADDRESSES)
        for _ in range(chance.choice([1, 1, 3, 20, 80])):
            size = chance.choice([10, 10, 10, 10, 40_000])
            halting_s = chance.choice([0.0] * 12 + [0.01, 0.5, 4.0]) if size > 10 else 0.0
            settled, anonymous, abort = (chance.random() < 0.3 for _ in range(3))
            self.network.post(name, address, settled, size, anonymous, halting_s, abort)

    def _listen(self) -> None:
        self.network.listen(self._site(), self.chance.choice(ADDRESSES), self.chance.choice([3, 1000]))

    def _leave(self) -> None:
        receivers = [receiver for site in self.network.sites.values() for receiver in site.receivers]
        if receivers:
            self.network.leave(self.chance.choice(receivers))

    def _hang_up(self) -> None:
        self.network.hang_up(self._site())

    def _cut(self) -> None:
        if (number := self._line()) is not None:
            self.network.cut(number)

    def _reconnect(self) -> None:
        one, other = sorted(self.chance.sample(sorted(self.network.sites), 2))
        if not self.network.sites[other].is_edge and not any(
            {one, other} == set(line.names) for line in self.network.lines.values()
        ):
            self._connect(one, other)

    def _die(self) -> None:
        if (number := self._line()) is not None:
            self.network.die(number, self.chance.randint(0, 1))

    def _stall(self) -> None:
        if (number := self._line()) is not None:
            self.network.stall(number, self.chance.choice([0.1, 1.0, 2.0, 6.0]))

    def _restart(self) -> None:
        name = self._site()
        lines = [line for line in self.network.lines.values() if name in line.names]
        self.network.stop(name)
        self.network.start(name)
        for line in lines:
            self._connect(*line.names)

    def calm(self) -> None:
        """Let everything come to rest; receivers accept each message."""
        self.network.judge = lambda: (Accepted(), 0.0)
        for site in self.network.sites.values():
            for receiver in site.receivers:
                receiver.link.grant(100_000)
        self.network.run(CALM_S)


def together(network: Network, name: str) -> list[Site]:
    """Return the sites that can be reached from one, itself among them."""
    graph = oracle(network)
    for site in network.sites.values():
        interior = network.interior_of(site)
        if interior is not None:
            graph.add_edges_from([(site.name, interior.name), (interior.name, site.name)])
    graph.add_node(name)
    return [network.sites[each] for each in nx.single_source_shortest_path_length(graph, name)]


def check_outcomes(network: Network) -> None:
    """Check that a live sender got one outcome of each message, and no better one than a receiver gave."""
    for body, posted in network.posted.items():
        if network.sites.get(posted.site.name) is not posted.site or not posted.heard:
            continue  # killed with its router, or disconnected
        accepted = network.accepted.get(body, 0)
        if not posted.address.startswith("multicast"):
            assert accepted <= 1, f"{body!r} was accepted {accepted} times"
        if posted.settled or posted.sent.delivery.aborted or not posted.sent.delivery.begun:
            continue
        final = [state for state, settled in posted.sent.history if settled]
        assert len(final) == 1, f"{body!r} heard {posted.sent.history}"
        if isinstance(final[0], Accepted):
            assert accepted, f"{body!r} is accepted without a receiver that accepted it"


Link = IncomingLink | OutgoingLink


def pairs(one: Connection, other: Connection) -> list[tuple[Link, Link]]:
    """Return the links of one connection, each with its other end."""
    there = {(link.name, link.incoming): link for session in other.sessions() for link in session.links.list_links()}
    return [
        (link, there[link.name, not link.incoming]) for session in one.sessions() for link in session.links.list_links()
    ]


def check_credit(network: Network) -> None:
    """Check that both ends of each link have the same credit, and that nothing waits or is under way."""
    network.rest()
    joined = [
        (end.connection, line.other(end).connection)
        for line in network.lines.values()
        if not line.dead
        for end in line.ends
    ]
    joined += [(site.client.server, site.client.connection) for site in network.sites.values()]
    for one, other in joined:
        for link, there in pairs(one, other):
            assert link.credit == there.credit, f"{link.name}: {link.credit} here, {there.credit} there"
            if isinstance(link.sink, Ingress):
                assert isinstance(link, IncomingLink)
                assert link.sink.unsettled == 0
                held = link.credit + link.sink.account.kept_credit
                most = link.sink.account.capacity
                assert most / 2 <= held <= most, f"{link.name}: {held} of {most}"
            elif isinstance(link.sink, Egress):
                assert link.sink.backlog == 0, f"{link.name}: {link.sink.backlog} wait"
    for site in network.sites.values():
        assert site.memory.core.count_unsettled() == 0
        assert site.memory.held_bytes() == 0
        for end in site.ends:
            if end.trunk is not None:
                counts = [found.count for found in end.trunk.outstanding.values()]
                assert not any(counts), f"{site.name} counts {counts} to {end.trunk.neighbour}"


def check_tables(network: Network) -> None:
    """Check that every router routes to the reachable receivers, and to no others."""
    listening = network.listening
    for name, site in network.sites.items():
        if site.is_edge:
            continue
        near = [other for other in together(network, name) if not (other.is_edge or other is site)]
        expected = {other.name: {key for key in listening[other.name] if key[0] == "M"} for other in near}
        routers = site.memory.core.network.routers
        assert expected.keys() == {each for each, router in routers.items() if router.trunk is not None}
        for other, keys in expected.items():
            addresses = routers[other].addresses
            assert {key for key in addresses if key[0] == "M"} == keys
            for key in addresses:
                assert routers[other] in site.memory.core.table.entries[key].forwarder.remotes


def check_delivery(network: Network) -> None:
    """Check that on a settled network every message of established senders reaches its receivers once."""
    for name, address in itertools.product(sorted(network.sites), ADDRESSES):
        network.sender(name, address)
    network.run(5.0)
    for name in sorted(network.sites):
        near = together(network, name)
        for address in ADDRESSES:
            listening = [receiver for site in near for receiver in site.receivers if receiver.address == address]
            bodies = [
                network.post(name, address, settled, anonymous=anonymous)
                for settled in (False, True)
                for anonymous in (False, True)
            ]
            network.run(8.0)
            for body in bodies:
                what = f"{body!r} to {sorted(each.site.name for each in listening)}"
                got = Counter(network.arrivals.get(body, ()))
                if address.startswith("multicast"):
                    assert got == Counter(listening), f"{what}: {[each.site.name for each in got]}"
                elif listening:
                    assert sum(got.values()) == 1, f"{what}: {[each.site.name for each in got]}"
                    assert set(got) <= set(listening)
                else:
                    assert not got, what
                posted = network.posted[body]
                if listening and not posted.settled:
                    assert posted.sent.history == [(Accepted(), True)], f"{what}: {posted.sent.history}"


def check_replies(network: Network) -> None:
    """Check that a reachable client gets answers, over any number of routers."""
    asking = {name: network.listen_for_replies(name) for name in sorted(network.sites)}
    bodies = {
        network.post(site.name, asking[name].address, anonymous=True): asking[name]
        for name in asking
        for site in together(network, name)
    }
    network.run(8.0)
    for body, receiver in bodies.items():
        assert network.arrivals.get(body) == [receiver], body
        assert network.posted[body].sent.history == [(Accepted(), True)]


def storm(seed: int) -> None:
    """Run a network under load with random failures, and check everything after the calm."""
    rising = Storm(seed)
    network = rising.network
    rising.rage()
    rising.calm()
    check(network, network.listening)
    check_tables(network)
    check_outcomes(network)
    check_credit(network)
    check_delivery(network)
    check_replies(network)
    check_outcomes(network)
    check_credit(network)


@pytest.mark.parametrize("seed", SEEDS)
def test_after_a_storm_every_message_has_its_end_and_the_network_its_order(seed: int) -> None:
    storm(seed)
