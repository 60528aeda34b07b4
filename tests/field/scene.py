"""A network of routers for clients of other projects, on hosts of their own, and a container behind it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.certificates import Authority
from tests.field.hosts import Host, hosts
from tests.interop.agents import Agent
from tests.routers import DEADLINE_S, RunningRouter, running
from tests.waiting import until

HERE: Final = Path(__file__).parent
#: On hosts of their own, routers and containers listen where the world's do.
CLEAR, TLS, WEB = 5672, 5671, 443

CLIENTS: Final = """
sslProfile {{ name: tls, certFile: {certificate}, privateKeyFile: {key} }}
listener {{ host: {host}, port: 5672, saslMechanisms: ANONYMOUS }}
listener {{ host: {host}, port: 5671, saslMechanisms: ANONYMOUS, sslProfile: tls, requireSsl: yes }}
listener {{ host: {host}, port: 443, saslMechanisms: ANONYMOUS, http: yes, sslProfile: tls, requireSsl: yes }}
# RabbitMQ's own clients serve no other product.
listener {{
    host: {host}
    port: 5674
    saslMechanisms: ANONYMOUS
    openProperties: {{ product: RabbitMQ, version: "4.0.0" }}
}}
"""
#: The routed addresses: queues, topics, and those of Azure's SDKs.
ROUTED: Final = ("queue", "topic", "$cbs", "/queues")
CONTAINER: Final = (
    "connector {{ name: container, host: {container}, port: 5672, role: route-container, saslMechanisms: ANONYMOUS }}\n"
    + "".join(
        f"linkRoute {{{{ prefix: {prefix}, direction: {direction}, connection: container }}}}\n"
        for prefix in ROUTED
        for direction in ("in", "out")
    )
)
FIRST: Final = (
    """
router {{ mode: interior, id: A }}
listener {{ host: {host}, port: 55672, role: inter-router, saslMechanisms: ANONYMOUS }}
listener {{ host: {host}, port: 45672, role: edge, saslMechanisms: ANONYMOUS }}
"""
    + CONTAINER
    + CLIENTS
)
SECOND: Final = (
    """
router {{ mode: interior, id: B }}
connector {{ host: {first}, port: 55672, role: inter-router, saslMechanisms: ANONYMOUS }}
"""
    + CLIENTS
)
EDGE: Final = (
    """
