"""Passwords: their sources, and that no text shows them."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path

import pytest

from trouter.config import ConfigurationError, Secret, SslProfileEntity, compare, load, row
from trouter.config.findings import evaluate
from trouter.config.passwords import MAX_FILE_PASSWORD, from_file, password_of
from trouter.config.schema import BadValue

TEXTS = {
    "pass:a": "a",
    "literal:a": "a",
    "a": "a",
    "pass: a ": " a ",
    "a:b": "a:b",
    "": "",
}


@pytest.mark.parametrize(("text", "password"), TEXTS.items())
def test_a_password_in_the_configuration_itself(text: str, password: str) -> None:
    secret = password_of(text)
    assert (secret.reveal(), secret.in_clear) == (password, True)


@pytest.mark.parametrize(
    ("text", "password"),
    [("literal:a", "literal:a"), ("pass:a", "a"), ("a", "a"), ("literally:a", "literally:a"), ("literal:", "literal:")],
)
def test_the_password_of_a_connector_may_begin_with_literal(text: str, password: str) -> None:
    """The prefix has a meaning only in an sslProfile, as with Qpid Dispatch."""
    configuration = load(text=f'connector {{\n saslUsername: u\n saslPassword: "{text}"\n}}')
    (connector,) = configuration.connectors
    assert connector.sasl_password is not None
    assert connector.sasl_password.reveal() == password
    warned = [each for each in configuration.warnings if "`literal:` is part of the password" in each.message]
    assert [each.key for each in warned] == (["saslPassword"] if text.startswith("literal:") else [])


@pytest.mark.parametrize("text", ["env:PASSWORD_IN_A_TEST", "env: PASSWORD_IN_A_TEST"])
def test_a_password_from_the_environment(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(BadValue, match="is not set"):
        password_of(text)
    monkeypatch.setenv("PASSWORD_IN_A_TEST", "a b")
    assert (password_of(text).reveal(), password_of(text).in_clear) == ("a b", False)


FILES = {b"a": "a", b"a\nb": "a", b"a b \r\n": "a b ", b"": "", "é\n".encode(): "é", b"x" * 65536: "x" * 65536}


def test_files_are_read_through_symbolic_links_as_mounted_secrets_are(tmp_path: Path) -> None:
    (tmp_path / "..data").mkdir()
    (tmp_path / "..data" / "secret").write_text("wonderland\n")
    link = tmp_path / "secret"
    link.symlink_to(Path("..data") / "secret")
    text = f"""
sslProfile {{ name: p, certFile: {link}, privateKeyFile: {link}, passwordFile: {link}, caCertFile: {link} }}
connector {{ saslUsername: u, saslPassword: file:{link} }}
"""
    for secure in ("no", "yes"):
        configuration = load(text=f"router {{ secureDefaults: {secure} }}\n{text}")
        (connector,), (profile,) = configuration.connectors, configuration.ssl_profiles
        assert not [each for each in configuration.warnings if each.point == "unreadable-file"]
        assert connector.sasl_password is not None
        assert connector.sasl_password.reveal() == "wonderland"
        assert profile.private_key_file == str(link)


@pytest.mark.parametrize(("data", "password"), FILES.items())
def test_a_password_is_the_first_line_of_a_file(tmp_path: Path, data: bytes, password: str) -> None:
    (tmp_path / "p").write_bytes(data)
    secret = password_of(f"file:{tmp_path / 'p'}")
    assert (secret.reveal(), secret.path, secret.in_clear) == (password, str(tmp_path / "p"), False)


BAD_FILES = {b"x" * (MAX_FILE_PASSWORD + 1): "is longer than 65536 bytes", b"\xff": "is not UTF-8 text"}


@pytest.mark.parametrize(("data", "message"), BAD_FILES.items())
def test_a_file_without_a_password(tmp_path: Path, data: bytes, message: str) -> None:
    (tmp_path / "p").write_bytes(data)
    with pytest.raises(BadValue, match=message):
        from_file(str(tmp_path / "p"))


@pytest.mark.parametrize("path", ["/no/such/file", "/", "a\0b"])
def test_a_file_that_cannot_be_read(path: str) -> None:
    with pytest.raises(BadValue, match="the password's file cannot be read"):
        from_file(path)


def test_a_secret_is_shown_and_written_nowhere() -> None:
    secret = Secret("hunter2")
    assert (repr(secret), str(secret), f"{secret}") == ("Secret(***)", "***", "***")
    assert secret == Secret("hunter2")
    assert secret != Secret("hunter3")
    assert secret != "hunter2"
    assert hash(secret) == hash(Secret("hunter2"))
    for write in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="not written anywhere"):
            write(secret)


TEXT = (
    "connector { name: c, saslUsername: u, saslPassword: {password} }\nsslProfile {\n name: s\n password: {password}\n}"
)


def test_no_secret_of_a_configuration_is_shown() -> None:
    configuration = load(text=TEXT.replace("{password}", "hunter2"))
    shown = [repr(configuration), str(configuration.warnings), *(str(row(entity)) for entity in configuration.entities)]
    shown += [repr(entity.written) for entity in configuration.entities]
    assert not [text for text in shown if "hunter2" in text]
    assert row(configuration.connectors[0])["saslPassword"] == "*****"
    assert [finding.point for finding in evaluate(configuration)].count("secret-in-file") == 2


def test_a_secret_that_cannot_be_had_is_reported_and_not_shown() -> None:
    configuration = load(text=TEXT.replace("{password}", "env:NO_SUCH_VARIABLE"))
    warnings = [str(warning) for warning in configuration.warnings]
    assert [
        line for line in warnings if "the parts that need it will not be served: '***' (set NO_SUCH_VARIABLE)" in line
    ] == warnings
    with pytest.raises(ConfigurationError) as caught:
        load(text="router { secureDefaults: yes }\n" + TEXT.replace("{password}", "env:NO_SUCH_VARIABLE"))
    assert str(caught.value).count("'***' (set NO_SUCH_VARIABLE)") == 2


def test_a_reload_sees_another_password_behind_the_same_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PASSWORD_IN_A_TEST", "a")
    old = load(text=TEXT.replace("{password}", "env:PASSWORD_IN_A_TEST"))
    monkeypatch.setenv("PASSWORD_IN_A_TEST", "b")
    new = load(text=TEXT.replace("{password}", "env:PASSWORD_IN_A_TEST"))
    assert [each.attributes for each in compare(old, new).updated] == [("password",), ("saslPassword",)]


def test_the_password_of_a_key_is_preferred_to_its_file(tmp_path: Path) -> None:
    (tmp_path / "p").write_text("of the file")
    path = str(tmp_path / "p")
    both = load(text=f"sslProfile {{\n name: a\n password: pass:own\n passwordFile: {path}\n}}")
    assert [warning.key for warning in both.warnings] == ["passwordFile"]
    secret = both.ssl_profiles[0].key_password()
    assert secret is not None
    assert secret.reveal() == "own"
    alone = SslProfileEntity(name="a", password_file=path).key_password()
    assert alone is not None
    assert alone.reveal() == "of the file"
    assert SslProfileEntity(name="a").key_password() is None
