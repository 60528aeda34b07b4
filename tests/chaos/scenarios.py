"""The table of scenarios: the network, the fault, and the routers that the clients connect to."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass

from . import brokers, clients, failures, lines, shortages, spools, workers
from .ledger import Ledger
from .traffic import Traffic
from .worlds import World, WorldMaker, brokered, lonely, ring, shared, spooled, talkative, triangle


@dataclass(frozen=True)
class Scenario:
    """One scenario; clients at ``here`` send to clients at ``there``."""

    world: WorldMaker
    happens: Callable[[World, Traffic], Awaitable[None]]
    here: str
    there: str
    #: The address of the queue; "" for an address named after the scenario.
    address: str = ""
    #: Whether `make test` runs it too, with few messages.
    short: bool = False
    clients: type[Traffic] = Traffic

    @property
    def name(self) -> str:
        """Return the scenario's name on the command line."""
        return self.happens.__name__

    @property
    def about(self) -> str:
        """Return the sentence that describes the scenario in the manual."""
        return " ".join((self.happens.__doc__ or "").split())

    def traffic(self, world: World, count: int, ledger: Ledger) -> AbstractAsyncContextManager[Traffic]:
        """Return the traffic: two clients at ``here`` send to two at ``there`` or to the world's spool."""
        spool = world.spool
        return self.clients(
            self.address or f"chaos.{self.name}",
            [world.at(self.here)] * 2,
            [] if spool else [world.at(self.there)] * 2,
            count,
            at_least_once=bool(world.broker or spool),
            ledger=ledger,
            read_back=spool.enter if spool else None,
        ).flowing()


SCENARIOS = (
    Scenario(ring, failures.connection_reset, "A", "D", short=True),
    Scenario(ring, failures.connection_half_open, "A", "D", short=True),
    Scenario(ring, failures.connection_slow, "A", "D"),
    Scenario(ring, failures.interior_killed, "A", "D", short=True),
    Scenario(ring, failures.interior_stopped, "A", "D"),
    Scenario(ring, failures.ingress_killed, "A", "D", short=True),
    Scenario(ring, failures.egress_killed, "A", "D"),
    Scenario(ring, failures.edge_killed, "E", "D"),
    Scenario(ring, failures.edge_moves, "E", "D", short=True),
    Scenario(ring, clients.client_killed, "A", "D", short=True, clients=clients.ProcessTraffic),
    Scenario(ring, failures.replaced_in_turn, "E", "D"),  # the last in the ring: it leaves newer builds there
    Scenario(triangle, lines.line_delays, "A", "B"),
    Scenario(triangle, lines.line_loses, "A", "B"),
    Scenario(triangle, lines.line_reorders, "A", "B"),
    Scenario(triangle, lines.line_narrow, "A", "B"),
    Scenario(triangle, lines.one_way_partition, "A", "B"),
    Scenario(triangle, lines.partition, "A", "B", short=True),
    Scenario(triangle, lines.half_open, "A", "B"),
    Scenario(talkative, shortages.log_disk_full, "R", "R"),
    Scenario(lonely, shortages.records_disk_full, "R", "R", short=True),
    Scenario(lonely, shortages.no_descriptors_left, "R", "R", short=True),
    Scenario(lonely, shortages.reader_stops, "R", "R"),
    Scenario(lonely, shortages.clock_steps, "R", "R"),
    Scenario(lonely, shortages.policy_reloaded, "R", "R"),
    Scenario(lonely, shortages.certificate_renewed, "R", "R"),
    Scenario(lonely, shortages.certificate_expires, "R", "R"),
    Scenario(shared, workers.worker_killed, "R", "R", short=True),
    Scenario(brokered, brokers.broker_behind_auto_links_killed, "R", "R", "queue.chaos"),
    Scenario(brokered, brokers.broker_behind_link_routes_killed, "R", "R", "/amq/queue/routed"),
    Scenario(spooled, spools.spool_killed, "R", "R", spools.ADDRESS, short=True),
    Scenario(spooled, spools.spool_disk_full, "R", "R", spools.ADDRESS),
)
