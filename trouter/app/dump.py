"""Writes the state of the router into a text file, for an operator who searches why messages do not move.

A dump holds names and numbers, no message bodies and no passwords, and at most ``MAX_LINES`` entries of each kind. It
is gathered in portions, between which the router works: each line is consistent in itself, the whole only nearly.
"""

from __future__ import annotations

import gc
import os
import re
import resource
import sys
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

import trio

import trouter
from trouter import _twin, logs
from trouter.columns.links import LINK
from trouter.columns.rows import Rows
from trouter.config import Configuration
from trouter.connections.listeners import Standing
from trouter.connections.registry import Connections
from trouter.core.entry import AddressEntry
from trouter.core.links import Endpoint
from trouter.core.router import Router
from trouter.engine.ports import Budget
from trouter.engine.session import Session
from trouter.net.hub import Hub
from trouter.net.view import ConnectionView

from .in_force import ConfigurationInForce

if TYPE_CHECKING:
    from trouter.connections.connector import Connector

#: Entries of one kind: connections, links, addresses.
MAX_LINES: Final = 20_000
#: Tasks with the same name under the same parent that are shown one by one.
TASKS_ALIKE: Final = 4
#: Items gathered between two turns of the scheduler.
PORTION: Final = 100
MAX_TEXT: Final = 200

T = TypeVar("T")

LINK_NUMBERS: Final = {
    "capacity": "capacity",
    "credit": "creditAvailable",
    "credit_zero_s": "zeroCreditSeconds",
    "deliveries": "deliveryCount",
    "undelivered": "undeliveredCount",
    "unsettled": "unsettledCount",
    "stuck": "deliveriesStuck",
    "presettled": "presettledCount",
    "dropped": "droppedPresettledCount",
    "accepted": "acceptedCount",
    "rejected": "rejectedCount",
    "released": "releasedCount",
    "modified": "modifiedCount",
}


class StateDump:
    """Writer of the dumps of one process, which are numbered from 1."""

    def __init__(self, hub: Hub, budget: Budget, connections: Connections) -> None:
        self._router = hub.router
        self._hub = hub
        self._budget = budget
        self._connections = connections
        self._count = 0
        self._began_s = time.monotonic()

    async def write(self, in_force: ConfigurationInForce) -> Path:
        """Write a dump that only the process's user may read, and return its path; OSError, and no file is left."""
        self._count += 1
        configuration = in_force.configuration
        path = self._path(configuration)
        part = path.with_name(f"{path.name}.part")
        part.unlink(missing_ok=True)
        number = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        try:
            with os.fdopen(number, "w", encoding="utf-8", errors="backslashreplace") as file:
                lines = self.lines(in_force)
                while portion := list(islice(lines, PORTION)):
                    await trio.to_thread.run_sync(file.write, "".join(f"{line}\n" for line in portion))
            part.replace(path)
        except BaseException:
            part.unlink(missing_ok=True)
            raise
        return path

    def _path(self, configuration: Configuration) -> Path:
        wanted = configuration.router.debug_dump_file
        if wanted:
            return Path(wanted)
        name = re.sub("[^A-Za-z0-9._-]", "_", configuration.router.id)[:64]
        return Path(f"trouter-{name}-{os.getpid()}-{self._count}.dump")

    def lines(self, in_force: ConfigurationInForce) -> Iterator[str]:
        """Yield the dump, line by line."""
        router, connections = self._router, self._connections
        listeners, connectors = in_force.parts.listeners.all, in_force.parts.connectors.all
        yield from self._process(in_force.configuration)
        yield from ("", "TASKS")
        root = trio.lowlevel.current_root_task()
        if root is not None:
            yield from tasks(root)
        yield from ("", f"LISTENERS {len(listeners)}")
        yield from map(listener_line, listeners)
        yield from ("", f"CONNECTORS {len(connectors)}")
        yield from map(connector_line, connectors)
        yield from ("", f"CONNECTIONS {len(connections)}")
        for connection in bounded(connections.values()):
            yield from connection_lines(connection)
        yield from ("", f"LINKS {len(router.links)}")
        for link in bounded(router.links.values()):
            yield link_line(router, link)
        yield from ("", f"ADDRESSES {len(router.table.entries)}")
        yield from map(address_line, bounded(router.table.entries.values()))

    def _process(self, configuration: Configuration) -> Iterator[str]:
        own, budget, shared = configuration.router, self._budget, self._router.shared
        used = resource.getrusage(resource.RUSAGE_SELF)
        python = sys.version.split()[0]
        yield f"trouter {trouter.__version__} ({_twin.running()}, Python {python}), process {os.getpid()}"
        yield f"router {text(own.id)}, mode {own.mode}, configuration {text(configuration.source)}"
        age_s = time.monotonic() - self._began_s
        yield f"written {time.strftime('%Y-%m-%d %H:%M:%S %z')}, {age_s:.0f} s after the start"
        yield f"draining {'yes' if shared.stopping else 'no'}"
        yield f"cpu {used.ru_utime:.1f} s user, {used.ru_stime:.1f} s system; memory at most {used.ru_maxrss} KiB"
        yield f"messages under way {budget.held} bytes of {budget.limit}"
        yield f"connections to be flushed {len(self._hub.outbox)}"
        threads = len(list(Path("/proc/self/task").iterdir()))
        yield f"threads {threads}; objects in the collector's generations {gc.get_count()}"
        yield f"log lines lost {logs.book.lost}"


