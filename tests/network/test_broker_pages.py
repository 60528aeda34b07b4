"""The pages about RabbitMQ and about bridges between brokers: their configurations and commands, as printed."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from proton import Message

from tests.e2e.by_proton import Client, Ear
from tests.network.test_rabbitmq import auto_links
from tests.rabbitmq import V3, V4, RabbitMQ, needs_rabbitmq, needs_rabbitmq4, nodes
from tests.routers import DEADLINE_S, ROOT, running
from tests.terminal import Terminal, files_of
from tests.waiting import until
from tests.walks import steps_in

pytestmark = [pytest.mark.long, pytest.mark.interop, needs_rabbitmq, needs_rabbitmq4]

RABBITMQ: Final = (ROOT / "docs" / "rabbitmq.md").read_text(encoding="utf-8")
BRIDGE: Final = (ROOT / "docs" / "instead-of-a-shovel.md").read_text(encoding="utf-8")
DEFINITIONS: Final = re.findall(r"^```json\n(.*?)^```", RABBITMQ, re.MULTILINE | re.DOTALL)[0]
#: What the page says about RabbitMQ 3: the addresses that stand there in place of those of 4.
TO_V3: Final = {
    "/queues/": "/amq/queue/",
    "prefix: queues": "prefix: amq/queue",
    "/exchanges/": "/exchange/",
    "prefix: exchanges": "prefix: exchange",
    "$ ! trouter send /exchange/amq.direct/own 'nobody is bound'\nreleased": (
        "$ trouter send /exchange/amq.direct/own 'nobody is bound'\naccepted"
    ),
    "\nqueues\nexchanges\n": "\namq/queue\nexchange\n",
}
#: More returns than RabbitMQ 4 allows without ``x-delivery-limit``.
RETURNS: Final = 25


def definitions() -> str:
    """Return the page's definitions, with a user for ANONYMOUS and the queue of the other page."""
    made = json.loads(DEFINITIONS)
    made["users"].append({"name": "guest", "password": "guest", "tags": "administrator"})
    made["permissions"].append({"user": "guest", "vhost": "/", "configure": ".*", "write": ".*", "read": ".*"})
    made["queues"].append({"name": "orders", "vhost": "/", "durable": True, "auto_delete": False, "arguments": {}})
    return json.dumps(made)


@pytest.fixture(scope="module")
def brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[RabbitMQ, RabbitMQ]]:
    """Run RabbitMQ 3.10 and 4.0 with the definitions on the page."""
    with nodes(tmp_path_factory.mktemp("brokers"), V3, V4, definitions=definitions()) as (old, new):
        yield old, new


@pytest.mark.parametrize("version", ["3.10", "4.0"])
def test_the_page_on_rabbitmq_works_as_printed(
    brokers: tuple[RabbitMQ, RabbitMQ], tmp_path: Path, version: str
) -> None:
    text, broker = RABBITMQ, brokers[1]
    if version == "3.10":
        broker = brokers[0]
        for new, old in TO_V3.items():
            assert new in text
            text = text.replace(new, old)
    steps = steps_in(text)
    assert len(steps) >= 8
    Terminal(tmp_path, ["5672"], text, {"5673": broker.port}).walk(steps)


def test_a_queue_without_a_limit_keeps_a_message_that_is_returned_often(
    brokers: tuple[RabbitMQ, RabbitMQ], tmp_path: Path
) -> None:
    files = files_of(RABBITMQ)
    (tmp_path / "rabbitmq.password").write_text(files["rabbitmq.password"])
    text = files["router.conf"].replace("port: 5672", "port: 0").replace("port: 5673", f"port: {brokers[1].port}")
    text = text.replace("file:rabbitmq.password", f"file:{tmp_path}/rabbitmq.password")
    with running(text, tmp_path) as router:
        until(lambda: set(auto_links(router).values()) == {("active", "")}, "auto links")
        client = Client(Ear(), router.port)
        client.create_sender("orders.new").send(Message(body="kept", durable=True))
        receiver = client.create_receiver("orders.new", credit=1)
        for _ in range(RETURNS):
            assert receiver.receive(timeout=DEADLINE_S).body == "kept"
            receiver.release(delivered=True)
        assert receiver.receive(timeout=DEADLINE_S).body == "kept"
        receiver.accept()
        client.close()


def test_the_page_on_bridges_works_as_printed(brokers: tuple[RabbitMQ, RabbitMQ], tmp_path: Path) -> None:
    old, new = brokers
    steps = steps_in(BRIDGE)
    assert len(steps) >= 5
    Terminal(tmp_path, ["5672"], BRIDGE, {"5673": old.port, "5674": new.port}).walk(steps)
