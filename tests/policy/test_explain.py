"""Decisions as text, and tables of expected decisions of a policy."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.policy.policies import policy
from trouter.config import ConfigurationError, load
from trouter.config.hosts import remote_hosts
from trouter.policy.compiled import Policy
from trouter.policy.expectation_file import MAX_FILE_BYTES, read_expectations
from trouter.policy.expectations import hold
from trouter.policy.explain import Question, explain

RULES = policy(
    """vhost {
 hostname: traders.com
 aliases: t.com
 allowUnknownUser: yes
 maxConnections: 50
 groups: {
  feeds: {
   users: feeder
   remoteHosts: 10.0.0.0/8, 192.168.1.1-192.168.1.9, my-host.example.com
   sources: a, b*, x-${user}
   targetPattern: "${user}/#, #/a/#/a/#"
   maxSenders: 3
   substituteAnonymous: no
  }
  everybody: { users: *, remoteHosts: 127.0.0.1, ::1 }
  $connector: { sources: in }
 }
}
vhost {
 hostname: closed.com
 groups: { $default: { remoteHosts: * } }
}
vhost {
 hostname: $default
 allowUnknownUser: yes
 groups: { $default: { remoteHosts: * } }
}""".replace("allowUnknownUser: yes\n maxConnections", "maxConnections")
)
FEEDER = Question(vhost="T.com:5672", user="feeder", host="10.1.1.1")
EXPLAINED = {
    "who may connect": (
        FEEDER,
        True,
        "traders.com:feeds:remoteHosts:1",
        ["'T.com:5672' is one of its aliases", "it lists the user 'feeder'", "entry 1 of remoteHosts: 10.0.0.0/8",
         "while there are fewer than 50 connections", "maxSenders: 3", "allowDynamicSource: no"],
    ),
    "a source": (
        Question(vhost="traders.com", user="feeder", host="192.168.1.5", source="x-feeder"),
        True,
        "traders.com:feeds:sources:3",
        ["entry 2 of remoteHosts: 192.168.1.1-192.168.1.9", "entry 3 of sources: x-${user}"],
    ),
    "no source": (
        Question(vhost="traders.com", user="feeder", host="10.0.0.1", source="c"),
        False,
        "traders.com:feeds:sources:none",
        ["no entry of sources has it"],
    ),
    "a target": (
        Question(vhost="traders.com", user="feeder", host="10.0.0.1", target="feeder/1"),
        True,
        "traders.com:feeds:targetPattern:1",
        ["entry 1 of targetPattern: ${user}/#"],
    ),
    "no target": (
        Question(vhost="traders.com", user="feeder", host="10.0.0.1", target=""),
        False,
        "traders.com:feeds:allowAnonymousSender",
        ["a sender without an address: allowAnonymousSender is no"],
    ),
    "a target of an unauthenticated user": (
        Question(vhost="traders.com", user="feeder", host="10.0.0.1", authenticated=False, target="feeder/1"),
        False,
        "traders.com:feeds:targetPattern:none",
        [],
    ),
    "every user": (
        Question(vhost="traders.com", user="bob", host="::1"),
        True,
        "traders.com:everybody:remoteHosts:2",
        ["no group lists the user 'bob', and this one is of every user"],
    ),
    "an unknown user of the default vhost": (
        Question(vhost="other.com", host="::1"),
        True,
        "$default:$default:remoteHosts:1",
        ["no vhost is called 'other.com': it is the default one", "the vhost says allowUnknownUser"],
    ),
    "no group": (
        Question(vhost="closed.com", user="bob", host="::1"),
        False,
        "closed.com:no-group",
        ["no group is for the user 'bob'"],
    ),
    "a host": (
        Question(vhost="t.com", user="feeder", host="1.1.1.1", source="a"),
        False,
        "traders.com:feeds:remote-host",
        ["no entry of remoteHosts has '1.1.1.1'", "its address is not known here"],
    ),
    "policyVhost": (
        Question(vhost="x", user="bob", host="::1", policy_vhost="traders.com"),
        True,
        "traders.com:everybody:remoteHosts:2",
        ["its host name is 'traders.com'"],
    ),
    "a connector": (
        Question(policy_vhost="traders.com", connector=True, source="in"),
        True,
        "traders.com:$connector:sources:1",
        ["it is the one for connectors", "its number is limited by no vhost"],
    ),
    "a connector without its group": (
        Question(policy_vhost="closed.com", connector=True),
        False,
        "closed.com:no-connector-group",
        ["the vhost has no group $connector"],
    ),
    "a connector without policyVhost": (
        Question(vhost="closed.com", connector=True, target="x"),
        True,
        "no-policy",
        ["nothing is held to a vhost: no policyVhost for it", "every address"],
    ),
    "a receiver without an address": (
        Question(vhost="traders.com", user="feeder", host="10.0.0.1", source=""),
        False,
        "traders.com:feeds:source",
        ["a receiver without an address"],
    ),
    "a sender without an address where there is no policy": (
        Question(vhost="closed.com", connector=True, target=""),
        True,
        "no-policy",
        ["every address"],
    ),
    "a search that is given up": (
        Question(vhost="t.com", user="feeder", host="10.0.0.1", target="/".join("a" * 20_000) + "/b"),
        True,
        "traders.com:feeds:targetPattern:2",
        [],
    ),
    "what a terminal should not see": (
        Question(vhost="traders.com", user="\x1b[2J\n", host="::1", source="\r\x00"),
        False,
        "traders.com:everybody:sources:none",
        [r"'\x1b[2J\n'", r"'\r\x00'"],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("question", "allowed", "rule", "words"), EXPLAINED.values(), ids=EXPLAINED)
def test_a_decision_is_reported_with_its_reasons(
    question: Question, allowed: bool, rule: str, words: list[str]
) -> None:
    explanation = explain(RULES, question)
    text = explanation.as_text()
    assert (explanation.allowed, explanation.rule) == (allowed, rule)
    assert text.splitlines()[-1].split() == ["so", "allowed" if allowed else "DENIED", "by", rule]
    assert max(map(len, text.splitlines())) < 300
    for word in words:
        assert word in text
    assert text.replace("\n", "").isprintable()
    mapped = json.loads(json.dumps(explanation.as_map()))
    assert (mapped["allowed"], mapped["rule"]) == (allowed, rule)
    assert [step["what"] for step in mapped["steps"]] == [step.what for step in explanation.steps]


@pytest.mark.parametrize("secure", ["yes", "no"])
def test_a_group_with_a_limit_of_0_may_have_no_link_only_where_defaults_are_secure(secure: str) -> None:
    rules = policy(
        f"router {{ secureDefaults: {secure} }}\n"
        "vhost {\n hostname: none.com\n groups: { all: { users: *, remoteHosts: *, sources: *, maxReceivers: 0 } }\n}"
    )
    explanation = explain(rules, Question(vhost="none.com", user="bob", host="::1", source="a"))
    assert explanation.allowed == (secure == "no")
    if secure == "yes":
        assert explanation.rule == "none.com:all:maxReceivers"
        assert "maxReceivers is 0" in explanation.as_text()


def test_an_explanation_for_programs_has_every_part() -> None:
    explanation = explain(RULES, FEEDER).as_map()
    del explanation["steps"]
    settings = explanation.pop("settings")
    assert explanation == {
        "allowed": True,
        "rule": "traders.com:feeds:remoteHosts:1",
        "vhost": "traders.com",
        "group": "feeds",
        "restricted": True,
        "limits": {"connections": 50, "perUser": 65535, "perHost": 65535},
    }
    assert (settings["maxSenders"], settings["maxFrameSize"], settings["allowWaypointLinks"]) == (3, None, True)
    denied = explain(RULES, Question(vhost="closed.com", user="bob")).as_map()
    assert (denied["reason"], denied["vhost"], denied["group"]) == ("no-group", "closed.com", "")


def test_without_a_policy_everything_is_allowed() -> None:
    configuration = load(text="vhost { hostname: a }")
    explanation = explain(Policy.compile(configuration.policy, configuration.vhosts), Question(vhost="a", source="x"))
    assert explanation.allowed
    assert "the policy does not say enableVhostPolicy" in explanation.as_text()


def test_hosts_are_shown_as_they_are_written() -> None:
    entries = ("10.0.0.0/8", "10.0.0.1", "10.0.0.1-10.0.0.9", "fd00::/120", "::1", "0.0.0.0/0", "a.example.com")
    assert tuple(str(host) for host in remote_hosts(entries)) == entries
    assert str(remote_hosts(("*",))[0]) == "*"
    assert str(remote_hosts(("10.0.0.0-10.0.0.255",))[0]) == "10.0.0.0/24"


# --------------------------------------------------------------------------------------------------- expectations
TABLE = """{
 # comments may stand here
 "addresses": {"My-Host.example.com.": "172.16.0.1", "other.example.com": ["172.16.0.2", "172.16.0.3"]},
 "expectations": [
  {"vhost": "t.com", "user": "feeder", "host": "172.16.0.1", "group": "feeds",
   "rule": "traders.com:feeds:remoteHosts:3", "mayReceive": ["a", "bb", "x-feeder"],
   "mayNotReceive": ["c"], "maySend": "feeder/1", "mayNotSend": ["", "x"]},
  {"vhost": "t.com", "user": "feeder", "host": "172.16.0.2", "open": false},
  {"vhost": "t.com", "user": "feeder", "host": "10.0.0.1", "authenticated": false, "mayNotSend": "feeder/1"},
  {"vhost": "closed.com", "user": "bob", "host": "::1", "open": false, "rule": "closed.com:no-group"},
  {"policyVhost": "traders.com", "connector": true, "mayReceive": "in"},
  {"vhost": "nowhere.com", "host": "::1", "group": "$default", "mayNotReceive": "a"},
 ],
}
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "expectations.json"
    path.write_text(text)
    return path


