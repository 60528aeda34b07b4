"""Asks every router of a network for its state, all at once over one connection.

The routers are those that the connected router knows, and the edge routers that are connected to these. An edge router
knows no others: the router at the other end of its uplink is asked for them. A router of another kind (Qpid Dispatch)
answers what it has.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Final

import trio

from trouter.client import ClientError
from trouter.tools import formats
from trouter.tools.failures import ConnectionException, MalformedAnswer, StatusError, Timeout, as_text
from trouter.tools.node import NodeClient
from trouter.tools.words import PREFIX

#: What makes one router fail to answer, and is no reason to give the others up.
FAILURES: Final = (StatusError, Timeout, MalformedAnswer, ConnectionException, ClientError)
#: Routers that are asked at a time.
AT_ONCE: Final = 16
#: Interior routers of a network, and edge routers that one of them may have; a longer list is no answer.
MAX_ROUTERS: Final = 10_000
MAX_EDGES: Final = 10_000
#: What is kept of thirty routers that send as much as they may, with the answers under way, is less than 64 MB. Of the
#: connections, of which a page at a time is in memory, so many bytes are read; of another table so many rows and bytes.
_CONNECTION_BYTES: Final = 128 << 20
_ROWS: Final = 2_000
_TABLE_BYTES: Final = 512 << 10
#: The longest answer of another router, and the characters of the names of all routers at one.
_ANSWER_BYTES: Final = 1 << 20
_NAMES: Final = 256 << 10
#: The changes of the network that a router keeps, and the bytes of all that are read.
_CHANGES: Final = 100
_CHANGE_BYTES: Final = 4 << 20
#: The id of a change: what an operator copies from the table into a shell.
_CHANGE_ID: Final = re.compile(r"[0-9A-Za-z-]{1,64}")
#: The kind of a refusal that is a failure of the router: an older one says that it has no such operation.
_FAILED: Final = "InternalServerErrorStatus"
#: How many times as long as for one answer (`--timeout`) a router may take for all of its tables, and how many times as
#: long routers are asked: one that answers slowly, or names others that there are not, keeps nobody waiting for hours.
_TIMES_OF_ROUTER: Final = 12
_TIMES_OF_ALL: Final = 60
_INTERIOR: Final = "interior"
_EDGE: Final = "edge"
#: Characters of a text that another router chose.
_TEXT: Final = 2000
#: The attributes of `router` that are read; another kind of router may lack some.
_OF_ROUTER: Final = (
    "id", "mode", "version", "uptimeSeconds", "connectionCount", "linksBlocked", "deliveriesStuck", "drainState",
    "workers", "secureDefaults", "allowNetworkChanges",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class UnfinishedChange:
    """A change that is neither confirmed nor taken back at a router, as the operation GET-CHANGE answers."""

    id: str
    #: Who ordered it, as the command said, and the user and the host of the connection by which it came.
    by: str
    user: str
    host: str
    #: When, in seconds since 1970.
    at: int
    #: All routers that it is of.
    routers: tuple[str, ...]
    #: `begun`: the file is the old one; `made`; `edited`: the file is another one since.
    state: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RouterStatus:
    """What one router of the network answered; None where it has no such value."""

    id: str
    mode: str
    #: Why the router did not answer; empty if it did.
    fault: str = ""
    version: str = ""
    #: The number of its workers as it is configured, or `auto`. Each worker is a router of the network.
    workers: str = "1"
    uptime_s: int | None = None
    connections: int | None = None
    links_blocked: int | None = None
    deliveries_stuck: int | None = None
    #: `serving`, `draining` or `drained`.
    drain_state: str | None = None
    #: The number of findings, by severity.
    findings: Mapping[str, int] | None = None
    #: Connectors that have no connection, with the reason.
    connectors_down: Mapping[str, str] = field(default_factory=dict)
    #: Seconds until the first certificate expires, 0 or less if one has.
    certificate_left_s: float | None = None
    policy_digest: str | None = None
    #: The change of its configuration that is open; None without one.
    change: UnfinishedChange | None = None
    #: Whether it takes changes only by connections with TLS.
    wants_tls: bool = False
    #: Its connections with other routers, on other machines, that have no TLS.
    without_tls: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NetworkStatus:
    """The routers by id, and what was missing in the answers of their workers."""

    routers: tuple[RouterStatus, ...]
    incomplete: tuple[str, ...]
    #: The workers of the router that was asked, see ``workers_of``; the first one is among the routers.
    workers: tuple[str, ...] = ()
    #: The interior routers that the router that was asked reached lately, and does not now; with when their way last
    #: changed, in milliseconds since 1970.
    lost: Mapping[str, int] = field(default_factory=dict)

    def configured(self) -> list[str]:
        """Return the ids of the routers that have a configuration: one for all workers of a router."""
        with_workers = {router.id for router in self.routers if router.workers != "1"}
        return [router.id for router in self.routers if not _is_further_worker(router.id, with_workers)]

    def policies(self) -> dict[str, list[str]]:
        """Return the ids of the routers with each policy, by its digest; the most frequent policy comes first."""
        routers: dict[str, list[str]] = {}
        for router in self.routers:
            if router.policy_digest is not None:
                routers.setdefault(router.policy_digest, []).append(router.id)
        return dict(sorted(routers.items(), key=lambda item: -len(item[1])))

    def clear_hops(self) -> list[str]:
        """Return the connections between routers that have no TLS, and those of which no router tells."""
        hops = [f"{router.id} with {', '.join(router.without_tls)}" for router in self.routers if router.without_tls]
        silent = [router.id for router in self.routers if router.fault]
        if len(silent) > 1:  # of a connection with another router that one tells
            hops.append(f"perhaps those between {', '.join(silent)}, which do not answer")
        return hops

    def open_changes(self) -> dict[str, list[RouterStatus]]:
        """Return the routers at which each change is open, by its id."""
        routers: dict[str, list[RouterStatus]] = {}
        for router in self.routers:
            if router.change is not None:
                routers.setdefault(router.change.id, []).append(router)
        return routers


def _is_further_worker(router: str, with_workers: set[str]) -> bool:
    """Return whether a router of the network is the second worker, or a later one, of another one."""
    first, _, number = router.rpartition(".")
    return first in with_workers and number.isdecimal()


def workers_of(node: NodeClient, interiors: Collection[str]) -> list[str]:
    """Return the ids of the workers of the router that ``node`` is, the first one first; none if it has no others.

    They are to be asked through ``node``, which answers for all of them: a user without all rights in management may
    not ask another worker by itself.
    """
    if node.workers < 2:
        return []
    reached = node.router_id
    first = reached.rpartition(".")[0] if _is_further_worker(reached, set(interiors)) else reached
    return [first, *(each for each in interiors if _is_further_worker(each, {first}))]


@asynccontextmanager
async def open_router(
    node: NodeClient, router: str, mode: str, workers: Collection[str], max_answer_bytes: int = 0
) -> AsyncIterator[NodeClient]:
    """Give the management node of a router; ``workers`` are those of ``node``; see ``NodeClient.open_other``."""
    if router in workers or (router == node.router_id and mode != _EDGE):
        yield node
    else:
        async with node.open_other(router, edge=mode == _EDGE, max_answer_bytes=max_answer_bytes) as other:
            yield other


def reason_of(failure: BaseException) -> str:
    """Return what is wrong on one line of bounded length: a router may have chosen the words."""
    return "; ".join(map(formats.plain, as_text(failure).split("\n")))[:_TEXT]


async def survey(node: NodeClient) -> NetworkStatus:
    """Return the state of every router of the network that ``node`` is in, or of it alone; as ``NodeClient.call``."""
    if interiors := await node.routers():
        return await _survey_of(node, interiors, node)
    status, _, lack = await _ask(node, node.router_id, "")
    if status.mode != _EDGE:
        return NetworkStatus((status,), (lack,) if lack else ())
    try:
        async with node.open_other(await _above(node)) as above:
            return await _survey_of(node, await above.routers(), above)
    except FAILURES as failure:
        alone = f"{status.id} is an edge router, which sees no other: {reason_of(failure)}"
        return NetworkStatus((status,), (lack, alone) if lack else (alone,))


async def _above(edge: NodeClient) -> str:
    """Return the router above an edge router; ConnectionException if it has no uplink."""
    uplinks = (await _ties_of(edge)).uplinks
    if not uplinks:
        raise ConnectionException("it has no uplink")
    return min(uplinks)


async def _lost_of(node: NodeClient, present: Collection[str]) -> dict[str, int]:
    """Return the routers that ``node`` reached lately, and does not now, with when that changed; MalformedAnswer."""
    changed: dict[str, int] = {}
    for row in await rows_of(node, "topologyChange", ("began", "moved"), _CHANGES, _CHANGE_BYTES) or []:
        began_ms, moved = number_of(row, "began"), row.get("moved")
        if began_ms is None or not isinstance(moved, list):
            raise MalformedAnswer("a change of the network lacks its time, or the routers that it moved")
        changed |= dict.fromkeys(map(formats.plain, moved), began_ms)
    known = {*present, *changed}
    return {
        router: at_ms
        for router, at_ms in sorted(changed.items())
        if router not in present and not _is_further_worker(router, known)
    }


async def _survey_of(node: NodeClient, interiors: Sequence[str], witness: NodeClient) -> NetworkStatus:
    """Return the state of these routers, of the edge routers at them, and those that ``witness`` lost.

    MalformedAnswer if they are too many.
    """
    if len(interiors) > MAX_ROUTERS:
        raise MalformedAnswer(f"the network has {len(interiors)} routers; {MAX_ROUTERS} are believed")
    workers = workers_of(node, interiors)
    answers = await _ask_all(node, [each for each in interiors if each not in workers[1:]], _INTERIOR, workers)
    # an edge router with the id of an interior one would get the file that is for that
    edges = sorted({edge for _, below, _ in answers for edge in below}.difference(interiors))
    answers += await _ask_all(node, edges, _EDGE, workers)
    lacks = [lack for _, _, lack in answers if lack]
    lost: Mapping[str, int] = {}
    try:
        lost = await _lost_of(witness, interiors)
    except FAILURES as failure:
        lacks.append(f"the routers that were in reach before are not known: {reason_of(failure)}")
    return NetworkStatus(
        tuple(sorted((status for status, _, _ in answers), key=lambda status: (status.mode == _EDGE, status.id))),
        tuple(lacks),
        tuple(workers),
        lost,
    )


async def _ask_all(
    node: NodeClient, routers: Sequence[str], mode: str, workers: Collection[str]
) -> list[tuple[RouterStatus, Sequence[str], str]]:
    """Return the state of each of these routers, the edge routers below it, and what its answers lacked."""
    answers: list[tuple[RouterStatus, Sequence[str], str]] = []
    places = trio.CapacityLimiter(AT_ONCE)
    end_s = trio.current_time() + _TIMES_OF_ALL * node.timeout_s

    async def ask(router: str) -> None:
        if (shown := formats.plain(router)) != router:
            fault = "not asked: its id has control characters"
            answers.append((RouterStatus(id=shown, mode=mode, fault=fault), (), ""))
            return
        try:
            async with places:
                answers.append(await _ask_in_time(node, router, mode, workers, end_s))
        except FAILURES as failure:
            answers.append((RouterStatus(id=router, mode=mode, fault=reason_of(failure)), (), ""))

    async with trio.open_nursery() as nursery:
        for router in routers:
            nursery.start_soon(ask, router)
    return answers


async def _ask_in_time(
    node: NodeClient, router: str, mode: str, workers: Collection[str], end_s: float
) -> tuple[RouterStatus, Sequence[str], str]:
    """Return the state of one router, the edge routers below it, and what its answers lacked; any of FAILURES."""
    if trio.current_time() > end_s:
        raise Timeout("not asked: the routers before it took too long")
    limit_s = _TIMES_OF_ROUTER * node.timeout_s
    with trio.move_on_after(limit_s):
        async with open_router(node, router, mode, workers, _ANSWER_BYTES) as other:
            return await _ask(other, router, mode)
    raise Timeout(f"its answers take longer than {limit_s:g} s altogether")


async def _ask(node: NodeClient, router: str, mode: str) -> tuple[RouterStatus, Sequence[str], str]:
    """Return the state of one router, the edge routers that are connected to it, and what its answers lacked."""
    cut = []

    async def read(kind: str, *names: str) -> list[dict[str, Any]] | None:
        rows = await rows_of(node, kind, names, _ROWS + 1)
        if rows is not None and len(rows) > _ROWS:
            cut.append(f"{formats.plain(router)}: only {_ROWS} of its rows of {kind} are counted")
            del rows[_ROWS:]
        return rows

    (row,) = (await node.query(f"{PREFIX}router", _OF_ROUTER)).dicts()[:1] or [{}]
    ties = await _ties_of(node)
    findings = await read("finding", "severity")
    connectors = await read("connector", "name", "connectionStatus", "connectionMsg") or []
    ends_s = [number_of(row, "certificateEnds") for row in await read("sslProfile", "certificateEnds") or []]
    policies = await read("policy", "policyDigest") or [{}]
    status = RouterStatus(
        id=router,
        mode=mode or str(row.get("mode", "")),
        version=str(row.get("version", "")),
        workers=str(row.get("workers", "1")),
        uptime_s=number_of(row, "uptimeSeconds"),
        connections=number_of(row, "connectionCount"),
        links_blocked=number_of(row, "linksBlocked"),
        deliveries_stuck=number_of(row, "deliveriesStuck"),
        drain_state=_text(row, "drainState"),
        findings=None if findings is None else dict(Counter(str(each.get("severity")) for each in findings)),
        connectors_down={
            str(each.get("name")): str(each.get("connectionMsg", "")) for each in connectors
            if _text(each, "connectionStatus") not in {None, "SUCCESS"}
        },
        certificate_left_s=min((end - time.time() for end in ends_s if end is not None), default=None),
        policy_digest=_text(policies[0], "policyDigest"),
        change=await _open_change(node),
        wants_tls=row.get("secureDefaults") is True and row.get("allowNetworkChanges") is not True,
        without_tls=tuple(sorted(map(formats.plain, ties.in_the_clear))),
    )  # fmt: skip
    edges = sorted(ties.edges) if status.mode == _INTERIOR else ()
    return status, edges, "; ".join(filter(None, (node.take_incomplete(), *cut)))


@dataclass(slots=True)
class _Ties:
    """The names of the routers that a router is connected with."""

    #: Those at which it has an uplink, and the edge routers that have one at it.
    uplinks: set[str] = field(default_factory=set)
    edges: set[str] = field(default_factory=set)
    #: Those of other machines, without TLS.
    in_the_clear: set[str] = field(default_factory=set)

    def add(self, connection: Mapping[str, Any]) -> None:
        """Add the router at the other end of a connection, if it is one."""
        name = str(connection.get("container", ""))
        if connection.get("role") == _EDGE and name:
            (self.edges if connection.get("dir") == "in" else self.uplinks).add(name)
        if _is_in_the_clear(connection):
            self.in_the_clear.add(name)

    def check(self) -> None:
        """Raise MalformedAnswer if they are more than a router has."""
        if len(self.edges) > MAX_EDGES:
            raise MalformedAnswer(f"it names {len(self.edges)} edge routers; {MAX_EDGES} are believed")
        if sum(map(len, (*self.edges, *self.uplinks, *self.in_the_clear))) > _NAMES:
            raise MalformedAnswer(f"the names of the routers at it have more than {_NAMES} characters")


async def _ties_of(node: NodeClient) -> _Ties:
    """Return what ties a router to others, none if it does not show its connections; MalformedAnswer."""
    ties = _Ties()
    names = ("role", "container", "dir", "host", "isEncrypted")
    pages = node.pages(f"{PREFIX}connection", names, max_bytes=_CONNECTION_BYTES)
    with suppress(StatusError):
        async with aclosing(pages):
            async for page in pages:
                for row in page.dicts():
                    ties.add(row)
                ties.check()
    return ties


def _is_in_the_clear(connection: Mapping[str, Any]) -> bool:
    """Return whether a connection is one with a router of another machine, without TLS; MalformedAnswer."""
    host = str(connection.get("host", "")).rpartition(":")[0].strip("[]")
    is_here = host == "::1" or host.startswith("127.")
    is_hop = _text(connection, "role") in {_EDGE, "inter-router"}
    return is_hop and connection.get("isEncrypted") is not True and not is_here


async def _open_change(node: NodeClient) -> UnfinishedChange | None:
    """Return the change that is open at a router; None without one, or if it takes no changes. MalformedAnswer."""
    try:
        answer = await node.call_self("GET-CHANGE")
    except StatusError as refused:
        if refused.kind == _FAILED:
            raise
        return None
    if not answer and isinstance(answer, dict):
        return None
    try:
        return open_change_of(answer)
    except (KeyError, TypeError, ValueError):
        raise MalformedAnswer("the answer is no change of a configuration") from None


def open_change_of(answer: Mapping[str, Any]) -> UnfinishedChange:
    """Return the change of an answer; KeyError, TypeError, ValueError if its id is none to be typed in a command."""
    texts = [answer[name] for name in ("id", "by", "user", "host", "state")]
    at, routers = answer["at"], answer["routers"]
    if not (all(isinstance(text, str) for text in texts) and isinstance(at, int) and isinstance(routers, list)):
        raise TypeError
    name, by, user, host, state = map(formats.plain, texts)
    if not _CHANGE_ID.fullmatch(name):
        raise ValueError("an id that no command makes")
    return UnfinishedChange(name, by, user, host, at, tuple(map(formats.plain, routers)), state)


def number_of(row: Mapping[str, Any], name: str) -> int | None:
    """Return a whole number of a row, None if it has none; MalformedAnswer for another value."""
    value = row.get(name)
    if value is None or (isinstance(value, int) and not isinstance(value, bool)):
        return value
    raise MalformedAnswer(f"its {name} is no whole number")


def _text(row: Mapping[str, Any], name: str) -> str | None:
    """Return a text of a row, as it may be shown, None if it has none; MalformedAnswer for another value."""
    value = row.get(name)
    if value is None:
        return None
    if isinstance(value, str):
        return formats.plain(value)[:_TEXT]
    raise MalformedAnswer(f"its {name} is no text")


async def rows_of(
    node: NodeClient, kind: str, attributes: Sequence[str], limit: int, max_bytes: int = _TABLE_BYTES
) -> list[dict[str, Any]] | None:
    """Return ``limit`` rows of a type at most; None if the router has no such type, or does not show it.

    MalformedAnswer if they have more than ``max_bytes``.
    """
    rows: list[dict[str, Any]] = []
    try:
        async for page in node.pages(f"{PREFIX}{kind}", attributes, limit, max_bytes):
            rows += page.dicts()
    except StatusError:
        return None
    return rows
