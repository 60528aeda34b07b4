"""The node that operations work on, and the types of operations."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from trouter.core.router import Router
from trouter.core.tenants import Tenant

from .directory import Directory, FoundEntity
from .ports import ControlPort, LogBookPort, Rights
from .profile import WorkProfile
from .query import Queries
from .requests import Request
from .responses import OperationResult


@dataclass(frozen=True, slots=True)
class Node:
    """One management node, as its requesters see it."""

    directory: Directory
    queries: Queries
    control: ControlPort
    book: LogBookPort
    router: Router
    profile: WorkProfile
    #: The tenant of the requester; None if it belongs to none.
    tenant: Tenant | None = None

    def rights(self, request: Request) -> Rights:
        """Return the requester's current rights."""
        if request.granted is not None:
            return request.granted
        return self.control.running.rights(request.origin)


Operation = Callable[[Node, Request], Awaitable[OperationResult]]
EntityOperation = Callable[[Node, Request, FoundEntity], Awaitable[OperationResult]]
