"""The agent: processes requests to ``$management``, one after the other, and sends the answers.

Requests that change something wait in a queue of their own, so that a slow one, such as a name to resolve, delays other
changes but no request that only reads. A request is settled on arrival; both queues are bounded, and a request without
room is released.
"""

from __future__ import annotations

import logging
from collections import OrderedDict, deque
from collections.abc import Callable
from typing import Final, Generic, TypeVar

import trio

from trouter._bell import Bell
from trouter.config.changes import ChangeRefused
from trouter.core.entry import AddressEntry
from trouter.core.inprocess import InsideMessage
from trouter.core.outcomes import RELEASED, RELEASED_STATE
from trouter.core.router import Router
from trouter.core.tenants import Tenant
from trouter.wire.errors import EncodeError

from .context import Node
from .directory import Directory, Sources
from .operations import CHANGES, LOGGED, perform
from .ports import REQUESTER, ControlPort, LogBookPort
from .profile import WorkProfile
from .query import Queries
from .requests import Request, read_request, shown
from .responses import OperationResult, compose, refusal
from .rights import Forbidden
from .status import INTERNAL_ERROR

#: The agent's addresses on its own router; from elsewhere they are ``_topo/0/ID/...`` and ``_edge/ID/...``.
ADDRESSES: Final = ("$management", "_local/$management")
#: Where tenants get the answers of other clients; ``$management`` shows a tenant only its own.
FOR_ALL: Final = "_local/$_management_internal"
#: The most requests that wait, and their bytes.
MAX_WAITING: Final = 1000
MAX_WAITING_BYTES: Final = 16 * 1024 * 1024
#: The most waiting requests of one tenant; and the tenants whose desks are kept.
MAX_WAITING_OF_TENANT: Final = 100
MAX_DESKS: Final = 256
#: The most answers that are written together: a console sends several requests at once.
MAX_TOGETHER: Final = 16
#: Answers that may wait for a receiver without credit, in bytes; further ones are dropped.
MAX_UNREAD_BYTES: Final = 64 * 1024 * 1024

log = logging.getLogger("trouter.AGENT")
error_log = logging.getLogger("trouter.ERROR")


T = TypeVar("T")


class RequestQueue(Generic[T]):
    """A queue of requests, as bytes or parsed, bounded in number and bytes."""

    def __init__(self) -> None:
        self._waiting: deque[tuple[int, T]] = deque()
        self._size = 0
        self._bell = Bell()

    def put(self, item: T, size: int) -> bool:
        """Add an item; return False if there is no room."""
        if len(self._waiting) >= MAX_WAITING or (self._waiting and self._size + size > MAX_WAITING_BYTES):
            return False
        self._waiting.append((size, item))
        self._size += size
        self._bell.ring()
        return True

    def __len__(self) -> int:
        return len(self._waiting)

    async def take_item(self) -> T:
        """Wait for the next item, and return it."""
        while not self._waiting:
            await self._bell.wait()
        size, item = self._waiting.popleft()
        self._size -= size
        return item


class Desk:
    """The entry for requests: of one tenant, or of all clients without a tenant.

    ``node`` shows the tenant's own entities, or all; ``tenant`` is the one whose addresses the answers go to.
    """

    def __init__(self, node: Node, tenant: Tenant | None) -> None:
        self.node = node
        self.tenant = tenant
        #: Requests that wait to be answered.
        self.waiting = 0

    @property
    def full(self) -> bool:
        """True if a tenant has as many requests waiting as it may."""
        return self.tenant is not None and self.waiting >= MAX_WAITING_OF_TENANT


