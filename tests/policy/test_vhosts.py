"""The vhost and group of a connection, and the hosts that it may come from (security.md 4.1 to 4.5)."""

from __future__ import annotations

import pytest

from tests.policy.policies import admit, group, opened, policy, refused
from trouter.config import ConfigurationError, VhostEntity, load
from trouter.policy.choice import ChosenBy
from trouter.policy.compiled import ConnectionLimits, Policy
from trouter.policy.counts import VhostConnections
from trouter.policy.judge import Admission
from trouter.policy.kinds import MemberBy, Reason

OPEN = "groups: { g: { users: *, remoteHosts: * } }"


def vhosts(*names: str, settings: str = "") -> Policy:
    """Return vhosts, each given as `name` or `name=alias,alias`."""
    sections = []
    for name in names:
        hostname, _, aliases = name.partition("=")
        sections.append(f'vhost {{\n hostname: "{hostname}"\n aliases: "{aliases}"\n {OPEN}\n}}')
    return policy("\n".join(sections), settings)


# ---------------------------------------------------------------------------------------------- the policy, section 4.1
def test_without_enable_vhost_policy_vhosts_hold_no_client() -> None:
    configuration = load(text="vhost { hostname: v }")
    rules = Policy.compile(configuration.policy, configuration.vhosts)
    admission = opened(rules, "other", "")
    assert (admission.unrestricted, admission.vhost, admission.rule) == (True, "", "no-policy")
    assert admission.may_send("anything").allowed
    assert admission.settings.allow_admin_status_update


@pytest.mark.parametrize(("settings", "connector"), [("", False), ("\nenableVhostPolicy: yes\n", True)])
def test_a_connection_without_a_vhost_has_no_largest_message(settings: str, connector: bool) -> None:
    rules = Policy.compile(load(text=f"policy {{ maxMessageSize: 5000{settings} }}").policy, ())
    admission = admit(rules, "a", "alice", "10.0.0.1", authenticated=True, connector=connector)
    assert isinstance(admission, Admission)
    assert admission.settings.max_message_size is None


def test_default_vhost_may_have_another_name_or_none() -> None:
    assert opened(vhosts("a", "b", settings=" defaultVhost: b"), "x").vhost == "b"
    assert refused(vhosts("a", "$default", settings=' defaultVhost: ""'), "x").reason is Reason.NO_VHOST
    assert refused(vhosts("a", settings=" defaultVhost: b"), "x").reason is Reason.NO_VHOST


# --------------------------------------------------------------------------------------------- vhosts, section 4.2, 4.3
HOSTNAMES = {
    "as written": ("www.example.com", "WWW.Example.com"),
    "a port": ("www.example.com", "www.example.com:5672"),
    "a trailing dot": ("www.example.com", "www.example.com."),
    "both": ("www.example.com", "www.EXAMPLE.com.:amqp".replace(":amqp", ":5671")),
    "configured with a port": ("www.example.com:5672", "www.example.com"),
    "configured in capitals": ("WWW.EXAMPLE.COM", "www.example.com"),
    "an address of IPv6": ("::1", "[::1]:5672"),
    "an address of IPv6 alone": ("::1", "::1"),
    "no host name": ("", None),
    "an empty host name": ("", ""),
}


@pytest.mark.parametrize(("hostname", "asked"), HOSTNAMES.values(), ids=HOSTNAMES)
def test_host_names_are_compared_without_case_port_and_dot(hostname: str, asked: str | None) -> None:
    admission = opened(vhosts(hostname), asked)
    assert (admission.vhost, admission.chosen_by) == (hostname, ChosenBy.HOSTNAME)


OTHERS = [
    "www.example.co", "ww.example.com", "www/example/com", "www.example.com:x", "www.example.com..",
    ".www.example.com", "www.example.com:1:2", "www.example.com:5672.", "", None,
]  # fmt: skip


@pytest.mark.parametrize("asked", OTHERS)
def test_other_host_names_are_other_vhosts(asked: str | None) -> None:
    assert refused(vhosts("www.example.com"), asked).reason is Reason.NO_VHOST


