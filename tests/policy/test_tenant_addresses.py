"""Clients without a tenant reach no address of one by their names, nor the whole router by its vhost."""

from __future__ import annotations

from pathlib import Path

import pytest

from trouter.cli import main
from trouter.config import load
from trouter.config.tenant_spaces import tenants_in
from trouter.hooks import Permissions
from trouter.policy.compiled import Policy
from trouter.policy.judge import Admission, Verdict, judge_open
from trouter.policy.kinds import Reason
from trouter.policy.requests import OpenRequest

pytestmark = pytest.mark.attack

SECURE = "router { secureDefaults: yes }\n"
HEAD = (
    "policy { enableVhostPolicy: yes }\n"
    "listener {\n name: tenants\n host: ::1\n port: 1\n multiTenant: yes\n}\n"
    "listener {\n name: clients\n host: ::1\n port: 2\n allowedUsers: t1, alice, bob\n}\n"
)
TENANT = (
    "vhost {{\n hostname: t1.example\n groups: {{\n  members: {{\n   users: bob\n   remoteHosts: *\n   {}\n"
    "  }}\n }}\n}}\n"
)
OTHERS = (
    "vhost {{\n hostname: $default\n allowUnknownUser: yes\n groups: {{\n  $default: {{\n   remoteHosts: *\n   {}\n"
    "  }}\n }}\n}}\n"
)
REACHING = (
    'sources: "${user}.*, ${user}, orders"',
    'sources: "${user}.example/q, ${user}, orders"',
    'sourcePattern: "${user}/#, orders"',
    'sources: "orders"\n   targets: "${user}.*"',
)
ALL = (
    "sources: *",
    "targets: orders, *",
    'sourcePattern: "#"',
    "targets: $management\n   management: admin",
)


def judged(
    rules: Policy, user: str, hostname: str = "", *, has_tenancy: bool = False, permissions: Permissions | None = None
) -> Verdict:
    request = OpenRequest(
        hostname=hostname,
        user=user,
        remote_host="10.0.0.1",
        authenticated=True,
        has_tenancy=has_tenancy,
        permissions=permissions,
    )
    return judge_open(rules, request)


def opened(
    rules: Policy, user: str, hostname: str = "", *, has_tenancy: bool = False, permissions: Permissions | None = None
) -> Admission:
    """Return the admission of a connection; the policy must admit it."""
    admission = judged(rules, user, hostname, has_tenancy=has_tenancy, permissions=permissions).admission
    assert admission is not None
    return admission


def compiled(others: str, members: str = "sources: orders", head: str = SECURE) -> Policy:
    configuration = load(text=head + HEAD + TENANT.format(members) + OTHERS.format(others))
    return Policy.compile(
        configuration.policy,
        configuration.vhosts,
        tenants=tenants_in(configuration),
        secure=configuration.router.secure_defaults,
    )


@pytest.mark.parametrize("entries", REACHING)
@pytest.mark.parametrize("head", [SECURE, ""])
def test_the_name_of_a_user_reaches_no_tenant(entries: str, head: str) -> None:
    rules = compiled(entries + ("" if head else "\n   tenantAddresses: no"), head=head)
    user = opened(rules, user="t1", hostname="$default")
    for address in ("t1.example/q", "amqp:/t1.example/q", "t1.q", "t1"):
        assert not user.may_receive(address)
        assert not user.may_send(address)
    assert user.may_receive("orders")
    other = opened(rules, user="alice", hostname="$default")
    assert other.may_send("alice.q") or other.may_receive("alice.q") or other.may_receive("alice.example/q")


@pytest.mark.parametrize("entries", REACHING)
def test_it_does_without_secure_defaults_with_the_attribute_and_at_a_multi_tenant_listener(entries: str) -> None:
    rules = [compiled(entries, head=""), compiled(entries + "\n   tenantAddresses: yes")]
    users = [opened(each, user="t1", hostname="$default") for each in rules]
    users.append(opened(compiled(entries), user="t1", hostname="$default", has_tenancy=True))
    for user in users:
        assert user.may_receive("t1.example/q") or user.may_send("t1.example/q")


