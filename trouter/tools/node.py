"""A client of management nodes: requests on one link, answers on another, paired by correlation-id."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from itertools import count as counting
from typing import Any, Final

from trouter.client import ACCEPTED, Connection, Message, Properties, Receiver, Sender

from .dialling import dialled, in_time, tool_error
from .failures import ConnectionException, Incomplete, MalformedAnswer, status_error
from .formats import plain
from .options import ConnectionOptions
from .words import PREFIX

#: Rows requested at a time.
PAGE_ROWS: Final = 500
#: Rows of a table that has no end to be seen: a router that sends more of them is not believed.
MAX_ROWS: Final = 1_000_000
#: The same in bytes, as they came.
MAX_TABLE_BYTES: Final = 256 << 20
#: A longer answer, of one page, ends the link: a router sends some hundred kilobytes.
MAX_ANSWER_BYTES: Final = 16 << 20
#: Limit of the answers that have arrived and are not read: one is waited for at a time, and a late one may come before.
_CREDIT: Final = 2
_MANAGEMENT_TYPE: Final = "org.amqp.management"


@dataclass(slots=True)
class Table:
    """Rows of entities; `rows` hold their values in the order of `names`."""

    names: list[str]
    rows: list[list[Any]]

    def dicts(self) -> list[dict[str, Any]]:
        """Return each row as a map, without nulls."""
        return [
            {name: value for name, value in zip(self.names, row, strict=True) if value is not None} for row in self.rows
        ]


class NodeClient:
    """A management node; made by `open_node`. Any failure of a call is one of failures.py."""

    def __init__(self, options: ConnectionOptions, connection: Connection, sender: Sender, receiver: Receiver) -> None:
        self._options = options
        self._connection = connection
        self._sender = sender
        self._receiver = receiver
        self._numbers = counting(1)
        #: The number of workers that answer as one router, by the last answer; 0 for one of one process.
        self.workers = 0
        #: The length of the last answer.
        self.answer_bytes = 0
        self._incomplete = ""

    @property
    def router_id(self) -> str:
        """The id of the router that answers: the one that the options name, else the connected one."""
        return self._options.router or self._options.edge_router or self._connection.remote.container_id

    @property
    def timeout_s(self) -> float:
        """How long one answer is waited for, in seconds."""
        return self._options.timeout_s

    def take_incomplete(self) -> str:
        """Return what the answers since the last call lacked, empty for nothing: those of the workers that it names."""
        found, self._incomplete = self._incomplete, ""
        return found

    def check_complete(self) -> None:
        """Check that all workers of the router have answered since the last look at it; Incomplete."""
        if found := self.take_incomplete():
            raise Incomplete(found)

    async def query(self, type: str = "", attributes: Sequence[str] = (), limit: int = 0) -> Table:  # noqa: A002
        """Return the entities of a type, or of all; `limit` rows at most, if not 0."""
        table = Table([], [])
        async for page in self.pages(type, attributes, limit):
            table.names = table.names or page.names
            table.rows += page.rows
        return table

    async def pages(
        self,
        type: str = "",  # noqa: A002
        attributes: Sequence[str] = (),
        limit: int = 0,
        max_bytes: int = 0,
    ) -> AsyncGenerator[Table]:
        """Yield the entities of a type page by page; as `query`. MalformedAnswer beyond `max_bytes`, if not 0."""
        count = octets = 0
        max_bytes = max_bytes or MAX_TABLE_BYTES
        before: list[list[Any]] = []
        while True:
            left = limit - count if limit > 0 else PAGE_ROWS
            wanted = min(PAGE_ROWS, left)
            answer = await self.call(
                "QUERY",
                type=_MANAGEMENT_TYPE,
                name="self",
                body={"attributeNames": list(attributes)},
                entityType=type or None,
                offset=count,
                count=wanted,
            )
            names, rows = _page(answer)
            if rows == before and rows:
                return  # the router ignores offset and count: another page would be the same
            count += len(rows)
            if count > MAX_ROWS:
                raise MalformedAnswer(f"the table has more than {MAX_ROWS} rows")
            octets += self.answer_bytes
            if octets > max_bytes:
                raise MalformedAnswer(f"the table {type.removeprefix(PREFIX)} has more than {max_bytes >> 10} KiB")
            yield Table(names, rows[:left] if limit > 0 else rows)
            before = rows
            if len(rows) != wanted or count == limit:
                return

    async def call(
        self,
        operation: str,
        *,
        type: str | None = None,  # noqa: A002
        name: str | None = None,
        identity: str | None = None,
        body: object = None,
        **properties: object,
    ) -> Any:
        """Return the body of the answer to a request, sent without properties that are None; StatusError if refused."""
        request = {"operation": operation, "type": type, "name": name, "identity": identity, **properties}
        number = str(next(self._numbers))
        message = Message(
            {} if body is None else body,
            Properties(to=self._options.address, reply_to=self._receiver.address, correlation_id=number),
            {key: value for key, value in request.items() if value is not None},
        )
        with tool_error(self._options), in_time(self._options, f"no answer from {self._options.address}{self._cure()}"):
            outcome = await self._sender.send(message)
            if outcome != ACCEPTED:
                raise ConnectionException(f"{self._options.address} did not take the request: {outcome}")
            answer = await self._answer(number)
        self._incomplete = _incomplete(answer) or self._incomplete
        workers = answer.application_properties.get("workers")
        self.workers = workers if isinstance(workers, int) else 0
        return _body_of(answer)

    def _cure(self) -> str:
        """Return the hint for a timeout: a request to a router that does not exist gets no refusal, only silence."""
        if not self._options.router or self._options.path:
            return ""
        return f" (is router {self._options.router} in reach? `stat -n` lists those that are)"

    async def call_self(self, operation: str, *, body: object = None, **properties: Any) -> Any:
        """Return the answer of the management node itself, as `call` does."""
        return await self.call(operation, type=_MANAGEMENT_TYPE, name="self", body=body, **properties)

    async def nodes(self) -> list[str]:
        """Return the addresses of the management nodes of the network."""
        answer = await self.call_self("GET-MGMT-NODES")
        if not isinstance(answer, list) or not all(isinstance(each, str) for each in answer):
            raise MalformedAnswer("the management nodes are not a list of addresses")
        return [str(each) for each in answer]

    async def routers(self) -> list[str]:
        """Return the ids of the routers of the network; none if the router is in no network."""
        return [address.removeprefix("amqp:/_topo/0/").removesuffix("/$management") for address in await self.nodes()]

    @asynccontextmanager
    async def of_router(self, router_id: str) -> AsyncIterator[NodeClient]:
        """Open another router's node on the same connection; use only one of these nodes at a time."""
        options = self._options.to_router(router_id)
        async with AsyncExitStack() as stack:
            with tool_error(options), in_time(options, "the router attaches no link"):
                sender = await stack.enter_async_context(self._connection.open_sender(options.address))
            other = NodeClient(options, self._connection, sender, self._receiver)
            other._numbers = self._numbers
            yield other

    @asynccontextmanager
    async def open_other(
        self, router_id: str, *, edge: bool = False, max_answer_bytes: int = 0
    ) -> AsyncIterator[NodeClient]:
        """Open another router's node on the same connection, to be used beside this one.

        A longer answer than ``max_answer_bytes``, if not 0, ends its links.
        """
        options = self._options.to_router(router_id, edge=edge)
        async with _links(options, self._connection, max_answer_bytes) as (sender, receiver):
            yield NodeClient(options, self._connection, sender, receiver)

    async def _answer(self, number: str) -> Message:
        """Return the answer with this number; drop answers to requests that were given up."""
        while True:
            delivery = await self._receiver.receive()
            message = delivery.message
            if not delivery.presettled:
                await delivery.accept()
            if str(message.properties.correlation_id) == number:
                self.answer_bytes = len(delivery.encoded)
                return message


