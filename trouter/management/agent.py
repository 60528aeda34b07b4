"""The agent: takes requests from ``$management``, one after the other, and sends the answers.

Requests that change something wait in a line of their own, so that a slow one, such as a name that has to be resolved,
holds up other changes but no request that only reads. A request is settled when it comes in; both lines are bounded,
and what does not fit any more is released.
"""

from __future__ import annotations

import logging
from collections import OrderedDict, deque
from collections.abc import Callable
from typing import Final, Generic, TypeVar

import trio

from trouter.config.changes import ChangeRefused
from trouter.core.entry import AddressEntry
from trouter.core.inprocess import InsideMessage
from trouter.core.outcomes import RELEASED, RELEASED_STATE
from trouter.core.router import Router
from trouter.core.tenants import Tenant
from trouter.wire.errors import EncodeError

from .context import Node
from .directory import Directory, Sources
from .operations import CHANGES, perform
from .ports import REQUESTER, Control, LogBook
from .profile import Profile
from .query import Queries
from .requests import Request, read_request, shown
from .responses import Answer, compose, refusal
from .rights import Forbidden
from .status import INTERNAL_ERROR

#: Where the agent is reached on its own router; from elsewhere these are ``_topo/0/ID/...`` and ``_edge/ID/...``.
ADDRESSES: Final = ("$management", "_local/$management")
#: Where a tenant is answered as other clients are; ``$management`` shows it what is its own.
FOR_ALL: Final = "_local/$_management_internal"
#: Requests that wait, and their octets.
MAX_WAITING: Final = 1000
MAX_WAITING_BYTES: Final = 16 * 1024 * 1024
#: Requests of one tenant that wait; and tenants for whom it is remembered where their listings are.
MAX_WAITING_OF_TENANT: Final = 100
MAX_DESKS: Final = 256
#: A console sends several requests at once: their answers are written together, at most so many.
MAX_TOGETHER: Final = 16
#: Answers that a receiver without credit may let pile up; further ones are thrown away.
MAX_UNREAD_BYTES: Final = 64 * 1024 * 1024

log = logging.getLogger("trouter.AGENT")
error_log = logging.getLogger("trouter.ERROR")


T = TypeVar("T")


class Line(Generic[T]):
    """Requests that wait, octets or read ones, up to a number and a size."""

    def __init__(self) -> None:
        self._waiting: deque[tuple[int, T]] = deque()
        self._size = 0
        self._bell = trio.Event()

    def put(self, item: T, size: int) -> bool:
        """Wait in line; False when there is no room."""
        if len(self._waiting) >= MAX_WAITING or (self._waiting and self._size + size > MAX_WAITING_BYTES):
            return False
        self._waiting.append((size, item))
        self._size += size
        self._bell.set()
        return True

    def __len__(self) -> int:
        return len(self._waiting)

    async def take(self) -> T:
        """Wait for the next item and return it."""
        while not self._waiting:
            self._bell = trio.Event()
            await self._bell.wait()
        size, item = self._waiting.popleft()
        self._size -= size
        return item


class Desk:
    """Where requests come in: those of one tenant, or of all clients that belong to no tenant.

    ``node`` shows what is the tenant's own, or all there is; ``tenant`` is whose addresses answers go to.
    """

    def __init__(self, node: Node, tenant: Tenant | None) -> None:
        self.node = node
        self.tenant = tenant
        #: Requests that came in here and are not answered.
        self.waiting = 0

    @property
    def full(self) -> bool:
        """A tenant takes no more of the line than its share."""
        return self.tenant is not None and self.waiting >= MAX_WAITING_OF_TENANT


