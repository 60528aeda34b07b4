"""Rights to receive and send: entries, patterns, and the rights of a service (security.md 3.3, 4.7, 4.8)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.policy.policies import admit, group, opened, policy
from trouter.config import load
from trouter.hooks import Permissions
from trouter.policy.compiled import Policy
from trouter.policy.entries import EntryError, parse_entry
from trouter.policy.judge import Admission, Verdict
from trouter.policy.kinds import Reason
from trouter.policy.names import NameRules
from trouter.policy.patterns import UNDECIDED, PatternRules

pytestmark = pytest.mark.attack

# ---------------------------------------------------------------------------------------- sources, targets, section 4.7
ENTRIES = {
    "everything": ("*", ["a", "*", "a/b.c", " "], [""]),
    "whole": ("a/b", ["a/b"], ["a/b/", "A/b", "a", "a/bc", ""]),
    "a beginning": ("pre*", ["pre", "prefix", "pre*"], ["pr", "apre", ""]),
    "a star elsewhere is text": ("*.suf", ["*.suf"], ["a.suf", ".suf", "*.suf2"]),
    "a star within": ("a*b", ["a*b"], ["ab", "axb"]),
    "two stars": ("a**", ["a*", "a*b"], ["a", "ab"]),
    "several": ("a, b*, c", ["a", "b", "bb", "c"], ["aa", "cc"]),
    "beginnings of beginnings": ("ab*, a*, abc*", ["a", "ab", "abd", "abcd", "az"], ["b", ""]),
    "blanks do not part entries": ("a b, c d*", ["a b", "c d", "c de"], ["a", "b", "c"]),
    "the user": ("${user}", ["alice"], ["alic", "alicea", "", "${user}", "bob"]),
    "the user first": ("${user}.q", ["alice.q"], ["bob.q", ".q", "alice", "${user}.q"]),
    "the user last": ("priv-${user}", ["priv-alice"], ["priv-", "priv-bob", "priv-alice2", "priv-${user}"]),
    "the user within": ("a.${user}.q", ["a.alice.q"], ["a..q", "a.bob.q", "a.alice.qq"]),
    "the user and more": ("d-${user}*", ["d-alice", "d-alice/x"], ["d-", "d-bob"]),
    "the user, then a star": ("${user}/*", ["alice/x", "alice//"], ["alice", "alice/", "bob/x"]),
    "the other spelling": ("x-{user}", ["x-alice"], ["x-{user}", "x-"]),
    "the token as text": ("x-$${user}", ["x-${user}"], ["x-alice", "x-$${user}", "x-$alice"]),
    "the token as text and as a token": ("$${user}-${user}", ["${user}-alice"], ["alice-alice"]),
    "several of the user": ("a${user}, b${user}*, ${user}c", ["aalice", "balicex", "alicec"], ["calice", "aalicex"]),
    "a list": ('["a,b", c]', ["a,b", "c"], ["a", "b", "a,bc"]),
    "an item with a comma and a star": ('["a,b*"]', ["a,b", "a,bc"], ["a"]),
    "none": ('""', [], ["a", "", "*"]),
    "none in a list": ("[]", [], ["a", ""]),
}


def quoted(text: str) -> str:
    return text if text[0] in '["' else f'"{text}"'


def requires_right(right: str, rights: Policy, inside: list[str], outside: list[str]) -> Callable[[str], Verdict]:
    """Check that ``rights`` allow only ``inside``, only as sources or only as targets; return what judges them."""
    admission = opened(rights)
    asked, other = admission.may_receive, admission.may_send
    if right.startswith("target"):
        asked, other = other, asked
    for address in inside:
        assert asked(address).allowed, address
        assert not other(address).allowed
    for address in outside:
        assert not asked(address).allowed, address
    return asked


@pytest.mark.parametrize("what", ["sources", "targets"])
@pytest.mark.parametrize(("entries", "inside", "outside"), ENTRIES.values(), ids=ENTRIES)
def test_an_entry_is_for_addresses(what: str, entries: str, inside: list[str], outside: list[str]) -> None:
    asked = requires_right(what, group(f"{what}: {quoted(entries)}"), inside, outside)
    assert {asked(address).rule for address in outside} <= {f"v:g:{what}:none"}


#: Spellings that the router treats as the same address, so that they must be permitted as well (security.md 4.7).
SPELLINGS = {
    "a scheme is whatever stands before the path": ("sources: pub*", "alice", [], ["pub:/secret", "pub://h/secret"]),
    "in a pattern too": ("sourcePattern: 'pub/#'", "alice", ["pub/a"], ["pub/:/secret", "pub.x:/secret"]),
    "a host": ("sources: /*, //*", "alice", ["//x/a", "/a"], []),
    "the beginning of a host": ("sources: //h*", "alice", [], ["//h/secret", "//h2/secret"]),
    "where the entry has them": ("sources: amqp:/_topo/*, amqp://h/q", "alice",
        ["amqp:/_topo/0/R/temp.x", "amqp://h/q"], ["_topo/0/R/temp.x", "q", "amqp:/q"]),
    "where the pattern has them": ("sourcePattern: 'amqp:/_topo/#'", "alice", ["amqp:/_topo/0/R/x"], ["_topo/0/R/x"]),
    "what is written plainly": ("sources: q", "alice", ["q"], ["amqp:/q", "/q", "//h/q", "q/", "q."]),
    "the router's own": ("sources: $management", "alice", ["$management"], ["/$management", "amqp:/$management"]),
    "all": ("sources: '*'", "alice", ["amqp:/q", "/q", "//h/q", "q/", "x:/y:/z"], []),
    "a separator at the end": ("sources: pre.*, whole/", "alice", ["pre.a", "whole/"], ["pre.", "pre", "whole"]),
    "a scheme in the name": ("sources: ${user}, in-${user}*", "a:/secret", [], ["a:/secret", "in-a:/secret"]),
    "one behind it": ("sources: '${user}:/x*, ${user}/*'", "alice", ["alice/q"], ["alice:/x", "alice/:/bob"]),
    "another's name and a separator": ("sources: 'priv-${user}, ${user}'", "bob.", [], ["priv-bob.", "bob."]),
    "the same in a pattern": ("sourcePattern: 'priv/${user}, ${user}/#'", "bob/", ["bob//"], ["priv/bob/", "bob/"]),
}  # fmt: skip


@pytest.mark.parametrize(("settings", "user", "inside", "outside"), SPELLINGS.values(), ids=SPELLINGS)
def test_no_spelling_of_an_address_leads_to_another(
    settings: str, user: str, inside: list[str], outside: list[str]
) -> None:
    admission = opened(group(settings), user=user)
    for address in inside:
        assert admission.may_receive(address), address
    for address in outside:
        verdict = admission.may_receive(address)
        assert not verdict, address
        assert verdict.rule.endswith(":none")


def test_no_spelling_of_an_address_evades_the_rights_from_a_service() -> None:
    admission = granted(OFF)
    assert admission.may_receive("b:c")
    assert not admission.may_receive("b:/secret")


def test_without_entries_nothing_is_allowed() -> None:
    admission = opened(group("maxSenders: 1"))
    assert not admission.may_receive("a")
    assert (admission.may_receive("a").rule, admission.may_send("").rule) == ("v:g:sources:none", "v:g:targets:none")


def test_the_rule_names_the_entry_that_allows() -> None:
    rules = group("sources: a, b*, c-${user}, d-${user}*, a\n targetPattern: 'a/*, ${user}/#'")
    admission = opened(rules)
    for number, address in enumerate(("a", "bx", "c-alice", "d-alice-x"), 1):
        assert admission.may_receive(address).rule == f"v:g:sources:{number}"
    for number, address in enumerate(("a/b", "alice/b"), 1):
        assert admission.may_send(address).rule == f"v:g:targetPattern:{number}"


def test_of_equal_entries_the_first_is_named() -> None:
    assert NameRules(["b", "{user}", "${user}"]).find_entry("u", "u") == 2
    assert PatternRules(["b", "a/#/*", "a.*.#"]).find_entry("a/b", "") == 2


NAMES = ["*", "a*", "a,b", "${user}", "{user}", "$", "a/b", "a.b", "#", "a\nb", "\0", "ü", " ", "$${user}"]


@pytest.mark.parametrize("user", NAMES)
def test_the_name_of_a_user_is_text(user: str) -> None:
    admission = opened(group("sources: priv-${user}, ${user}/in\n targetPattern: '${user}/x, y/${user}'"), user=user)
    for address in (f"priv-{user}", f"{user}/in"):
        assert admission.may_receive(address)
    for address in (f"{user}/x", f"y/{user}", f"y.{user}"):
        assert admission.may_send(address)
    for address in ("priv-", "priv-bob", "priv-ab", "priv-${user}", "bob/in", "ab/in"):
        assert bool(admission.may_receive(address)) is (address == f"priv-{user}")
    for address in ("bob/x", "a/b/c/x", "a.b/x", "a/b/x", "y/bob", "/x", "y/", "${user}/x"):
        assert bool(admission.may_send(address)) is (address in {f"{user}/x", f"{user}.x"})


NOBODY = {
    "anonymous": ("anonymous", False, ["q-", "q-${user}"], "q-anonymous"),
    "no name": ("", False, ["q-", "q-q-"], "q-anonymous"),
    "proven": ("alice", True, ["q-", "q-anonymous"], "q-alice"),
}


@pytest.mark.parametrize("secure", [False, True])
@pytest.mark.parametrize(("user", "authenticated", "outside", "inside"), NOBODY.values(), ids=NOBODY)
def test_an_unauthenticated_name_fills_user_patterns_unless_defaults_are_secure(
    user: str, authenticated: bool, outside: list[str], inside: str, secure: bool
) -> None:
    router = "router { id: R, secureDefaults: yes }\n" if secure else ""
    rules = policy(
        router
        + """vhost {
 hostname: v
 allowUnknownUser: yes
 groups: { $default: { remoteHosts: *, sources: "q-${user}", targetPattern: "${user}" } }
}"""
    )
    admission = opened(rules, user=user, authenticated=authenticated)
    assert not any(admission.may_receive(address) for address in outside)
    assert bool(admission.may_receive(inside)) is (authenticated or not secure)
    assert bool(admission.may_send(inside.removeprefix("q-"))) is (authenticated or not secure)


def test_substitute_anonymous_gives_them_some() -> None:
    rules = policy("""vhost {
 hostname: v
 allowUnknownUser: yes
 groups: { $default: { remoteHosts: *, sources: "q-${user}*", substituteAnonymous: yes } }
}""")
    for user, name in (("anonymous", "anonymous"), ("", "anonymous"), ("someone", "someone")):
        admission = opened(rules, user=user, authenticated=False)
        assert admission.may_receive(f"q-{name}")
        assert not admission.may_receive("q-")


@pytest.mark.parametrize("text", ["", "${user}${user}", "{user}-${user}*"])
def test_an_entry_that_cannot_be_decided_is_refused(text: str) -> None:
    with pytest.raises(EntryError):
        parse_entry(text)


# An independent implementation for the property: it scans from the left, and tries every entry.
def taken_apart(entry: str) -> tuple[list[str | None], bool]:
    """Return the texts of an entry, None for the user, and whether any suffix is permitted."""
    parts: list[str | None] = []
    text, at = "", 0
    end = len(entry) - entry.endswith("*")
    while at < end:
        if entry.startswith("$${user}", at):
            text, at = text + "${user}", at + 8
        elif entry.startswith("${user}", at) and entry[at - 1 : at] != "$":
            parts, text, at = [*parts, text, None], "", at + 7
        elif entry.startswith("{user}", at) and entry[at - 1 : at] != "$":
            parts, text, at = [*parts, text, None], "", at + 6
        else:
            text, at = text + entry[at], at + 1
    return [*parts, text], entry.endswith("*")


def allowed(entries: Sequence[str], user: str, address: str) -> bool:
    for entry in entries:
        parts, wildcard = taken_apart(entry)
        if not address or (None in parts and not user):
            continue
        whole = "".join(user if part is None else part for part in parts)
        if address == whole or (wildcard and address[: len(whole)] == whole):
            return True
    return False


PIECES = [
    "*",
    ",",
    "${user}",
    "$${user}",
    "{user}",
    "$",
    "{",
    "user}",
    "/",
    ".",
    "a",
    "b",
    "ab",
    "\n",
    "\0",
    "#",
    "ü",
    "-",
]
TEXTS = st.lists(st.sampled_from(PIECES), max_size=5).map("".join)


def one_token_at_most(entry: str) -> bool:
    return bool(entry) and taken_apart(entry)[0].count(None) < 2


@given(st.lists(TEXTS.filter(one_token_at_most), max_size=8), TEXTS, TEXTS)
@example(["priv-${user}"], "*", "priv-bob")
@example(["${user}b", "a${user}"], "a", "aa")
def test_an_address_is_allowed_if_and_only_if_an_entry_matches_the_address(
    entries: list[str], user: str, address: str
) -> None:
    rules = NameRules(entries)
    candidates = [address, user]
    for entry in entries:
        parts, _ = taken_apart(entry)
        whole = "".join(user if part is None else part for part in parts)
        candidates += [entry, whole, whole + address, whole[:-1]]
    for candidate in candidates:
        number = rules.find_entry(candidate, user)
        assert (number > 0) is allowed(entries, user, candidate), candidate
        assert number == 0 or allowed([entries[number - 1]], user, candidate)


# ------------------------------------------------------------------------------------------------ patterns, section 4.8
PATTERNS = {
    "a star alone is one token": ("*", ["a", "*", "ü"], ["a/b", "a.b", "", "/a", "a/"]),
    "a hash alone is all": ("#", ["a", "a/b", "a//b"], ["", "/"]),
    "one token": ("a", ["a"], ["b", "A", "/a", "a/", "a/b", ""]),
    "separators are alike": ("a.b/c", ["a.b.c", "a/b/c", "a/b.c"], ["a/b", "abc", "a/b/c/"]),
    "one token after": ("b/*", ["b.q", "b/q", "b/*"], ["b", "b/", "b/q/r", "/b/q"]),
    "any number after": ("b/#", ["b", "b/", "b/q", "b.q.r"], ["a", "bb", "/b"]),
    "any number before": ("#/b", ["b", "a/b", "/b", "x/y/b"], ["b/", "bb"]),
    "within": ("a/#/z", ["a/z", "a/b/z", "a//z", "a/z/z"], ["a", "z", "az", "a/zz"]),
    "both": ("a/*/#", ["a/b", "a/b/c"], ["a", "a/", "b"]),
    "the other order": ("a/#/*", ["a/b", "a/b/c"], ["a"]),
    "several hashes": ("#/a/#/a/#", ["a/a", "x/a/y/a/z"], ["a", "x/a/y"]),
    "a separator first": ("/a", ["/a", ".a"], ["a", "//a"]),
    "a separator last": ("a/", ["a/", "a."], ["a", "a//"]),
    "an empty token": ("a//b", ["a//b", "a../b"[:3] + "b"], ["a/b"]),
    "wildcards are whole tokens": ("a*/b#", ["a*/b#"], ["ab/b", "a/b"]),
    "a token in the address is text": ("a/b", ["a/b"], ["a/*", "a/#", "#", "*"]),
    "the user first": ("${user}/x", ["alice/x", "alice.x"], ["bob/x", "${user}/x", "alice", "alicex", "alice/x/y"]),
    "the user last": ("x/${user}", ["x/alice", "x.alice"], ["x/bob", "x/", "xalice", "x/alice/"]),
    "the user alone": ("${user}", ["alice"], ["alice/", "/alice", "bob", ""]),
    "the user and all": ("${user}/#", ["alice", "alice/", "alice/a/b"], ["alicea", "bob/a", "/alice"]),
    "all and the user": ("#/${user}", ["alice", "a/b/alice", "/alice"], ["aalice", "alice/"]),
    "the user and one": ("*/{user}", ["a/alice", ".alice"], ["alice", "/alice", "a/b/alice"]),
    "the token as text": ("$${user}/a", ["${user}/a"], ["alice/a", "$${user}/a"]),
    "several": ("a, b/*, ${user}/#", ["a", "b/c", "alice/x"], ["b", "c", "bob/x"]),
    "none": ('""', [], ["a", ""]),
}  # fmt: skip


@pytest.mark.parametrize("what", ["source", "target"])
@pytest.mark.parametrize(("patterns", "inside", "outside"), PATTERNS.values(), ids=PATTERNS)
def test_a_pattern_is_for_addresses(what: str, patterns: str, inside: list[str], outside: list[str]) -> None:
    requires_right(f"{what}Pattern", group(f"{what}Pattern: {quoted(patterns)}"), inside, outside)


def matches(pattern: Sequence[str], tokens: Sequence[str]) -> bool:
    if not pattern:
        return not tokens
    if pattern[0] == "#":
        return any(matches(pattern[1:], tokens[at:]) for at in range(len(tokens) + 1))
    return bool(tokens) and pattern[0] in {"*", tokens[0]} and matches(pattern[1:], tokens[1:])


TOKENS = st.lists(st.sampled_from(["a", "b", "*", "#", ""]), min_size=1, max_size=5)


@given(st.lists(TOKENS, max_size=6), st.lists(st.sampled_from(["a", "b", ""]), min_size=1, max_size=6))
def test_an_address_is_allowed_if_and_only_if_a_pattern_matches_the_address(
    patterns: list[list[str]], tokens: list[str]
) -> None:
    written = ["/".join(pattern) for pattern in patterns]
    address = ".".join(tokens)
    number = PatternRules(written).find_entry(address, "")
    assert (number > 0) is (address != "" and any(matches(pattern, tokens) for pattern in patterns))
    assert number == 0 or matches(patterns[number - 1], tokens)


USERS = st.lists(st.sampled_from(["*", "#", "/", ".", "a", "b", "${user}", ",", "\x01"]), min_size=1, max_size=4).map(
    "".join
)
PLAIN = st.lists(st.sampled_from(["a", "b", "*", "#", ""]), max_size=3)


@given(PLAIN, st.booleans(), USERS, st.lists(st.sampled_from(["a", "b", ""]), max_size=4), USERS)
def test_the_user_in_a_pattern_is_text(rest: list[str], first: bool, user: str, tokens: list[str], other: str) -> None:
    pattern = "/".join(["${user}", *rest] if first else [*rest, "${user}"])
    rules = PatternRules([pattern])
    ours = "/".join([user, *tokens] if first else [*tokens, user])
    theirs = "/".join([other, *tokens] if first else [*tokens, other])
    if not matches(rest, tokens):
        return
    assert rules.find_entry(ours, user) == 1
    own = (theirs + "/").startswith(user + "/") if first else ("/" + theirs).endswith("/" + user)
    if not own and "." not in theirs:
        assert rules.find_entry(theirs, user) == 0
    assert rules.find_entry(ours, "") == 0


@pytest.mark.parametrize("text", ["a/${user}/b", "a${user}", "${user}/${user}", "/${user}/a", "${user}/a/{user}"])
def test_a_pattern_that_cannot_be_decided_is_refused(text: str) -> None:
    with pytest.raises(EntryError):
        PatternRules([text])


def test_a_search_made_long_on_purpose_is_given_up_and_denied() -> None:
    patterns = ["/".join(["#", *["a/#"] * 12, f"b{number}"]) for number in range(20)]
    assert PatternRules(patterns).find_entry("/".join("a" * 2000), "") == UNDECIDED
    assert PatternRules(patterns).find_entry("/".join(["a"] * 20) + "/b7", "") == 8
    verdict = opened(group(f"sourcePattern: '{', '.join(patterns)}'")).may_receive("/".join("a" * 2000))
    assert (verdict.allowed, verdict.rule) == (False, "v:g:sourcePattern:undecided")


# --------------------------------------------------------------------------------------------- permissions, section 3.3
OFF = Policy.compile(load(text="policy { maxMessageSize: 9 }").policy, ())
GRANT = Permissions(sources=("a", "b*", "c,d", "${user}-in"), targets=())


def granted(rules: Policy, permissions: Permissions = GRANT, user: str = "alice") -> Admission:
    admission = admit(rules, "v", user, "10.0.0.1", authenticated=True, permissions=permissions)
    assert isinstance(admission, Admission), admission
    return admission


def test_without_vhosts_the_rights_from_a_service_are_the_only_rights() -> None:
    admission = granted(OFF)
    for number, address in enumerate(("a", "bb", "c,d", "alice-in"), 1):
        assert admission.may_receive(address).rule == f"auth-service:sources:{number}"
    for address in ("c", "d", "aa", "", "${user}-in", "zed-in"):
        assert not admission.may_receive(address)
    assert admission.may_send("a").rule == "auth-service:targets:none"
    settings = admission.settings
    assert (settings.allow_dynamic_source, settings.allow_anonymous_sender) == (True, True)
    assert not any(
        (
            settings.allow_user_id_proxy,
            settings.allow_waypoint_links,
            settings.allow_fallback_links,
            settings.allow_dynamic_link_routes,
            settings.allow_admin_status_update,
        )
    )
    assert (settings.max_message_size, settings.max_senders, admission.unrestricted) == (None, 2**31 - 1, False)


def test_an_empty_grant_is_nothing() -> None:
    admission = granted(OFF, Permissions())
    assert not admission.may_receive("a")
    assert not admission.may_send("a")


def test_a_grant_stands_in_the_place_of_sources_and_targets() -> None:
    rules = group("sources: x\n targets: x\n maxSenders: 4\n allowWaypointLinks: no\n maxFrameSize: 1024")
    admission = granted(rules, Permissions(("a",), ("b",)))
    assert [bool(admission.may_receive(address)) for address in "abx"] == [True, False, False]
    assert [bool(admission.may_send(address)) for address in "abx"] == [False, True, False]
    settings = admission.settings
    assert (settings.max_senders, settings.max_frame_size, settings.allow_waypoint_links) == (4, 1024, False)
    assert (settings.allow_dynamic_source, settings.allow_anonymous_sender) == (True, True)
    assert (admission.vhost, admission.group) == ("v", "g")


def test_patterns_of_the_vhost_outlast_a_grant() -> None:
    admission = granted(group("sourcePattern: 'x/*'\n targets: y"), Permissions(("a",), ("b",)))
    assert [bool(admission.may_receive(address)) for address in ("a", "x/1")] == [False, True]
    assert [bool(admission.may_send(address)) for address in ("b", "y")] == [True, False]


def test_a_grant_opens_no_vhost() -> None:
    denial = admit(group("users: bob"), "v", "alice", "10.0.0.1", authenticated=True, permissions=GRANT)
    assert isinstance(denial, Verdict)
    assert denial.reason is Reason.NO_GROUP


def test_a_grant_that_cannot_be_decided_denies_the_connection() -> None:
    denial = admit(OFF, "v", "alice", "", authenticated=True, permissions=Permissions(("${user}{user}",)))
    assert isinstance(denial, Verdict)
    assert (denial.reason, denial.rule) == (Reason.BAD_PERMISSIONS, "bad-permissions")
