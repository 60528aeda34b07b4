"""Networks of router processes: each with a port for clients and one for other routers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.routers import RunningRouter, running

OPEN = "host: 127.0.0.1, port: 0, saslMechanisms: ANONYMOUS"


def interior(name: str, dials: Mapping[str, int], more: str = "", costs: Mapping[str, int] | None = None) -> str:
    """The configuration of an interior router that dials others, given by name and port.

    ``more`` is added as it is; ``costs`` are those of connections that do not cost 1.
    """
    lines = [
        f"router {{ mode: interior, id: {name} }}",
        f"listener {{ {OPEN} }}",
        f"listener {{ {OPEN}, role: inter-router, allowInsecureRole: yes }}",
    ]
    for other, port in dials.items():
        cost = (costs or {}).get(other, 1)
        lines.append(
            f"connector {{ name: to{other}, host: 127.0.0.1, port: {port}, role: inter-router, "
            f"saslMechanisms: ANONYMOUS, cost: {cost} }}"
        )
    return "\n".join([*lines, more, ""])


def client_port(router: RunningRouter) -> int:
    """Where clients go."""
    return router.ports[0]


def router_port(router: RunningRouter) -> int:
    """Where other routers go."""
    return router.ports[1]


def wait_for_reach(routers: Mapping[str, RunningRouter]) -> None:
    """Wait until everybody has a way to everybody."""
    for router in routers.values():
        router.wait_for_line(rf"ways through the network .* {len(routers) - 1} routers in reach")


@contextmanager
def network(
    folder: Path,
    dials: Mapping[str, Sequence[str]],
    more: Mapping[str, str] | None = None,
    costs: Mapping[tuple[str, str], int] | None = None,
) -> Iterator[dict[str, RunningRouter]]:
    """Interior routers of which each dials some of those before it; all can reach each other when the block begins.

    ``more`` is configuration besides, by router; ``costs`` those of connections, by who dials and whom, 1 if not given.
    """
    routers: dict[str, RunningRouter] = {}
    with ExitStack() as stack:
        for name, others in dials.items():
            ports = {other: router_port(routers[other]) for other in others}
            mine = {other: cost for (dialler, other), cost in (costs or {}).items() if dialler == name}
            text = interior(name, ports, (more or {}).get(name, ""), mine)
            routers[name] = stack.enter_context(running(text, folder))
        wait_for_reach(routers)
        yield routers
