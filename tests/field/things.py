"""What each client does in a morning, and what is right: one function for each thing."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any, Final

from tests.field.programs import Client
from tests.field.scene import Scene, Way

_NUMBERS: Final = count()


def _result(scene: Scene, client: Client, thing: str, **options: Any) -> dict[str, Any]:
    with scene.program(client.name, list(client.command), thing, **options) as program:
        return program.result()


def _all(number: int) -> dict[str, Any]:
    return {"received": number, "whole": True, "in_order": True}


def _exchange(scene: Scene, client: Client, way: Way, number: int, size: int, credit: int) -> dict[str, Any]:
    ends = {"from": way.begin.options, "to": way.end.options}
    address = f"{'queue' if client.routed else 'exchange'}.{next(_NUMBERS)}"
    return _result(scene, client, "exchange", **ends, address=address, count=number, size=size, credit=credit)


def exchange(scene: Scene, client: Client, way: Way) -> None:
    """Sends 50 messages and receives them, each once and in order; each is accepted."""
    assert _exchange(scene, client, way, 50, 100, 10) == {"event": "done", **_all(50), "accepted": 50}


def large(scene: Scene, client: Client, way: Way) -> None:
    """Sends 15 messages of 700 kB and receives each once; through several routers they may overtake each other."""
    found = _exchange(scene, client, way, 15, 700_000, 10)
    assert found == {"event": "done", **_all(15), "accepted": 15, "in_order": found["in_order"]}
    assert found["in_order"] or way.begin != way.end


def slow(scene: Scene, client: Client, way: Way) -> None:
    """Receives 250 messages of 40 kB with a credit of one or two, while they are sent as fast as credit allows."""
    assert _exchange(scene, client, way, 250, 40_000, 1) == {"event": "done", **_all(250), "accepted": 250}


def request(scene: Scene, client: Client, way: Way) -> None:
    """Sends four requests, one after the other, and receives their replies."""
    ends = {"from": way.begin.options, "to": way.end.options}
    found = _result(scene, client, "request", **ends, address=f"service.{next(_NUMBERS)}", count=4)
    assert found == {"event": "done", "answered": 4}


def browse(scene: Scene, client: Client, way: Way) -> None:
    """Sends to a queue of a container, looks at the messages there, receives them, and leaves in one go."""
    address = f"queue.{next(_NUMBERS)}"
    found = _result(scene, client, "browse", **{"from": way.begin.options}, address=address, count=3, size=8)
    assert found == {"event": "done", "browsed": _all(3), **_all(3)}


def unsubscribe(scene: Scene, client: Client, way: Way) -> None:
    """Gives up a durable subscription at a container and leaves at once: the container learns that it is over."""
    address = f"topic.{next(_NUMBERS)}"
    _result(scene, client, "unsubscribe", **{"from": way.begin.options}, address=address)
    left = scene.container.left(address)
    assert (left["closed"], left["error"]) == (True, None)


def die(scene: Scene, client: Client, way: Way) -> None:
    """Is killed while it holds three messages of a queue: another client gets them."""
    options = {"from": way.begin.options, "address": f"queue.{next(_NUMBERS)}", "count": 3, "size": 8}
    with scene.program(client.name, list(client.command), "hold", **options) as holding:
        holding.wait_for("held")
        holding.kill()
    found = _result(scene, client, "receive", **options)
    assert found == {"event": "done", **_all(3)}


#: By what the page calls it.
THINGS: Final[dict[str, Callable[[Scene, Client, Way], None]]] = {
    "send and receive": exchange,
    "request": request,
    "browse": browse,
    "unsubscribe": unsubscribe,
    "large messages": large,
    "slow receiver": slow,
    "abrupt end": die,
}
#: This one runs once for all clients.
RECONNECT: Final = "reconnect"
