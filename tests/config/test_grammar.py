"""Every rule of the language: what it accepts, and the error for what it refuses."""

from __future__ import annotations

from textwrap import dedent

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trouter.config.conf_form import parse_conf
from trouter.config.json_form import parse_json
from trouter.config.nodes import Items, Map, Node, Scalar, Section, literal
from trouter.config.problems import Findings, Problem, fit_to_show, nearest

Value = object


def value_of(node: Node) -> Value:
    match node:
        case Map(entries=entries):
            return {entry.key: value_of(entry.node) for entry in entries}
        case Items(items=items):
            return [value_of(item) for item in items]
        case Scalar(value=value):
            return value


def contents(sections: list[Section]) -> list[tuple[str, dict[str, Value]]]:
    return [(section.name, {entry.key: value_of(entry.node) for entry in section.entries}) for section in sections]


def read(text: str, *, json: bool = False) -> tuple[list[tuple[str, dict[str, Value]]], Findings]:
    findings = Findings()
    return contents((parse_json if json else parse_conf)(text, "f", findings)), findings


def good(text: str, *, json: bool = False) -> list[tuple[str, dict[str, Value]]]:
    sections, findings = read(text, json=json)
    assert findings.errors == []
    return sections


READS_AS = {
    "an attribute a line": ("s {\n  a: b\n  c: d\n}\n", [("s", {"a": "b", "c": "d"})]),
    "blanks and tabs are free": ("\ts\t{\n\ta\t:\tb \t\n}", [("s", {"a": "b"})]),
    "no blank before the brace": ("s{\na:b\n}", [("s", {"a": "b"})]),
    "CRLF": ("s {\r\na: b\r\n}\r\n", [("s", {"a": "b"})]),
    "names with hyphens and underscores": ("link-route {\nmax_size-b: 1\n}", [("link-route", {"max_size-b": "1"})]),
    "only comments": ("# nothing\n   # here\n", []),
    "a comment after everything": ("s { # x\n a: b # y\n} # z\n", [("s", {"a": "b"})]),
    "a comment inside a value without a blank": ("s {\n id: X#Y\n}", [("s", {"id": "X"})]),
    "a pattern keeps its #": ("s {\n pattern: a/#\n}", [("s", {"pattern": "a/#"})]),
    "a pattern's first word only": ("s {\n pattern: a/# # b\n}", [("s", {"pattern": "a/#"})]),
    "a binding key in any spelling": ("s {\n binding-key: #.b\n}", [("s", {"binding-key": "#.b"})]),
    "a hostname": ("s {\n hostname: a#b\n}", [("s", {"hostname": "a#b"})]),
    "a value is literal": ("s {\n a: x, y; z: {q} $HOME 'b'\n}", [("s", {"a": "x, y; z: {q} $HOME 'b'"})]),
    "a backslash is written twice": ("s {\n a: DOMAIN\\\\user # c\n}", [("s", {"a": "DOMAIN\\user"})]),
    "the escapes of JSON": ("s {\n a: \\\"\\/\\t\\u00e9\\ud83d\\ude00\\n.\n}", [("s", {"a": '"/\té😀\n.'})]),
    "escapes of a pattern": (r"s { pattern: a\\b/#, b: c\\d }", [("s", {"pattern": "a\\b/#", "b": "c\\d"})]),
    "an unknown escape is literal": (r"s { a: DOMAIN\user, b: \ud83d, c: d\ }", [("s", {"a": "DOMAIN\\user", "b": "\\ud83d", "c": "d\\"})]),
    "no escapes in single quotes": (r"s { a: 'x\\y\t' }", [("s", {"a": r"x\\y\t"})]),
    "a colon in a value": ("s {\n a: ::1\n}", [("s", {"a": "::1"})]),
    "a brace in a value": ("s {\n a: b }c{\n}", [("s", {"a": "b }c{"})]),
    "a value that begins with a brace": ("s {\n a: {user}/x\n}", [("s", {"a": "{user}/x"})]),
    "double quotes": ('s {\n a: "x # {y} "\n}', [("s", {"a": "x # {y} "})]),
    "escapes in double quotes": (r's { a: "\"q\" \\ \u00e9\t" }', [("s", {"a": '"q" \\ é\t'})]),
    "single quotes": ("s {\n a: 'x # y'\n}", [("s", {"a": "x # y"})]),
    "a quote in single quotes": ("s {\n a: 'it''s' # c\n}", [("s", {"a": "it's"})]),
    "a quote that is not closed is text": ("s {\n a: 'tis\n}", [("s", {"a": "'tis"})]),
    "quotes around a part are text": ("s {\n a: 'x' y\n b: x \"y\"\n}", [("s", {"a": "'x' y", "b": 'x "y"'})]),
    "quotes around a pattern": ('s {\n pattern: "a b/#"\n}', [("s", {"pattern": "a b/#"})]),
    "an empty quoted value is a value": ('s {\n a: ""\n}', [("s", {"a": ""})]),
    "the brace on the next line": ("s\n# c\n\n{\n a: b\n}", [("s", {"a": "b"})]),
    "a section on one line": ("s { a: b, c: d; e: f }", [("s", {"a": "b", "c": "d", "e": "f"})]),
    "an empty section": ("s {\n}\nt {}\n", [("s", {}), ("t", {})]),
    "sections side by side": ("s { a: b } t { a: c }", [("s", {"a": "b"}), ("t", {"a": "c"})]),
    "one line, commas in the value": ("s { a: b, c, d: e }", [("s", {"a": "b, c", "d": "e"})]),
    "one line, URLs in the value": ("s { u: amqp://a:1, amqps://b:2, d: e }", [("s", {"u": "amqp://a:1, amqps://b:2", "d": "e"})]),
    "one line, a pattern": ("s { pattern: a/#, d: e }", [("s", {"pattern": "a/#", "d": "e"})]),
    "one line, a pattern last": ("s { pattern: a/#}", [("s", {"pattern": "a/#"})]),
    "one line, quotes": ("s { a: 'x, y: z', b: \"}\" }", [("s", {"a": "x, y: z", "b": "}"})]),
    "one line, balanced braces": ("s { a: ${user}/x }", [("s", {"a": "${user}/x"})]),
    "begun on the line of the brace": ("s { a: b, c: d\n e: f, g: h\n}", [("s", {"a": "b", "c": "d", "e": "f, g: h"})]),
    "a repeated attribute": ("s {\n a: b\n a: c\n}", [("s", {"a": "c"})]),
}  # fmt: skip


