"""What a router does by the clock, as a table: name, period, what.

The queue of timers calls it (``net/timers.py``). Not in the table is what knows its own time, and enters the queue by
itself: the heartbeats and idle time-outs of connections, credit that is owed (``net/owed.py``), auto links that are
retried (``backbone/own_links.py``), decisions that end (``admission/decisions.py``), and the mesh
(``backbone/contact.py``).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import trio

from trouter.admission import memory, pacing
from trouter.admission.host_names import look_names_up_again
from trouter.connections import heartbeats, login_checks
from trouter.connections.listeners import REOPEN_S
from trouter.core.edge.uplink import BEAT_S
from trouter.net.timers import TimerQueue, every
from trouter.telemetry.periodic import PERIOD_S
from trouter.tls.secure import RECHECK_S, WATCH_S

from .rounds import ROUND_S, make_round
from .routes import LOOK_S

if TYPE_CHECKING:
    from .supervision import Supervisor
    from .wiring import Assembly, Services

#: Seconds, or a function that returns them for the next time.
Period = float | Callable[[], float]


@dataclass(frozen=True, slots=True)
class Periodic:
    """One row of the table; the work is a plain function, or (``waiting``) one that is awaited in a task of its own."""

    name: str
    period_s: Period
    what: str
    work: Callable[[], object] | None = None
    waiting: Callable[[], Awaitable[object]] | None = None


def periodic_work(assembly: Assembly, supervisor: Supervisor) -> Iterator[Periodic]:
    """Yield the rows of a router, those with work of its mode only."""
    services = assembly.services
    yield from _checks(services)
    yield from _looks_at_files(assembly)
    yield Periodic(
        "records", PERIOD_S, "record counts and latencies for the takers of records", waiting=assembly.telemetry.work
    )
    reopen = assembly.in_force.open_closed
    yield Periodic("listeners", REOPEN_S, "open listeners whose addresses could not be bound", waiting=reopen)
    looks = assembly.in_force.parts.routes.note_states
    yield Periodic("routes", LOOK_S, "note since when auto links and link routes are down", looks)
    if services.backbone is not None:
        drop = partial(heartbeats.abort_silent, services.hub.router, services.connections)
        yield Periodic("edge routers", heartbeats.CHECK_S, "drop edge routers without heartbeats", drop)
    if services.uplinks is not None:
        yield Periodic("uplink", BEAT_S, "send a heartbeat to the interior router", services.uplinks.send_heartbeat)
    if supervisor.pause_s is not None:
        yield Periodic("watchdog", supervisor.pause_s, "notify the service manager", supervisor.send_sign_of_life)


def _checks(services: Services) -> Iterator[Periodic]:
    """Yield the checks of connections and links."""
    guard, quotas, connections = services.guard, services.policy.book, services.connections

    yield Periodic(
        "round",
        ROUND_S,
        "note connections with deliveries, abort slow handshakes, report stuck deliveries and blocked links",
        partial(make_round, services.hub.router, connections, services.recorder.links, guard),
    )
    yield Periodic(
        "memory",
        memory.CHECK_S,
        "compare the memory of the process with its limit, and take measures",
        lambda: guard.memory.check_memory(connections.values()),
    )
    yield Periodic(
        "quotas",
        partial(pacing.pause_s, quotas),
        "grant credit that rates withheld, check quotas",
        pacing.QuotaClock(quotas).grant_and_check,
    )


def _looks_at_files(assembly: Assembly) -> Iterator[Periodic]:
    """Yield what looks at files and name servers, or at each connection, and so has to wait."""
    services, secure = assembly.services, assembly.services.secure
    logins = login_checks.LoginChecks(services.plugins, services.connections)

    def host_names_s() -> float:
        return services.policy.compiled.entity.host_names_seconds

    async def renew_profiles() -> None:
        if await secure.renew_profiles():
            await assembly.control.retry_withheld()

    yield Periodic(
        "logins", login_checks.CHECK_S, "reload the plugins' files, end logins without rights", waiting=logins.check_all
    )
    yield Periodic(
        "host names",
        host_names_s,
        "look the host names of the policy up again",
        waiting=partial(look_names_up_again, services.policy, assembly.in_force.parts.host_names),
    )
    yield Periodic("sslProfiles", WATCH_S, "load changed files, warn of ends of certificates", waiting=renew_profiles)
    yield Periodic("certificates", RECHECK_S, "check the peers' certificates again", waiting=secure.recheck)


def start(row: Periodic, queue: TimerQueue, nursery: trio.Nursery) -> None:
    """Do the work of a row from now on, first after one period, until ``nursery`` is cancelled."""
    period_s = row.period_s if callable(row.period_s) else partial(float, row.period_s)
    if row.waiting is not None:
        nursery.start_soon(queue.repeat, row.name, period_s, row.waiting)
    elif row.work is not None:
        queue.add(row.name, every(row.name, period_s, row.work), trio.current_time() + period_s())
