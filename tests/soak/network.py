"""The network of the soak: two interior routers, an edge router, and a router in the place of a broker."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

from tests.chaos.sites import Site
from tests.chaos.worlds import World
from tests.networks import EDGE_LISTENER, OPEN, edge, interior
from tests.routers import ROOT
from tests.waiting import until

_PLUGINS: Final = Path(__file__).parent / "plugins"
#: Every client passes this policy; `change_policy` changes its limit.
_POLICIES: Final = ("maxConnections: 500", "maxConnections: 400")
_POLICY: Final = f"""
policy {{ enableVhostPolicy: yes, defaultVhost: main }}
vhost {{
    hostname: main
    allowUnknownUser: yes
    {_POLICIES[0]}
    groups: {{ $default: {{
        remoteHosts: "*", sources: "*", targets: "*", allowDynamicSource: yes, allowAnonymousSender: yes
    }} }}
}}
address {{ prefix: many, distribution: multicast }}
log {{ module: SERVER, enable: notice+ }}
log {{ module: ROUTER_CORE, enable: notice+ }}
"""
_WAYPOINT: Final = "address { prefix: queue, waypoint: yes }"
#: Some addresses belong to a broker: as link routes, or as a queue that messages pass through.
_BROKERED: Final = """
connector {{ name: broker, host: 127.0.0.1, port: {port}, role: route-container, saslMechanisms: ANONYMOUS }}
linkRoute {{ prefix: routed, dir: in, connection: broker }}
linkRoute {{ prefix: routed, dir: out, connection: broker }}
autoLink {{ addr: queue.soak, dir: in, connection: broker }}
autoLink {{ addr: queue.soak, dir: out, connection: broker }}
"""


@contextmanager
def network(folder: Path, plugins: Sequence[str] = ()) -> Iterator[World]:
    """Start the routers, with these plugins beside the census plugin; at the end each must stop cleanly."""
    with ExitStack() as stack:
        world = World(folder, stack)
        _start(world, ["soak_census", *plugins])
        yield world
        for site in world.sites.values():
            assert site.router.stop() == 0, site.router.text()
        world.check()


def _start(world: World, plugins: Sequence[str]) -> None:
    environment = {"PYTHONPATH": os.pathsep.join([str(ROOT), str(_PLUGINS)])}

    def start(name: str, text: str) -> None:
        settings = f'{{"soak_census": {{"file": "{census_file(world, name)}"}}}}'
        settings = f'plugins: "{" ".join(plugins)}", pluginSettings: {settings}'
        world.start(name, text.replace(f"id: {name}", f"id: {name}, {settings}", 1), environment=environment)

    start("Q", f"router {{ id: Q }}\nlistener {{ {OPEN} }}\n{_POLICY}")
    common = _POLICY + _WAYPOINT
    start("A", interior("A", {}, EDGE_LISTENER + common + _BROKERED.format(port=world.sites["Q"].ports[0])))
    start("B", interior("B", {"A": world.sites["A"].ports[1]}, common))
    start("E", edge("E", [world.sites["A"].ports[2]], common))
    for name in "AB":
        world.sites[name].router.wait_for_line(r"paths through the network .* 1 routers can be reached")
    world.sites["E"].router.wait_for_line("Edge connection .* to interior established")


def census_file(world: World, name: str) -> Path:
    """Return the file in which a router writes the counts of its objects."""
    return world.folder / f"{name}.census.json"


def census(world: World, name: str) -> str:
    """Make a router count its objects by class; return the counts as JSON."""
    file = census_file(world, name)
    file.unlink(missing_ok=True)
    os.kill(world.sites[name].pid, signal.SIGUSR2)
    until(file.exists, f"the census of {name}")
    return file.read_text(encoding="utf-8")


def change_policy(site: Site, turn: int) -> None:
    """Write a policy into a router's file (the second at an even turn, else the first), and reload it."""
    text = site.file.read_text()
    for each in _POLICIES:
        text = text.replace(each, _POLICIES[(turn + 1) % 2])
    site.file.write_text(text)
    site.reload()
