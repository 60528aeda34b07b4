"""A denial passes few modules, from the call that asks the policy to the record that is written."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from trio.testing import MockClock

import trouter
from tests.connections import plays
from trouter.core.check import NO_TO, TARGET
from trouter.hooks import Vote, hookimpl
from trouter.policy.connection_policy import ConnectionPolicy
from trouter.records import PolicyDecision
from trouter.testing.player import play
from trouter.wire.performatives import Attach, Detach, Error, Source, Target

from .test_router_policy import Takes, admit, request, router_policy

pytestmark = pytest.mark.usefixtures("unlogged")
PACKAGE = Path(trouter.__file__).parent
#: A module counts if it decides, counts or writes. These only spell, split or match a text, or return the time or a
#: level, and so do the modules at the top of the package, which every room may import.
LEAVES = {
    "core.addresses", "core.patterns", "logs.levels", "logs.loggers", "logs.peer_text", "records.text",
    "telemetry.clocks", "telemetry.user_keys",
}  # fmt: skip
MOST = 5

CONFIGURATION = """
policy { enableVhostPolicy: yes }
vhost {
    hostname: one
    groups: {
        all: { users: *, remoteHosts: *, sources: a, targetPattern: "b/#", maxSessions: 1, maxSenders: 5 }
    }
}
"""
DENIALS: dict[str, tuple[Callable[[ConnectionPolicy], Callable[[], object]], set[str]]] = {
    "a link, by a name": (lambda one: partial(one.admit_link, receiver(), 0, Links()), {"policy.names"}),
    "a link, by a pattern": (lambda one: partial(one.admit_link, sender(), 0, Links()), {"policy.patterns"}),
    "a link, by number": (lambda one: partial(one.admit_link, sender(), 0, Links(5)), set()),
    "a link, because the connection is full": (
        lambda one: partial(one.admit_link, sender(), 0, Links(), "maxLinks"),
        set(),
    ),
    "a link, under a changed policy": (lambda one: partial(one.keeps_link, sender(), int), {"policy.patterns"}),
    "a link, by its address's owner": (lambda one: partial(one.deny_address, sender(), "reserved"), set()),
    "a session": (lambda one: partial(one.may_begin, 1), set()),
    "a message to an address": (lambda one: partial(checked(one), TARGET, "x"), {"policy.patterns"}),
    "a message without an address": (lambda one: partial(checked(one), NO_TO, ""), set()),
    "a message too large": (lambda one: partial(one.deny_large_message), set()),
}


@dataclass
class Links:
    """The links of a peer: ``count`` in each direction, to no address."""

    count: int = 0

    def count_links(self, incoming: bool) -> int:
        return self.count

    def address_key(self, attach: Attach) -> None:
        return None


def sender() -> Attach:
    return Attach("link", 0, False, source=Source(), target=Target("x"), initial_delivery_count=0)


def receiver() -> Attach:
    return Attach("link", 0, True, source=Source("x"), target=Target())


def checked(one: ConnectionPolicy) -> Callable[[str, str], None]:
    check = one.make_check(of_tenant=False)
    assert check is not None
    return check.notify


def modules_of(call: Callable[[], object]) -> list[str]:
    """Return the modules of trouter whose functions a call runs, in the order of their first call."""
    found: dict[str, None] = {}

    def note(frame: FrameType, event: str, _: Any) -> None:
        path = Path(frame.f_code.co_filename)
        if event == "call" and path.is_relative_to(PACKAGE):
            found[".".join(path.relative_to(PACKAGE).with_suffix("").parts)] = None

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(before)
    return [name for name in found if "." in name and name not in LEAVES]


@pytest.mark.parametrize(("prepare", "deciding"), DENIALS.values(), ids=DENIALS)
def test_a_denial_passes_five_modules(
    prepare: Callable[[ConnectionPolicy], Callable[[], object]], deciding: set[str], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "trouter.POLICY")
    made, takes = router_policy(CONFIGURATION)
    one = admit(made, request())
    denial = prepare(one)
    takes.records.clear()
    passed = modules_of(denial)
    (record,) = takes.records
    assert isinstance(record, PolicyDecision)
    assert not record.allow
    assert len(caplog.messages) == 1
    whole = {"policy.connection_policy", "policy.judge", "policy.record", "telemetry.recorder", *deciding}
    assert set(passed) == whole
    assert len(passed) <= MOST, passed


def test_the_vote_of_a_plugin_adds_the_hooks_alone() -> None:
    class Denies:
        @hookimpl
        def judge_attach(self) -> Vote:
            return Vote.DENY

    made, takes = router_policy(CONFIGURATION.replace("b/", ""), Denies())
    one = admit(made, request())
    passed = modules_of(lambda: one.admit_link(sender(), 0, Links()))
    record = takes.records[-1]
    assert isinstance(record, PolicyDecision)
    assert record.rule == "plugin:judge_attach"
    others = {name for name in passed if not name.startswith("hooks.")}
    whole = {"policy.connection_policy", "policy.judge", "policy.patterns", "policy.record", "telemetry.recorder"}
    assert others == whole


async def test_a_client_that_is_denied_a_link_is_answered_by_way_of_them(
    mock_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    passed: list[str] = []
    admit_link = ConnectionPolicy.admit_link

    def watched(*arguments: Any, **more: Any) -> Error | None:
        errors: list[Error | None] = []
        passed.extend(modules_of(lambda: errors.append(admit_link(*arguments, **more))))
        return errors[0]

    monkeypatch.setattr(ConnectionPolicy, "admit_link", watched)
    async with play(plays.ROUTER + plays.LISTENER + CONFIGURATION.replace("one", "vhost")) as router:
        takes = Takes()
        router.process.services.recorder.add(takes)
        peer = await plays.opened(router)
        outputs = await peer.play(plays.receiver(address="other"))
        assert plays.condition_of(outputs, Detach) == "amqp:unauthorized-access"
    rules = [record.rule for record in takes.records if isinstance(record, PolicyDecision) and not record.allow]
    assert rules == ["vhost:all:sources:none"]
    passed = [name for name in passed if name != "testing.player"]  # it takes the record
    assert "policy.judge" in passed
    assert len(passed) <= MOST, passed