def test_only_ascii_letters_have_a_case() -> None:
    assert refused(vhosts("kelvin"), "\N{KELVIN SIGN}elvin").reason is Reason.NO_VHOST


CHOICES = {
    "host name": ("a", "a", ChosenBy.HOSTNAME),
    "alias": ("A2:5672", "a", ChosenBy.ALIAS),
    "default": ("x", "$default", ChosenBy.DEFAULT),
    "the default by name": ("$default", "$default", ChosenBy.HOSTNAME),
    "wildcards are text": ("*.example.com", "*.example.com", ChosenBy.HOSTNAME),
    "wildcards match nothing": ("x.example.com", "$default", ChosenBy.DEFAULT),
}


@pytest.mark.parametrize(("asked", "vhost", "chosen_by"), CHOICES.values(), ids=CHOICES)
def test_a_vhost_is_chosen(asked: str, vhost: str, chosen_by: ChosenBy) -> None:
    admission = opened(vhosts("a=a1,a2", "b", "$default", "*.example.com"), asked)
    assert (admission.vhost, admission.chosen_by) == (vhost, chosen_by)


PATTERNS = {
    "x.example.com": ("*.example.com", ChosenBy.PATTERN),
    "X.EXAMPLE.COM:5672": ("*.example.com", ChosenBy.PATTERN),
    "www.example.com": ("www.example.com", ChosenBy.HOSTNAME),
    "x.y.example.com": ("#.com", ChosenBy.PATTERN),
    "com": ("#.com", ChosenBy.PATTERN),
    "x.org": ("org", ChosenBy.PATTERN),
    "org": ("org", ChosenBy.HOSTNAME),
    "x/example/com": ("$default", ChosenBy.DEFAULT),
    "*.example.com": ("*.example.com", ChosenBy.PATTERN),
    "#.com": ("#.com", ChosenBy.PATTERN),
    "": ("$default", ChosenBy.DEFAULT),
}


@pytest.mark.parametrize(("asked", "expected"), PATTERNS.items(), ids=PATTERNS)
def test_patterns_are_preferred_exact_first(asked: str, expected: tuple[str, ChosenBy]) -> None:
    names = ("*.example.com", "www.example.com", "#.com", "org=*.org", "$default")
    admission = opened(vhosts(*names, settings=" enableVhostNamePatterns: yes"), asked)
    assert (admission.vhost, admission.chosen_by) == expected


def test_policy_vhost_is_in_the_place_of_the_host_name() -> None:
    rules = vhosts("a", "b=alias", "$default")
    for asked, vhost in (("b", "b"), ("ALIAS", "b"), ("x", "$default")):
        admission = admit(rules, "a", "u", "::1", authenticated=True, policy_vhost=asked)
        assert isinstance(admission, Admission)
        assert admission.vhost == vhost


REFUSED = {
    "unknown in a vhost": "vhost { hostname: a, foo: 1 }",
    "unknown in a group": "router { secureDefaults: yes }\nvhost { hostname: a, groups: { g: { foo: 1 } } }",
    "maxConnections": "vhost { hostname: a, maxConnections: 65536 }",
    "allowUnknownUser without $default": "vhost { hostname: a, allowUnknownUser: yes }",
    "the same but for case and port": "vhost { hostname: a }\nvhost { hostname: A:5672 }",
    "an alias of its own": "vhost { hostname: a, aliases: A }",
    "an alias twice": 'vhost {\n hostname: a\n aliases: "b, B."\n}',
    "an alias of another": "vhost { hostname: a, aliases: b }\nvhost { hostname: b }",
    "the same pattern": "policy { enableVhostNamePatterns: yes }\nvhost { hostname: #.#.x }\nvhost { hostname: #.x }",
    "a user in two groups": "vhost { hostname: a, groups: { g: { users: u }, h: { users: u } } }",
}


@pytest.mark.parametrize("text", REFUSED.values(), ids=REFUSED)
def test_an_undecidable_policy_is_not_loaded(text: str) -> None:
    with pytest.raises(ConfigurationError):
        load(text=text)


