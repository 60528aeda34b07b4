"""Clients without a tenant that reach the addresses of tenants are found, by the name of a user or by a tenant's vhost."""

from __future__ import annotations

import pytest

from trouter.config import load
from trouter.config.findings import evaluate
from trouter.config.problems import Problem, Severity

pytestmark = pytest.mark.attack

TENANTS = "listener {\n name: tenants\n host: ::1\n port: 1\n multiTenant: yes\n}\n"
CLIENTS = "listener {\n name: clients\n host: ::1\n port: 2\n}\n"
MEMBERS = "users: bob\n remoteHosts: *\n sources: orders\n management: none"
SWITCHES = ("", "router { secureDefaults: yes }\n")


def vhost(hostname: str, group: str, name: str = "g", more: str = "") -> str:
    if "tenantAddresses" not in group:
        group += "\n   tenantAddresses: yes"
    return f"vhost {{\n hostname: {hostname}\n {more}\n groups: {{\n  {name}: {{\n   {group}\n  }}\n }}\n}}\n"


def anybody(entries: str) -> str:
    """Return the default vhost, of users of any name, with these entries."""
    return vhost("$default", f"remoteHosts: *\n management: none\n {entries}", "$default", "allowUnknownUser: yes")


def found(text: str, point: str, policy: str = "policy { enableVhostPolicy: yes }\n") -> list[Problem]:
    here = [each for each in evaluate(load(text=policy + text)) if each.point == point]
    assert all(each.severity is Severity.UNSAFE for each in here)
    return here


# -------------------------------------------------------------------------------------- a user's name, and a tenant's name
@pytest.mark.parametrize("switch", SWITCHES)
@pytest.mark.parametrize(
    ("entries", "tenant"),
    [
        ('sources: "${user}.*"', "t1.example"),
        ('targets: "news, {user}.*"', "t1.example"),
        ('sources: "${user}/*"', "t1"),
        ('sources: "${user}-*"', "t1-example"),
        ('sources: "t${user}.*"', "t1.example"),
        ('sourcePattern: "${user}/#"', "t1.example"),
        ('targetPattern: "${user}.*.*"', "t1.example"),
        ('sourcePattern: "#/${user}"', "t1.example"),
        ('sourcePattern: "*/${user}"', "t1"),
        ('sourcePattern: "${user}/example/orders"', "t1.example"),
    ],
)
def test_an_entry_by_which_a_user_reaches_a_tenant_whose_name_begins_alike_is_found(
    switch: str, entries: str, tenant: str
) -> None:
    (finding,) = found(switch + TENANTS + CLIENTS + anybody(entries) + vhost(tenant, MEMBERS), "user-as-tenant")
    entry = entries.rpartition('"')[0].rpartition('"')[2].rpartition(", ")[2]
    assert finding.message.startswith(f"'{entry}' of the group $default ")
    assert f"of the tenant {tenant}, through clients" in finding.message
    assert finding.suggestion.endswith(f"as in users.{entry}; or write tenantAddresses: no")


@pytest.mark.parametrize("attribute", ["tenantAddresses: no", ""])
def test_what_a_group_does_not_reach_is_not_found(attribute: str) -> None:
    groups = anybody(f'sources: "${{user}}.*"\n{attribute or "tenantAddresses: no"}') + vhost(
        "t1.example",
        f"users: bob\n remoteHosts: *\n sources: *\n management: none\n{attribute or 'tenantAddresses: no'}",
    )
    text = ("" if attribute else SWITCHES[1]) + TENANTS + CLIENTS + groups
    if not attribute:
        text = text.replace("tenantAddresses: no", "")
    assert found(text, "user-as-tenant") == found(text, "tenant-without-tenancy") == []


@pytest.mark.parametrize("switch", SWITCHES)
@pytest.mark.parametrize(
    ("entries", "tenant"),
    [
        ('sources: "users.${user}.*"', "t1.example"),
        ('sources: "users/${user}/*"', "t1.example"),
        ('sources: "t1.example/${user}.*"', "t1.example"),
        ('sourcePattern: "t1.example/${user}"', "t1.example"),
        ('sourcePattern: "users/${user}"', "t1.example"),
        ('sources: "$${user}.*"', "t1.example"),
        ('sources: "*"', "t1.example"),
    ],
)
def test_an_entry_with_text_before_the_user_or_the_name_of_the_tenant_is_none(
    switch: str, entries: str, tenant: str
) -> None:
    text = switch + TENANTS + CLIENTS + anybody(entries) + vhost(tenant, MEMBERS)
    assert found(text, "user-as-tenant") == []


@pytest.mark.parametrize(
    ("entries", "tenant"),
    [
        ('sources: "${user}.*"', "tenant"),
        ('sources: "${user}.*"', "t1/x"),
        ('sources: "${user}.*, ${user}"', "t1.example"),
        ('sourcePattern: "${user}/other/#"', "t1.example"),
        ('sourcePattern: "${user}/*"', "t1.example"),
        ('sourcePattern: "*/${user}, #/x/${user}"', "t1.example.com"),
    ],
)
def test_names_with_separators_count_only_if_they_have_addresses(entries: str, tenant: str) -> None:
    text = TENANTS + CLIENTS + anybody(entries) + vhost(f'"{tenant}"', MEMBERS)
    strict, compatible = found(SWITCHES[1] + text, "user-as-tenant"), found(text, "user-as-tenant")
    assert len(compatible) == 1
    assert len(strict) == (1 if entries.startswith(('sources: "${user}.*, ', 'sourcePattern: "*/')) else 0)