class _ForAll:
    """The agent as clients reach it that may see everything."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent

    def receive(self, received: InsideMessage) -> None:
        self._agent.receive(received, shows_all=True)


class Agent:
    """The management node of one router. ``now`` tells the time as the core does, in seconds.

    ``flush`` writes out what a pass through the core left to be written.
    """

    def __init__(
        self, router: Router, control: Control, book: LogBook, now: Callable[[], float], flush: Callable[[], None]
    ) -> None:
        self._router = router
        self._now = now
        self._flush = flush
        self._profile = Profile()
        self._sources = Sources(router, control, book, now)
        self._desk = self._open_desk(None)
        #: Desks of tenants by name, and by whether they show all there is; who asked last stands last.
        self._desks: OrderedDict[tuple[str, bool], Desk] = OrderedDict()
        self._incoming: Line[tuple[Desk, bytes, int]] = Line()
        self._changes: Line[tuple[Desk, Request]] = Line()

    def _open_desk(self, tenant: Tenant | None, *, shows_all: bool = False) -> Desk:
        sources = self._sources
        seen_by = None if shows_all else tenant
        directory = Directory(sources, seen_by)
        queries = Queries(directory, self._now, self._breathe)
        node = Node(directory, queries, sources.control, sources.book, self._router, self._profile, seen_by)
        return Desk(node, tenant)

    def _desk_of(self, tenant: Tenant | None, *, shows_all: bool) -> Desk:
        """Return where requests of this tenant, or of no tenant, are taken."""
        if tenant is None:
            return self._desk
        key = (tenant.name, shows_all)
        desk = self._desks.get(key)
        if desk is None or desk.tenant is not tenant:
            desk = self._desks[key] = self._open_desk(tenant, shows_all=shows_all)
        self._desks.move_to_end(key)
        if len(self._desks) > MAX_DESKS:
            self._desks.popitem(last=False)
        return desk

    async def run(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Serve until cancelled."""
        subscriptions = [self._router.subscribe(address, self) for address in ADDRESSES]
        subscriptions.append(self._router.subscribe(FOR_ALL, _ForAll(self)))
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._serve)
                nursery.start_soon(self._serve_changes)
                task_status.started()
        finally:
            for subscription in subscriptions:
                self._router.unsubscribe(subscription)

    @property
    def idle(self) -> bool:
        """Whether no request waits."""
        return not (len(self._incoming) or len(self._changes))

    def receive(self, received: InsideMessage, *, shows_all: bool = False) -> None:
        """Take a request: it is accepted at once, whatever it will be answered, unless there is no room for it.

        ``shows_all``: a tenant sees everything that others see, and not only what is its own.
        """
        desk = self._desk_of(received.tenant, shows_all=shows_all)
        if not desk.full and self._incoming.put((desk, received.message, received.origin), len(received.message)):
            desk.waiting += 1
            received.settle()
        else:
            received.settle(RELEASED, RELEASED_STATE)

    async def _serve(self) -> None:
        taken = 0
        while True:
            if taken % MAX_TOGETHER == 0 or not len(self._incoming):
                self._flush()
            taken += 1
            desk, data, origin = await self._incoming.take()
            desk.waiting -= 1
            request = read_request(data)
            request.origin = origin
            if not self._is_awaited(desk, request):
                continue
            operation = request.properties.get("operation")
            if isinstance(operation, str) and operation.upper() in CHANGES and desk.node.tenant is None:
                if not self._changes.put((desk, request), len(data)):
                    self._reply(desk, request, refusal(INTERNAL_ERROR, "too many changes are waiting; try again later"))
                continue
            await self._handle(desk, request)
            await trio.lowlevel.checkpoint()

    async def _serve_changes(self) -> None:
        while True:
            desk, request = await self._changes.take()
            await self._handle(desk, request)
            self._flush()

    def _is_awaited(self, desk: Desk, request: Request) -> bool:
        """Return whether the answer has a receiver; if not, the request is dropped, as its refusal would go unread."""
        if not request.reply_to:
            log.debug("Agent request without a usable reply-to dropped: %s", request.summary())
            return False
        entry = self._router.table.find(request.reply_to.encode(), tenant=desk.tenant)
        if entry is None or entry.destinations() == 0:
            log.debug("Agent request dropped, no receiver listens on its reply-to: %s", request.summary())
            return False
        if not self._may_answer_at(entry, desk, request):
            desk.node.control.denied(request.origin, f"reply-to {request.reply_to}")
            return False
        return True

    def _may_answer_at(self, entry: AddressEntry, desk: Desk, request: Request) -> bool:
        """Refuse a reply-to that the requester may not send to, unless the requester is its only receiver."""
        forwarder, origin = entry.forwarder, request.origin
        closed = forwarder.standing or bool(forwarder.subscriptions)
        if not closed and all(each.connection_number == origin for each in forwarder.consumers):
            return True
        return desk.node.control.may_send(origin, request.reply_to)

    async def _handle(self, desk: Desk, request: Request) -> None:
        log.debug("Agent request %s", request.summary())
        self._reply(desk, request, await self._answer(desk.node, request))

    async def _answer(self, node: Node, request: Request) -> Answer:
        self._set_clock()
        REQUESTER.set(request.origin)
        try:
            with self._profile.working():
                return await perform(node, request)
        except Forbidden as refused:
            node.control.denied(request.origin, request.summary())
            return self._refuse(request, refused.status, refused.description)
        except ChangeRefused as refused:
            return self._refuse(request, refused.status, refused.description)
        except EncodeError as error:
            return self._refuse(request, INTERNAL_ERROR, f"the answer cannot be encoded in AMQP: {error}")
        except Exception:  # noqa: BLE001 - it is logged with its traceback
            error_log.exception("internal error in a management request")
            return self._refuse(request, INTERNAL_ERROR, "internal error; the log of the router has the details")

    def _refuse(self, request: Request, status: int, description: str) -> Answer:
        operation = request.properties.get("operation")
        log.error("Error performing %s: %s", shown(operation) if operation else "a request", description)
        return refusal(status, description)

    def _reply(self, desk: Desk, request: Request, given: Answer) -> None:
        message = compose(request, given)
        operation = request.properties.get("operation")
        log.debug("Agent response: %d to %s, %d octets", given.status, shown(operation), len(message))
        if self._unread_bytes(desk, request.reply_to) + len(message) > MAX_UNREAD_BYTES:
            log.warning(
                "Agent response dropped: its receiver has not read more than %d octets of earlier responses",
                MAX_UNREAD_BYTES,
            )
            return
        self._set_clock()
        self._router.send(request.reply_to, message, desk.tenant)

    def _set_clock(self) -> None:
        """Give the core the time, by which it counts seconds and when a delivery came."""
        self._router.pulse.now_s = self._now()

    def _unread_bytes(self, desk: Desk, address: str) -> int:
        """Return octets that wait for credit at an address."""
        entry = self._router.table.find(address.encode(), tenant=desk.tenant)
        if entry is None:
            return 0
        waiting = (
            delivery.message.held
            for egress in entry.forwarder.consumers
            for delivery in egress.queue
            if delivery.message is not None
        )
        return sum(waiting)

    async def _breathe(self) -> None:
        """Let other tasks have a turn, and the answers before this one leave."""
        self._profile.rest()
        self._flush()
        await trio.lowlevel.checkpoint()
        self._profile.work()
