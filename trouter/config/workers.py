"""The workers of a router: how many there are, their ids, and the configuration of each (docs/workers.md)."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Final

from trouter.config.configuration import Configuration
from trouter.config.entities import (
    ConnectorEntity,
    Entity,
    ListenerEntity,
    Quotas,
    RecordLogEntity,
    RouterEntity,
    VhostEntity,
)
from trouter.config.entities.records import LEAST_BYTES
from trouter.config.problems import Problem
from trouter.config.reporting import finding_of
from trouter.config.texts import AUTO, MAX_ROUTER_ID

#: The host of the connections between workers; no file can name it, because it has a blank.
WORKERS_HOST: Final = "another worker"
#: The mode of a router whose workers are not joined, and the role of its uplinks.
EDGE: Final = "edge"
#: The worker that has everything of which there may only be one.
FIRST: Final = 1
#: The attributes of vhosts and groups that are quotas.
_QUOTAS: Final = (*(row.name for row in fields(Quotas)), "per_user", "per_host")
#: Entities that a finding names.
_NAMED: Final = 3
#: The quota and the period of the processor time in a container, of cgroups of version 2.
_CPU_MAX: Final = Path("/sys/fs/cgroup/cpu.max")
#: The limits of the router that are divided among the workers, so that together they let in at most one less than a
#: worker each more than the file says.
_DIVIDED: Final = (
    "accept_rate_per_host",
    "accept_burst_per_host",
)


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
    listeners = [_shared(each, count) for each in configuration.listeners if place == FIRST or is_shared(each)]
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
    limits = {name: -(-getattr(router, name) // count) for name in _DIVIDED}
    return replace(
        router,
        id=worker_id(router_id, place),
        mode=EDGE if router.mode == EDGE else "interior",
        max_memory_bytes=(router.max_memory_bytes or memory_bytes) // count,
        debug_dump_file=router.debug_dump_file and f"{router.debug_dump_file}.{place}",
        **limits,
    )


def _shared(listener: ListenerEntity, count: int) -> ListenerEntity:
    """Return the listener as each worker serves it, with its share of the limits."""
    if not is_shared(listener):
        return listener
    rate = listener.accept_rate
    return replace(listener, accept_rate=None if rate is None else -(-rate // count))


def _part_of_log(log: RecordLogEntity, place: int, count: int) -> RecordLogEntity:
    """Return the log as a worker writes it: into the same folder under its own id, with its share of the size."""
    share, rest = divmod(log.max_bytes, count)
    return replace(log, max_bytes=max(LEAST_BYTES, share + (rest if place == FIRST else 0)))


def why_not_shared(configuration: Configuration) -> Iterator[Problem]:
    """Yield a problem for each part of the configuration with which a router cannot have workers."""
    router = configuration.router
    count = count_workers(router)
    if count == 1:
        return
    if len(worker_id(router.id, count)) > MAX_ROUTER_ID:
        yield finding_of("not-with-workers", router, what=f"an id of {len(router.id)} characters")
    if "feedback" in router.plugin_settings:
        yield finding_of("not-with-workers", router, what="decisions of the plugin feedback")


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
        each for each in configuration.vhosts if configuration.policy.enable_vhost_policy and _has_quotas(each)
    ]:
        yield finding_of("limits-by-worker", router, count=count, what=_listed(limiting))


def _has_quotas(vhost: VhostEntity) -> bool:
    """Return whether the vhost or one of its groups has quotas."""
    return any(getattr(each, name) for each in (vhost, *vhost.groups.values()) for name in _QUOTAS)


def _listed(entities: Sequence[Entity]) -> str:
    """Return the identities of entities, of many only the first."""
    more = len(entities) - _NAMED
    named = ", ".join(each.identity for each in entities[:_NAMED])
    return f"{named} and {more} more" if more > 0 else named