def test_an_entry_that_names_the_tenant_is_meant() -> None:
    rules = compiled('sources: "t1.example/${user}, ${user}"')
    assert opened(rules, user="t1", hostname="$default").may_receive("t1.example/t1")


@pytest.mark.parametrize("members", ALL)
def test_a_group_that_means_the_whole_router_is_not_for_clients_without_a_tenant(members: str) -> None:
    rules = compiled("sources: orders", members)
    denied = judged(rules, user="bob", hostname="t1.example")
    assert (denied.reason, denied.rule) == (Reason.NO_TENANT, "t1.example:members:no-tenant")
    opened(rules, user="bob", hostname="t1.example", has_tenancy=True)
    opened(compiled("sources: orders", members, head=""), user="bob", hostname="t1.example")
    opened(compiled("sources: orders", members + "\n   tenantAddresses: yes"), user="bob", hostname="t1.example")


def test_other_groups_and_vhosts_are() -> None:
    opened(compiled("sources: *"), user="bob", hostname="t1.example")
    assert opened(compiled("sources: *"), user="alice", hostname="$default").may_receive("t1.example/q")


def granting(*sources: str) -> Permissions:
    return Permissions(sources=sources, targets=())


@pytest.mark.parametrize(("user", "address"), [("t1", "t1.example/q"), ("alice.x", "alice.x.q")])
def test_a_grant_is_judged_as_the_entries_of_its_group(user: str, address: str) -> None:
    grant = granting("${user}.*", "orders")
    rules = compiled("sources: orders")
    granted = opened(rules, user=user, hostname="$default", permissions=grant)
    assert not granted.may_receive(address)
    assert granted.may_receive("orders")
    assert opened(rules, user="alice", hostname="$default", permissions=grant).may_receive("alice.q")
    loose = compiled("sources: orders\n   tenantAddresses: yes\n   substituteSeparated: yes")
    for each in (loose, compiled("sources: orders", head="")):
        assert opened(each, user=user, hostname="$default", permissions=grant).may_receive(address)


def test_a_grant_without_vhosts_is_judged_by_secure_defaults() -> None:
    grant = granting("${user}.*", "orders")
    for secure in (True, False):
        rules = Policy.compile(load(text="").policy, (), secure=secure)
        assert opened(rules, user="alice.x", permissions=grant).may_receive("alice.x.q").allowed is not secure
        assert opened(rules, user="alice", permissions=grant).may_receive("alice.q")
    whole = granting("${user}", "in/${user}")
    assert opened(Policy.compile(load(text="").policy, (), secure=True), user="a.b", permissions=whole).may_receive(
        "a.b"
    )


def test_explain_knows_the_listener(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "r.conf"
    path.write_text(SECURE + HEAD + TENANT.format("sources: *") + OTHERS.format('sources: "${user}.*"'))

    def explain(*arguments: str) -> str:
        main(["policy", "explain", "-c", str(path), "--host", "10.0.0.1", *arguments])
        printed = capsys.readouterr()
        return " ".join((printed.out + printed.err).split())

    assert "so allowed" in explain("--user", "bob", "--vhost", "t1.example", "--source", "q")
    assert "no-tenant" in explain("--user", "bob", "--vhost", "t1.example", "--listener", "clients")
    assert "open allowed" in explain("--user", "bob", "--vhost", "t1.example", "--listener", "tenants")
    denied = explain("--user", "eve", "--listener", "clients")
    assert "user not listed allowedUsers of the listener 'clients': 't1', 'alice', 'bob'" in denied
    assert "DENIED by listener:clients:allowedUsers" in denied
    assert "not listed" in explain("--user", "bob", "--unauthenticated", "--listener", "clients")
    assert "user listed" in explain("--user", "alice", "--listener", "clients", "--source", "alice.q")
    assert "no listener is called 'x'; there is tenants, clients" in explain("--listener", "x")