# -------------------------------------------------------------------------------------------------- groups, section 4.4
GROUPS = """vhost {
 hostname: v
 allowUnknownUser: %s
 groups: {
  listed: { users: "alice, anonymous, *x", remoteHosts: * }
  nobody: { remoteHosts: * }
  nobody2: { remoteHosts: * }
  %s
  $default: { remoteHosts: * }
 }
}"""
EVERYBODY = "everybody: { users: *, remoteHosts: * }"
MEMBERS = {
    "listed": ("alice", True, "listed", MemberBy.LISTED),
    "listed, though there is *": ("alice", False, "listed", MemberBy.LISTED),
    "a listed name that looks like a wildcard": ("*x", False, "listed", MemberBy.LISTED),
    "every user": ("bob", False, "everybody", MemberBy.EVERY_USER),
    "every user before unknown ones": ("bob", True, "everybody", MemberBy.EVERY_USER),
    "whose name is a wildcard": ("*", False, "everybody", MemberBy.EVERY_USER),
    "another case": ("Alice", False, "everybody", MemberBy.EVERY_USER),
    "without SASL": ("anonymous", False, "listed", MemberBy.LISTED),
    "without a name": ("", True, "$default", MemberBy.UNKNOWN_USER),
}


@pytest.mark.parametrize(("user", "unknown", "name", "member_by"), MEMBERS.values(), ids=MEMBERS)
def test_a_user_is_in_one_group(user: str, unknown: bool, name: str, member_by: MemberBy) -> None:
    admission = opened(policy(GROUPS % ("yes" if unknown else "no", EVERYBODY)), user=user)
    assert (admission.group, admission.member_by) == (name, member_by)


def test_unknown_users_are_in_the_default_group_or_nowhere() -> None:
    admission = opened(policy(GROUPS % ("yes", "")), user="bob")
    assert (admission.group, admission.member_by) == ("$default", MemberBy.UNKNOWN_USER)
    for user in ("bob", "*"):
        denial = refused(policy(GROUPS % ("no", "")), user=user)
        assert (denial.reason, denial.vhost, denial.rule) == (Reason.NO_GROUP, "v", "v:no-group")


def test_the_empty_name_is_in_no_group() -> None:
    assert refused(policy(GROUPS % ("no", EVERYBODY)), user="").reason is Reason.NO_GROUP


# --------------------------------------------------------------------------------------------- remoteHosts, section 4.5
HOSTS = {
    "any": ("*", ["10.0.0.1", "::1", "", "not an address"], []),
    "an address": ("10.0.0.1", ["10.0.0.1", "::ffff:10.0.0.1"], ["10.0.0.2", "::10.0.0.1", "", "x"]),
    "an address of IPv6": ("fd00::1", ["fd00::1", "FD00:0::1"], ["fd00::2", "10.0.0.1"]),
    "an address of IPv4 as IPv6": ("::ffff:10.0.0.1", ["10.0.0.1", "::ffff:a00:1"], ["10.0.0.2"]),
    "a range": ("10.0.0.1-10.0.1.0", ["10.0.0.1", "10.0.0.255", "10.0.1.0"], ["10.0.0.0", "10.0.1.1", "::a00:1"]),
    "a range of IPv6": ("fd00::1-fd00::9", ["fd00::1", "fd00::9"], ["fd00::", "fd00::a", "0.0.0.5"]),
    "a network": ("10.1.2.3/8", ["10.0.0.0", "10.255.255.255", "::ffff:10.1.1.1"], ["11.0.0.0", "9.255.255.255"]),
    "a network of IPv6": ("fd00::/8", ["fd00::1", "fdff::1"], ["fe00::1", "10.0.0.1"]),
    "a network of IPv4 as IPv6": ("::ffff:10.0.0.0/104", ["10.9.9.9"], ["11.0.0.0", "::1"]),
    "several": ("10.0.0.1, ::1, 10.0.0.3-10.0.0.4", ["10.0.0.1", "::1", "10.0.0.3"], ["10.0.0.2", "::2"]),
    "overlapping": ("10.0.0.0/8, 10.1.0.0-10.2.0.0, 10.1.1.1", ["10.0.0.0", "10.1.1.1", "10.255.0.0"], ["11.0.0.0"]),
    "empty": ('""', [], ["10.0.0.1", "::1", ""]),
    "an empty list": ("[]", [], ["10.0.0.1", "::1"]),
    "a name with a hyphen": ("my-host.example.com", ["10.0.0.7", "fd00::7"], ["10.0.0.8"]),
    "a name and an address": ("my-host.example.com, 10.0.0.9", ["10.0.0.7", "10.0.0.9"], ["10.0.0.8"]),
    "a name not found": ("gone.example.com", [], ["10.0.0.7"]),
}
ADDRESSES = {"my-host.example.com": ["10.0.0.7", "fd00::7", "no address"], "other.example.com": ["10.0.0.8"]}