@pytest.mark.parametrize(
    ("user", "entries", "reaches"),
    [
        ("t1", 'sources: "${user}.*"', True),
        ("t1.example", 'sources: "${user}/*"', False),
        ("t1", 'sources: "${user}.example/orders"', True),
        ("t1", 'sources: "${user}.orders"', False),
        ("alice", 'sources: "${user}.*, ${user}/*"', False),
        ("t1", 'sourcePattern: "${user}/#"', True),
        ("alice", 'sourcePattern: "${user}/#"', False),
    ],
)
def test_of_a_group_with_a_list_of_users_their_names_count(user: str, entries: str, reaches: bool) -> None:
    group = vhost("$default", f"users: oper, {user}\n remoteHosts: *\n {entries}")
    text = SWITCHES[1] + TENANTS + CLIENTS + group + vhost("t1.example", MEMBERS)
    assert bool(found(text, "user-as-tenant")) is reaches


@pytest.mark.parametrize(
    ("listeners", "policy"),
    [
        (TENANTS, "policy { enableVhostPolicy: yes }\n"),
        (CLIENTS, "policy { enableVhostPolicy: yes }\n"),
        (TENANTS + CLIENTS, "policy { enableVhostPolicy: no }\n"),
        (TENANTS + CLIENTS.replace("port: 2", "port: 2\n policyVhost: staff"), "policy { enableVhostPolicy: yes }\n"),
        (
            TENANTS + CLIENTS.replace("port: 2", "port: 2\n http: yes\n websockets: no"),
            "policy { enableVhostPolicy: yes }\n",
        ),
    ],
    ids=["tenants alone", "no tenants", "no policy", "another vhost", "pages"],
)
def test_without_clients_of_both_kinds_under_a_policy_there_is_no_finding(listeners: str, policy: str) -> None:
    text = listeners + anybody('sources: "${user}.*"') + vhost("staff", MEMBERS) + vhost("t1.example", MEMBERS)
    assert found(text, "user-as-tenant", policy) == []


# ------------------------------------------------------------------------------ a tenant's vhost at a listener without tenants
TO_MANAGEMENT = 'users: bob\n remoteHosts: *\n targets: "$management"\n'


@pytest.mark.parametrize("switch", SWITCHES)
@pytest.mark.parametrize(
    ("group", "what"),
    [
        ("users: bob\n remoteHosts: *\n sources: *\n management: none", "`*`"),
        ('users: bob\n remoteHosts: *\n targets: "orders, *"\n management: none', "`*`"),
        ('users: bob\n remoteHosts: *\n sourcePattern: "#"\n management: none', "`#`"),
        ('users: bob\n remoteHosts: *\n targetPattern: "*/orders"\n management: none', "`*/orders`"),
        (f"{TO_MANAGEMENT} management: admin", "management: admin"),
        (f"{TO_MANAGEMENT} management: read", "management: read"),
        (f"{TO_MANAGEMENT} management: none", None),
        ('users: bob\n remoteHosts: *\n sources: "orders, orders.*"\n management: admin', None),
        ("remoteHosts: *\n sources: *", None),
    ],
)
def test_the_vhost_of_a_tenant_that_clients_of_another_listener_may_ask_for_is_found(
    switch: str, group: str, what: str | None
) -> None:
    here = found(switch + TENANTS + CLIENTS + vhost("t1.example", group), "tenant-without-tenancy")
    assert len(here) == (0 if what is None else 1)
    for finding in here:
        assert (
            f"clients of clients have no tenant and may ask for this vhost, and there {what} of the group g "
            in finding.message
        )
        assert finding.suggestion.startswith("write policyVhost at clients, ")


WIDE = "users: bob\n remoteHosts: *\n sources: *\n management: admin"


@pytest.mark.parametrize(
    ("tenants", "clients", "expected"),
    [
        ("", "", ["vhost/t1.example", "vhost/staff"]),
        ("", "policyVhost: $default", []),
        ("", "policyVhost: staff", []),
        ("", "policyVhost: unknown", []),
        ("policyVhost: T1.example", "", ["vhost/t1.example"]),
        ("policyVhost: t1.example", "policyVhost: staff", []),
        ("policyVhost: t1.example", "policyVhost: t1.alias", ["vhost/t1.example"]),
        ("policyVhost: $default", "", ["vhost/$default"]),
        ("", "role: route-container", ["vhost/t1.example", "vhost/staff"]),
        ("", "role: inter-router", []),
        ("", "}\nconnector {\n policyVhost: staff", ["vhost/t1.example"]),
        ("", "}\nlistener {\n host: ::1\n port: 3\n role: edge\n policyVhost: staff", ["vhost/t1.example"]),
    ],
)
def test_the_default_vhost_and_one_that_the_other_listener_names_are_no_tenants(
    tenants: str, clients: str, expected: list[str]
) -> None:
    vhosts = vhost("$default", WIDE) + vhost("t1.example", WIDE, more="aliases: t1.alias") + vhost("staff", WIDE)
    listeners = TENANTS.replace("port: 1", f"port: 1\n {tenants}") + CLIENTS.replace("port: 2", f"port: 2\n {clients}")
    mode = "router { mode: interior }\n"
    assert [each.entity for each in found(mode + listeners + vhosts, "tenant-without-tenancy")] == expected