@pytest.mark.parametrize(("text", "sections"), READS_AS.values(), ids=READS_AS)
def test_a_section_reads_as(text: str, sections: list[tuple[str, dict[str, Value]]]) -> None:
    assert good(text) == sections


MAPS = {
    "unquoted lines": ("{\n  a: x, y\n  b: ::1\n}", {"a": "x, y", "b": "::1"}),
    "JSON": ('{ "a": "x, y", "b": [1, "2", {"c": null}] }', {"a": "x, y", "b": ["1", "2", {"c": "null"}]}),
    "a mixture": ('{ "a": x\n b: "y", c: z }', {"a": "x", "b": "y", "c": "z"}),
    "no commas": ('{ "a": "x" "b": "y" }', {"a": "x", "b": "y"}),
    "commas everywhere": ("{,\n a: x,\n ,\n b: {c: d,},\n}", {"a": "x", "b": {"c": "d"}}),
    "comments everywhere": ("{ # c\n a: x # c\n # c\n b: { # c\n c: d } # c\n}", {"a": "x", "b": {"c": "d"}}),
    "names with dollars and dots": ("{ $default: { x.y/z: * } }", {"$default": {"x.y/z": "*"}}),
    "quoted names": ("{ 'a b': x, \"c\\u0064\": y }", {"a b": "x", "cd": "y"}),
    "one line, the next name ends a value": ("{ a: x, y, b: * }", {"a": "x, y", "b": "*"}),
    "one line, a list of addresses": ("{ a: fe80::1, db8:3::4, 10.0.0.1 }", {"a": "fe80::1, db8:3::4, 10.0.0.1"}),
    "one line, a hexadecimal word": ("{ a: x, add:1::2 }", {"a": "x, add:1::2"}),
    "by lines, colons belong to the value": ("{\n a: queue:b, topic:c\n}", {"a": "queue:b, topic:c"}),
    "by lines, a name after a comma all the same": ("{\n a: x, b: y\n}", {"a": "x", "b": "y"}),
    "escapes of JSON": (r"{ a: x\\y, b: [c\\d, 'e\\f'] }", {"a": r"x\y", "b": [r"c\d", r"e\\f"]}),
    "a user token": ("{ a: {user}, ${user}/b, c: d }", {"a": "{user}, ${user}/b", "c": "d"}),
    "a user token first": ("{\n a: {user}\n}", {"a": "{user}"}),
    "maps in maps": ("{ a: { b: { c: d } } }", {"a": {"b": {"c": "d"}}}),
    "an empty map": ("{ a: {}, b: { # c\n } }", {"a": {}, "b": {}}),
    "the brace on the next line": ("\n {\n a:\n {\n b: c\n }\n}", {"a": {"b": "c"}}),
    "lists without quotes": ("{ a: [x, ::1, {user}] }", {"a": ["x", "::1", "{user}"]}),
    "a list over lines": ("{ a: [\n x, # c\n 'y'\n] }", {"a": ["x", "y"]}),
    "the last comma of a line": ("{\n a: x,\n b: y,\n}", {"a": "x", "b": "y"}),
}


