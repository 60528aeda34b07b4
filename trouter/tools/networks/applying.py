"""Makes one change at several routers of a network, and confirms it at all of them or takes it back at all."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import trio

from trouter.tools import formats
from trouter.tools.failures import StatusError
from trouter.tools.node import NodeClient

from .checking import CheckedRouter
from .folder import RouterFile
from .survey import FAILURES, reason_of

#: What a plan changes that connections go through: of these an operator is asked first.
_WAYS: Final = ("listener/", "connector/", "sslProfile/")
#: What decides about the rights of an operator, where it is replaced or gone.
_RIGHTS: Final = {"updated": ("policy",), "deleted": ("policy", "vhost/")}
#: The kind of the refusal of a router at which the change is not open.
_NOT_OPEN: Final = "NotFoundStatus"


#: How the id of a change begins that is one of the policy alone.
POLICY_CHANGE: Final = "policy-"


def ends_of(change: str) -> str:
    """Return what an operator reads about the two ends of an open change."""
    again = "trouter network policy push" if change.startswith(POLICY_CHANGE) else "trouter network apply"
    return (
        f"`{again} FOLDER --resume {change}` goes on with it, `trouter network apply --abandon {change}` takes it back"
    )


class Outcome(StrEnum):
    """How far a change came at a router."""

    WAITING = "not begun"
    ORDERED = "ordered, without an answer so far"
    #: It was ordered, and no answer came.
    UNKNOWN = "not known"
    REFUSED = "refused"
    MADE = "applied"
    CONFIRMED = "confirmed"
    #: What was there before is there again, or the change never was.
    BACK = "taken back"


@dataclass(slots=True)
class ChangedRouter:
    """A router of a change; ``file`` and ``state`` are for one at which it is still to be made."""

    id: str
    edge: bool
    outcome: Outcome = Outcome.WAITING
    #: Why, of what is not as it should be.
    why: str = ""
    file: RouterFile | None = None
    state: str = ""

    @property
    def is_open(self) -> bool:
        """Whether the change may be open at the router."""
        return self.outcome in {Outcome.ORDERED, Outcome.UNKNOWN, Outcome.MADE}


class JointChange:
    """One change: its id, who orders it, and its routers, in groups of which one is done after the other."""

    def __init__(
        self,
        node: NodeClient,
        id: str,  # noqa: A002
        by: str,
        groups: Sequence[Sequence[ChangedRouter]],
        at_once: int,
        part: str = "",
    ) -> None:
        """``part``: what of their configurations the texts are; see the operation APPLY."""
        self.id = id
        self.routers = [router for group in groups for router in group]
        self._node = node
        self._groups = groups
        self._places = trio.CapacityLimiter(at_once)
        self._by = by
        self.part = part

    @property
    def is_made(self) -> bool:
        """Whether all routers have it."""
        return all(router.outcome is Outcome.MADE for router in self.routers)

    async def make(self) -> None:
        """Make the change at one group after the other, until a router fails."""
        order = {
            "change": self.id,
            "by": self._by,
            "routers": ",".join(router.id for router in self.routers),
            "part": self.part,
        }

        async def make_at(router: ChangedRouter) -> None:
            if router.outcome is not Outcome.WAITING or router.file is None or self._has_failed():
                return
            router.outcome = Outcome.ORDERED
            try:
                async with self._node.open_other(router.id, edge=router.edge) as other:
                    await other.call_self("APPLY", body=router.file.text, state=router.state, **order)
                router.outcome = Outcome.MADE
            except StatusError as refused:
                router.outcome, router.why = Outcome.REFUSED, reason_of(refused)
            except FAILURES as failure:
                router.outcome, router.why = Outcome.UNKNOWN, reason_of(failure)

        for group in self._groups:
            await self._at_each(group, make_at)

    async def confirm(self) -> None:
        """End the change at all routers that have it."""

        async def confirm_at(router: ChangedRouter) -> None:
            if router.outcome is Outcome.MADE:
                await self._step(router, "CONFIRM-CHANGE", Outcome.CONFIRMED)

        await self._at_each(self.routers, confirm_at)

    async def take_back(self) -> None:
        """Take the change back at all routers at which it was ordered, also those that did not answer."""

        async def revert_at(router: ChangedRouter) -> None:
            if router.outcome is not Outcome.WAITING:
                await self._step(router, "REVERT-CHANGE", Outcome.BACK)

        await self._at_each(self.routers, revert_at)

    async def _step(self, router: ChangedRouter, operation: str, outcome: Outcome) -> None:
        """Have a router do a step; one at which the change is not open has done it."""
        try:
            async with self._node.open_other(router.id, edge=router.edge) as other:
                await other.call_self(operation, change=self.id)
        except StatusError as refused:
            if refused.kind != _NOT_OPEN:
                router.why = reason_of(refused)
                return
        except FAILURES as failure:
            router.why = reason_of(failure)
            return
        if router.outcome is not Outcome.REFUSED:
            router.outcome, router.why = outcome, ""

    def _has_failed(self) -> bool:
        return any(router.outcome in {Outcome.UNKNOWN, Outcome.REFUSED} for router in self.routers)

    async def _at_each(
        self, routers: Iterable[ChangedRouter], work: Callable[[ChangedRouter], Awaitable[None]]
    ) -> None:
        async def at(router: ChangedRouter) -> None:
            async with self._places:
                await work(router)

        async with trio.open_nursery() as nursery:
            for router in routers:
                nursery.start_soon(at, router)


def groups_of(routers: Sequence[ChangedRouter], connected: str, *, edges_first: bool) -> list[list[ChangedRouter]]:
    """Return the routers in the order of the change: interior ones, edge routers, and the connected one at last."""
    others = [router for router in routers if router.id != connected]
    edges = [router for router in others if router.edge]
    interiors = [router for router in others if not router.edge]
    groups = [edges, interiors] if edges_first else [interiors, edges]
    return [*groups, [router for router in routers if router.id == connected]]


def ways_changed(checked: Iterable[CheckedRouter], connected: str) -> list[str]:
    """Return what a change updates or deletes that the operator's own way to the routers may go through."""
    found = []
    for each in checked:
        for part in ("updated", "deleted"):
            for line in (each.plan or {}).get(part) or ():
                rights = _RIGHTS[part] if each.router == connected else ("policy",)
                if str(line).startswith((*_WAYS, *rights)):
                    found.append(f"{each.router}: {formats.plain(line)} would be {part}")
    return found