def tasks(task: trio.lowlevel.Task, depth: int = 0) -> Iterator[str]:
    """Yield lines of a task, where it waits, and its child tasks: ``TASKS_ALIKE`` of each name, and how many more."""
    indent = "  " * depth
    yield f"{indent}{task.name} {waits_at(task)}"
    for number, nursery in enumerate(task.child_nurseries):
        yield f"{indent}  nursery {number}: {len(nursery.child_tasks)} task(s)"
        alike: dict[str, list[trio.lowlevel.Task]] = defaultdict(list)
        for child in nursery.child_tasks:
            alike[child.name].append(child)
        for name, children in sorted(alike.items()):
            for child in children[:TASKS_ALIKE]:
                yield from tasks(child, depth + 2)
            if len(children) > TASKS_ALIKE:
                yield f"{indent}    ... and {len(children) - TASKS_ALIKE} more of {name}"


def waits_at(task: trio.lowlevel.Task) -> str:
    """Return the innermost frame of a task outside trio, as module, line and function; empty if there is none.

    A compiled coroutine has no frame: the place is then the line that awaits it.
    """
    place = ""
    for frame, line in task.iter_await_frames():
        module = str(frame.f_globals.get("__name__", ""))
        if module.partition(".")[0] != "trio":
            place = f"at {module}:{line} {frame.f_code.co_name}"
    return place


def listener_line(listener: Standing) -> str:
    """Return the line of a listener, with its sockets and counts."""
    where = " ".join(str(sock.getsockname()[:2]) if sock.fileno() >= 0 else "(closed)" for sock in listener.sockets)
    entity = listener.entity
    return (
        f"{text(entity.name) or '-'} {text(entity.host) or '*'}:{text(entity.port)} role={entity.role} "
        f"http={'yes' if entity.http else 'no'} sockets={where or '-'} connections={len(listener.peers)} "
        f"accepted={listener.accepted} refused={listener.refused}"
    )


def connector_line(connector: Connector) -> str:
    """Return the line of a connector, with its status and the endpoints that it dials next."""
    entity = connector.entity
    return (
        f"{text(entity.name) or '-'} {text(entity.host)}:{text(entity.port)} role={entity.role} "
        f"status={connector.status} next={text(connector.failover_urls)} message={text(connector.message) or '-'}"
    )


def connection_lines(connection: ConnectionView) -> Iterator[str]:
    """Yield the line of a connection and those of its sessions."""
    engine = connection.engine
    remote = engine.remote_open
    yield (
        f"[C{connection.number}] state={engine.state.name} role={connection.facts.listener.role} "
        f"listener={text(connection.facts.listener.name)} "
        f"container={text(remote.container_id) if remote else '-'} output_octets={len(engine.out)} "
        f"paused={engine.paused} touched={engine.touched} closing={connection.lifetime.closing} "
        f"links={engine.link_count} events={len(engine.events)}"
    )
    for session in engine.sessions():
        yield f"  {session_line(session)}"


def session_line(session: Session) -> str:
    """Return the line of a session, with its windows and unsettled deliveries."""
    return (
        f"session channel={session.channel} remote_channel={session.remote_channel} state={session.state.name} "
        f"incoming_window={session.windows.incoming_frames}/{session.windows.max_incoming_frames} "
        f"remote_incoming_window={session.windows.outgoing_frames} "
        f"next_incoming_id={session.windows.next_incoming_id} next_outgoing_id={session.windows.next_outgoing_id} "
        f"unsettled_in={session.deliveries.incoming.count} unsettled_out={session.deliveries.outgoing.count} "
        f"waiting_links={len(session.waiting_links)}"
    )


def link_line(router: Router, link: Endpoint) -> str:
    """Return the line of a link, with its credit and deliveries."""
    row = Rows(LINK, router).row(link)
    numbers = " ".join(f"{short}={row[name]}" for short, name in LINK_NUMBERS.items())
    return (
        f"[C{link.connection_number}][L{link.identity}] {row['linkDir']} {row['operStatus']} "
        f"address={text(row['owningAddr'])} handle={link.link.handle} name={text(link.link.name)} {numbers}"
    )


def address_line(entry: AddressEntry) -> str:
    """Return the line of an address, with how many links use it."""
    counters = entry.counters
    return (
        f"{text(entry.key)} {entry.treatment} consumers={len(entry.forwarder.consumers)} "
        f"inside={len(entry.forwarder.subscriptions)} senders={len(entry.senders)} priority={entry.priority} "
        f"pinned={entry.pinned} fallback={text(entry.fallback.key) if entry.fallback else '-'} "
        f"in={counters.ingress} out={counters.egress} to_inside={counters.to_container} "
        f"from_inside={counters.from_container} redirected={counters.redirected}"
    )


def bounded(items: Iterable[T]) -> Iterator[T]:
    """Return an iterator over a copy of the first ``MAX_LINES`` items, which may change meanwhile."""
    return iter(list(islice(items, MAX_LINES)))


def text(words: object) -> str:
    """Return text that a peer may have chosen as printable ASCII on one line, of at most ``MAX_TEXT`` characters."""
    whole = ascii(str(words)[:MAX_TEXT])
    return whole if any(char in whole for char in " \\") else whole[1:-1]