@pytest.mark.parametrize(("text", "value"), MAPS.values(), ids=MAPS)
def test_a_map_reads_as(text: str, value: Value) -> None:
    assert good(f"vhost {{\n groups: {text}\n}}") == [("vhost", {"groups": value})]
    assert good(f"vhost {{ groups: {text} }}") == [("vhost", {"groups": value})]


def test_the_documented_nested_form_with_two_groups() -> None:
    text = """\
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
    groups = {
        "admin": {"users": "alice, bob", "remoteHosts": "127.0.0.1, ::1"},
        "$default": {"remoteHosts": "*", "sources": "*"},
    }
    assert good(dedent(text)) == [("vhost", {"name": "$default", "allowUnknownUser": "true", "groups": groups})]


def test_an_unknown_attribute_may_hold_a_map_so_that_only_its_name_is_wrong() -> None:
    assert good("s {\n grups: {\n a: b\n }\n}") == [("s", {"grups": {"a": "b"}})]


JSON = {
    "typed values": ('[["s", {"a": 1, "b": -2.5, "c": true, "d": null, "e": "1"}]]', [("s", {"a": 1, "b": -2.5, "c": True, "d": None, "e": "1"})]),
    "nested": ('[["s", {"a": {"b": [1, {"c": "d"}]}}]]', [("s", {"a": {"b": [1, {"c": "d"}]}})]),
    "comments": ('# x\n[ # y\n["s", # z\n{"a": 1 # b\n}]]# c', [("s", {"a": 1})]),
    "last commas": ('[["s", {"a": [1,],},],]', [("s", {"a": [1]})]),
    "nothing": ("[]", []),
    "a value on the next line": ('[["s", {"a":\n{"b":\n1}}]]', [("s", {"a": {"b": 1}})]),
}  # fmt: skip


@pytest.mark.parametrize(("text", "sections"), JSON.values(), ids=JSON)
def test_the_json_form_reads_as(text: str, sections: list[tuple[str, dict[str, Value]]]) -> None:
    assert good(text, json=True) == sections


LITERALS = {"1": 1, "-12": -12, "0": 0, "1.5": 1.5, "1e3": 1000.0, "true": True, "false": False, "null": None,
            "01": "01", "yes": "yes", "": "", "1.": "1.", "+1": "+1", "0x1": "0x1", "Infinity": "Infinity"}  # fmt: skip


@pytest.mark.parametrize(("text", "value"), LITERALS.items())
def test_a_literal_has_the_value_of_json(text: str, value: Value) -> None:
    assert literal(text) == value
    assert type(literal(text)) is type(value)


# text -> (line, column, section, key, words of the message)
WRONG = {
    "a stray brace": ("}\n", (1, 1, "", "", "closes nothing")),
    "a stray brace after a section": ("s {\n}\n  }\n", (3, 3, "", "", "closes nothing")),
    "an attribute outside": ("a: b\n", (1, 1, "", "", "outside of any section")),
    "no section": ("s\nt {\n}\n", (1, 1, "", "", "expected a section")),
    "no name": ("s {\n}\n{\n}\n", (3, 1, "", "", "needs a name")),
    "text after a section": ("s {\n} x\n", (2, 3, "", "", "expected a section")),
    "a section not closed": ("s {\n a: b\n", (1, 1, "s", "", "never closed")),
    "a section not closed before the next": ("s {\n a: b\nt {\n}\n", (1, 1, "s", "", "never closed")),
    "an equals sign": ("s {\n  a = b\n}\n", (2, 3, "s", "a", "expected 'attribute: value'")),
    "no colon": ("s {\n  a b\n}\n", (2, 3, "s", "a", "expected 'attribute: value'")),
    "no name in a section": ("s {\n  : b\n}\n", (2, 3, "s", "", "expected 'attribute: value'")),
    "a brace without colon": ("s {\n groups {\n }\n}\n", (2, 9, "s", "groups", "colon is missing")),
    "double quotes not closed": ('s {\n a: "b\n}\n', (2, 5, "s", "a", "not closed")),
    "a bad escape": ('s {\n a: "\\x"\n}\n', (2, 5, "s", "a", "escape")),
    "text after quotes": ('s {\n a: "b" c\n}\n', (2, 8, "s", "a", "after the closing quote")),
    "a map not closed": ("s {\n groups: {\n a: b\n", (2, 10, "s", "", "brace is never closed")),
    "a list not closed": ("s {\n groups: { a: [b\n", (2, 15, "s", "a", "bracket is never closed")),
    "no name in a map": ("s {\n groups: {\n : b\n }\n}\n", (3, 2, "s", "", "expected 'name: value'")),
    "no colon in a map": ("s {\n groups: {\n a b\n }\n}\n", (3, 2, "s", "a", "colon must follow")),
    "a brace without colon in a map": (
        "s {\n groups: {\n a {\n b: c\n }\n }\n}\n",
        (3, 4, "s", "a", "colon is missing"),
    ),
    "doubtful": ("s {\n groups: { a: x, users:y }\n}\n", (2, 18, "s", "a", "a name or a part of the value")),
    "too deep": ("s {\n groups: " + "{ a: " * 40, (2, 170, "s", "a", "deep")),
}


@pytest.mark.parametrize(("text", "expected"), WRONG.values(), ids=WRONG)
def test_a_mistake_is_named_with_its_place(text: str, expected: tuple[int, int, str, str, str]) -> None:
    _, findings = read(text)
    line, column, section, key, words = expected
    first = findings.errors[0]
    assert (first.place.line, first.place.column, first.section, first.key) == (line, column, section, key)
    assert words in first.message
    if "never closed" not in words:
        assert len(findings.errors) == 1


JSON_WRONG = {
    "not an array": ('{"s": {}}', (1, 1, "holds an array")),
    "the .conf form": ("s {\n}\n", (1, 1, "holds an array")),
    "nothing": ("# c\n", (2, 1, "holds an array")),
    "text after it": ("[] []", (1, 4, "after the array")),
    "not a pair": ('[["s"]]', (1, 2, "expected a pair")),
    "not a name": ("[[1, {}]]", (1, 2, "expected a pair")),
    "not a map": ('[["s", 1]]', (1, 2, "expected a pair")),
    "no quotes": ('[["s", {"a": b}]]', (1, 14, "double quotes")),
    "no value": ('[["s", {"a": }]]', (1, 14, "double quotes")),
    "no colon": ('[["s", {"a" 1}]]', (1, 9, "colon must follow")),
    "a brace in a list": ('[["s", {"a": [}]}]]', (1, 15, "double quotes")),
    "too deep": ("[" * 40, (1, 33, "deep")),
    "no comma in a map": ('[["s", {"a": "b" "c": "d"}]]', (1, 18, "a comma is missing")),
    "no comma behind a number": ('[["s", {"a": 1\n"c": 2}]]', (2, 1, "a comma is missing")),
    "no comma in a list": ('[["s", {"a": ["b" "c"]}]]', (1, 19, "a comma is missing")),
    "no comma between sections": ('[["s", {}]\n["t", {}]]', (2, 1, "a comma is missing")),
    "a comma too many": ('[["s", {"a": 1,, "b": 2}]]', (1, 16, "nothing stands before this comma")),
    "a comma first": ('[, ["s", {}]]', (1, 2, "nothing stands before this comma")),
}


@pytest.mark.parametrize(("text", "expected"), JSON_WRONG.values(), ids=JSON_WRONG)
def test_a_mistake_in_the_json_form_is_named_with_its_place(text: str, expected: tuple[int, int, str]) -> None:
    _, findings = read(text, json=True)
    line, column, words = expected
    assert (findings.errors[0].place.line, findings.errors[0].place.column) == (line, column)
    assert words in findings.errors[0].message
    if "comma" in words:
        assert len(findings.errors) == 1


DOUBTFUL = {
    "no value": ("s {\n a:\n}", "no value"),
    "no value but a comment": ("s {\n a: # c\n}", "no value"),
    "no value in a map": ("s {\n groups: {\n a:\n }\n}", "no value"),
    "a comment that may not be one": ("s {\n a: b#c\n}", "begins a comment"),
    "a second word": ("s {\n pattern: a b\n}", "first word"),
    "an escape that JSON does not know": ("s {\n a: DOMAIN\\user # \\q\n}", "no such escape"),
    "a backslash at the end": ("s {\n a: b\\\n}", "no such escape"),
    "an escape for a control character": ("s {\n a: DOMAIN\\bob\n}", "control character"),
    "an escape in a list": ("s {\n groups: { a: [x, \\y] }\n}", "no such escape"),
}


@pytest.mark.parametrize(("text", "words"), DOUBTFUL.values(), ids=DOUBTFUL)
def test_doubtful_text_is_a_warning(text: str, words: str) -> None:
    _, findings = read(text)
    assert not findings.errors
    assert [words in warning.message for warning in findings.warnings] == [True]


def test_the_place_of_a_doubtful_escape_is_that_of_its_backslash_and_secrets_are_not_shown() -> None:
    _, findings = read("s {\n  saslPassword: very\\\\se\\cret # \\x\n}")
    (warning,) = findings.warnings
    assert (warning.place.line, warning.place.column, warning.key) == (2, 25, "saslPassword")
    assert "cret" not in str(warning)


def test_all_mistakes_are_found_in_one_run() -> None:
    sections, findings = read("s {\n a = b\n c: d\n e\n}\nx: y\nt {\n f: g\n}\n}\n")
    assert sections == [("s", {"c": "d"}), ("t", {"f": "g"})]
    assert [problem.place.line for problem in findings.errors] == [2, 4, 6, 10]


SECRETS = [
    's {\n password: "hunter2\n}',
    "s {\n password = hunter2\n}",
    "s {\n sasl-password hunter2\n}",
    "password: hunter2",
    's {\n groups: { password: x, y:hunter2 }\n}',
    '[["s", {"password": hunter2}]]',
]  # fmt: skip


@pytest.mark.parametrize("text", SECRETS)
def test_a_mistake_beside_a_password_does_not_show_the_password(text: str) -> None:
    _, findings = read(text, json=text.startswith("["))
    assert findings.errors
    assert not [str(problem) for problem in findings.errors + findings.warnings if "hunter2" in str(problem)]


def test_text_is_shown_on_one_line_and_cut() -> None:
    assert fit_to_show("a\x1b[0m\nb") == "'a\\x1b[0m\\nb'"
    assert len(fit_to_show("x" * 1000)) == 82


def test_the_nearest_name_is_suggested_only_within_a_small_distance() -> None:
    assert nearest("LISTNER", ["listener", "router"]) == "did you mean 'listener'?"
    assert nearest("elephant", ["listener", "router"]) == ""


def test_a_problem_is_printed_on_one_line() -> None:
    _, findings = read("listener {\n  port = 1\n}\n")
    assert str(findings.errors[0]) == (
        "f:2:3: listener.port: expected 'attribute: value' or '}': 'port = 1' (write ':' instead of '=')"
    )
    assert isinstance(findings.errors[0], Problem)


@pytest.mark.fuzz
@given(st.text(alphabet=st.sampled_from("ab:{}[]\"'#,;\\ \n\t$./-1"), max_size=60), st.booleans())
def test_any_text_is_read_to_its_end_and_every_place_exists(text: str, json: bool) -> None:
    _, findings = read(text, json=json)
    lines = text.split("\n")
    for problem in findings.errors + findings.warnings:
        assert 1 <= problem.place.line <= len(lines)
        assert 1 <= problem.place.column <= len(lines[problem.place.line - 1]) + 1


NAMES = st.from_regex(r"[a-z][A-Za-z0-9_]{0,8}", fullmatch=True).filter(
    lambda name: name not in {"pattern", "hostname"}
)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)


@given(st.dictionaries(NAMES, TEXTS, max_size=4))
def test_any_text_can_be_written_in_either_quotes(attributes: dict[str, str]) -> None:
    import json

    lines = [f"{name}: {json.dumps(text)}" for name, text in attributes.items()]
    assert good("s {\n" + "\n".join(lines) + "\n}") == [("s", attributes)]
    one_liners = {name: text for name, text in attributes.items() if "\n" not in text and "\r" not in text}
    lines = ["{}: '{}'".format(name, text.replace("'", "''")) for name, text in one_liners.items()]
    assert good("s {" + ", ".join(lines) + "}") == [("s", one_liners)]


HASHES = {
    "glued": ("v {\n groups: {\n sourcePattern: a/#\n }\n}", "a comment or a wildcard?"),
    "alone": ("v {\n groups: {\n targetPattern: #\n }\n}", "a comment or a wildcard?"),
    "after a comma": ("v {\n groups: {\n source-pattern: a, #\n }\n}", "a comment or a wildcard?"),
}


@pytest.mark.parametrize(("text", "message"), HASHES.values(), ids=HASHES)
def test_a_wildcard_that_may_be_a_comment_is_an_error(text: str, message: str) -> None:
    findings = Findings()
    parse_conf(text, "f", findings)
    assert [problem.message for problem in findings.errors] == [message]


def test_a_comment_glued_to_a_value_of_a_map_is_warned_of() -> None:
    findings = Findings()
    parse_conf("v {\n groups: {\n sources: a#b\n targets: a # b\n sourcePattern: a # b\n }\n}", "f", findings)
    assert [problem.key for problem in findings.warnings] == ["sources"]
    assert findings.errors == []
