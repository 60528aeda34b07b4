"""The policy's decisions, counters and records in one process: each denial is one record; host names are resolved."""

from __future__ import annotations

import socket
from dataclasses import replace
from typing import Any, cast

import pytest
import trio

from trouter.admission import host_names
from trouter.admission.host_names import HostNames
from trouter.config import load
from trouter.core.check import RESERVED, TARGET
from trouter.core.terms import ROUTER_ROLES
from trouter.hooks import Decision, Plugins, VhostPolicy, hookimpl
from trouter.management.ports import Rights
from trouter.net.view import ConnectionView
from trouter.policy.compiled import Policy
from trouter.policy.connection_policy import ConnectionPolicy
from trouter.policy.judge import EVERYTHING, NOTHING, UNFIT, Verdict
from trouter.policy.kinds import CONNECTION_DENIED, SESSION_DENIED, Judged
from trouter.policy.requests import OpenRequest
from trouter.policy.router_policy import RouterPolicy
from trouter.policy.sanctions import Sanction, target_of
from trouter.records import PolicyDecision, Record
from trouter.telemetry.recorder import Recorder
from trouter.wire.performatives import Error

POLICY = """
policy { enableVhostPolicy: yes, maxConnections: 2, routerConnections: 1, defaultVhost: }
vhost { hostname: one, maxConnections: 2, groups: { all: { users: *, remoteHosts: *, sources: *, targets: * } } }
vhost { hostname: named, groups: { all: { users: *, remoteHosts: some.where.example } } }
"""


class Takes:
    def __init__(self) -> None:
        self.records: list[Record] = []

    def put(self, record: Record) -> None:
        self.records.append(record)


class PolicedConnection:
    def __init__(self) -> None:
        self.followed: list[str] = []
        self.errors: list[Error] = []

    def follow_policy(self, vhost: str) -> None:
        self.followed.append(vhost)

    def turn_out(self, error: Error) -> None:
        self.errors.append(error)

    def received_bytes(self) -> int:
        return 0


def router_policy(text: str = POLICY, *plugins: object) -> tuple[RouterPolicy, Takes]:
    recorder, takes = Recorder(), Takes()
    recorder.add(takes)
    made = RouterPolicy(recorder, Plugins(plugins), trio.current_time)
    made.replace_policy(compiled(text))
    return made, takes


def compiled(text: str) -> Policy:
    configuration = load(text=text)
    return Policy.compile(configuration.policy, configuration.vhosts)


def request(number: int = 1, user: str = "alice", hostname: str = "one", **more: Any) -> OpenRequest:
    facts: dict[str, Any] = {"hostname": hostname, "user": user, "remote_host": "192.0.2.1", "authenticated": True}
    return OpenRequest(connection_id=number, name=f"192.0.2.1:{number}", **{**facts, **more})


def enter(made: RouterPolicy, who: OpenRequest) -> PolicedConnection:
    holder = PolicedConnection()
    admit(made, who, holder)
    return holder


def admit(
    made: RouterPolicy, who: OpenRequest, connection: PolicedConnection | None = None, *, stamps: bool = False
) -> ConnectionPolicy:
    admission = made.judge_open(who).admission
    assert admission is not None
    return made.admit_connection(
        who, admission, cast("ConnectionView", connection or PolicedConnection()), stamps=stamps
    )


def deny(made: RouterPolicy, what: Judged, rule: str, **more: Any) -> None:
    """Record a denial of connection 1."""
    one = made.policy_of(1)
    assert one is not None
    made._record.record_verdict(
        Verdict(False, rule, what, None, one.admission.vhost, one.admission.group, **more), one.request
    )


def test_routers_have_room_that_clients_cannot_take() -> None:
    made, _ = router_policy()
    assert [made.accept_socket("normal", "192.0.2.1") for _ in range(3)] == [True, True, False]
    for role in sorted(ROUTER_ROLES):
        assert made.accept_socket(role, "192.0.2.1")
        assert not made.accept_socket(role, "192.0.2.1")
        made.release_socket()
    closed, _ = router_policy("policy { maxConnections: 0 }")
    assert not any(closed.accept_socket(role, "192.0.2.1") for role in ("normal", *ROUTER_ROLES))


def test_a_user_is_one_over_all_connections_and_a_router_is_none() -> None:
    made, _ = router_policy(POLICY.replace("maxConnections: 2", "maxConnections: 20"))
    for number, user in enumerate(("alice", "alice", "bob")):
        enter(made, request(number, user))
    alice, again, bob = map(made.user_key_of, range(3))
    assert alice == again
    assert len({alice, bob, None}) == 3
    for number, role in enumerate(sorted(ROUTER_ROLES), 10):
        enter(made, request(number, "alice", role=role))
        assert made.user_key_of(number) is None
    assert made.user_key_of(99) is None


