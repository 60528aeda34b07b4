"""A wrong command line names what is wrong and the cure, before anything is connected."""

from __future__ import annotations

from pathlib import Path

import pytest

from trouter.cli import main


def refused(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """Return what a command prints that ends with the status of a wrong command line."""
    with pytest.raises(SystemExit) as end:
        main(words)
    assert end.value.code == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert "Error: " not in output.err
    return output.err


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["statt"], "trouter: there is no command 'statt', did you mean 'stat'?"),
        (["certs", "lsit"], "trouter certs: there is no command 'lsit', did you mean 'list'?"),
        (["bench", "sent"], "trouter bench: there is no role 'sent', did you mean 'send'?"),
        (["zzz"], "trouter: there is no command 'zzz' (see `trouter --help`)\n"),
        (["stat", "--jsno"], "trouter stat: unrecognized arguments: --jsno, did you mean --json? (see `trouter stat"),
        (["certs"], "trouter certs: give a command: ca, server, router, client, renew, list (see `trouter certs"),
        ([], "trouter: give a command: run, init, check, "),
    ],
)
def test_a_misspelt_command_gets_a_suggestion(words: list[str], text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert text in refused(capsys, *words)


@pytest.mark.parametrize("command", ["run", "version", "certs list"])
@pytest.mark.parametrize("extra", ["extra", "--frobnicate"])
def test_a_word_too_many_is_one_line_about_the_command(
    command: str, extra: str, capsys: pytest.CaptureFixture[str]
) -> None:
    error = refused(capsys, *command.split(), extra)
    assert error == f"trouter {command}: unrecognized arguments: {extra} (see `trouter {command} --help`)\n"


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["create"], "create needs a type: --type TYPE, or type=TYPE among the attributes"),
        (["create", "name=x", "prefix=x"], "create needs a type: --type TYPE, or type=TYPE among the attributes"),
        (["create", "--type", "adress", "prefix=x"], "there is no type 'adress', did you mean 'address'?"),
        (["query", "--type", "connexion"], "there is no type 'connexion', did you mean 'connection'?"),
        (["read", "x", "--type", "listner"], "there is no type 'listner', did you mean 'listener'?"),
        (["get-attributes", "sslprofile"], "there is no type 'sslprofile', did you mean 'sslProfile'?"),
        (["create", "type=vost"], "there is no type 'vost', did you mean 'vhost'?"),
    ],
)
def test_a_request_that_no_router_can_serve_is_not_sent(
    words: list[str], text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert text in refused(capsys, "manage", "-b", "127.0.0.1:1", *words)


@pytest.mark.parametrize(
    ("bus", "text"),
    [
        ("127.0.0.1:notaport", "the bus's port is no number from 1 to 65535"),
        ("http://127.0.0.1", "the bus has the scheme 'http', neither amqp nor amqps"),
        ("a b", "the bus is not [amqp[s]://][USER[:PASSWORD]@]HOST[:PORT][/ADDRESS]"),
    ],
)
@pytest.mark.parametrize(
    "command",
    [
        ["stat"],
        ["manage", "query"],
        ["send", "a", "x"],
        ["receive", "a"],
        ["request", "a", "x"],
        ["bench", "send", "--count", "1"],
        ["contexts", "add", "c"],
    ],
    ids=" ".join,
)
def test_a_wrong_bus_is_a_wrong_command_line(
    command: list[str], bus: str, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert text in refused(capsys, *command, "-b", bus)


def test_a_mechanism_and_a_context_that_do_not_exist_are_a_wrong_command_line(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert "none of the SASL mechanisms GSSAPI is one of" in refused(capsys, "stat", "--sasl-mechanisms", "GSSAPI")
    assert "there is no context 'prod'; known: none" in refused(capsys, "stat", "--context", "prod")


def test_a_file_that_cannot_be_read_is_named_in_plain_words(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    missing = tmp_path / "missing"
    assert main(["send", "a", "-b", "127.0.0.1:1", "--file", str(missing)]) == 1
    assert f"{missing}: No such file or directory\n" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words",
    [
        ["check", "bad.conf"],
        ["init", "bad.conf"],
        ["migrate", "bad.conf", "--check"],
        ["migrate", "--interconnect", "bad.conf"],
        ["plugins", "-c", "bad.conf"],
        ["policy", "explain", "-c", "bad.conf", "--vhost", "v", "--user", "u"],
        ["policy", "test", "bad.conf"],
        ["policy", "learn", "none", "--vhost", "v"],
        ["records", "check", "none"],
        ["records", "cat", "none"],
        ["certs", "server", "--dir", "none", "a"],
    ],
    ids=" ".join,
)
def test_an_error_begins_with_the_name_of_the_command(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("bad.conf").write_text("router {\n")
    assert main(words) == 1
    name = (
        " ".join(["trouter", *[word for word in words[:2] if word.isalpha()]]) if words[0] != "init" else "trouter init"
    )
    assert capsys.readouterr().err.splitlines()[-1].startswith(f"{name}: ")