def test_a_policy_is_as_expected(tmp_path: Path) -> None:
    read = read_expectations(written(tmp_path, TABLE))
    outcome = hold(read, RULES)
    assert (outcome.failures, outcome.held, len(read.rows), read.policy) == ([], 20, 6, None)


FAILURES = {
    '{"vhost": "t.com", "user": "feeder", "host": "9.9.9.9"}': [
        ("{", "'feeder' at 't.com' from 9.9.9.9 may not connect, by traders.com:feeds:remote-host")
    ],
    '{"vhost": "t.com", "user": "feeder", "host": "10.0.0.1", "open": false}': [
        ("{", "'feeder' at 't.com' from 10.0.0.1 may connect, by traders.com:feeds:remoteHosts:1")
    ],
    '{"vhost": "t.com", "user": "bob", "host": "::1", "group": "feeds", "rule": "x"}': [
        ("{", "'bob' at 't.com' from ::1: decided by traders.com:everybody:remoteHosts:2, not by x"),
        ("{", "'bob' at 't.com' from ::1: in the group 'everybody', not feeds"),
    ],
    '{"vhost": "t.com", "user": "feeder", "host": "10.0.0.1", "mayReceive": ["a", "c"], "maySend": "a"}': [
        ('"c"', "'feeder' at 't.com' from 10.0.0.1 may not receive from 'c', by traders.com:feeds:sources:none"),
        ('"a"}', "'feeder' at 't.com' from 10.0.0.1 may not send to 'a', by traders.com:feeds:targetPattern:none"),
    ],
    '{"vhost": "t.com", "user": "feeder", "host": "10.0.0.1", "mayNotReceive": "bx", "mayNotSend": "feeder"}': [
        ('"bx"', "'feeder' at 't.com' from 10.0.0.1 may receive from 'bx', by traders.com:feeds:sources:2"),
        ('"feeder"}', "'feeder' at 't.com' from 10.0.0.1 may send to 'feeder', by traders.com:feeds:targetPattern:1"),
    ],
}


