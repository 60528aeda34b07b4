"""Settings by which one peer can pass for another are found, and what secureDefaults makes of them."""

from __future__ import annotations

import pytest

from trouter.config import load
from trouter.config.findings import evaluate
from trouter.config.problems import Severity

pytestmark = pytest.mark.attack

ESCAPED = " uidMissing: reject\n uidEscape: yes"
POINTS = frozenset({"ambiguous-user", "open-user-entry", "any-proxy", "service-without-tls"})


def found(text: str) -> dict[str, str]:
    """Return the cures of the findings that these tests are about, by point; all are unsafe."""
    here = [each for each in evaluate(load(text=text)) if each.point in POINTS]
    assert all(each.severity is Severity.UNSAFE for each in here)
    return {each.point: each.suggestion for each in here}


# ---------------------------------------------------------------------------------------------------- users of certificates
@pytest.mark.parametrize(
    ("more", "ambiguous"),
    [
        ("uidFormat: on", True),
        ("uidFormat: on\n uidEscape: yes", True),
        ("uidFormat: on\n uidMissing: reject", True),
        ("uidFormat: 2n", True),
        (f"uidFormat: on\n{ESCAPED}", False),
        ("uidFormat: on\n uidMissing: empty\n uidEscape: yes", False),
        ("uidFormat: n", False),
        ("uidFormat: 2", False),
        ("protocols: TLSv1.3", False),
    ],
)
def test_parts_of_certificates_that_do_not_tell_users_apart_are_found(more: str, ambiguous: bool) -> None:
    text = f"sslProfile {{\n name: p\n {more}\n}}"
    cure = {"ambiguous-user": "write uidMissing: reject and uidEscape: yes"}
    assert found(text) == (cure if ambiguous else {})


@pytest.mark.parametrize(
    ("more", "missing", "escape", "safe"),
    [
        ("uidFormat: on", "reject", True, True),
        ("uidFormat: on\n uidEscape: no", "reject", False, False),
        ("uidFormat: on\n uidMissing: skip", "skip", True, False),
        ("uidFormat: n", "skip", False, True),
    ],
)
def test_secure_defaults_tell_users_of_certificates_apart(more: str, missing: str, escape: bool, safe: bool) -> None:
    text = f"router {{ secureDefaults: yes }}\nsslProfile {{\n name: p\n {more}\n}}"
    (profile,) = load(text=text).ssl_profiles
    assert (profile.uid_missing, profile.uid_escape) == (missing, escape)
    assert ("ambiguous-user" not in found(text)) is safe


# ------------------------------------------------------------------------------------------------------------- addresses
def vhost(entries: str) -> str:
    return f"vhost {{\n hostname: a\n groups: {{\n  g: {{\n   users: b\n   {entries}\n  }}\n }}\n}}"


@pytest.mark.parametrize(
    ("entry", "cure"),
    [
        ("${user}*", "${user}.*"),
        ("{user}*", "{user}.*"),
        ("users.${user}*", "users.${user}.*"),
        ("${user}-x*", "${user}.-x*"),
        ("${user}.*", None),
        ("${user}/*", None),
        ("${user}", None),
        ("${user}-x", None),
        ("$${user}*", None),
        ("news*", None),
    ],
)
@pytest.mark.parametrize("attribute", ["sources", "targets"])
def test_an_entry_that_covers_addresses_of_longer_names_is_found(attribute: str, entry: str, cure: str | None) -> None:
    expected = {} if cure is None else {"open-user-entry": f"write {cure}"}
    assert found(vhost(f'{attribute}: "other.*, {entry}"')) == expected


@pytest.mark.parametrize("entry", ["${user}/#", "a/${user}", "${user}/*"])
def test_patterns_keep_the_name_apart(entry: str) -> None:
    assert found(vhost(f'sourcePattern: "{entry}"')) == {}


@pytest.mark.parametrize(
    ("entries", "entry"),
    [
        ('sources: "news, ${user}.*"', "${user}.*"),
        ('targets: "in.${user}/x"', "in.${user}/x"),
        ('sourcePattern: "{user}/#"', "{user}/#"),
        ('targetPattern: "a, ${user}.b"', "${user}.b"),
        ('sourcePattern: "#/${user}"', "#/${user}"),
        ('targetPattern: "a, *.{user}"', "*.{user}"),
        ('sourcePattern: "in/#/${user}"', "in/#/${user}"),
        ('sources: "#/${user}, *.${user}"', None),
        ('sourcePattern: "in#/x*/${user}"', None),
        ('sources: "${user}, in.${user}"', None),
        ('sources: "${user}-x"', None),
        ('sources: "$${user}.x"', None),
        ('targetPattern: "in/${user}"', None),
        ('sources: "${user}.*"\n   substituteSeparated: no', None),
    ],
)
def test_an_entry_that_may_reach_a_longer_name_is_found_unless_defaults_are_secure(
    entries: str, entry: str | None
) -> None:
    def about(text: str) -> list[str]:
        return [each.message for each in evaluate(load(text=text)) if each.point == "longer-users"]

    secure = "router { secureDefaults: yes }\n"
    messages = about(vhost(entries))
    assert len(messages) == (0 if entry is None else 1)
    assert all(each.startswith(f"'{entry}' of the group g ") for each in messages)
    assert about(secure + vhost(entries)) == []
    if entry is not None:
        assert about(secure + vhost(f"{entries}\n   substituteSeparated: yes"))


# --------------------------------------------------------------------------------------------------------- what stands between
@pytest.mark.parametrize(
    ("hosts", "anybody"),
    [
        ("0.0.0.0/0", True),
        ("::/0", True),
        ("0.0.0.0/1, 128.0.0.0/1", True),
        ("1.0.0.0-223.255.255.255", True),
        ("10.0.0.0/8, 172.16.0.0/12, 192.168.0.0/16, 127.0.0.0/8", True),
        ("10.0.0.0/8, 172.16.0.0/12, 192.168.0.0/16", False),
        ("fc00::/7", False),
        ("192.0.2.1", False),
        ("10.0.0.0/8, 10.0.0.0/8, 10.1.0.0/16", False),
    ],
)
def test_load_balancers_that_may_be_anybody_are_found(hosts: str, anybody: bool) -> None:
    text = f"listener {{\n host: ::1\n authenticatePeer: yes\n proxyProtocolHosts: {hosts}\n}}"
    assert found(text) == ({"any-proxy": "name the load balancers"} if anybody else {})


@pytest.mark.parametrize(
    ("more", "exposed"),
    [
        ("host: auth.example.com", True),
        ("authService: auth.example.com:5672", True),
        ("host: auth.example.com\n sslProfile: p", False),
        ("host: 127.0.0.1", False),
        ("host: ::1", False),
        ("port: 5672", False),
    ],
)
def test_a_service_on_another_machine_that_is_asked_without_tls_is_found(more: str, exposed: bool) -> None:
    text = f"sslProfile {{ name: p }}\nauthServicePlugin {{\n name: s\n allowInsecurePlain: no\n {more}\n}}"
    assert found(text) == ({"service-without-tls": "write an sslProfile"} if exposed else {})