class _ForAll:
    """The agent at its address for all clients, also of tenants, which shows everything."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent

    def receive(self, received: InsideMessage) -> None:
        self._agent.receive(received, shows_all=True)


class Agent:
    """The management node of one router. ``now`` returns the core's time in seconds.

    ``flush`` writes the output that a pass through the core left.
    """

    def __init__(
        self,
        router: Router,
        control: ControlPort,
        book: LogBookPort,
        now: Callable[[], float],
        flush: Callable[[], None],
    ) -> None:
        self._router = router
        self._now = now
        self._flush = flush
        self._profile = WorkProfile()
        self._sources = Sources(router, control, book, now)
        self._desk = self._open_desk(None)
        #: Desks by tenant and by whether they show everything, the last used at the end.
        self._desks: OrderedDict[tuple[str, bool], Desk] = OrderedDict()
        self._incoming: RequestQueue[tuple[Desk, bytes, int]] = RequestQueue()
        self._changes: RequestQueue[tuple[Desk, Request]] = RequestQueue()

    def _open_desk(self, tenant: Tenant | None, *, shows_all: bool = False) -> Desk:
        sources = self._sources
        seen_by = None if shows_all else tenant
        directory = Directory(sources, seen_by)
        queries = Queries(directory, self._now, self._breathe)
        node = Node(directory, queries, sources.control, sources.book, self._router, self._profile, seen_by)
        return Desk(node, tenant)

    def _desk_of(self, tenant: Tenant | None, *, shows_all: bool) -> Desk:
        """Return the desk for requests of this tenant, or of none."""
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
        """True if no request waits."""
        return not (len(self._incoming) or len(self._changes))

    def receive(self, received: InsideMessage, *, shows_all: bool = False) -> None:
        """Accept a request, whatever its answer will be; release it if there is no room.

        ``shows_all``: a tenant sees everything that others see, and not only its own.
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
            desk, data, origin = await self._incoming.take_item()
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
            desk, request = await self._changes.take_item()
            await self._handle(desk, request)
            self._flush()

    def _is_awaited(self, desk: Desk, request: Request) -> bool:
        """Return whether the answer has a receiver; if not, the request is dropped, as no refusal would be read."""
        if not request.reply_to:
            log.debug("Agent request without a usable reply-to dropped: %s", request.summary(LOGGED))
            return False
        entry = self._router.table.find_entry(request.reply_to.encode(), tenant=desk.tenant)
        if entry is None or entry.count_destinations() == 0:
            log.debug("Agent request dropped, no receiver listens on its reply-to: %s", request.summary(LOGGED))
            return False
        if not self._may_answer_at(entry, desk, request):
            desk.node.control.running.denied(request.origin, f"reply-to {request.reply_to}")
            return False
        return True

    def _may_answer_at(self, entry: AddressEntry, desk: Desk, request: Request) -> bool:
        """Return whether the requester may send to its reply-to, or is its only receiver."""
        forwarder, origin = entry.forwarder, request.origin
        closed = forwarder.is_exchange or bool(forwarder.subscriptions)
        if not closed and all(each.connection_number == origin for each in forwarder.consumers):
            return True
        return desk.node.control.running.may_send(origin, request.reply_to)

    async def _handle(self, desk: Desk, request: Request) -> None:
        log.debug("Agent request %s", request.summary(LOGGED))
        self._reply(desk, request, await self._answer(desk.node, request))

    async def _answer(self, node: Node, request: Request) -> OperationResult:
        self._set_clock()
        REQUESTER.set(request.origin)
        try:
            with self._profile.working():
                return await perform(node, request)
        except Forbidden as refused:
            node.control.running.denied(request.origin, request.summary(LOGGED))
            return self._refuse(request, refused.status, refused.description)
        except ChangeRefused as refused:
            return self._refuse(request, refused.status, refused.description)
        except EncodeError as error:
            return self._refuse(request, INTERNAL_ERROR, f"the answer cannot be encoded in AMQP: {error}")
        except Exception:  # noqa: BLE001 - it is logged with its traceback
            error_log.exception("internal error in a management request")
            return self._refuse(request, INTERNAL_ERROR, "internal error; the log of the router has the details")

    def _refuse(self, request: Request, status: int, description: str) -> OperationResult:
        operation = request.properties.get("operation")
        log.error("Error performing %s: %s", shown(operation) if operation else "a request", description)
        return refusal(status, description)

    def _reply(self, desk: Desk, request: Request, given: OperationResult) -> None:
        message = compose(request, given)
        operation = request.properties.get("operation")
        log.debug("Agent response: %d to %s, %d bytes", given.status, shown(operation), len(message))
        if self._unread_bytes(desk, request.reply_to) + len(message) > MAX_UNREAD_BYTES:
            log.warning(
                "Agent response dropped: its receiver has not read more than %d bytes of earlier responses",
                MAX_UNREAD_BYTES,
            )
            return
        self._set_clock()
        self._router.send_message(request.reply_to, message, desk.tenant)

    def _set_clock(self) -> None:
        """Set the core's clock, from which it takes seconds and arrival times."""
        self._router.shared.now_s = self._now()

    def _unread_bytes(self, desk: Desk, address: str) -> int:
        """Return the bytes that wait for credit at an address."""
        entry = self._router.table.find_entry(address.encode(), tenant=desk.tenant)
        if entry is None:
            return 0
        waiting = (
            delivery.message.held
            for outgoing in entry.forwarder.consumers
            for delivery in outgoing.queue
            if delivery.message is not None
        )
        return sum(waiting)

    async def _breathe(self) -> None:
        """Let other tasks run, and send the earlier answers."""
        self._profile.rest()
        self._flush()
        await trio.lowlevel.checkpoint()
        self._profile.work()
