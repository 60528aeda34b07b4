"""A broker that the router dials attaches links of its own: with secureDefaults only a policyVhost opens addresses."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from proton import Message

from tests.brokers import Broker, served
from tests.e2e.by_proton import Client, Ear
from tests.networks import client_port
from tests.routers import RunningRouter, running

pytestmark = [pytest.mark.attack, pytest.mark.slow]

CONFIGURATION = """
router {{ id: R, secureDefaults: yes }}
listener {{ host: 127.0.0.1, port: 0, saslMechanisms: ANONYMOUS, authenticatePeer: no }}
connector {{ name: broker, role: route-container, host: 127.0.0.1, port: {port}, saslMechanisms: ANONYMOUS{more} }}
address {{ prefix: a, waypoint: yes }}
autoLink {{ address: a.queue, direction: in, connection: broker }}
vhost {{
    hostname: $default
    allowUnknownUser: yes
    groups: {{ $default: {{ remoteHosts: *, sources: a.*, targets: a.* }}, $connector: {{ sources: a.given }} }}
}}
"""


class Reaching(Broker):
    """A broker that attaches links of its own, beside those of the router, and notes what they were answered."""

    def __init__(self) -> None:
        super().__init__("B")
        #: The address that the router granted each of them, by their names; None for a refusal.
        self.answers: dict[str, str | None] = {}

    def on_link_opened(self, event: Any) -> None:
        link = event.link
        self.answers[link.name] = (link.remote_source if link.is_receiver else link.remote_target).address
        self._tell()

    def reach(self, what: str, address: str | None) -> str | None:
        """Attach a link, a ``receiver`` or a ``sender``; return the address that it was granted, None for none."""
        name = f"{what} {address}"

        def attach(broker: Broker) -> None:
            link = getattr(broker.links[0].session, what)(name)
            (link.source if link.is_receiver else link.target).address = address
            link.open()

        self.do(attach)
        self.wait(lambda _: name in self.answers)
        return self.answers[name]


@contextmanager
def dialled(folder: Path, more: str = "") -> Iterator[tuple[RunningRouter, Reaching]]:
    """Run a broker and a router that dials it; the router has attached its link."""
    broker = Reaching()
    with served(broker), running(CONFIGURATION.format(port=broker.port, more=more), folder) as router:
        broker.wait(lambda each: each.links)
        yield router, broker


def test_a_broker_has_what_the_routers_own_links_give_it_and_no_more(tmp_path: Path) -> None:
    with dialled(tmp_path) as (router, broker):
        for what in ("receiver", "sender"):
            for address in ("a.secret", "t1.example/orders", "$management"):
                assert broker.reach(what, address) is None, (what, address)
        client = Client(Ear(), client_port(router))
        receiver = client.create_receiver("a.queue")
        broker.do(lambda _: broker.put("a.queue", Message(body="for all", user_id=b"another user")))
        assert receiver.receive().body == "for all"
        client.close()


def test_the_group_for_connectors_opens_addresses_to_a_broker(tmp_path: Path) -> None:
    with dialled(tmp_path, ", policyVhost: $default") as (_, broker):
        assert broker.reach("receiver", "a.given") == "a.given"
        assert broker.reach("receiver", "a.secret") is None