router {{ mode: edge, id: E }}
connector {{ host: {first}, port: 45672, role: edge, saslMechanisms: ANONYMOUS }}
"""
    + CLIENTS
)
#: A router alone, which is killed.
ALONE: Final = "router {{ mode: standalone, id: K }}\n" + CONTAINER + CLIENTS


@dataclass(frozen=True)
class End:
    """Where a client connects; ``web`` is over a WebSocket within TLS."""

    host: str
    tls: bool = False
    web: bool = False

    @property
    def options(self) -> dict[str, Any]:
        """What a program is told."""
        port = WEB if self.web else TLS if self.tls else CLEAR
        return {"host": self.host, "port": port, "tls": self.tls, "web": self.web}


@dataclass(frozen=True)
class Way:
    """A way from one client to another; a client that wants the container connects where messages begin."""

    begin: End
    end: End


class ContainerProcess:
    """The container behind the routers; it reports the links that peers leave."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self._events: list[dict[str, Any]] = []
        self._changed = threading.Condition()
        threading.Thread(target=self._read, daemon=True).start()
        self.wait_for(lambda event: event["event"] == "ready")

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            with self._changed:
                self._events.append(json.loads(line))
                self._changed.notify_all()

    def wait_for(self, wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """Return the first event that is ``wanted``."""
        found: list[dict[str, Any]] = []

        def come() -> bool:
            found[:] = [event for event in self._events if wanted(event)][:1]
            return bool(found)

        with self._changed:
            assert self._changed.wait_for(come, DEADLINE_S), f"not among {self._events[-20:]}"
        return found[0]

    def left(self, address: str) -> dict[str, Any]:
        """Return how the first receiver of an address was left."""
        return self.wait_for(lambda event: event.get("address") == address and event["sent"])


WAYS: Final = ("one router", "two routers", "an edge", "an edge, TLS", "WebSockets")


@dataclass
class Scene:
    """Routers A and B of a network, the edge router E of A, a host for K, and the clients' host."""

    client: Host
    alone: Host
    behind: Host
    ways: dict[str, Way]
    container: ContainerProcess
    routers: dict[str, RunningRouter]
    authority: Authority
    folder: Path

    @contextmanager
    def program(self, name: str, command: list[str], thing: str, **options: Any) -> Iterator[Agent]:
        """Start a client's program on the clients' host; kill it at the end if it still runs."""
        known = {"deadline_s": DEADLINE_S, "ca": str(self.authority.certificate), **options}
        pipe = subprocess.PIPE
        words = [*command, thing, json.dumps(known)]
        # Azure's SDK takes its authorities from the environment.
        environment = os.environ | {"NODE_EXTRA_CA_CERTS": known["ca"]}
        with self.client.start(words, stdin=pipe, stdout=pipe, stderr=pipe, env=environment) as process:
            started = Agent(name, thing, process)
            try:
                yield started
            finally:
                started.end()
                assert process.stdin is not None
                with suppress(BrokenPipeError):  # a word for a program that had ended
                    process.stdin.close()

    @contextmanager
    def router_alone(self) -> Iterator[RunningRouter]:
        """Run the router that a test kills, until its container is there."""
        text = _configured(ALONE, self.alone, self.authority, container=self.behind.address)
        with self.alone.inside(), running(text, self.folder) as router:
            router.wait_for_line(r"Link Route Activated", 2 * len(ROUTED))
            yield router

    @property
    def lone_end(self) -> End:
        """Where clients of that router connect."""
        return End(self.alone.address)


def _configured(text: str, host: Host, authority: Authority, **others: str) -> str:
    certificate, key = authority.pair(host.address)
    return text.format(host=host.address, certificate=certificate, key=key, **others)


@contextmanager
def scene(folder: Path) -> Iterator[Scene]:
    """Run the network until its edge and its container are there."""
    keys, places = folder / "keys", folder / "routers"
    keys.mkdir()
    places.mkdir()
    authority = Authority(keys, "field")
    with ExitStack() as stack:
        first, second, edge, behind, alone, client = stack.enter_context(hosts(6))
        pipe = subprocess.PIPE
        command = [sys.executable, str(HERE / "container.py"), behind.address, str(CLEAR)]
        process = stack.enter_context(behind.start(command, stdout=pipe))
        stack.callback(process.kill)
        container = ContainerProcess(process)
        routers: dict[str, RunningRouter] = {}
        for name, host, text, others in (
            ("A", first, FIRST, {"container": behind.address}),
            ("B", second, SECOND, {"first": first.address}),
            ("E", edge, EDGE, {"first": first.address}),
        ):
            with host.inside():
                routers[name] = stack.enter_context(running(_configured(text, host, authority, **others), places))
        routers["E"].wait_for_line(r"Edge connection \(id=\d+\) to interior established")
        words = [
            str(Path(sys.executable).with_name("trouter")),
            "stat",
            "-a",
            "-b",
            f"{second.address}:{CLEAR}",
            "--csv",
        ]
        routes = 2 * len(ROUTED)
        until(lambda: client.run(words, DEADLINE_S).stdout.count('"link-') >= routes, "the routes at B")
        ways = {
            "one router": Way(End(first.address), End(first.address)),
            "two routers": Way(End(second.address), End(first.address)),
            "an edge": Way(End(edge.address), End(second.address)),
            "an edge, TLS": Way(End(edge.address, tls=True), End(second.address, tls=True)),
            "WebSockets": Way(End(first.address, tls=True, web=True), End(second.address, tls=True, web=True)),
        }
        yield Scene(client, alone, behind, ways, container, routers, authority, places)