@pytest.mark.parametrize("what", Judged)
def test_each_denial_counts_and_is_one_record(what: Judged) -> None:
    made, takes = router_policy()
    holder = enter(made, request())
    takes.records.clear()
    before = made.shown_policy()
    deny(made, what, "one:all:rule", text="text", address="address", direction="in")
    (record,) = takes.records
    assert isinstance(record, PolicyDecision)
    assert (record.conn, record.allow, record.rule, record.repeat) == (1, False, "one:all:rule", 1)
    assert (record.vhost, record.group, record.user, record.host) == ("one", "all", "alice", "192.0.2.1")
    assert (record.op, record.reason) == (what.value.operation, what.value.reason)
    after = made.shown_policy()
    assert [name for name, value in after.items() if value != before[name]]
    assert not holder.errors


def test_an_allowed_open_is_recorded_and_repeated_message_denials_are_merged() -> None:
    made, takes = router_policy()
    enter(made, request())
    (record,) = takes.records
    assert isinstance(record, PolicyDecision)
    assert (record.op, record.allow, record.rule) == ("open", True, "one:all:remoteHosts:1")
    for _ in range(5):
        deny(made, Judged.USER_ID, "user-id", text="bob")
    made._record._recorder.repeats.write()
    told = [each.repeat for each in takes.records[1:] if isinstance(each, PolicyDecision)]
    assert told == [1, 4]


@pytest.mark.parametrize("what", [Judged.SENDER, Judged.RECEIVER, Judged.BEGIN, Judged.TOO_LARGE])
def test_repeated_denials_of_a_peer_flood_neither_the_log_nor_the_records(
    what: Judged, caplog: pytest.LogCaptureFixture
) -> None:
    made, takes = router_policy()
    enter(made, request())
    takes.records.clear()
    caplog.set_level("INFO", "trouter.POLICY")
    for number in range(100):
        deny(made, what, "one:all:rule", address=f"q{number}")
    made._record._recorder.repeats.write()
    told = [each for each in takes.records if isinstance(each, PolicyDecision)]
    assert [(each.addr, each.repeat) for each in told] == [*((f"q{number}", 1) for number in range(16)), ("q16", 84)]
    assert len(caplog.messages) == 17
    assert caplog.messages[-1].endswith(" (and 83 more)")


def test_one_client_may_come_to_two_listeners_from_the_same_port() -> None:
    made, _ = router_policy()
    first = request(1)
    second = replace(first, connection_id=2)
    enter(made, first)
    enter(made, second)
    shown = dict(made.shown_vhosts())["one"]
    assert shown.by_user == {"alice": ["192.0.2.1:1", "192.0.2.1:1[C2]"]}
    made.release_connection(1)
    made.release_connection(2)
    made.release_connection(2)
    shown = dict(made.shown_vhosts())["one"]
    assert (shown.connections, shown.by_user, shown.by_host) == (0, {}, {})


@pytest.mark.parametrize("order", [("1", "100"), ("100", "1")])
def test_limits_of_users_and_hosts_stay_their_own_through_a_change(order: tuple[str, str]) -> None:
    per_user, per_host = order
    text = (
        "policy {{ enableVhostPolicy: yes }}\n"
        "vhost {{ hostname: one, maxConnectionsPerUser: {}, maxConnectionsPerHost: {}, groups: {} }}"
    )
    groups = "{ all: { users: *, remoteHosts: * } }"
    made, _ = router_policy(text.format(50, 50, groups))
    made.replace_policy(compiled(text.format(per_user, per_host, groups)))
    enter(made, request(1, "alice"))
    assert made.judge_open(request(2, "bob")).allowed == (per_user == "1")
    assert not made.judge_open(request(3, "alice")).allowed


@pytest.mark.parametrize("role", ["normal", "route-container", "edge", "inter-router"])
@pytest.mark.parametrize("outgoing", [False, True])
def test_inter_router_and_outgoing_connections_are_exempt(role: str, outgoing: bool) -> None:
    made, _ = router_policy()
    exempt = role == "inter-router" or outgoing
    admission = made.judge_open(request(hostname="nowhere", role=role, outgoing=outgoing)).admission
    assert (admission is not None) == exempt
    assert admission is None or admission.unrestricted
    pinned = made.judge_open(request(hostname="nowhere", role=role, outgoing=outgoing, policy_vhost="one")).admission
    bound = outgoing and role in {"normal", "route-container"}  # the vhost has no group $connector
    assert (pinned is None) == bound
    if exempt and pinned is not None:
        made.admit_connection(
            request(7, role=role, outgoing=outgoing), pinned, cast("ConnectionView", PolicedConnection())
        )
        assert made.rights_of(7).level == "admin"