@pytest.mark.parametrize(("row", "failures"), FAILURES.items())
def test_an_unmet_expectation_is_reported_with_its_place(
    tmp_path: Path, row: str, failures: list[tuple[str, str]]
) -> None:
    path = written(tmp_path, f'{{"expectations": [\n{row}]}}')
    assert hold(read_expectations(path), RULES).failures == [
        f"{path}:2:{row.index(at) + 1}: {message}" for at, message in failures
    ]


def test_the_policy_is_beside_the_file(tmp_path: Path) -> None:
    read = read_expectations(written(tmp_path, '{"policy": "policies", "expectations": []}'))
    assert read.policy == tmp_path / "policies"


BAD = {
    "": "expected a JSON value; text stands in double quotes",
    "[]": "a file of expectations must be a map",
    "{}": "must be given, as a list",
    '{"expectations": {}}': "must be given, as a list",
    '{"expectations": [1]}': "an expectation must be a map",
    '{"expectations": [], "polcy": "x"}': "unknown in a file of expectations (did you mean 'policy'?)",
    '{"expectations": [{"mayRecieve": "x"}]}': "unknown in an expectation (did you mean 'mayReceive'?)",
    '{"expectations": [{"user": 1}]}': "must be text",
    '{"expectations": [{"open": "yes"}]}': "must be true or false",
    '{"expectations": [{"maySend": [1]}]}': "must be text",
    '{"expectations": [{"user": "a", "user": "b"}]}': "given more than once",
    '{"expectations": [], "addresses": []}': "addresses must be a map",
    '{"expectations": []} x': "text after the value",
    '{"expectations": [': "this bracket is never closed",
    "[" * 100: "nested more than",
}


@pytest.mark.parametrize(("text", "message"), BAD.items())
def test_a_file_of_expectations_is_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        read_expectations(written(tmp_path, text))
    assert message in str(caught.value)


def test_a_file_that_is_none_is_refused(tmp_path: Path) -> None:
    for path, message in ((tmp_path, "cannot be read"), (tmp_path / "x", "cannot be read")):
        with pytest.raises(ConfigurationError, match=message):
            read_expectations(path)
    (tmp_path / "latin").write_bytes(b"\xff")
    with pytest.raises(ConfigurationError, match="UTF-8"):
        read_expectations(tmp_path / "latin")
    with (tmp_path / "large").open("wb") as file:
        file.truncate(MAX_FILE_BYTES + 1)
    with pytest.raises(ConfigurationError, match="larger"):
        read_expectations(tmp_path / "large")


@pytest.mark.parametrize("role", ["normal", "route-container"])
def test_a_dialled_peer_has_no_addresses_of_its_own_where_defaults_are_secure(role: str) -> None:
    configuration = load(text="router { secureDefaults: yes }")
    rules = Policy.compile(configuration.policy, configuration.vhosts, secure=True)
    for source, target in (("x", None), (None, "x")):
        explanation = explain(rules, Question(connector=True, role=role, source=source, target=target))
        assert (explanation.allowed, explanation.rule) == (False, "no-policyVhost:none")
    assert "it may attach no links: no policyVhost for it" in explanation.as_text()
    assert explain(rules, Question(connector=True, role=role)).allowed
