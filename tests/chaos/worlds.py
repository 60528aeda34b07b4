"""The networks of the scenarios: routers, the clients' ways to them, and the parts that a scenario can damage."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import pytest

from tests.clocks import Clock
from tests.lines import Line, Namespace, why_not
from tests.networks import EDGE_LISTENER, OPEN, edge, interior
from tests.rabbitmq import RabbitMQ, connector, nodes
from tests.tls.pki import Authority, Pair

from .disks import Disk, mounted
from .relay import Relay
from .sites import Site
from .spools import SpoolProcess
from .traffic import Way

_SENSITIVE: Final = "raIntervalFluxSeconds: 1"
_RING: Final = {"A": (), "D": (), "B": ("A", "D"), "C": ("A", "D")}


@dataclass
class World:
    """Routers by name, and the parts that a scenario can damage."""

    folder: Path
    stack: ExitStack
    sites: dict[str, Site] = field(default_factory=dict)
    #: The relay between B and D of the ring.
    relay: Relay | None = None
    #: The lines between routers in network namespaces, by the names of both.
    lines: dict[str, Line] = field(default_factory=dict)
    #: The volume of the logs, of the records or of the spool.
    disks: dict[str, Disk] = field(default_factory=dict)
    #: The certificate authority of the lonely router, with its certificate files and its clocks.
    authority: Authority | None = None
    pair: Pair | None = None
    clock: Clock | None = None
    #: The broker behind the brokered router.
    broker: RabbitMQ | None = None
    #: The spool that receives instead of clients.
    spool: SpoolProcess | None = None

    def at(self, name: str) -> Way:
        """Return a client's way to the router of this name; over TLS if the world has an authority."""
        site = self.sites[name]
        if self.authority is not None:
            return Way(f"amqps://localhost:{site.ports[1]}", self.trust())
        return Way(site.url, None, site.namespace)

    def trust(self) -> ssl.SSLContext:
        """Return the TLS settings of a client that trusts the authority."""
        assert self.authority is not None
        return ssl.create_default_context(cafile=str(self.authority.file))

    def start(
        self, name: str, text: str, namespace: Namespace | None = None, environment: Mapping[str, str] | None = None
    ) -> None:
        """Add a site and start its router."""
        self.sites[name] = Site(name, text, self.folder, self.stack, namespace, environment)

    def check(self) -> None:
        """Check that no router logged an internal fault."""
        for site in self.sites.values():
            for router in site.past:
                router.assert_no_fault_of_ours()


WorldMaker = Callable[[Path], AbstractContextManager[World]]


@contextmanager
def _started(folder: Path, start: Callable[[World], None]) -> Iterator[World]:
    with ExitStack() as stack:
        world = World(folder, stack)
        start(world)
        yield world
        world.check()


def ring(folder: Path) -> AbstractContextManager[World]:
    """Start four interior routers with two ways from A to D, and an edge router E on A, with C as backup.

    The cheaper way is the one over B. B dials D through a relay.
    """
    return _started(folder, _start_ring)


def _start_ring(world: World) -> None:
    for name, others in _RING.items():
        ports = {other: world.sites[other].ports[1] for other in others}
        if name == "B":
            world.relay = Relay(ports["D"])
            world.stack.callback(world.relay.close)
            ports["D"] = world.relay.port
        costs = dict.fromkeys(others, 1 if name == "B" else 5)
        world.start(name, interior(name, ports, EDGE_LISTENER, costs, _SENSITIVE))
    world.start("E", edge("E", [world.sites[name].ports[2] for name in "AC"]))
    for name in _RING:
        world.sites[name].router.wait_for_line(r"paths through the network .* 3 routers can be reached")
    world.sites["E"].router.wait_for_line("Edge connection .* to interior established")


def triangle(folder: Path) -> AbstractContextManager[World]:
    """Start three interior routers in network namespaces, each joined to the other two by a line."""
    return _started(folder, _start_triangle)


def _start_triangle(world: World) -> None:
    if reason := why_not():
        pytest.skip(reason)
    places: dict[str, Namespace] = {}
    for name in "ABC":
        places[name] = Namespace()
        world.stack.callback(places[name].close)
    for number, names in enumerate(("AB", "AC", "BC")):
        world.lines[names] = Line(number, places[names[0]], places[names[1]])
        world.stack.callback(world.lines[names].close)
    for name, place in places.items():
        text = [f"router {{ mode: interior, id: {name}, {_SENSITIVE} }}", f"listener {{ {OPEN} }}"]
        for names, line in world.lines.items():
            where = f"host: {line.addresses[0]}, port: 5671, role: inter-router, saslMechanisms: ANONYMOUS"
            if names[0] == name:
                text.append(f"listener {{ {where}, allowInsecureRole: yes }}")
            elif names[1] == name:
                text.append(f"connector {{ name: {names}, {where} }}")
        world.start(name, "\n".join(text) + "\n", place)
    for site in world.sites.values():
        site.router.wait_for_line(r"paths through the network .* 2 routers can be reached")