@pytest.mark.parametrize(("hosts", "inside", "outside"), HOSTS.values(), ids=HOSTS)
def test_a_group_is_for_hosts(hosts: str, inside: list[str], outside: list[str]) -> None:
    rules = group(f"remoteHosts: {hosts}").with_addresses(ADDRESSES)
    for host in inside:
        assert opened(rules, host=host).host_entry
    for host in outside:
        denial = refused(rules, host=host)
        assert (denial.reason, denial.rule) == (Reason.REMOTE_HOST, "v:g:remote-host")


def test_without_remote_hosts_no_client_comes_in() -> None:
    rules = policy("vhost { hostname: v, groups: { g: { users: * } } }")
    assert refused(rules).reason is Reason.REMOTE_HOST


def test_the_rule_names_the_entry() -> None:
    rules = group("remoteHosts: 10.0.0.0/24, ::1, my-host.example.com").with_addresses(
        {"my-host.example.com": ["fd00::7"]}
    )
    for number, host in enumerate(("10.0.0.200", "::1", "fd00::7"), 1):
        assert opened(rules, host=host).rule == f"v:g:remoteHosts:{number}"


def test_names_are_looked_up_elsewhere_and_kept_until_they_are_again() -> None:
    vhost = "vhost { hostname: v, groups: { g: { users: *, remoteHosts: My-Host.Example.COM. } } }"
    configuration = load(text=f"policy {{ enableVhostPolicy: yes }}\n{vhost}")
    rules = Policy.compile(configuration.policy, configuration.vhosts)
    assert rules.host_names == {"my-host.example.com"}
    assert refused(rules, host="10.0.0.7").reason is Reason.REMOTE_HOST
    known = rules.with_addresses(ADDRESSES)
    assert opened(known, host="10.0.0.7").host_entry == 1
    changed = Policy.compile(configuration.policy, configuration.vhosts, previous=known)
    assert opened(changed, host="10.0.0.7").host_entry == 1
    anew = changed.with_addresses({"my-host.example.com": ["10.0.0.70"]})
    assert refused(anew, host="10.0.0.7").reason is Reason.REMOTE_HOST
    given = Policy.compile(configuration.policy, configuration.vhosts, ADDRESSES)
    assert opened(given, host="10.0.0.7").host_entry == 1


def test_a_user_listed_in_another_group_is_not_unknown() -> None:
    rules = policy("""vhost {
 hostname: v
 allowUnknownUser: yes
 groups: {
  admin: { users: alice, remoteHosts: 127.0.0.1 }
  $default: { remoteHosts: * }
 }
}""")
    assert refused(rules, user="alice", host="10.0.0.1").rule == "v:admin:remote-host"
    assert opened(rules, user="carol", host="10.0.0.1").group == "$default"


# ---------------------------------------------------------------------------------------- connectors, section 4.9, 4.11
CONNECTOR = """vhost {
 hostname: v
 aliases: w
 groups: {
  $connector: {
   sources: a
   maxSenders: 3
   maxFrameSize: 4096
   maxSessions: 2
   maxSessionWindow: 8192
   maxConnectionsPerUser: 1
  }
 }
}
vhost { hostname: $default }"""


def test_a_connector_is_held_to_the_connector_group() -> None:
    admission = admit(policy(CONNECTOR), None, "us", "x", authenticated=False, policy_vhost="W", connector=True)
    assert isinstance(admission, Admission)
    assert (admission.vhost, admission.group, admission.rule) == ("v", "$connector", "v:$connector")
    assert admission.may_receive("a").rule == "v:$connector:sources:1"
    assert not admission.may_receive("b")
    settings = admission.settings
    assert (settings.max_senders, settings.max_frame_size, settings.max_sessions, settings.max_session_window) == (
        3, None, None, None,
    )  # fmt: skip
    assert admission.limits.per_user > 65535


