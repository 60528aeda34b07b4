"""Metrics of the addresses of a section: they count what passes, and what has gone stays counted."""

from __future__ import annotations

import trio

from tests.http.test_live import http_port, scrape
from tests.management.node import node_of
from tests.networks import client_port
from tests.routers import RunningRouter, StartRouter
from tests.waiting import until
from trouter.client import Message, Properties, Receiver, connect

CONFIGURATION = """
router { mode: standalone, id: A }
listener { name: client, host: 127.0.0.1, port: 0, saslMechanisms: ANONYMOUS }
listener { name: web, host: 127.0.0.1, port: 0, saslMechanisms: ANONYMOUS, http: yes }
address { name: orders, prefix: orders, metrics: yes }
address { prefix: news, distribution: multicast, metrics: yes }
address { prefix: quiet }
"""


def shown(router: RunningRouter, address: str = "orders") -> dict[str, float]:
    """Return the figures of a section that are not 0, by name, direction and outcome."""
    mark = f"{{'address': '{address}'"
    found = {}
    figures = scrape(http_port(router))
    most = scrape(http_port(router), max)  # several workers may know one address
    for name, value in {**figures, **{each: most[each] for each in most if "_address_count" in each}}.items():
        head, at, rest = name.partition(mark)
        if at and value:
            words = [word.split("'")[-2] for word in rest.split(", ") if "'" in word and ":" in word]
            found[" ".join([head.removeprefix("trouter_address_"), *words])] = value
    return found


async def _settle(receiver: Receiver) -> None:
    """Accept two messages and reject one."""
    for number in range(3):
        delivery = await receiver.receive()
        await (delivery.accept() if number < 2 else delivery.reject())


async def traffic(router: RunningRouter) -> dict[str, float]:
    """Send three messages to an address of the section, one of them on a link without address; return what is shown."""
    async with (
        connect(f"amqp://127.0.0.1:{client_port(router)}") as connection,
        connection.open_receiver("orders.1", credit=10) as receiver,
        connection.open_sender("orders.1") as sender,
        connection.open_sender(None) as anonymous,
        connection.open_sender("quiet") as _,
        trio.open_nursery() as nursery,
    ):
        meanwhile = await trio.to_thread.run_sync(shown, router)
        nursery.start_soon(_settle, receiver)
        await sender.send(Message("one"))
        await anonymous.send(Message("two", properties=Properties(to="orders.1")))
        await sender.send(Message("three"))
    return meanwhile


def test_a_section_counts_its_addresses_and_what_is_gone_stays_counted(start_router: StartRouter) -> None:
    router = start_router(CONFIGURATION)
    figures = scrape(http_port(router))
    assert figures["trouter_address_messages_total{'address': 'orders', 'direction': 'in'}"] == 0
    assert figures["trouter_address_consumers{'address': 'news'}"] == 0
    assert "trouter_address_consumers{'address': 'quiet'}" not in figures
    assert trio.run(traffic, router) == {"count": 1, "consumers": 1, "producers": 1}
    until(lambda: "count" not in shown(router), "the end of the address")
    after = {
        "messages_total in": 3,
        "messages_total out": 3,
        "outcomes_total in accepted": 1,
        "outcomes_total in rejected": 1,
        "outcomes_total out accepted": 2,
        "outcomes_total out rejected": 1,
    }
    assert shown(router) == after
    trio.run(traffic, router)
    until(lambda: "count" not in shown(router), "the end of the address")
    assert shown(router) == {name: 2 * count for name, count in after.items()}
    assert shown(router, "news") == shown(router, "quiet") == {}


async def waiting(router: RunningRouter) -> None:
    """Check the figures while messages wait for a receiver that takes none of them."""
    async with (
        connect(f"amqp://127.0.0.1:{client_port(router)}") as connection,
        connection.open_receiver("news", credit=0),
        connection.open_sender("news") as sender,
    ):
        for number in range(5):
            await sender.submit(Message(number))
        await trio.to_thread.run_sync(until, lambda: shown(router, "news").get("undelivered") == 5, "five messages")


def test_messages_that_wait_are_shown_and_management_changes_what_is_counted(start_router: StartRouter) -> None:
    router = start_router(CONFIGURATION)
    trio.run(waiting, router)
    with node_of(client_port(router)) as node:
        kind = "org.apache.qpid.dispatch.router.config.address"
        node.create(kind, {"prefix": "late", "metrics": True}, name="late")
        assert scrape(http_port(router))["trouter_address_count{'address': 'late'}"] == 0
        node.get("DELETE", type=kind, name="late")
        assert "trouter_address_count{'address': 'late'}" not in scrape(http_port(router))
