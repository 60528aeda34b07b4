"""Several routers, queried one after the other over one connection; one server answers for all."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest

from tests.tools.live import Ran, run, steady
from tests.tools.support import ManagementServer, reply, serving_node
from trouter.client import Message

NODES = [f"amqp:/_topo/0/{name}/$management" for name in ("A", "B/1", "C")]
#: The seconds after which a router is silent: long enough for those that answer on a busy machine.
SILENT_S = "3"
GENERAL = {"version": "1", "mode": "interior", "area": "0", "linkCount": 4, "addrCount": 12}


def router_of(request: Message) -> str:
    """Return the router that a request is for; A is the one at the other end of the connection."""
    return str(request.properties.to).removeprefix("_topo/0/").removesuffix("/$management").replace("$management", "A")


def table(row: dict[str, object]) -> dict[str, object]:
    return {"attributeNames": list(row), "results": [list(row.values())]}


def network(request: Message) -> Sequence[Message]:
    """Answer as three routers of one network."""
    asked = request.application_properties
    router = router_of(request)
    if asked["operation"] == "GET-MGMT-NODES":
        return [reply(request, NODES)]
    if asked["operation"] == "EXPLAIN":
        links = [{"link": 7, "connection": 2, "container": "reader", "credit": 0, "waitsFor": "credit"}]
        verdict = "no consumer" if router != "C" else "consumers without credit: link 7 on connection 2"
        row = {"address": asked["address"], "verdict": verdict, "consumers": links if router == "C" else []}
        return [reply(request, row)]
    if asked["entityType"].endswith(".router"):
        return [reply(request, table(GENERAL | {"id": router}))]
    return [reply(request, table({"id": router, "nextHop": None, "routerLink": 3, "lastTopoChange": None}))]


def dead(request: Message) -> Sequence[Message]:
    """Answer the same without C, which is still listed."""
    return [] if router_of(request) == "C" else network(request)


async def stat(server: ManagementServer, *options: str) -> Ran:
    async with serving_node(server):
        return await run("stat", "-b", f"127.0.0.1:{server.port}", "--timeout", "10", *options)


async def test_every_router_is_shown_in_turn() -> None:
    ran = await stat(ManagementServer(network), "-n", "--all-routers")
    assert (ran.status, ran.err) == (0, "")
    lines = ["DATE UTC"]
    for router in ("A", "B/1", "C"):
        head, row = f"{'router-id':9}  next-hop  link", f"{router:9}  -         3"
        lines += [f"Router  {router}", "", "Routers in the Network", f"  {head}", f"  {'=' * 27}", f"  {row}", ""]
    assert steady(ran.out).splitlines() == lines


async def test_why_shows_the_verdict_of_each_hop() -> None:
    ran = await stat(ManagementServer(network), "--why", "orders")
    verdicts = [line.split(maxsplit=1)[1] for line in ran.lines if line.startswith("  verdict")]
    assert verdicts == ["no consumer", "no consumer", "consumers without credit: link 7 on connection 2"]
    assert ran.out.count("Consumers") == 1


@pytest.mark.parametrize("options", [["-r", "C"], ["-d", "C"]])
async def test_why_with_a_router_option_sends_one_request_to_that_router(options: list[str]) -> None:
    server = ManagementServer(network)
    await stat(server, "--why", "orders", *options)
    asked = [
        str(each.properties.to) for each in server.requests if each.application_properties["operation"] == "EXPLAIN"
    ]
    assert asked == [f"{'_topo/0' if options[0] == '-r' else '_edge'}/C/$management"]


async def test_all_routers_as_json_are_a_list() -> None:
    ran = await stat(ManagementServer(network), "-g", "--all-routers", "--json")
    assert [each["router"] for each in json.loads(ran.out)] == ["A", "B/1", "C"]


async def test_all_routers_as_csv_are_one_table() -> None:
    ran = await stat(ManagementServer(network), "-n", "--all-routers", "--csv")
    heads, *rows = ran.lines
    assert heads == '"router","router-id","next-hop","link"'
    assert rows == ['"A","A","-","3"', '"B/1","B/1","-","3"', '"C","C","-","3"']


async def test_a_silent_router_is_no_row_of_a_csv_table() -> None:
    async with serving_node(server := ManagementServer(dead)):
        ran = await run("stat", "-b", f"127.0.0.1:{server.port}", "--timeout", SILENT_S, "-n", "--all-routers", "--csv")
    assert (ran.status, len(ran.lines)) == (1, 3)
    assert ran.err.startswith("trouter stat: no answer from ")


async def test_a_failure_names_this_machine_and_not_the_address_without_a_host() -> None:
    async with serving_node(server := ManagementServer(lambda _: [])):
        ran = await run("stat", "-b", f":{server.port}", "--timeout", SILENT_S)
    machine = f"127.0.0.1:{server.port}, this machine (-b chooses another router)"
    assert ran.err == f"trouter stat: no answer from $management within {SILENT_S} s, over {machine}\n"
    gone = await run("stat", "-b", f":{server.port}")
    assert gone.err.startswith(f"trouter stat: cannot connect to amqp://{machine}: ")


async def test_a_router_that_does_not_answer_leaves_the_others_their_answers() -> None:
    async with serving_node(server := ManagementServer(dead)):
        ran = await run("stat", "-b", f"127.0.0.1:{server.port}", "--timeout", SILENT_S, "-g", "--all-routers")
    assert ran.status == 1
    assert ran.out.count("Router Statistics") == 2
    assert ran.err.startswith("trouter stat: no answer from ")


async def test_a_router_that_does_not_answer_is_an_error_among_the_documents() -> None:
    async with serving_node(server := ManagementServer(dead)):
        ran = await run(
            "stat", "-b", f"127.0.0.1:{server.port}", "--timeout", SILENT_S, "-n", "--all-routers", "--json"
        )
    found = json.loads(ran.out)
    assert ran.status == 1
    assert ran.err.startswith("trouter stat: no answer from ")
    assert [each["router"] for each in found] == ["A", "B/1", "C"]
    assert found[2]["error"] in ran.err
    assert found[0]["tables"]["router.node"] == [{"id": "A", "nextHop": None, "routerLink": 3, "lastTopoChange": None}]


async def test_every_request_is_that_of_the_older_tool() -> None:
    server = ManagementServer(network)
    await stat(server, "-l", "--limit", "7")
    operations = [each.application_properties["operation"] for each in server.requests]
    assert operations == ["GET-MGMT-NODES", "QUERY", "QUERY"]
    links = server.requests[1]
    assert links.application_properties == {
        "operation": "QUERY",
        "type": "org.amqp.management",
        "name": "self",
        "entityType": "org.apache.qpid.dispatch.router.link",
        "offset": 0,
        "count": 7,
    }
    body = links.body
    assert isinstance(body, dict)
    assert body["attributeNames"] == [
        "linkType", "linkDir", "connectionId", "identity", "peer", "owningAddr", "capacity", "undeliveredCount",
        "unsettledCount", "deliveryCount", "presettledCount", "droppedPresettledCount", "acceptedCount",
        "rejectedCount", "releasedCount", "modifiedCount", "deliveriesDelayed1Sec", "deliveriesDelayed10Sec",
        "deliveriesStuck", "creditAvailable", "zeroCreditSeconds", "adminStatus", "operStatus", "linkName", "priority",
        "settleRate",
    ]  # fmt: skip
