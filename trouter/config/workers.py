"""The workers of a router: how many there are, their ids, and the configuration of each (docs/workers.md)."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from trouter import _twin
from trouter.config.configuration import Configuration
from trouter.config.entities import (
    ConnectorEntity,
    Entity,
    ListenerEntity,
    RecordLogEntity,
    RouterEntity,
    VhostEntity,
)
from trouter.config.entities.group import GroupSettings
from trouter.config.entities.records import LEAST_BYTES
from trouter.config.problems import Problem
from trouter.config.reporting import finding_of
from trouter.config.texts import AUTO, MAX_ROUTER_ID

#: The host of the connections between workers; no file can name it, because it has a blank.
WORKERS_HOST: Final = "another worker"
#: The mode of a router whose workers are not joined, and the role of its uplinks.
EDGE: Final = "edge"
#: The mode of a router without a network. Its workers are a network of their own, which only they see.
STANDALONE: Final = "standalone"
#: The worker that has everything of which there may only be one.
FIRST: Final = 1
#: The module that counts for all workers, which takes operations of C.
COUNTING: Final = "trouter.net.tallies"
#: Entities that a finding names.
_NAMED: Final = 3
#: The quota and the period of the processor time in a container, of cgroups of version 2.
_CPU_MAX: Final = Path("/sys/fs/cgroup/cpu.max")


def available_cores(cpu_max: Path = _CPU_MAX) -> int:
    """Return the cores that this process may use: those of its affinity, or fewer by the quota of its container."""
    cores = len(os.sched_getaffinity(0))
    try:
        quota, period = cpu_max.read_text().split()
        return max(1, min(cores, -(-int(quota) // int(period))))
    except (OSError, ValueError, ZeroDivisionError):  # absent, "max", or another form
        return cores


def count_workers(router: RouterEntity) -> int:
    """Return the number of workers that the router section asks for on this machine."""
    return available_cores() if router.workers == AUTO else int(router.workers)


def with_workers(configuration: Configuration, workers: str | None) -> Configuration:
    """Return the configuration with a number of workers of the command line, if there is one."""
    return (
        configuration
        if workers is None
        else replace(configuration, router=replace(configuration.router, workers=workers))
    )


def worker_id(router_id: str, place: int) -> str:
    """Return the id of a worker, from 1: the first one has the id of the router."""
    return router_id if place == FIRST else f"{router_id}.{place}"


def part_of(configuration: Configuration, router_id: str, place: int, count: int, memory_bytes: int) -> Configuration:
    """Return the configuration of one of ``count`` workers, whose router has the id ``router_id``.

    All serve the listeners of clients, and have uplinks of their own. The first one has the rest: connectors, auto
    links, exchanges, HTTP, and the listeners for brokers and other routers. Each listens for the workers after it, and
    dials those before it, except those of an edge router, which has no links to other routers than its uplinks.
    ``memory_bytes`` is what the machine has.
    """
    listeners = [each for each in configuration.listeners if place == FIRST or is_shared(each)]
    connectors = [each for each in configuration.connectors if place == FIRST or each.role == EDGE]
    if configuration.router.mode != EDGE:
        listeners.append(
            ListenerEntity(host=WORKERS_HOST, port=str(place), role="inter-router", allow_insecure_role=True)
        )
        connectors += [
            ConnectorEntity(host=WORKERS_HOST, port=str(other), role="inter-router", sasl_mechanisms=("ANONYMOUS",))
            for other in range(FIRST, place)
        ]
    changes: dict[str, object] = {
        "router": _router_of(configuration.router, router_id, place, count, memory_bytes),
        "listeners": tuple(listeners),
        "connectors": tuple(connectors),
        "record_logs": tuple(_part_of_log(each, place, count) for each in configuration.record_logs),
    }
    if place != FIRST:
        changes |= {"auto_links": (), "exchanges": (), "bindings": ()}
    return replace(configuration, **changes)  # type: ignore[arg-type]  # fields by name


def is_shared(listener: ListenerEntity) -> bool:
    """Return whether every worker serves the listener, not only the first one."""
    return listener.role == "normal" and not listener.serves_http


def _router_of(router: RouterEntity, router_id: str, place: int, count: int, memory_bytes: int) -> RouterEntity:
    return replace(
        router,
        id=worker_id(router_id, place),
        mode=EDGE if router.mode == EDGE else "interior",
        max_memory_bytes=(router.max_memory_bytes or memory_bytes) // count,
        debug_dump_file=router.debug_dump_file and f"{router.debug_dump_file}.{place}",
    )


def _part_of_log(log: RecordLogEntity, place: int, count: int) -> RecordLogEntity:
    """Return the log as a worker writes it: into the same folder under its own id, with its share of the size."""
    share, rest = divmod(log.max_bytes, count)
    return replace(log, max_bytes=max(LEAST_BYTES, share + (rest if place == FIRST else 0)))


def mode_of_whole(router: RouterEntity) -> str:
    """Return the mode of the whole router, which is that of the file; ``router`` is the section of a worker."""
    return router.mode if router.mode == EDGE else str(router.written.get("mode", STANDALONE))


def joins_workers(entity: Entity) -> bool:
    """Return whether the entity is not of the file, but joins the workers."""
    return getattr(entity, "host", None) == WORKERS_HOST


def why_not_shared(configuration: Configuration) -> Iterator[Problem]:
    """Yield a problem for each part of the configuration with which a router cannot have workers."""
    router = configuration.router
    count = count_workers(router)
    if count == 1:
        return
    if len(worker_id(router.id, count)) > MAX_ROUTER_ID:
        yield finding_of("not-with-workers", router, what=f"an id of {len(router.id)} characters")
    if not _twin.is_compiled(COUNTING):
        yield finding_of("workers-interpreted", router)


def worker_findings(configuration: Configuration) -> Iterator[Problem]:
    """Yield the findings about workers, of which there are none for a router of one process."""
    router = configuration.router
    count = count_workers(router)
    if count == 1:
        return
    yield from why_not_shared(configuration)
    cores = available_cores()
    if count > cores:
        yield finding_of("more-workers-than-cores", router, count=count, cores=cores)
    uplinks = [each for each in configuration.connectors if each.role == EDGE]
    if router.mode == EDGE and (router.ready_without_uplink or not uplinks):
        yield finding_of("workers-apart", router)
    if limiting := [
        each for each in configuration.vhosts if configuration.policy.enable_vhost_policy and _limits_buffers(each)
    ]:
        yield finding_of("limits-by-worker", router, what=_listed(limiting))


def _limits_buffers(vhost: VhostEntity) -> bool:
    """Return whether the vhost or one of its groups has a quota of held bytes."""
    sources: tuple[VhostEntity | GroupSettings, ...] = (vhost, *vhost.groups.values())
    holders = [each for own in sources for each in (own, own.per_user, own.per_host)]
    return any(each is not None and each.max_buffered_bytes is not None for each in holders)


def _listed(entities: Sequence[Entity]) -> str:
    """Return the identities of entities, of many only the first."""
    more = len(entities) - _NAMED
    named = ", ".join(each.identity for each in entities[:_NAMED])
    return f"{named} and {more} more" if more > 0 else named