def test_no_user_has_rights_unless_a_group_gives_them() -> None:
    made, _ = router_policy()
    assert made.rights_of(0).level == "admin"
    assert made.rights_of(99).level == "none"
    made.replace_policy(compiled("policy { enableVhostPolicy: no }"))
    assert made.rights_of(99).level == "admin"


def test_a_connection_that_fails_to_follow_a_change_is_closed_and_the_others_are_judged() -> None:
    """Otherwise one connection could keep a change from all connections that opened after it."""
    made, _ = router_policy()

    class Fails(PolicedConnection):
        def follow_policy(self, vhost: str) -> None:
            super().follow_policy(vhost)
            raise RuntimeError("made up")

    failing = Fails()
    who = request(1)
    admit(made, who, failing)
    other = enter(made, request(2))
    made.replace_policy(compiled(POLICY.replace("sources: *", "sources: a")))
    assert failing.errors == [CONNECTION_DENIED]
    assert len(other.followed) == 1
    made.replace_policy(compiled("policy { enableVhostPolicy: yes, defaultVhost: }"))
    assert other.errors == [CONNECTION_DENIED]


def test_an_address_that_is_none_is_denied_by_a_rule_of_its_own() -> None:
    made, takes = router_policy()
    check = admit(made, request(1)).make_check(of_tenant=False)
    assert check is not None
    assert not check.allows_address(b"a" * 5000)
    check.notify(TARGET, "a" * 4096)
    record = takes.records[-1]
    assert isinstance(record, PolicyDecision)
    assert (record.allow, record.rule) == (False, UNFIT)


# --- plugins


class Chooses:
    def __init__(self, answer: object) -> None:
        self.answer = answer

    @hookimpl
    def vhost_policy(self) -> object:
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


@pytest.mark.parametrize(
    ("answer", "vhost"),
    [
        (VhostPolicy("one"), "one"),
        (VhostPolicy("other"), None),
        (VhostPolicy(denied="why"), None),
        (RuntimeError("made up"), None),
        ("one", None),
    ],
)
def test_a_plugin_chooses_the_vhost_of_a_connection(answer: object, vhost: str | None) -> None:
    made, _ = router_policy(POLICY, Chooses(answer))
    admission = made.judge_open(request(hostname="named")).admission
    assert (None if admission is None else admission.vhost) == vhost


def test_a_plugin_chooses_no_vhost_without_a_policy() -> None:
    made, _ = router_policy("policy { enableVhostPolicy: no }", Chooses(VhostPolicy("one")))
    assert not made.judge_open(request()).allowed


# --- host names


@pytest.fixture
def resolver(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[str] | None]:
    """Return the answers of the system's resolver, which a test can set."""
    known: dict[str, list[str] | None] = {}

    async def look_up(host: str, *_: object, **__: object) -> list[Any]:
        await trio.lowlevel.checkpoint()
        addresses = known[host]
        if addresses is None:
            raise OSError("not found")
        return [(socket.AF_INET, 0, 0, "", (address, 0)) for address in addresses]

    monkeypatch.setattr(host_names, "look_up", look_up)
    return known


async def test_a_host_name_keeps_its_last_known_addresses(resolver: dict[str, list[str] | None]) -> None:
    names = HostNames()
    resolver.update({"a": ["192.0.2.1"], "b": None})
    assert await names.look_up(["a", "b"]) == {"a": ("192.0.2.1",), "b": ()}
    resolver.update({"a": None, "b": ["192.0.2.3", "192.0.2.2", "192.0.2.2"]})
    assert await names.look_up(["a", "b"]) == {"a": ("192.0.2.1",), "b": ("192.0.2.2", "192.0.2.3")}
    assert await names.look_up(["b"]) == {"b": ("192.0.2.2", "192.0.2.3")}
    resolver.update({"a": None})
    assert await names.look_up(["a"]) == {"a": ()}


async def test_names_are_looked_up_again(resolver: dict[str, list[str] | None]) -> None:
    made, _ = router_policy()
    names, who = HostNames(), request(hostname="named")
    assert not made.judge_open(who).allowed
    resolver["some.where.example"] = ["192.0.2.1"]
    await host_names.look_names_up_again(made, names)
    holder = enter(made, who)
    resolver["some.where.example"] = ["192.0.2.9"]
    await host_names.look_names_up_again(made, names)
    assert not holder.errors  # connected clients stay
    assert not made.judge_open(request(2, hostname="named")).allowed


