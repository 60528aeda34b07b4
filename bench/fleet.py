"""How long `trouter network` takes for thirty routers: one in the middle, and interior and edge routers at it."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from .servers import Router, ServerError, free_port

INTERIOR: Final = 23
EDGES: Final = 6
ROUTERS: Final = 1 + INTERIOR + EDGES
#: Seconds that only a hang takes.
HANG_S: Final = 120.0
_TERMS: Final = "host: 127.0.0.1, saslMechanisms: ANONYMOUS"
_VHOST: Final = """
vhost {{
    hostname: added{number}
    groups: {{ some: {{ users: ann, remoteHosts: *, sources: orders, targets: orders }} }}
}}
"""


@dataclass(frozen=True, slots=True)
class Fleet:
    """The routers, and the folder with the files with which they run."""

    port: int
    folder: Path

    def seconds_of(self, command: str, *options: str) -> float:
        """Return how long a command of `trouter network` takes for all routers; ServerError if it fails."""
        words = [sys.executable, "-P", "-m", "trouter", "network", command, *options, "-b", f"127.0.0.1:{self.port}"]
        began_s = time.monotonic()
        done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=HANG_S)
        took_s = time.monotonic() - began_s
        if done.returncode:
            raise ServerError(f"network {command}: {done.stdout[-500:]}{done.stderr[-500:]}")
        return took_s

    def add_vhost(self, number: int) -> None:
        """Let the common part of the files have one vhost more."""
        with (self.folder / "common.conf").open("a") as common:
            common.write(_VHOST.format(number=number))


@contextmanager
def fleet(new_folder: Callable[[str], Path]) -> Iterator[Fleet]:
    """Run the routers, and wait until all answer."""
    folder = new_folder("network")
    (folder / "routers").mkdir(parents=True)
    inner, below = free_port(), free_port()
    hub = (
        f"listener {{ {_TERMS}, port: {inner}, role: inter-router, allowInsecureRole: yes }}\n"
        f"listener {{ {_TERMS}, port: {below}, role: edge, allowInsecureRole: yes }}\n"
    )
    members = [("interior", "Hub", hub)]
    for role, mode, port, count in (("inter-router", "interior", inner, INTERIOR), ("edge", "edge", below, EDGES)):
        dials = f"connector {{ {_TERMS}, port: {port}, role: {role} }}\n"
        members += [(mode, f"{mode.capitalize()}{number}", dials) for number in range(count)]
    with ExitStack() as stack:
        ports = []
        for mode, name, more in members:
            own = new_folder("router")
            router = stack.enter_context(Router(own, mode=mode, router_id=name, more=more))
            ports.append(router.port)
            (folder / "routers" / f"{name}.conf").write_text((own / "router.conf").read_text())
        found = Fleet(ports[0], folder)
        _wait_for_all(found)
        yield found


def _wait_for_all(found: Fleet) -> None:
    words = [sys.executable, "-P", "-m", "trouter", "network", "status", "--json", "-b", f"127.0.0.1:{found.port}"]
    deadline_s = time.monotonic() + HANG_S
    while time.monotonic() < deadline_s:
        done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=HANG_S)
        if done.returncode == 0 and len(json.loads(done.stdout)["routers"]) == ROUTERS:
            return
        time.sleep(0.5)
    raise ServerError(f"not all {ROUTERS} routers answer")