#: The router records everything on a disk that a scenario fills; each client passes the policy.
_LONELY: Final = """
router {{ id: R }}
listener {{ {open} }}
listener {{ {open}, sslProfile: own, requireSsl: yes }}
sslProfile {{ name: own, certFile: {pair.cert}, privateKeyFile: {pair.key} }}
recordLog {{ dir: {disk}/records, intervalSeconds: 1, minFreeBytes: 0, whenFull: dropNewest }}
policy {{ enableVhostPolicy: yes, defaultVhost: main }}
vhost {{
    hostname: main
    allowUnknownUser: yes
    maxConnections: 100
    groups: {{ $default: {{ remoteHosts: "*", sources: "*", targets: "*" }} }}
}}
"""


def lonely(folder: Path) -> AbstractContextManager[World]:
    """Start one router with records on a small disk, TLS, a policy, and clocks that can be moved."""
    return _started(folder, _start_lonely)


def _start_lonely(world: World) -> None:
    world.disks["records"] = mounted(world.folder / "disk", world.stack, "8m")
    world.clock = Clock(world.folder)
    world.authority = Authority(world.folder)
    world.pair = world.authority.issue("CN=localhost", "localhost")
    text = _LONELY.format(open=OPEN, pair=world.pair, disk=world.disks["records"].folder)
    world.start("R", text, environment=world.clock.environment)


#: A queue as a waypoint with auto links, and each queue that a client names, with link routes.
_BROKERED: Final = """
router {{ mode: interior, id: R }}
listener {{ {open} }}
{connector}
address {{ prefix: queue, waypoint: yes }}
autoLink {{ addr: queue.chaos, dir: in, connection: broker, externalAddr: /amq/queue/waypoint }}
autoLink {{ addr: queue.chaos, dir: out, connection: broker, externalAddr: /amq/queue/waypoint }}
linkRoute {{ prefix: /amq/queue, dir: in, connection: broker }}
linkRoute {{ prefix: /amq/queue, dir: out, connection: broker }}
"""


def brokered(folder: Path) -> AbstractContextManager[World]:
    """Start one router before RabbitMQ, with two durable queues."""
    return _started(folder, _start_brokered)


def _start_brokered(world: World) -> None:
    queues = ["waypoint", "routed"]
    [world.broker] = world.stack.enter_context(nodes(world.folder / "broker", queues=queues))
    world.start("R", _BROKERED.format(open=OPEN, connector=connector("broker", world.broker)))


def shared(folder: Path) -> AbstractContextManager[World]:
    """Start one router with two workers, which get the clients in turn."""
    return _started(folder, _start_shared)


def _start_shared(world: World) -> None:
    world.start("R", f"router {{ id: R, workers: 2 }}\nlistener {{ {OPEN} }}\n")
    world.sites["R"].router.wait_for_line(r"MAIN \(notice\) 2 workers serve")
    world.sites["R"].router.wait_for_line(r"\[W1\] router R.2 is a neighbour")


def talkative(folder: Path) -> AbstractContextManager[World]:
    """Start one router that logs every message on a small disk."""
    return _started(folder, _start_talkative)


def _start_talkative(world: World) -> None:
    disk = world.disks["logs"] = mounted(world.folder / "disk", world.stack, "128m")
    log = f"log {{ module: MESSAGE, enable: trace+, outputFile: {disk.folder}/messages.log }}"
    world.start("R", f"router {{ id: R }}\nlistener {{ {OPEN}, messageLoggingComponents: all }}\n{log}\n")


def spooled(folder: Path) -> AbstractContextManager[World]:
    """Start one router, and a spool on a small disk that receives from it."""
    return _started(folder, _start_spooled)


def _start_spooled(world: World) -> None:
    world.disks["spool"] = mounted(world.folder / "disk", world.stack, "64m")
    world.start("R", f"router {{ id: R }}\nlistener {{ {OPEN} }}\n")
    world.spool = SpoolProcess(world.sites["R"], world.disks["spool"].folder / "spool", world.stack)