def test_a_denial_of_a_tenant_is_recorded_although_no_rule_reads_its_messages() -> None:
    made, takes = router_policy("")
    enter(made, request(role="route-container"))
    takes.records.clear()
    hold = made.policy_of(1)
    assert hold is not None
    assert hold.make_check(of_tenant=False) is None
    check = hold.make_check(of_tenant=True)
    assert check is not None
    assert not check.reads_messages
    check.notify(RESERVED, "_local/q")
    (record,) = takes.records
    assert isinstance(record, PolicyDecision)
    assert (record.op, record.allow, record.rule, record.addr) == ("send", False, "reserved", "_local/q")


# --- connections without a vhost


@pytest.mark.parametrize(
    ("level", "rights"),
    [("none", NOTHING), ("read", Rights("read", allow_dynamic_link_routes=False)), ("admin", EVERYTHING)],
)
def test_a_connection_without_a_vhost_has_the_rights_of_routers_under_a_policy(level: str, rights: Rights) -> None:
    made, _ = router_policy(POLICY.replace("defaultVhost:", f"defaultVhost: ,routerManagement: {level}", 1))
    router = request(7, role="inter-router")
    enter(made, router)
    assert made.rights_of(7) == rights
    assert made.may_send(7, "$management")
    assert made.rights_of(8) == NOTHING
    assert not made.may_send(8, "x")
    assert (made.rights_of(0), made.may_send(0, "x")) == (EVERYTHING, True)
    made.replace_policy(compiled("policy { enableVhostPolicy: no }"))
    assert (made.rights_of(7), made.rights_of(8), made.may_send(8, "x")) == (EVERYTHING, EVERYTHING, True)


def test_a_connection_admitted_without_a_policy_is_judged_by_a_later_policy() -> None:
    made, _ = router_policy("policy { enableVhostPolicy: no }")
    held = enter(made, request(hostname="nowhere"))
    made.replace_policy(
        compiled(
            "policy { enableVhostPolicy: yes, defaultVhost: }\n"
            'vhost { hostname: "", applyTo: new, groups: { all: { users: bob, remoteHosts: * } } }'
        )
    )
    assert held.errors == [CONNECTION_DENIED]


# --- decisions

SLOWED = """
policy { enableVhostPolicy: yes }
vhost { hostname: one, aliases: x, groups: { all: { users: *, remoteHosts: * } } }
vhost { hostname: two, groups: { all: { users: *, remoteHosts: *, sources: a } } }
"""


def slow(made: RouterPolicy, tenant: str) -> None:
    decision = Decision("1", "slow-tenant", tenant, 10**17, rate=5)
    made._sanctions.add_sanction(Sanction(target_of(decision), decision, "admin", float("inf")))
    made.apply_decision(target_of(decision))


def test_a_connection_that_moves_to_another_vhost_leaves_the_rate_of_its_former_one() -> None:
    """Otherwise a decision about one tenant would slow the messages of another."""
    made, _ = router_policy(SLOWED)
    made.book.now = lambda: 0.0
    moving = admit(made, request(hostname="x"))
    slow(made, "one")
    assert [rule.owner for rule in moving.counted.rules] == ["decision:one"]
    made.replace_policy(
        compiled(SLOWED.replace(", aliases: x", "").replace("hostname: two,", "hostname: two, aliases: x,"))
    )
    assert moving.admission.vhost == "two"
    assert moving.counted.rules == ()
    assert not made.book.busy


# --- limits of messages and sessions


@pytest.mark.parametrize(
    ("more", "own", "stamp"),
    [
        ({}, b"alice", b"alice"),
        ({"authenticated": False}, None, None),
        ({"role": "route-container"}, None, b"alice"),
        ({"outgoing": True}, None, b"alice"),
    ],
    ids=["a user", "no user", "a broker", "an outgoing connection"],
)
def test_without_a_policy_a_name_that_was_proven_is_kept(
    more: dict[str, Any], own: bytes | None, stamp: bytes | None
) -> None:
    made, _ = router_policy("policy { enableVhostPolicy: no }")
    stamping = admit(made, request(1, **more), stamps=True).make_check(of_tenant=False)
    plain = admit(made, request(2, **more)).make_check(of_tenant=False)
    assert (None if plain is None else plain.user) == own
    assert (None if stamping is None else stamping.stamp) == stamp
    assert plain is None or plain.stamp is None


def test_a_connection_may_begin_the_sessions_of_its_group() -> None:
    made, takes = router_policy(POLICY.replace("sources: *,", "sources: *, maxSessions: 2,"))
    hold = admit(made, request())
    assert hold.may_begin(1) is None
    assert hold.may_begin(2) == SESSION_DENIED
    record = takes.records[-1]
    assert isinstance(record, PolicyDecision)
    assert (record.op, record.rule, record.allow) == ("begin", "one:all:maxSessions", False)
