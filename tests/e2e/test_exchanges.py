"""Exchanges from the file: their messages, changes by a reload, and their rows in the tools."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from proton import Delivery, Message
from proton.utils import BlockingConnection

from tests.e2e.test_reload import hang_up
from tests.management.node import Node, node_of
from tests.routers import DEADLINE_S, ROOT, StartRouter
from tests.tools.live import run

OUTCOMES = {int(Delivery.ACCEPTED): "ACCEPTED", int(Delivery.RELEASED): "RELEASED"}
BEGINNING = "router { id: R }\nlistener { host: 127.0.0.1, port: 0, saslMechanisms: ANONYMOUS }\n"
EVENTS = "exchange { name: events, address: events, alternateAddress: rest }\n"


def binding(key: str, hop: str, more: str = "") -> str:
    return f"binding {{\n    exchangeName: events\n    bindingKey: {key}\n    nextHopAddress: {hop}\n{more}}}\n"


class Traffic:
    """A client that sends to the exchange, with a receiver for each of some addresses."""

    def __init__(self, port: int, *addresses: str, target: str = "events") -> None:
        self.connection: Any = BlockingConnection(f"127.0.0.1:{port}", timeout=DEADLINE_S)
        self.receivers = {each: self.connection.create_receiver(each, credit=100) for each in addresses}
        self.sender: Any = self.connection.create_sender(target)

    def send(self, subject: str | None, body: str | None = None) -> str:
        """Send a message, by default with its subject as body; return its outcome."""
        outcome = self.sender.link.send(Message(body=body or subject, subject=subject))
        self.connection.wait(lambda: outcome.settled, timeout=DEADLINE_S)
        return OUTCOMES[int(outcome.remote_state)]

    def take(self, address: str, count: int = 1) -> list[Any]:
        """Return the bodies of the next messages at an address."""
        return [self.receivers[address].receive(timeout=DEADLINE_S).body for _ in range(count)]

    def close(self) -> None:
        self.connection.close()


def counts(node: Node) -> dict[str, int]:
    (row,) = node.query("router.config.exchange")
    return {name.removesuffix("Count"): int(row[name]) for name in row if name.endswith("Count")}


def test_an_exchange_of_the_file_routes_and_a_reload_changes_its_bindings(start_router: StartRouter) -> None:
    router = start_router(BEGINNING + EVENTS + binding("a.#", "one") + binding("b.*", "two", "    name: b\n"))
    assert not router.matching("not served")
    traffic = Traffic(router.port, "one", "two", "rest", "late")
    assert [traffic.send(subject) for subject in ("a", "b.c", "d", None)] == ["ACCEPTED"] * 4
    assert (traffic.take("one"), traffic.take("two"), traffic.take("rest", 2)) == (["a"], ["b.c"], ["d", None])
    with node_of(router.port) as node:
        assert counts(node) == {"binding": 2, "received": 4, "forwarded": 4, "diverted": 2, "dropped": 0}
        matched = {row["bindingKey"]: row["matchedCount"] for row in node.query("router.config.binding")}
        assert matched == {"a.#": 1, "b.*": 1}
        changed = BEGINNING + "\n" + EVENTS + binding("a.#", "one") + binding("d", "late")
        assert hang_up(router, changed).startswith("1 created, 0 updated, 1 deleted, ")
        assert counts(node)["received"] == 4
        assert [traffic.send(subject) for subject in ("a.x", "d", "b.c")] == ["ACCEPTED"] * 3
        assert (traffic.take("one"), traffic.take("late"), traffic.take("rest")) == (["a.x"], ["d"], ["b.c"])
        topics = changed.replace("alternateAddress: rest", "matchMethod: mqtt")
        assert hang_up(router, topics, 2).startswith("0 created, 1 updated, 0 deleted, ")
        assert counts(node) == {"binding": 2, "received": 0, "forwarded": 0, "diverted": 0, "dropped": 0}
        assert [traffic.send(subject) for subject in ("a.#", "a.x", "d")] == ["ACCEPTED", "RELEASED", "ACCEPTED"]
        assert (traffic.take("one"), traffic.take("late")) == (["a.#"], ["d"])
        assert hang_up(router, BEGINNING + EVENTS.replace("}", "}}"), 3) == "refused"
        assert traffic.send("d") == "ACCEPTED"
        assert hang_up(router, BEGINNING, 4).startswith("0 created, 0 updated, 3 deleted, ")
        assert node.query("router.config.exchange") == []
    own = traffic.connection.create_receiver("events", credit=1)
    sent = traffic.sender.link.send(Message(body="plain", subject="d"))
    assert own.receive(timeout=DEADLINE_S).body == "plain"
    assert not sent.settled
    own.accept()
    traffic.connection.wait(lambda: sent.settled, timeout=DEADLINE_S)
    traffic.close()


def test_long_messages_go_through_an_exchange_whole(start_router: StartRouter) -> None:
    router = start_router(BEGINNING + EVENTS + binding("#", "one") + binding("#", "two"))
    traffic = Traffic(router.port, "one", "two")
    body = "0123456789abcdef" * 600_000
    for _ in range(3):
        assert traffic.send("s", body) == "ACCEPTED"
        assert traffic.take("one") == traffic.take("two") == [body]
    traffic.close()


async def test_the_tools_make_show_and_delete_them(start_router: StartRouter) -> None:
    router = start_router(BEGINNING)
    bus = ["-b", f"127.0.0.1:{router.port}"]
    kinds = ("router.config.exchange", "router.config.binding")
    made = await run("manage", *bus, "create", f"--type={kinds[0]}", "name=e", "address=events")
    assert (made.status, '"matchMethod": "amqp"' in made.out) == (0, True)
    made = await run(
        "manage", *bus, "create", f"--type={kinds[1]}", "name=b", "exchangeName=e", "bindingKey=a.#", "nextHopAddress=h"
    )
    assert made.status == 0, made
    for kind, name in zip(kinds, "eb", strict=True):
        assert f'"name": "{name}"' in (await run("manage", *bus, "query", f"--type={kind}")).out
        assert f'"name": "{name}"' in (await run("manage", *bus, "read", f"--type={kind}", f"--name={name}")).out
    wrong = await run("manage", *bus, "create", f"--type={kinds[1]}", "exchangeName=f", "nextHopAddress=h")
    assert "Named exchange does not exist" in wrong.err
    for kind, name in zip(reversed(kinds), "be", strict=True):
        assert (await run("manage", *bus, "delete", f"--type={kind}", f"--name={name}")).status == 0
    assert (await run("manage", *bus, "query", f"--type={kinds[0]}")).out.strip() == "[]"


def test_the_exchange_example_of_the_manual_routes_as_described(start_router: StartRouter) -> None:
    path = ROOT / "examples" / "exchanges.conf"
    text = path.read_text(encoding="utf-8").replace("port: 5672", "port: 0")
    router = start_router(text)
    traffic = Traffic(router.port, "audit", "orders.eu", "alarms", "orders.unsorted", target="orders")
    assert [traffic.send(subject) for subject in ("eu.books", "eu.books.late", "us.books", "us.late")] == [
        "ACCEPTED"
    ] * 4
    assert traffic.take("orders.eu", 2) == ["eu.books", "eu.books.late"]
    assert traffic.take("alarms", 2) == ["eu.books.late", "us.late"]
    assert traffic.take("audit", 4) == ["eu.books", "eu.books.late", "us.books", "us.late"]
    assert traffic.send(None, "nothing said") == "ACCEPTED"
    assert traffic.take("orders.unsorted") == ["nothing said"]
    traffic.close()
    page = (ROOT / "docs" / "exchanges.md").read_text(encoding="utf-8")
    assert Path("examples/exchanges.conf").as_posix() in page
    # the page is about exchanges alone
    shown = re.sub("^# trouter: accept .*\n+", "", text, flags=re.MULTILINE)
    assert shown.replace("port: 0", "port: 5672") in page
