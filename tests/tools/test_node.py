"""The client of management nodes: its requests, its use of answers, and its errors without one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
import trio
import trio.testing

from tests.tools.support import REPLY_ADDRESS, ManagementServer, asking, reply
from trouter.client import Message, Rejected
from trouter.tools.failures import (
    ConnectionException,
    MalformedAnswer,
    StatusError,
    Timeout,
    older_text,
)
from trouter.tools.node import PAGE_ROWS, open_node
from trouter.tools.options import ConnectionOptions

ENTITY_TYPE = "org.apache.qpid.dispatch.router.link"


def rows(count: int, first: int = 0) -> list[list[object]]:
    return [[f"{number}", number, None] for number in range(first, first + count)]


def counting(total: int) -> Callable[[Message], Sequence[Message]]:
    """Return a router that has ``total`` entities."""

    def answer(request: Message) -> Sequence[Message]:
        asked = request.application_properties
        page = rows(total)[asked["offset"] :][: asked["count"]]
        return [reply(request, {"attributeNames": ["identity", "number", "absent"], "results": page})]

    return answer


def always(**fields: Any) -> Callable[[Message], Sequence[Message]]:
    return lambda request: [reply(request, **fields)]


async def test_a_request_carries_its_operation_its_entity_and_its_reply_address() -> None:
    server = ManagementServer()
    async with asking(server) as node:
        await node.call("READ", type="t", name="n", other=None)
        await node.call("READ", type="t", identity="i", limit=5)
    first, second = server.requests
    assert first.application_properties == {"operation": "READ", "type": "t", "name": "n"}
    assert second.application_properties == {"operation": "READ", "type": "t", "identity": "i", "limit": 5}
    assert first.properties.reply_to == REPLY_ADDRESS
    assert type(first.properties.correlation_id) is str
    assert first.properties.correlation_id != second.properties.correlation_id
    assert (first.properties.to, first.body) == ("$management", {})


@pytest.mark.parametrize(
    ("options", "address"),
    [
        ({}, "$management"),
        ({"router": "R/1"}, "_topo/0/R/1/$management"),
        ({"edge_router": "E"}, "_edge/E/$management"),
        ({"path": "_local/$management", "router": "R"}, "_local/$management"),
    ],
)
async def test_the_link_goes_to_the_node_that_is_named(options: dict[str, str], address: str) -> None:
    server = ManagementServer()
    async with asking(server, **options):
        pass
    incoming = next(link for link in server.links if link.incoming)
    assert incoming.remote_attach.target.address == address


async def test_without_options_there_is_no_sasl() -> None:
    server = ManagementServer(mechanisms=("PLAIN",))
    async with asking(server):
        pass
    assert server.sasl.mechanism == ""


@pytest.mark.parametrize("total", [0, 1, PAGE_ROWS - 1, PAGE_ROWS, PAGE_ROWS + 1, 3 * PAGE_ROWS])
@pytest.mark.parametrize("limit", [0, 1, PAGE_ROWS - 1, PAGE_ROWS, PAGE_ROWS + 1, 700, 2000])
async def test_pages_make_up_the_whole_or_as_much_as_is_wanted(total: int, limit: int) -> None:
    server = ManagementServer(counting(total))
    async with asking(server) as node:
        table = await node.query(ENTITY_TYPE, ["identity"], limit)
    assert table.rows == rows(total)[: limit or None]
    asked = [request.application_properties for request in server.requests]
    assert asked[0]["count"] == min(limit or PAGE_ROWS, PAGE_ROWS)
    assert asked[0]["entityType"] == ENTITY_TYPE
    assert (asked[0]["type"], asked[0]["name"]) == ("org.amqp.management", "self")
    assert server.requests[0].body == {"attributeNames": ["identity"]}


async def test_a_map_of_a_row_has_no_nulls() -> None:
    async with asking(ManagementServer(counting(2))) as node:
        table = await node.query()
    assert table.dicts() == [{"identity": "0", "number": 0}, {"identity": "1", "number": 1}]


@pytest.mark.parametrize("total", [3, PAGE_ROWS, 1200])
@pytest.mark.parametrize("limit", [0, 2])
async def test_a_router_that_ignores_the_count_does_not_cause_endless_requests(total: int, limit: int) -> None:
    server = ManagementServer(always(body={"attributeNames": ["a", "b", "c"], "results": rows(total)}))
    async with asking(server) as node:
        assert (await node.query("t", limit=limit)).rows == rows(total)[: limit or None]


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (400, "BadRequestStatus"),
        (403, "ForbiddenStatus"),
        (404, "NotFoundStatus"),
        (500, "InternalServerErrorStatus"),
        (501, "NotImplementedStatus"),
        (299, ""),
        (999, "Code999Status"),
    ],
)
async def test_a_refusal_has_the_name_of_its_status(code: int, kind: str) -> None:
    async with asking(ManagementServer(always(status=code, description="No entity with name=X"))) as node:
        if not kind:
            await node.call("READ")
            return
        with pytest.raises(StatusError) as refused:
            await node.call("READ")
    assert older_text(refused.value) == f"{kind}: No entity with name=X"


@pytest.mark.parametrize(
    "body",
    [
        None,
        [],
        {},
        {"attributeNames": ["a"]},
        {"attributeNames": [1], "results": []},
        {"attributeNames": ["a"], "results": [["x", "y"]]},
        {"attributeNames": ["a"], "results": ["x"]},
        {"attributeNames": "a", "results": []},
    ],
)
async def test_an_answer_that_is_no_table_is_refused(body: object) -> None:
    async with asking(ManagementServer(always(body=body))) as node:
        with pytest.raises(MalformedAnswer):
            await node.query("t")


@pytest.mark.parametrize("status", [None, "200", 2.0])
async def test_an_answer_without_status_is_refused(status: object) -> None:
    async with asking(ManagementServer(always(status=status))) as node:
        with pytest.raises(MalformedAnswer):
            await node.call("READ")


@pytest.mark.parametrize("body", [None, {}, [1], "x"])
async def test_nodes_that_are_no_addresses_are_refused(body: object) -> None:
    async with asking(ManagementServer(always(body=body))) as node:
        with pytest.raises(MalformedAnswer):
            await node.nodes()


async def test_bytes_that_are_no_message_are_refused() -> None:
    server = ManagementServer()

    def answer(_: Message) -> Sequence[Message]:
        server.deliver(b"\x00\x53\x77")
        return []

    server.answer = answer
    async with asking(server) as node:
        with pytest.raises(MalformedAnswer):
            await node.call("READ")


async def test_an_answer_to_another_request_is_ignored() -> None:
    def answer(request: Message) -> Sequence[Message]:
        stray = reply(request, "stray")
        stray.properties.correlation_id = "another"
        return [stray, reply(request, "ours")]

    async with asking(ManagementServer(answer)) as node:
        assert await node.call("READ") == "ours"


async def test_no_answer_ends_in_time(mock_clock: trio.testing.MockClock) -> None:
    def silent(_: Message) -> list[Message]:
        mock_clock.jump(60.0)
        return []

    async with asking(ManagementServer(silent), timeout_s=10.0, path="somewhere") as node:
        with pytest.raises(Timeout, match="somewhere"):
            await node.call("READ")


async def test_no_credit_ends_in_time() -> None:
    server = ManagementServer()
    server.credit = 0
    with pytest.raises(Timeout):
        async with asking(server, timeout_s=0.2) as node:  # on a busy machine, attaching may take that long as well
            await node.call("READ")


async def test_links_without_an_answer_end_in_time() -> None:
    server = ManagementServer()
    server.answers_attaches = False
    with pytest.raises(Timeout):
        async with asking(server, timeout_s=0.2):
            pytest.fail("there is no link")


async def test_a_request_that_is_refused_as_a_message_is_no_answer() -> None:
    server = ManagementServer(lambda _: [])
    server.outcome = Rejected()
    async with asking(server) as node:
        with pytest.raises(ConnectionException, match="did not take"):
            await node.call("READ")


async def test_an_ended_connection_raises_disconnected() -> None:
    server = ManagementServer(lambda _: [])
    async with asking(server) as node, trio.open_nursery() as nursery:

        async def cut() -> None:
            await server.until(lambda: server.requests)
            await server.cut()

        nursery.start_soon(cut)
        with pytest.raises(ConnectionException, match=r"amqp://127\.0\.0\.1:\d+ disconnected"):
            await node.call("READ")


async def test_a_server_that_is_not_there_is_reported_at_once() -> None:
    (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
    port = listener.socket.getsockname()[1]
    await listener.aclose()
    with pytest.raises(ConnectionException) as refused:
        async with open_node(ConnectionOptions(host="127.0.0.1", port=port)):
            pytest.fail("nobody listens")
    assert str(refused.value) == f"Connection amqp://127.0.0.1:{port} disconnected: Connection refused"


async def test_a_silent_server_times_out() -> None:
    (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
    async with listener:
        options = ConnectionOptions(host="127.0.0.1", port=listener.socket.getsockname()[1], timeout_s=0.05)
        with pytest.raises(Timeout):
            async with open_node(options):
                pytest.fail("nobody answers")
