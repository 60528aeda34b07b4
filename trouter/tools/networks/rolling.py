"""Takes one router of a network after the other out of service, has a command run for it, and waits until it is back.

A router is back when it answers and takes clients, has the connections with other routers that it had before, and each
address that had a consumer there has one again, at whichever router: clients may have gone to another one.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar

import trio

from trouter.tools.failures import ConnectionException, MalformedAnswer, Timeout, as_text
from trouter.tools.node import NodeClient, open_node
from trouter.tools.options import ConnectionOptions
from trouter.tools.words import PREFIX

from .survey import FAILURES, NetworkStatus, reason_of, survey

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from types import TracebackType

#: What stands for the id of the router in the words of a command, and the variable of its environment with the same.
PLACEHOLDER: Final = "{id}"
VARIABLE: Final = "TROUTER_ROUTER"
#: Ids that are neither an option of a command nor more than a word of a shell. A router chooses its own id.
_PLAIN_ID: Final = re.compile(r"[0-9A-Za-z_][0-9A-Za-z_.:-]*")
#: Seconds between two questions.
_LOOK_S: Final = 1.0
#: Seconds by which an uptime in whole seconds may differ from one that is measured.
_ROUNDED_S: Final = 1.0
_Answer = TypeVar("_Answer")
_SERVING: Final = "serving"
_DRAINING: Final = "draining"
#: The classes of addresses that clients, brokers and edge routers listen on, as they begin a key; and the keys that
#: end with their client.
_CLASSES: Final = tuple("MCDEFH")
_TEMPORARY: Final = re.compile(r".\d?(?:temp\.|_\$temp\.)")


class Stage(StrEnum):
    """How far the roll came at a router."""

    WAITING = "not begun"
    DRAINING = "draining"
    RUNNING = "drained, the command runs"
    RETURNING = "coming back"
    DONE = "done"


@dataclass(slots=True)
class RolledRouter:
    """A router of a roll."""

    id: str
    edge: bool
    stage: Stage = Stage.WAITING
    #: Why the roll stopped here; empty if it did not.
    why: str = ""
    #: Whether the command restarted it; None while that is not known.
    restarted: bool | None = None

    @property
    def may_drain(self) -> bool:
        """Whether its drain was ordered, and nothing has ended it so far."""
        return self.stage in {Stage.DRAINING, Stage.RUNNING} or (
            self.stage is Stage.RETURNING and self.restarted is None
        )


class RollStopped(Exception):
    """A router did not do the next step; the text says why."""


@dataclass(frozen=True, slots=True)
class _Ties:
    """What ties a router to the others: its neighbours, and the keys of addresses with consumers there."""

    neighbours: frozenset[str]
    keys: frozenset[str]


class Access:
    """The connection of an operator to a network, which is opened again after it was lost: the router restarts too."""

    def __init__(self, options: ConnectionOptions) -> None:
        self._options = options
        self._stack = AsyncExitStack()
        self._node: NodeClient | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None, /
    ) -> None:
        await self._stack.__aexit__(kind, value, traceback)

    async def open(self) -> NodeClient:
        """Return the management node of the connected router; any of FAILURES."""
        if self._node is None:
            self._node = await self._stack.enter_async_context(open_node(self._options))
        return self._node

    async def lose(self) -> None:
        """Give the connection up."""
        self._node = None
        with suppress(*FAILURES):
            await self._stack.aclose()

    @asynccontextmanager
    async def of_router(self, router_id: str, *, edge: bool) -> AsyncIterator[NodeClient]:
        """Open the management node of a router; any of FAILURES."""
        node = await self.open()
        if router_id == node.router_id:
            yield node
            return
        async with node.open_other(router_id, edge=edge) as other:
            yield other


class Roll:
    """A command for one router after the other. ``tell`` gets each router when its stage has changed."""

    def __init__(
        self,
        options: ConnectionOptions,
        status: NetworkStatus,
        routers: Sequence[RolledRouter],
        *,
        over_s: float,
        patience_s: float,
        tell: Callable[[RolledRouter], None],
    ) -> None:
        """``over_s``: over how many seconds clients leave. ``patience_s``: how long each wait may take, in seconds."""
        self.routers = routers
        self._options = replace(options, timeout_s=min(options.timeout_s, patience_s))
        self._known = {router.id for router in status.routers}
        self._interiors = [router.id for router in status.routers if router.mode == "interior"]
        self._over_s = over_s
        self._patience_s = patience_s
        self._tell = tell

    async def run(self, words: Sequence[str]) -> None:
        """Run the command for each router; RollStopped at the first that does not come back, of which ``why`` tells."""
        async with Access(self._options) as access:
            for router in self.routers:
                try:
                    await self._roll(access, router, words)
                except (RollStopped, *FAILURES) as failure:
                    router.why = reason_of(failure)
                    raise RollStopped(f"stopped at {router.id}: {router.why}") from failure

    async def _roll(self, access: Access, router: RolledRouter, words: Sequence[str]) -> None:
        await self._until(access, self._patience_s, lambda: self._missing(access))
        before = await self._in_time(lambda: self._ties(access, router))
        self._enter(router, Stage.DRAINING)
        async with access.of_router(router.id, edge=router.edge) as node:
            await node.call_self("DRAIN", over=-int(-self._over_s // 1))  # rounded up: a router takes whole seconds
        await self._until(access, self._over_s + self._patience_s, lambda: self._not_drained(access, router))
        self._enter(router, Stage.RUNNING)
        began_s = trio.current_time()
        await _run(router.id, words)
        self._enter(router, Stage.RETURNING)
        await self._until(access, self._patience_s, lambda: self._not_serving(access, router, began_s))
        await self._until(access, self._patience_s, lambda: self._not_tied(access, router, before))
        self._enter(router, Stage.DONE)

    def _enter(self, router: RolledRouter, stage: Stage) -> None:
        router.stage = stage
        self._tell(router)

    async def _until(self, access: Access, limit_s: float, lack: Callable[[], Awaitable[str]]) -> None:
        """Ask until nothing is lacking; RollStopped with what is after ``limit_s`` seconds."""
        end_s = trio.current_time() + limit_s
        while True:
            try:
                await access.open()
                found = await self._in_time(lack)
            except FAILURES as failure:
                found = as_text(failure)
                await access.lose()
            if not found:
                return
            if trio.current_time() >= end_s:
                raise RollStopped(f"{found} (waited for {limit_s:g} s)")
            await trio.sleep(_LOOK_S)

    async def _in_time(self, ask: Callable[[], Awaitable[_Answer]]) -> _Answer:
        """Return an answer of many parts, each of which comes in time by itself; Timeout if they take too long."""
        with trio.move_on_after(self._patience_s):
            return await ask()
        raise Timeout(f"the answers take longer than {self._patience_s:g} s altogether")

    async def _missing(self, access: Access) -> str:
        """Return which routers of the network are away, or drain: none else may be while one is."""
        found = {router.id: router for router in (await survey(await access.open())).routers}
        away = sorted(name for name in self._known if name not in found or found[name].fault)
        draining = sorted(name for name in found if found[name].drain_state not in {None, _SERVING})
        if away:
            return f"it was not begun, because {', '.join(away)} does not answer"
        return f"it was not begun, because {', '.join(draining)} drains" if draining else ""

    async def _not_drained(self, access: Access, router: RolledRouter) -> str:
        async with access.of_router(router.id, edge=router.edge) as node:
            state = await node.call_self("GET-DRAIN")
        if not isinstance(state, dict):
            raise MalformedAnswer("the answer is not the state of a drain")
        if state.get("state") == _SERVING:
            raise RollStopped("its drain was cancelled")
        return f"{state.get('left')} client connections are left" if state.get("state") == _DRAINING else ""

    async def _not_serving(self, access: Access, router: RolledRouter, began_s: float) -> str:
        """Return what keeps a router from taking clients; end the drain of one that the command did not restart."""
        async with access.of_router(router.id, edge=router.edge) as node:
            (row,) = (await node.query(f"{PREFIX}router", ("uptimeSeconds", "drainState"))).dicts()[:1] or [{}]
            uptime_s, state = row.get("uptimeSeconds"), row.get("drainState")
            if not isinstance(uptime_s, int) or not isinstance(state, str):
                raise MalformedAnswer("the answer lacks the uptime, or the state of the drain")
            if state != _SERVING:  # a drain ends with the process
                await node.call_self("CANCEL-DRAIN")
                router.restarted = False
            elif router.restarted is None:
                router.restarted = uptime_s <= trio.current_time() - began_s + _ROUNDED_S
        return ""

    async def _not_tied(self, access: Access, router: RolledRouter, before: _Ties) -> str:
        now = await self._ties(access, router)
        if neighbours := sorted(before.neighbours - now.neighbours):
            return f"its connection with {', '.join(neighbours)} is not back"
        async with access.of_router(self._witness(router), edge=False) as node:
            keys = sorted(before.keys - await _listened(node))
        names = [_name_of(key) for key in keys]
        return f"no consumer is back for {', '.join(names)}" if names else ""

    async def _ties(self, access: Access, router: RolledRouter) -> _Ties:
        """Return what ties a router to others. The addresses are those that its witness knows as well."""
        async with access.of_router(router.id, edge=router.edge) as node:
            connections = (await node.query(f"{PREFIX}connection", ("role", "container", "dir"))).dicts()
            keys = await _listened(node, "subscriberCount", "containerCount")
        neighbours = frozenset(_neighbours(router.id, connections))
        async with access.of_router(self._witness(router), edge=False) as witness:
            known = await _listened(witness)
        # an edge router is an address itself to those above it
        return _Ties(neighbours, (keys | {f"H{router.id}"} if router.edge else keys) & known)

    def _witness(self, router: RolledRouter) -> str:
        """Return the id of the router that is asked for the addresses of the network, another one if there is one."""
        return next((each for each in self._interiors if each != router.id), router.id)


def ordered(routers: Iterable[RolledRouter], connected: str, *, edges_first: bool) -> list[RolledRouter]:
    """Return the routers in the order of a roll: interior ones, edge routers, and the connected one at last."""
    return sorted(routers, key=lambda router: (router.id == connected, router.edge is not edges_first))


def check_ids(routers: Iterable[RolledRouter]) -> None:
    """Raise ConnectionException if a router has an id that a command could take for something else."""
    odd = [router.id for router in routers if not _PLAIN_ID.fullmatch(router.id)]
    if odd:
        raise ConnectionException(
            f"the ids {', '.join(map(repr, odd))} could be read as more than a name by a command: nothing was begun; "
            "--only leaves these routers out"
        )


def _neighbours(router_id: str, connections: Iterable[dict[str, Any]]) -> Iterable[str]:
    """Yield the routers that a router is connected with; for an uplink, which may lead elsewhere later, these words."""
    for row in connections:
        container = str(row.get("container"))
        first, _, number = container.rpartition(".")
        if row.get("role") == "inter-router" and not (first == router_id and number.isdecimal()):  # a worker of it
            yield container
        elif row.get("role") == "edge" and row.get("dir") == "out":
            yield "an interior router"


async def _listened(node: NodeClient, *counts: str) -> frozenset[str]:
    """Return the keys of the addresses with consumers, by these counts, or those of the whole network without any."""
    names = counts or ("subscriberCount", "containerCount", "remoteCount")
    rows = (await node.query(f"{PREFIX}router.address", ("key", *names))).dicts()
    keys = {str(row.get("key")) for row in rows if any(row.get(name) for name in names)}
    return frozenset(key for key in keys if key.startswith(_CLASSES) and not _TEMPORARY.match(key))


def _name_of(key: str) -> str:
    """Return what an operator calls a key: the edge router, or the address without its class and phase."""
    if key.startswith("H"):
        return f"the edge router {key[1:]}"
    return key[2:] if key.startswith("M") and key[1:2].isdecimal() else key[1:]


async def _run(router_id: str, words: Sequence[str]) -> None:
    """Run the command for a router, with its output on stderr; RollStopped unless its status is 0."""
    command = [word.replace(PLACEHOLDER, router_id) for word in words]
    try:
        ended = await trio.run_process(
            command,
            stdin=subprocess.DEVNULL,
            stdout=sys.__stderr__,
            check=False,
            env={**os.environ, VARIABLE: router_id},
        )
    except OSError as failure:
        raise RollStopped(f"the command could not be run: {as_text(failure)}") from failure
    if ended.returncode:
        how = f"was killed by signal {-ended.returncode}" if ended.returncode < 0 else f"failed ({ended.returncode})"
        raise RollStopped(f"the command {how}")
