"""The agent: processes requests to ``$management``, one after the other, and sends the answers.

Requests that change something wait in a queue of their own, and so do those that check a file, so that a slow one, such
as a name to resolve, delays others of the kind and no others. A request is settled on arrival; the queues are bounded,
and a request without room is released.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

import trio

from trouter._bugs import BUGS
from trouter.config.changes import ChangeRefused, Why
from trouter.config.workers import FIRST
from trouter.core.entry import AddressEntry
from trouter.core.inprocess import InsideMessage
from trouter.core.outcomes import RELEASED, RELEASED_STATE
from trouter.core.router import Router
from trouter.core.tenants import Tenant
from trouter.logs.peer_text import and_more
from trouter.net.workers import Workers
from trouter.wire.errors import EncodeError

from .context import Node
from .directory import Directory, Sources
from .operations import CHANGES, CHECKS, LOGGED, perform
from .ports import REQUESTER, REQUESTER_ELSEWHERE, ControlPort, LogBookPort
from .profile import WorkProfile
from .providers.parted import WorkerPart
from .query import MAX_VALUES, Queries
from .requests import Request, read_request, reply_to_of, shown
from .responses import OperationResult, compose, refusal
from .rights import Forbidden
from .sibling import decode_request, encode_result
from .status import INTERNAL_ERROR, NOT_FOUND
from .to_workers import BY_FIRST, perform_first
from .waiting import Requester, RequestQueue
from .whole import AllWorkers

#: The agent's addresses on its own router; from elsewhere the second is ``_topo/0/ID/...`` and ``_edge/ID/...``. Of
#: a router with several workers, the first is that of the whole router, the second that of one worker.
FOR_WHOLE: Final = "$management"
FOR_ONE: Final = "_local/$management"
#: Where tenants get the answers of other clients; ``$management`` shows a tenant only its own.
FOR_ALL: Final = "_local/$_management_internal"
#: Requests to a router with several workers that are answered at the same time: each waits for the other workers.
WHOLE_AT_ONCE: Final = 8
#: The most waiting requests of one tenant; and the tenants whose desks are kept.
MAX_WAITING_OF_TENANT: Final = 100
MAX_NODES: Final = 256
#: The most answers that are written together: a console sends several requests at once.
MAX_TOGETHER: Final = 16
#: Answers that may wait for a receiver without credit, in bytes; further ones are dropped.
MAX_UNREAD_BYTES: Final = 64 * 1024 * 1024

log = logging.getLogger("trouter.AGENT")

#: What a bug has ended in a request that gets no answer.
_UNANSWERED: Final = "internal error in a management request, which gets no answer"


class ServedNode:
    """The entry for requests: of one tenant, or of all clients without a tenant.

    ``node`` shows the tenant's own entities, or all; ``tenant`` is the one whose addresses the answers go to.
    """

    def __init__(self, node: Node, tenant: Tenant | None, whole: AllWorkers | None = None) -> None:
        self.node = node
        self.tenant = tenant
        #: The router with all of its workers, of which the node is a part; None for a node that is asked alone.
        self.whole = whole
        #: Requests that wait to be answered.
        self.waiting = 0

    @property
    def full(self) -> bool:
        """True if a tenant has as many requests waiting as it may."""
        return self.tenant is not None and self.waiting >= MAX_WAITING_OF_TENANT


class NodeAddress:
    """The agent at one of its addresses.

    ``shows_all``: a tenant sees everything that others see, and not only its own. ``is_whole``: the answers are those
    of all workers, if the router has several.
    """

    def __init__(self, agent: Agent, *, shows_all: bool = False, is_whole: bool = False) -> None:
        self._agent = agent
        self._shows_all = shows_all
        self._is_whole = is_whole

    def receive(self, received: InsideMessage) -> None:
        self._agent.receive(received, shows_all=self._shows_all, is_whole=self._is_whole)


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
        workers: Workers | None = None,
    ) -> None:
        """``workers`` are those of a router of several processes."""
        self._router = router
        self._workers = workers
        self._whole = None if workers is None else AllWorkers(workers)
        self._now = now
        self._flush = flush
        self._profile = WorkProfile()
        self._sources = Sources(router, control, book, now)
        #: Nodes by tenant and by whether they show everything, the last used at the end.
        self._nodes: OrderedDict[tuple[str, bool, bool], ServedNode] = OrderedDict()
        whole = None if workers is None else self._make_node(None, is_whole=True)  # it gives out the first numbers
        self._node = self._make_node(None)
        self._node_of_all = whole or self._node
        self._incoming: RequestQueue[tuple[ServedNode, bytes, int]] = RequestQueue(self._push_out)
        self._changes = RequestQueue(self._refuse_for_room)
        self._checks = RequestQueue(self._refuse_for_room)
        #: Requests that the other workers answer too.
        self._shared = RequestQueue(self._refuse_for_room)

    def _make_node(self, tenant: Tenant | None, *, shows_all: bool = False, is_whole: bool = False) -> ServedNode:
        sources = self._sources
        seen_by = None if shows_all else tenant
        part, max_values = None, MAX_VALUES
        if is_whole and self._workers is not None:
            number, ids = self._workers.number, self._workers.ids
            part = WorkerPart(number, frozenset(each for place, each in ids.items() if place != number))
            max_values //= len(ids)
        directory = Directory(sources, seen_by, part)
        queries = Queries(directory, self._now, self._let_others_run, max_values)
        node = Node(directory, queries, sources.control, sources.book, self._router, self._profile, seen_by)
        return ServedNode(node, tenant, self._whole if is_whole else None)

    def _find_node(self, tenant: Tenant | None, *, shows_all: bool, is_whole: bool) -> ServedNode:
        """Return the node for requests of this tenant, or of none."""
        if tenant is None:
            return self._node_of_all if is_whole else self._node
        key = (tenant.name, shows_all, is_whole)
        served = self._nodes.get(key)
        if served is None or served.tenant is not tenant:
            served = self._nodes[key] = self._make_node(tenant, shows_all=shows_all, is_whole=is_whole)
        self._nodes.move_to_end(key)
        if len(self._nodes) > MAX_NODES:
            self._nodes.popitem(last=False)
        return served

    async def run(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Serve until cancelled."""
        entrances = {
            FOR_WHOLE: NodeAddress(self, is_whole=True),
            FOR_ONE: NodeAddress(self),
            FOR_ALL: NodeAddress(self, shows_all=True),
        }
        subscriptions = [self._router.inside.subscribe(address, each) for address, each in entrances.items()]
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._serve)
                nursery.start_soon(self._serve_queue, self._changes)
                nursery.start_soon(self._serve_queue, self._checks)
                for _ in range(WHOLE_AT_ONCE if self._whole is not None else 0):
                    nursery.start_soon(self._serve_queue, self._shared)
                task_status.started()
        finally:
            for subscription in subscriptions:
                self._router.inside.unsubscribe(subscription)

    @property
    def idle(self) -> bool:
        """True if no request waits."""
        queues = self._incoming, self._changes, self._checks, self._shared
        return not any(len(each) for each in queues)

    def receive(self, received: InsideMessage, *, shows_all: bool = False, is_whole: bool = False) -> None:
        """Accept a request, whatever its answer will be; release it if there is no room; see ``NodeAddress``."""
        if received.tenant is not None and not shows_all:  # its `$management` is the address that others ask one by
            is_whole = True
        served = self._find_node(received.tenant, shows_all=shows_all, is_whole=is_whole)
        item = served, received.message, received.origin
        requester = self._requester(received.origin, received.message)
        if not served.full and self._incoming.put(item, len(received.message), requester):
            served.waiting += 1
            received.settle()
        else:
            received.settle(RELEASED, RELEASED_STATE)

    async def _serve(self) -> None:
        taken = 0
        while True:
            if taken % MAX_TOGETHER == 0 or not len(self._incoming):
                self._flush()
            taken += 1
            served, data, origin = await self._incoming.take_item()
            served.waiting -= 1
            with BUGS.contained(_UNANSWERED):
                await self._begin_request(served, data, origin)
            await trio.lowlevel.checkpoint()

    async def _begin_request(self, served: ServedNode, data: bytes, origin: int) -> None:
        """Answer a request, or queue it for the tasks that change, check, or ask other workers."""
        request = read_request(data)
        request.origin = origin
        if not self._is_awaited(served, request):
            return
        queue = self._queue_of(served, request)
        if queue is None:
            await self._handle(served, request)
        elif not queue.put((served, request), len(data), self._requester(origin, data)):
            self._refuse_for_room((served, request))

    def _push_out(self, waiting: tuple[ServedNode, bytes, int]) -> None:
        """Refuse a request that was accepted, and has lost its place to that of another user."""
        served, data, origin = waiting
        served.waiting -= 1
        with BUGS.contained(_UNANSWERED):
            request = read_request(data)
            request.origin = origin
            if self._is_awaited(served, request):
                self._refuse_for_room((served, request))

    def _refuse_for_room(self, waiting: tuple[ServedNode, Request]) -> None:
        served, request = waiting
        self._reply(served, request, refusal(INTERNAL_ERROR, "too many such requests are waiting; try again later"))

    def _queue_of(self, served: ServedNode, request: Request) -> RequestQueue[tuple[ServedNode, Request]] | None:
        """Return the queue in which a request waits; None if it is answered at once."""
        if served.node.tenant is None and request.asks_for(CHANGES):
            return self._changes
        if served.node.tenant is None and request.asks_for(CHECKS):
            return self._checks
        return None if served.whole is None else self._shared

    async def _serve_queue(self, queue: RequestQueue[tuple[ServedNode, Request]]) -> None:
        while True:
            served, request = await queue.take_item()
            with BUGS.contained(_UNANSWERED):
                await self._handle(served, request)
            self._flush()

    async def answer_worker(self, octets: bytes) -> bytes:
        """Return the answer to a request of another worker, for which this one is a part of the router."""
        request, tenant_name = decode_request(octets)
        tenant = self._router.table.tenants.get(tenant_name) if tenant_name else None
        if tenant_name and tenant is None:
            return encode_result(refusal(NOT_FOUND, "no client of the tenant is connected here", Why.ABSENT))
        node = self._find_node(tenant, shows_all=False, is_whole=True).node
        return encode_result(await self._answer(node, request))

    def _requester(self, origin: int, data: bytes) -> Requester:
        user = self._sources.control.running.user_key(origin)
        return Requester(origin, reply_to_of(data)) if user is None else Requester(user, origin)

    def _is_awaited(self, served: ServedNode, request: Request) -> bool:
        """Return whether the answer has a receiver; if not, the request is dropped, as no refusal would be read."""
        if not request.reply_to:
            log.debug("Agent request without a usable reply-to dropped: %s", request.summary(LOGGED))
            return False
        entry = self._router.table.find_entry(request.reply_to.encode(), tenant=served.tenant)
        if entry is None or entry.count_destinations() == 0:
            log.debug("Agent request dropped, no receiver listens on its reply-to: %s", request.summary(LOGGED))
            return False
        if not self._may_answer_at(entry, served, request):
            served.node.control.running.denied(request.origin, f"reply-to {request.reply_to}")
            return False
        return True

    def _may_answer_at(self, entry: AddressEntry, served: ServedNode, request: Request) -> bool:
        """Return whether the requester may send to its reply-to, or is its only receiver."""
        forwarder, origin = entry.forwarder, request.origin
        closed = forwarder.is_exchange or bool(forwarder.subscriptions) or bool(forwarder.remotes)
        if not closed and all(each.connection_number == origin for each in forwarder.consumers):
            return True
        return served.node.control.running.may_send(origin, request.reply_to)

    async def _handle(self, served: ServedNode, request: Request) -> None:
        log.debug("Agent request %s", request.summary(LOGGED))
        self._reply(served, request, await self._answer(served.node, request, served.whole))

    async def _answer(self, node: Node, request: Request, whole: AllWorkers | None = None) -> OperationResult:
        self._set_clock()
        REQUESTER.set(request.origin)
        REQUESTER_ELSEWHERE.set(request.requester)
        try:
            if whole is not None:  # it waits for the other workers: that is no work
                return await whole.perform(node, request)
            if request.granted is not None:
                return await self._answer_part(node, request)
            return await perform(node, request)
        except Forbidden as refused:
            if request.granted is None:  # else the worker that the requester asked notes it
                node.control.running.denied(request.origin, request.summary(LOGGED))
            return self._refuse(node, request, refused.status, refused.description, refused.why)
        except ChangeRefused as refused:
            return self._refuse(node, request, refused.status, refused.description, refused.why)
        except EncodeError as error:
            return self._refuse(node, request, INTERNAL_ERROR, f"the answer cannot be encoded in AMQP: {error}")
        except Exception as error:  # noqa: BLE001 - it is reported
            BUGS.report("internal error in a management request", error)
            return self._refuse(node, request, INTERNAL_ERROR, "internal error; the log of the router has the details")

    async def _answer_part(self, node: Node, request: Request) -> OperationResult:
        """Answer a request of another worker; the first one makes changes that concern all."""
        if self._workers is not None and self._workers.number == FIRST and request.operation in BY_FIRST:
            return await perform_first(node, request, self._workers)
        return await perform(node, request)

    def _refuse(
        self, node: Node, request: Request, status: int, description: str, why: Why = Why.OTHER
    ) -> OperationResult:
        operation = request.properties.get("operation")
        what = f"Error performing {shown(operation) if operation else 'a request'}: {description}"
        node.control.running.tell_repeated(request.origin, "refused requests", lambda count: _log_error(what, count))
        return refusal(status, description, why)

    def _reply(self, served: ServedNode, request: Request, given: OperationResult) -> None:
        workers = 0 if served.whole is None or self._workers is None else len(self._workers.ids)
        message = compose(request, given, workers)
        operation = request.properties.get("operation")
        log.debug("Agent response: %d to %s, %d bytes", given.status, shown(operation), len(message))
        if self._unread_bytes(served, request.reply_to) + len(message) > MAX_UNREAD_BYTES:
            served.node.control.running.tell_repeated(request.origin, "dropped answers", _log_dropped)
            return
        self._set_clock()
        self._router.inside.send_message(request.reply_to, message, served.tenant)

    def _set_clock(self) -> None:
        """Set the core's clock, from which it takes seconds and arrival times."""
        self._router.shared.now_s = self._now()

    def _unread_bytes(self, served: ServedNode, address: str) -> int:
        """Return the bytes that wait for credit at an address."""
        entry = self._router.table.find_entry(address.encode(), tenant=served.tenant)
        if entry is None:
            return 0
        waiting = (
            delivery.message.held
            for outgoing in entry.forwarder.consumers
            for delivery in outgoing.queue
            if delivery.message is not None
        )
        return sum(waiting)

    async def _let_others_run(self) -> None:
        """Let other tasks run, and send the earlier answers."""
        self._profile.rest()
        self._flush()
        await trio.lowlevel.checkpoint()
        self._profile.work()


def _log_error(what: str, count: int) -> None:
    """Log a refused request, the first of ``count`` of its user."""
    log.error("%s%s", what, and_more(count))


def _log_dropped(count: int) -> None:
    """Log that answers are dropped, ``count`` of them."""
    log.warning(
        "Agent response dropped: its receiver has not read more than %d bytes of earlier responses%s",
        MAX_UNREAD_BYTES,
        and_more(count),
    )