def test_a_connector_without_its_vhost_or_group_is_denied() -> None:
    rules = policy(CONNECTOR)
    for vhost, reason in (("x", Reason.NO_VHOST), ("$default", Reason.NO_CONNECTOR_GROUP)):
        denial = admit(rules, None, "", "", authenticated=False, policy_vhost=vhost, connector=True)
        assert not denial
        assert getattr(denial, "reason", None) is reason


def test_a_connector_without_policy_vhost_is_exempt() -> None:
    admission = admit(policy(CONNECTOR), "v", "", "", authenticated=False, connector=True)
    assert isinstance(admission, Admission)
    assert admission.unrestricted


# ------------------------------------------------------------------------------------------------- limits, section 4.10
def test_limits_of_a_group_precede_limits_of_the_vhost() -> None:
    rules = policy("""vhost {
 hostname: v
 maxConnections: 9
 maxConnectionsPerUser: 8
 maxConnectionsPerHost: 7
 groups: {
  both: { users: alice, remoteHosts: *, maxConnectionsPerUser: 1, maxConnectionsPerHost: 2 }
  none: { users: bob, remoteHosts: *, maxConnectionsPerUser: 0 }
  neither: { users: *, remoteHosts: * }
 }
}""")
    assert opened(rules, user="alice").limits == ConnectionLimits(9, 1, 2)
    assert opened(rules, user="bob").limits == ConnectionLimits(9, 0, 7)
    assert opened(rules, user="carol").limits == ConnectionLimits(9, 8, 7)


# ------------------------------------------------------------------------------------------------ changes, section 4.13
def test_an_unchanged_vhost_is_compiled_once() -> None:
    first, second = load(text=f"vhost {{\n hostname: a\n {OPEN}\n}}\nvhost {{\n hostname: b\n {OPEN}\n}}").vhosts
    entity = load(text="policy { enableVhostPolicy: yes }").policy
    before = Policy.compile(entity, (first, second))
    other = load(text="vhost { hostname: b }").vhosts[0]
    after = Policy.compile(entity, (first, other), previous=before)
    assert after.vhosts["a"] is before.vhosts["a"]
    assert refused(after, "b").reason is Reason.NO_GROUP
    assert opened(before, "b").group == "g"
    larger = load(text="policy { enableVhostPolicy: yes, maxMessageSize: 7 }").policy
    assert opened(Policy.compile(larger, (first,), previous=after), "a").settings.max_message_size == 7


def test_a_vhost_that_is_gone_leaves_its_names_free() -> None:
    with_aliases = vhosts("a=b,c")
    entity = with_aliases.entity
    assert refused(Policy.compile(entity, (), previous=with_aliases), "b").reason is Reason.NO_VHOST


@pytest.mark.parametrize(("per_user", "per_host"), [(1, 100), (100, 1)])
def test_a_change_does_not_mix_up_users_and_hosts(per_user: int, per_host: int) -> None:
    def vhost(text: str) -> VhostEntity:
        return load(text=f"vhost {{\n hostname: v\n{text}\n {OPEN}\n}}").vhosts[0]

    entity = load(text="policy { enableVhostPolicy: yes }").policy
    before = Policy.compile(entity, [vhost("maxConnectionsPerUser: 7")])
    changed = vhost(f"maxConnectionsPerUser: {per_user}\n maxConnectionsPerHost: {per_host}")
    limits = opened(Policy.compile(entity, [changed], previous=before)).limits
    counts = VhostConnections()
    counts.add_connection("1", "alice", "10.0.0.1")
    assert counts.limits_reached(limits, "bob", "10.0.0.1") == (
        (Reason.MAX_CONNECTIONS_PER_HOST,) if per_host == 1 else ()
    )
    assert counts.limits_reached(limits, "alice", "10.0.0.2") == (
        (Reason.MAX_CONNECTIONS_PER_USER,) if per_user == 1 else ()
    )
