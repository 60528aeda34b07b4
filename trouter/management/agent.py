"""The agent: takes requests from ``$management``, one after the other, and sends the answers.

Requests that change something wait in a line of their own, so that a slow one, such as a name that has to be resolved,
holds up other changes but nobody who only looks. A request is settled when it comes in; both lines are bounded, and
what does not fit any more is released.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from typing import Final

import trio

from trouter.config.changes import ChangeRefused
from trouter.core.inprocess import Received
from trouter.core.outcomes import RELEASED, RELEASED_STATE
from trouter.core.router import Router
from trouter.wire.errors import EncodeError

from .context import Node
from .directory import Directory, Sources
from .operations import CHANGES, perform
from .ports import Control, LogBook
from .profile import Profile
from .query import Queries
from .requests import Request, read_request, shown
from .responses import Answer, compose, refusal
from .status import INTERNAL_ERROR, Refusal

#: Where the agent is reached on its own router; from elsewhere these are ``_topo/0/ID/...`` and ``_edge/ID/...``.
ADDRESSES: Final = ("$management", "_local/$management", "_local/$_management_internal")
#: Requests that wait, and their octets.
MAX_WAITING: Final = 1000
MAX_WAITING_BYTES: Final = 16 * 1024 * 1024
#: Answers that a receiver without credit may let pile up; further ones are thrown away.
MAX_UNREAD_BYTES: Final = 64 * 1024 * 1024

log = logging.getLogger("trouter.AGENT")


class Line:
    """Requests that wait, octets or read ones, up to a number and a size."""

    def __init__(self) -> None:
        self._waiting: deque[tuple[int, object]] = deque()
        self._size = 0
        self._bell = trio.Event()

    def put(self, item: object, size: int) -> bool:
        """Wait in line; False when there is no room."""
        if len(self._waiting) >= MAX_WAITING or (self._waiting and self._size + size > MAX_WAITING_BYTES):
            return False
        self._waiting.append((size, item))
        self._size += size
        self._bell.set()
        return True

    def __len__(self) -> int:
        return len(self._waiting)

    async def take(self) -> object:
        """The next one, when there is one."""
        while not self._waiting:
            self._bell = trio.Event()
            await self._bell.wait()
        size, item = self._waiting.popleft()
        self._size -= size
        return item


class Agent:
    """The management node of one router. ``now`` tells the time as the core does, in seconds.

    ``flush`` writes out what a pass through the core left to be written.
    """

    def __init__(
        self,
        router: Router,
        control: Control,
        book: LogBook,
        now: Callable[[], float],
        flush: Callable[[], None],
    ) -> None:
        self._router = router
        self._now = now
        self._flush = flush
        self._profile = Profile()
        directory = Directory(Sources(router, control, book, now))
        queries = Queries(directory, now, self._breathe)
        self._node = Node(directory, queries, control, book, router, self._profile)
        self._incoming = Line()
        self._changes = Line()

    async def run(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Serve until cancelled."""
        subscriptions = [self._router.subscribe(address, self) for address in ADDRESSES]
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
        """Nothing waits to be done."""
        return not (len(self._incoming) or len(self._changes))

    def receive(self, received: Received) -> None:
        """A request came: accepted at once, whatever it will be answered, unless there is no room for it."""
        if self._incoming.put(received.message, len(received.message)):
            received.settle()
        else:
            received.settle(RELEASED, RELEASED_STATE)

    async def _serve(self) -> None:
        while True:
            data = await self._incoming.take()
            assert isinstance(data, bytes)  # noqa: S101 - nothing else is put there
            request = read_request(data)
            if not self._is_awaited(request):
                continue
            operation = request.properties.get("operation")
            if isinstance(operation, str) and operation.upper() in CHANGES:
                if not self._changes.put(request, len(data)):
                    self._reply(request, refusal(INTERNAL_ERROR, "too many changes wait to be made"))
                continue
            await self._handle(request)
            await trio.lowlevel.checkpoint()

    async def _serve_changes(self) -> None:
        while True:
            request = await self._changes.take()
            assert isinstance(request, Request)  # noqa: S101 - nothing else is put there
            await self._handle(request)

    def _is_awaited(self, request: Request) -> bool:
        """Somebody listens for the answer; the others are dropped, as nobody could hear why."""
        if not request.reply_to:
            log.debug("Agent request without a usable reply-to dropped: %s", request.summary())
            return False
        record = self._router.table.find(request.reply_to.encode())
        if record is None or record.destinations() == 0:
            log.debug("Agent request dropped, nobody listens on its reply-to: %s", request.summary())
            return False
        return True

    async def _handle(self, request: Request) -> None:
        log.debug("Agent request %s", request.summary())
        self._reply(request, await self._answer(request))

    async def _answer(self, request: Request) -> Answer:
        self._tell_time()
        try:
            with self._profile.working():
                return await perform(self._node, request)
        except Refusal as refused:
            return self._refuse(request, refused.status, refused.description)
        except ChangeRefused as refused:
            return self._refuse(request, refused.status, refused.description)
        except EncodeError as error:
            return self._refuse(request, INTERNAL_ERROR, f"the answer cannot be said in AMQP: {error}")
        except Exception:
            log.exception("internal error in a management request")
            return self._refuse(request, INTERNAL_ERROR, "internal error; the router's log says more")

    def _refuse(self, request: Request, status: int, description: str) -> Answer:
        operation = request.properties.get("operation")
        log.error("Error performing %s: %s", shown(operation) if operation else "a request", description)
        return refusal(status, description)

    def _reply(self, request: Request, given: Answer) -> None:
        message = compose(request, given)
        operation = request.properties.get("operation")
        log.debug("Agent response: %d to %s, %d octets", given.status, shown(operation), len(message))
        if self._unread_bytes(request.reply_to) + len(message) > MAX_UNREAD_BYTES:
            log.warning("Agent response dropped: its receiver has left more than %d octets unread", MAX_UNREAD_BYTES)
            return
        self._tell_time()
        self._router.send(request.reply_to, message)
        self._flush()

    def _tell_time(self) -> None:
        """What the core tells of seconds, and when it takes a delivery to have come, is true."""
        self._router.pulse.now_s = self._now()

    def _unread_bytes(self, address: str) -> int:
        """Octets that wait for credit at an address."""
        record = self._router.table.find(address.encode())
        if record is None:
            return 0
        waiting = (
            delivery.message.held
            for egress in record.forwarder.consumers
            for delivery in egress.queue
            if delivery.message is not None
        )
        return sum(waiting)

    async def _breathe(self) -> None:
        """Let everybody else have a turn."""
        self._profile.rest()
        await trio.lowlevel.checkpoint()
        self._profile.work()
