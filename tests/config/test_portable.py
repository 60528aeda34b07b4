"""A configuration as text for other processes of the router: it arrives as it was."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trouter.config import Configuration, ConfigurationError, created, load, type_named
from trouter.config.portable import read_portable, write_portable
from trouter.config.workers import with_workers

ROOT = Path(__file__).parents[2]
#: Files, and texts in the manual and in tests.
PLACES = [*ROOT.glob("examples/**/*.conf"), *ROOT.glob("tests/config/manual/*.conf"), *ROOT.glob("docs/*.md")]
SECRETS = """router {{
    id: A
}}
connector {{
    name: clear
    host: 127.0.0.1
    saslUsername: u
    saslPassword: hush-hush
}}
connector {{
    name: of-a-file
    host: 127.0.0.1
    saslUsername: u
    saslPassword: file:{file}
}}
connector {{
    name: literal
    host: 127.0.0.1
    saslUsername: u
    saslPassword: literal:x
}}
connector {{
    name: absent
    host: 127.0.0.1
    saslUsername: u
    saslPassword: file:{file}.not-there
}}
sslProfile {{
    name: p
    password: pass:hush-hush
}}
"""


def same(arrived: Configuration, sent: Configuration) -> bool:
    """Check that a configuration arrived as it was sent, with what is no attribute."""
    assert arrived.entities == sent.entities
    for one, other in zip(arrived.entities, sent.entities, strict=True):
        facts = [(dict(each.written), each.place, each.number, each.named) for each in (one, other)]
        assert facts[0] == facts[1], one.identity
    assert (arrived.source, arrived.warnings) == (sent.source, sent.warnings)
    return arrived.acceptances == sent.acceptances


def texts(path: Path) -> Iterator[str]:
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".conf":
        yield text
    else:
        yield from re.findall(r"```\w*\n(.*?)```", text, re.DOTALL)


def configurations() -> Iterator[Configuration]:
    """Yield the configurations of files and pages."""
    for path in PLACES:
        for text in texts(path):
            try:
                yield load(text=text)
            except ConfigurationError:  # a page also shows other text, and parts of files
                continue


def test_every_example_arrives_as_it_was() -> None:
    examples = list(configurations())
    assert len(examples) > 50
    assert all(same(read_portable(write_portable(each)), each) for each in examples)


def test_passwords_arrive_as_they_were_read_and_files_are_not_read_again(tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_text("first\n", encoding="utf-8")
    sent = load(text=SECRETS.format(file=file))
    octets = write_portable(sent)
    file.write_text("second\n", encoding="utf-8")
    arrived = read_portable(octets)
    assert same(arrived, sent)
    passwords = {each.name: each.sasl_password for each in arrived.connectors}
    revealed = {name: each.reveal() for name, each in passwords.items() if each is not None}
    assert revealed == {"clear": "hush-hush", "of-a-file": "first", "literal": "literal:x", "absent": ""}
    for before, after in zip(sent.connectors, arrived.connectors, strict=True):
        one, other = before.sasl_password, after.sasl_password
        assert one is not None
        assert other is not None
        assert (one.in_clear, one.path, one.fault) == (other.in_clear, other.path, other.fault)


def test_what_management_and_the_command_line_say_arrives() -> None:
    kind = type_named("router.config.address")
    assert kind is not None
    sent = with_workers(load(), "3")
    for number in range(3):
        sent, _ = created(sent, kind, None, {"prefix": f"p{number}", "distribution": "multicast"})
    assert same(read_portable(write_portable(sent)), sent)


@given(st.text(alphabet=st.characters(exclude_characters="\0")))
def test_any_text_arrives(text: str) -> None:
    kind = type_named("listener")
    assert kind is not None
    properties = {"a": text, "b": [text, 1, 1.5, True], "c": {"d": text}}
    sent, _ = created(load(), kind, None, {"host": "127.0.0.1", "port": "0", "openProperties": properties})
    assert same(read_portable(write_portable(sent)), sent)


def test_a_text_with_a_wrong_value_is_refused() -> None:
    head, _, rest = write_portable(load()).partition(b"\n")
    with pytest.raises(ConfigurationError, match="maxFrameSize"):
        read_portable(head + b"\n" + rest.replace(b'"port"', b'"maxFrameSize": "x", "port"'))


@pytest.mark.parametrize("octets", [b"", b"{}\n[]", b"\xff", b"[]\n[]"])
def test_what_is_no_such_text_is_refused(octets: bytes) -> None:
    with pytest.raises((ValueError, LookupError, TypeError)):
        read_portable(octets)


def test_the_sections_are_a_file_in_the_json_form() -> None:
    head, _, sections = write_portable(load()).partition(b"\n")
    assert len(json.loads(head)["entities"]) == len(json.loads(sections))
