"""A connection consists of few objects, and one Protocol describes it to the other rooms."""

from __future__ import annotations

import gc
import importlib
import inspect
import re
from collections import Counter
from typing import Protocol

import pytest
from trio.testing import MockClock

from tests.connections.plays import LISTENER, ROUTER, opened
from tests.house.sources import PACKAGE
from trouter.connections.peer import Peer
from trouter.net.view import ConnectionView, LifetimeView, LoginView
from trouter.testing.player import play

#: The most objects of a connection besides those of the engine and of the policy; and those of the policy.
MAX_OBJECTS = 7
MAX_POLICY_OBJECTS = 4
#: The rooms whose objects are those of the engine and the core, or data of the hooks.
BELOW = ("wire", "engine", "core", "hooks")
#: The class whose object has everything that connections share, or an import of it.
SERVICES = re.compile(r"^class Services\b|^ *from .* import .*\bServices\b", re.MULTILINE)


def rooms_of_objects() -> Counter[tuple[str, str]]:
    """Return the number of objects of the router that there are, by room and class.

    What a compiled coroutine keeps its variables in is none: an interpreted one has a frame.
    """
    found: Counter[tuple[str, str]] = Counter()
    for each in gc.get_objects():
        kind = type(each)
        top, _, rest = str(kind.__module__).partition(".")  # a descriptor in some classes of other libraries
        room = rest.partition(".")[0]
        if top == "trouter" and room not in BELOW and room != "testing" and not kind.__name__.startswith("__pyx_scope"):
            found[room, kind.__name__] += 1
    return found


@pytest.mark.usefixtures("unlogged")
async def test_an_open_connection_with_a_session_consists_of_seven_objects(mock_clock: MockClock) -> None:
    async with play(ROUTER + LISTENER) as router:
        await opened(router)  # the first one also makes what all share
        gc.collect()
        before = rooms_of_objects()
        await opened(router)
        gc.collect()
        made = rooms_of_objects() - before
        own = {name: count for (room, name), count in made.items() if room != "policy"}
        assert sum(own.values()) <= MAX_OBJECTS, own
        assert sum(count for (room, _), count in made.items() if room == "policy") <= MAX_POLICY_OBJECTS, made


def test_no_part_gets_all_that_connections_share() -> None:
    """A part takes what it uses by its constructor; only the assembly of the router holds everything together."""
    users = {
        path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.py") if SERVICES.search(path.read_text())
    }
    assert users == {"app/wiring.py", "app/periodic.py"}


def protocols() -> list[type]:
    """Return every Protocol of the rooms above the core: what the engine asks of an owner is none of them."""
    found: dict[str, type] = {}
    for room in (
        "net",
        "telemetry",
        "tls",
        "admission",
        "policy",
        "auth",
        "backbone",
        "connections",
        "app",
        "management",
    ):
        for path in sorted((PACKAGE / room).rglob("*.py")):
            name = ".".join(("trouter", *path.relative_to(PACKAGE).with_suffix("").parts))
            module = importlib.import_module(name.removesuffix(".__init__"))
            for kind in vars(module).values():
                is_above = inspect.isclass(kind) and kind.__module__.split(".")[1:2] != ["engine"]
                if is_above and getattr(kind, "_is_protocol", False):
                    found[f"{kind.__module__}.{kind.__name__}"] = kind
    return list(found.values())


def members(protocol: type) -> set[str]:
    named = {*vars(protocol), *vars(protocol).get("__annotations__", {})}
    return {each for each in named if not each.startswith("_")}


def describes_a_connection(protocol: type) -> bool:
    """Return whether all members of a Protocol are a connection's."""
    return bool(members(protocol)) and all(hasattr(Peer, each) for each in members(protocol))


def test_one_protocol_describes_a_connection() -> None:
    assert [each for each in protocols() if describes_a_connection(each)] == [ConnectionView]


def test_a_second_protocol_would_be_found() -> None:
    class Accounted(Protocol):
        @property
        def number(self) -> int: ...

        def describe_connection(self) -> dict[str, object]: ...

    assert describes_a_connection(Accounted)


def test_the_peer_has_all_of_the_protocol() -> None:
    assert [each for each in members(ConnectionView) if not hasattr(Peer, each)] == []


def test_a_connection_shows_its_login_and_lifetime_and_repeats_nothing_of_them() -> None:
    parts = members(LoginView) | members(LifetimeView)
    assert [each for each in sorted(parts) if each in members(ConnectionView) or hasattr(Peer, each)] == []


@pytest.mark.parametrize("name", ["connection", "owner", "transport", "nursery"])
def test_the_parts_of_a_connection_know_no_peer(name: str) -> None:
    """Nothing refers back to the peer, so that nothing must be cut by hand when it ends."""
    from trouter.auth.login import AcceptedLogin
    from trouter.connections.lifetime import Lifetime
    from trouter.connections.membership import Membership
    from trouter.connections.sessions import Sessions
    from trouter.connections.stream import Stream
    from trouter.telemetry.connection_records import ConnectionRecord

    for part in (AcceptedLogin, Lifetime, Membership, ConnectionRecord, Sessions, Stream):
        assert name not in part.__slots__