@asynccontextmanager
async def open_node(options: ConnectionOptions) -> AsyncIterator[NodeClient]:
    """Open a connection to the management node that the options name, and close it at the end of the block."""
    async with dialled(options) as connection, _links(options, connection) as (sender, receiver):
        yield NodeClient(options, connection, sender, receiver)


@asynccontextmanager
async def _links(
    options: ConnectionOptions, connection: Connection, max_answer_bytes: int = 0
) -> AsyncIterator[tuple[Sender, Receiver]]:
    """Open the links for requests to the node that the options name, and for its answers."""
    async with AsyncExitStack() as stack:
        with tool_error(options), in_time(options, "the router attaches no link"):
            receiver = await stack.enter_async_context(
                connection.open_receiver(
                    dynamic=True, credit=_CREDIT, max_message_size=max_answer_bytes or MAX_ANSWER_BYTES
                )
            )
            sender = await stack.enter_async_context(connection.open_sender(options.address))
        yield sender, receiver


def _incomplete(answer: Message) -> str:
    """Return the description of an answer that lacks workers; else an empty text."""
    properties = answer.application_properties
    return plain(properties.get("statusDescription") or "") if properties.get("missing") else ""


def _body_of(answer: Message) -> Any:
    """Return the body of a successful answer; StatusError for a refusal, MalformedAnswer without a status."""
    status = answer.application_properties.get("statusCode")
    if not isinstance(status, int):
        raise MalformedAnswer("the answer has no status code")
    if not 200 <= status <= 299:
        raise status_error(status, str(answer.application_properties.get("statusDescription") or ""))
    return answer.body


def _page(answer: object) -> tuple[list[str], list[list[Any]]]:
    """Return the names and rows of an answer to QUERY; MalformedAnswer."""
    if isinstance(answer, dict):
        names, rows = answer.get("attributeNames"), answer.get("results")
        if (
            isinstance(names, list)
            and all(isinstance(name, str) for name in names)
            and isinstance(rows, list)
            and all(isinstance(row, list) and len(row) == len(names) for row in rows)
        ):
            return [str(name) for name in names], rows
    raise MalformedAnswer("the answer is not a table")
