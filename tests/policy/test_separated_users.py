"""Users whose names begin with another user's name and a separator: `${user}` keeps them apart with secureDefaults."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.policy.policies import opened
from trouter.cli import main
from trouter.config import load
from trouter.policy.compiled import Policy

pytestmark = pytest.mark.attack

VHOST = """
policy {{ enableVhostPolicy: yes }}
vhost {{
    hostname: v
    allowUnknownUser: yes
    groups: {{
        $default: {{
            remoteHosts: *
            {0}
        }}
        named: {{
            users: bob.z
            remoteHosts: *
            {1}
        }}
    }}
}}
"""
SECURE = "router {\n secureDefaults: yes\n}\n"
#: Two users, the first one's name the beginning of the second one's.
PAIRS = [("alice", "alice.x"), ("alice", "alice/x"), ("bob@example.co", "bob@example.co.uk"), ("a.b", "a.b/c")]
GOING_ON = ('sources: "${user}.*, ${user}/*, ${user}"', 'sourcePattern: "${user}/#"', 'sources: "in.${user}.*"')


def compiled(text: str) -> Policy:
    configuration = load(text=text)
    return Policy.compile(configuration.policy, configuration.vhosts)


@pytest.mark.parametrize(("user", "longer"), PAIRS)
@pytest.mark.parametrize("entries", GOING_ON)
@pytest.mark.parametrize("more", ["", "substituteSeparated: no"])
def test_a_user_reaches_no_address_of_a_longer_name(user: str, longer: str, entries: str, more: str) -> None:
    rules = compiled(("" if more else SECURE) + VHOST.format(f"{entries}\n{more}", more))
    short, long = opened(rules, user=user), opened(rules, user=longer)
    for address in (f"{longer}.secret", f"{longer}/secret", longer, f"in.{longer}.secret"):
        assert not (short.may_receive(address) and long.may_receive(address))
        assert not long.may_receive(address)
    if "." not in user:
        beginning = "in." if "in." in entries else ""
        assert short.may_receive(f"{beginning}{user}.orders"), "its own"


def test_an_entry_of_one_group_closes_the_addresses_that_end_with_the_name_in_another() -> None:
    rules = compiled(SECURE + VHOST.format('sources: "${user}.*"', 'sources: "${user}, orders"'))
    assert opened(rules, user="bob").may_receive("bob.z")
    assert not opened(rules, user="bob.z").may_receive("bob.z")
    assert opened(rules, user="bob.z").may_receive("orders")


@pytest.mark.parametrize("entries", ['sources: "in.${user}, ${user}"', 'sourcePattern: "in/${user}"'])
def test_names_with_separators_are_served_where_no_entry_goes_on(entries: str) -> None:
    rules = compiled(SECURE + VHOST.format(entries, entries))
    for user in ("alice", "alice.x", "bob@example.co.uk"):
        assert opened(rules, user=user).may_receive(f"in.{user}" if "sources" in entries else f"in/{user}")


@pytest.mark.parametrize(("longer", "user"), [("bob@example.com", "com"), ("a/b", "b"), ("a.b/c", "c")])
@pytest.mark.parametrize("entries", ['sourcePattern: "#/${user}"', 'sourcePattern: "*/${user}, ${user}"'])
@pytest.mark.parametrize("more", ["", "substituteSeparated: no"])
def test_a_wildcard_before_the_user_reaches_no_address_of_a_name_that_ends_with_the_user(
    user: str, longer: str, entries: str, more: str
) -> None:
    rules = compiled(("" if more else SECURE) + VHOST.format(f"{entries}\n{more}", more))
    short, long = opened(rules, user=user), opened(rules, user=longer)
    for address in (f"inbox/{longer}", f"q.{longer}", longer):
        assert not long.may_receive(address)
    assert short.may_receive(f"inbox/{user}"), "its own"


def test_today_and_with_the_attribute_names_are_text() -> None:
    for head, more in (("", ""), (SECURE, "substituteSeparated: yes")):
        rules = compiled(head + VHOST.format(f'sources: "${{user}}.*"\n{more}', more))
        assert opened(rules, user="alice.x").may_receive("alice.x.secret")
        assert opened(rules, user="alice").may_receive("alice.x.secret")


@pytest.mark.parametrize(("user", "longer"), PAIRS)
def test_the_policy_that_init_writes_is_safe_with_any_names(tmp_path: Path, user: str, longer: str) -> None:
    assert main(["init", str(tmp_path / "trouter.conf")]) == 0
    configuration = load(tmp_path / "trouter.conf")
    rules = Policy.compile(configuration.policy, configuration.vhosts)
    short, long = (opened(rules, user=name, hostname="$default") for name in (user, longer))
    for address in (f"{longer}.secret", longer, f"{longer}.x.y"):
        assert not long.may_send(address)
        assert not long.may_receive(address)
    assert bool(short.may_receive(f"{user}.orders")) is ("." not in user)
