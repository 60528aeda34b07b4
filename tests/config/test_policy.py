"""Vhosts and their groups: every form of writing them, and every rule that they must obey."""

from __future__ import annotations

import json
from ipaddress import ip_address
from pathlib import Path

import pytest

from trouter.config import ConfigurationError, GroupSettings, load
from trouter.config.access import USER_TOKEN
from trouter.config.findings import evaluate
from trouter.config.hosts import HostRange, remote_hosts
from trouter.config.schema import BadValue

DOCUMENT = """
vhost {
    name: $default
    allowUnknownUser: true
    groups: {
        admin: {
            users: alice, bob
            remoteHosts: 127.0.0.1, ::1
        },
        $default: {
            remoteHosts: *
            sources: *
        }
    }
}
"""
FORMS = {
    "the document's": DOCUMENT,
    "JSON within": """
vhost {
    hostname: $default
    allowUnknownUser: true
    groups: {
        "admin": {"users": "alice, bob", "remoteHosts": "127.0.0.1, ::1"},
        "$default": {"remoteHosts": "*", "sources": "*"}
    }
}
""",
    "lists": """
vhost {
    id: $default
    allowUnknownUser: true
    groups: { admin: { users: [alice, bob], remoteHosts: ["127.0.0.1", "::1"] }, $default: { remoteHosts: "*", sources: [*] } }
}
""",
    "no commas, comments": """
vhost {
    hostname: $default
    allow-unknown-user: true
    groups: {
        admin: {   # the administrators
            users: alice, bob   # both
            remoteHosts: 127.0.0.1, ::1
        }
        # everybody else
        $default: {
            remoteHosts: *
            sources: *
        }
    }
}
""",
}


def groups(text: str) -> dict[str, GroupSettings]:
    return dict(load(text=f"vhost {{\n hostname: a\n groups: {{\n{text}\n }}\n}}").vhosts[0].groups)


def errors(text: str) -> list[str]:
    with pytest.raises(ConfigurationError) as caught:
        load(text=text)
    return [problem.message for problem in caught.value.problems]


def address(first: str, last: str = "") -> HostRange:
    return HostRange(ip_address(first), ip_address(last or first))


@pytest.mark.parametrize("text", FORMS.values(), ids=FORMS)
def test_every_form_reads_the_same(text: str) -> None:
    vhost = load(text=text).vhosts[0]
    assert (vhost.hostname, vhost.identity, vhost.allow_unknown_user) == ("$default", "vhost/$default", True)
    assert vhost.groups == {
        "admin": GroupSettings(users=("alice", "bob"), remote_hosts=(address("127.0.0.1"), address("::1"))),
        "$default": GroupSettings(remote_hosts=(HostRange(),), sources=("*",)),
    }


def test_the_json_form_reads_the_same() -> None:
    text = json.dumps(
        [["vhost", {"hostname": "a", "groups": {"g": {"users": ["x"], "maxSenders": 1, "allowUserIdProxy": True}}}]]
    )
    vhost = load(Path("x.json"), text).vhosts[0]
    assert vhost.groups == {"g": GroupSettings(users=("x",), max_senders=1, allow_user_id_proxy=True)}


HOSTS = {
    "": (),
    "*": (HostRange(),),
    "10.0.0.1": (address("10.0.0.1"),),
    "::1, ::1": (address("::1"),),
    "::ffff:10.0.0.1": (address("10.0.0.1"),),
    "10.0.0.1-10.0.0.9": (address("10.0.0.1", "10.0.0.9"),),
    "10.0.0.1 - 10.0.0.9": (address("10.0.0.1", "10.0.0.9"),),
    "10.0.0.0/8": (address("10.0.0.0", "10.255.255.255"),),
    "10.1.2.3/8": (address("10.0.0.0", "10.255.255.255"),),
    "fd00::/120": (address("fd00::", "fd00::ff"),),
    "my-host.example.com": (HostRange(name="my-host.example.com"),),
    "Example.COM.": (HostRange(name="example.com"),),
}


@pytest.mark.parametrize(("text", "hosts"), HOSTS.items())
def test_hosts_are_written_in_many_ways(text: str, hosts: tuple[HostRange, ...]) -> None:
    group = groups(f'g: {{\n remoteHosts: "{text}"\n }}')["g"]
    assert group.remote_hosts == hosts


NO_HOSTS = [
    "*, a",
    "10.*",
    "10.0.0",
    "10.0.0.256",
    "a_b!",
    "-a",
    "10.0.0.9-10.0.0.1",
    "10.0.0.1-::1",
    "10.0.0.0/33",
    "/",
    "x" * 64,
]


@pytest.mark.parametrize("text", NO_HOSTS)
def test_a_faulty_remote_host_is_refused(text: str) -> None:
    with pytest.raises(BadValue) as caught:
        remote_hosts(tuple(entry.strip() for entry in text.split(",")))
    assert caught.value.suggestion


RULES = {
    "sources: a*, ${user}.x, {user}*, $${user}${user}": ("sources", ("a*", "${user}.x", "{user}*", "$${user}${user}")),
    "targets: a, a": ("targets", ("a",)),
    'sourcePattern: "${user}/#, a/*/{user}" # both': ("source_pattern", ("${user}/#", "a/*/{user}")),
    "targetPattern: *": ("target_pattern", ("*",)),
    "maxFrameSize: 0": ("max_frame_size", 0),
    "maxMessageSize: 5000000000": ("max_message_size", 5000000000),
    "maxConnectionsPerRemoteHost: 3": ("max_connections_per_host", 3),
    "allow-dynamic-source: YES": ("allow_dynamic_source", True),
}


@pytest.mark.parametrize(("text", "expected"), RULES.items())
def test_a_group_takes_its_rights_from_its_attributes(text: str, expected: tuple[str, object]) -> None:
    assert getattr(groups(f"g: {{\n {text}\n }}")["g"], expected[0]) == expected[1]


BAD = {
    "g: {\n sources: ${user}{user}\n }": "'${user}{user}' holds the user's name more than once",
    "g: {\n sourcePattern: a/${user}/b\n }": "in 'a/${user}/b' the user is in the middle",
    "g: {\n sourcePattern: a${user}\n }": "in 'a${user}' the user is only a part of a token",
    "g: {\n sourcePattern: /\n }": "'/' is not a pattern",
    "g: {\n sources: a\n sourcePattern: b\n }": "'sources' and 'sourcePattern' cannot both be given",
    "g: {\n targets: a\n targetPattern: b\n }": "'targets' and 'targetPattern' cannot both be given",
    "g: {\n maxSenders: -1\n }": "is out of range",
    "g: {\n allowDynamicSource: 1.5\n }": "must be yes or no",
    "g: {\n users: a\n users: b\n }": "given more than once",
    "g: {\n users: [{ a: b }]\n }": "must be text",
    "g: alice": "a group must be a map",
    "g: { users: a }\n g: { users: b }": "there is a group of this name already",
    "g: { users: a }\n h: { users: a }": "the user 'a' is in the group 'g' already",
}


@pytest.mark.parametrize(("text", "message"), BAD.items())
def test_a_group_is_refused(text: str, message: str) -> None:
    assert errors(f"vhost {{\n hostname: a\n groups: {{\n{text}\n }}\n}}") == [message]


def test_every_error_of_every_group_is_reported_at_its_place() -> None:
    text = "vhost {\n hostname: a\n groups: {\n  g: {\n   maxSenders: x\n   foo: 1\n  }\n  h: {\n   remoteHosts: 1.*\n  }\n }\n}\nrouter { secureDefaults: yes }"
    with pytest.raises(ConfigurationError) as caught:
        load(text=text)
    found = [(problem.place.line, problem.key) for problem in caught.value.problems]
    assert found == [(5, "groups.g.maxSenders"), (6, "groups.g.foo"), (9, "groups.h.remoteHosts")]


def test_a_fault_is_reported_on_one_printable_line() -> None:
    text = '[["vhost", {"hostname": "a", "al\x1bias": 1, "groups": {"g\r\x00": {"us\u2028ers": "x"}}}]]'
    with pytest.raises(ConfigurationError) as caught:
        load(Path("x.json"), text)
    problems = [str(problem) for problem in caught.value.problems]
    assert [line for line in problems if not line.isprintable()] == []
    assert "al\\x1bias" in problems[0]


def test_an_item_of_a_list_may_hold_a_comma() -> None:
    group = groups('g: {\n users: ["CN=a,O=b", " c ", ""]\n sources: ["a,b", d]\n targets: []\n }')["g"]
    assert (group.users, group.sources, group.targets) == (("CN=a,O=b", "c"), ("a,b", "d"), ())
    assert group.written["users"] == ["CN=a,O=b", " c ", ""]


@pytest.mark.parametrize("secure", ["no", "yes"])
@pytest.mark.parametrize(("given", "ends"), [("", "connection"), ("oversizeAction: link", "link")])
def test_a_message_that_is_too_large_ends_its_connection_unless_its_link_is_given(
    secure: str, given: str, ends: str
) -> None:
    text = f"router {{ secureDefaults: {secure} }}\npolicy {{\n maxMessageSize: 1\n {given}\n}}\n"
    assert load(text=text).policy.oversize_action == ends


def test_groups_without_users_are_legal_in_any_number() -> None:
    assert list(groups("g: { remoteHosts: * }\n h: { }")) == ["g", "h"]


def test_an_attribute_without_a_value_is_not_given() -> None:
    text = '[["vhost", {"hostname": "a", "groups": {"g": {"maxSenders": null}, "h": null}}]]'
    assert load(Path("x.json"), text).vhosts[0].groups == {"g": GroupSettings()}


VHOSTS = {
    "vhost { hostname: a, aliases: a }": "an alias is the host name itself",
    "vhost {\n hostname: a\n aliases: b, b\n}": "the alias 'b' appears twice",
    "vhost { hostname: a, aliases: b }\nvhost { hostname: B }": "this host name belongs to a vhost already, at (text):1:31",
    "vhost { hostname: a. }\nvhost { hostname: A }": "this host name belongs to a vhost already, at (text):1:19",
    "policy { enableVhostNamePatterns: yes }\nvhost { hostname: #.#.x }\nvhost { hostname: #.x }": "the pattern conflicts with that of a vhost, at (text):2:19",
    "vhost { hostname: a, allowUnknownUser: yes }": "needs a group named $default",
    "vhost { hostname: a, maxConnectionsPerUser: 65536 }": "is out of range",
    "vhost { hostname: a, groups: b }": "must be a map of groups",
}


@pytest.mark.parametrize(("text", "message"), VHOSTS.items())
def test_a_vhost_is_refused(text: str, message: str) -> None:
    assert errors(text) == [message]


def test_without_patterns_wildcards_are_text() -> None:
    assert len(load(text="vhost { hostname: #.#.x }\nvhost { hostname: #.x }").vhosts) == 2


def test_vhosts_that_hold_no_client_are_warned_of() -> None:
    text = "vhost { hostname: a }\nconnector { host: a, port: 1 }"
    assert [finding.point for finding in evaluate(load(text=text))] == ["idle-vhost"]
    assert evaluate(load(text=f"policy {{ enableVhostPolicy: yes }}\n{text}")) == ()


def test_the_users_token_is_distinguished_from_its_text() -> None:
    assert [match.group() for match in USER_TOKEN.finditer("${user} {user} $${user} ${users}")] == ["${user}", "{user}"]


# ----------------------------------------------------------------------------------------------------------- policyDir
@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, hostname in (("b.json", "two"), ("a.json", "one")):
        (tmp_path / name).write_text(f'# a comment\n[["vhost", {{"hostname": "{hostname}"}}]]')
    (tmp_path / "c.conf").write_text("this is none of them")
    return tmp_path


def test_the_files_of_policy_dir_are_read_in_the_order_of_their_names(folder: Path) -> None:
    text = f"policy {{ policyDir: {folder} }}\nvhost {{ hostname: zero }}"
    assert [vhost.hostname for vhost in load(text=text).vhosts] == ["zero", "one", "two"]


def test_only_vhosts_are_taken_from_them(folder: Path) -> None:
    (folder / "d.json").write_text('[["listener", {"port": 1}], ["address", {"prefix": "a"}]]')
    configuration = load(text=f"policy {{ policyDir: {folder} }}")
    assert (configuration.listeners, configuration.addresses) == ((), ())
    assert sum("left out" in warning.message for warning in configuration.warnings) == 2


def test_faults_in_policy_files_are_named_with_their_place(folder: Path) -> None:
    (folder / "d.json").write_text('[["vhost", {"hostnam": "x"}],\n ["listener", {"prt": 1}]]')
    (folder / "e.json").write_text('{"vhost": {}}')
    (folder / "f.json").write_text("")
    (folder / "g.json").write_text('[["vhost", {"hostname": "one"}]]')
    with pytest.raises(ConfigurationError) as caught:
        load(text=f"policy {{ policyDir: {folder} }}")
    names = [Path(problem.place.file).name for problem in caught.value.problems]
    assert names == ["d.json", "d.json", "d.json", "e.json", "f.json", "g.json"]
    assert "at " in caught.value.problems[-1].message
