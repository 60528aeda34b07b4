"""The connection options of tools: their results, their precedence, and that secrets stay secret."""

from __future__ import annotations

import argparse
import io
import os
import ssl
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from trouter.client.cover import covered
from trouter.tools import options as module
from trouter.tools.failures import SSLException
from trouter.tools.options import MAX_SECRET_BYTES, ConnectionOptions, add_connection_options

ROOT = Path(__file__).parents[2]
SECRET = "s3cret-w0rd"


def options(*arguments: str | Path, environment: Mapping[str, str] | None = None) -> ConnectionOptions:
    parser = argparse.ArgumentParser()
    add_connection_options(parser)
    return ConnectionOptions.of(parser.parse_args([str(each) for each in arguments]), environment or {})


BUSES = {
    "": ("0.0.0.0", 5672, False, ""),
    "example.org": ("example.org", 5672, False, ""),
    ":5673": ("0.0.0.0", 5673, False, ""),
    "localhost:5673": ("localhost", 5673, False, ""),
    "localhost:amqp": ("localhost", 5672, False, ""),
    "localhost:amqps": ("localhost", 5671, False, ""),
    "amqp://localhost": ("localhost", 5672, False, ""),
    "amqps://localhost": ("localhost", 5671, True, ""),
    "AMQPS://localhost:1": ("localhost", 1, True, ""),
    "amqp://[::1]:5673": ("::1", 5673, False, ""),
    "[::1]": ("::1", 5672, False, ""),
    "localhost/_topo/0/R/$management": ("localhost", 5672, False, "_topo/0/R/$management"),
    "amqp:///$management": ("0.0.0.0", 5672, False, "$management"),
    "localhost:1/$management?#": ("localhost", 1, False, "$management?#"),
}


@pytest.mark.parametrize(("bus", "wanted"), BUSES.items(), ids=str)
def test_a_bus_names_a_server_and_perhaps_a_node(bus: str, wanted: tuple[str, int, bool, str]) -> None:
    found = options("-b", bus)
    assert (found.host, found.port, found.tls, found.path) == wanted


@pytest.mark.parametrize(
    "bus",
    [
        "http://localhost",
        "localhost:99999",
        "localhost:0",
        "localhost:x",
        "a b",
        "a:b:c",
        "u:p@h@g",
        "[::1",
        "h?x",
        "::1",
        "amqp://[::1",
        "amqp://a b",
        "amqp://a:b:c",
        "amqp://u:p@[::1",
    ],
)
def test_a_bus_that_is_none_is_refused(bus: str) -> None:
    with pytest.raises(ValueError, match=r"^the bus"):
        options("-b", bus)


@pytest.mark.parametrize(
    "bus",
    [
        f"u:{SECRET}@a b",
        f"http://u:{SECRET}@h",
        f"u:{SECRET}@h:99999",
        f"u:{SECRET}@",
        f"u:{SECRET}/x@h:x:y",
        f"amqp://u:{SECRET}@[::1",
        f"amqps://u:{SECRET}@a b",
    ],
)
def test_no_message_repeats_the_password_of_a_bus(bus: str) -> None:
    code = "import sys; from tests.tools.test_options import *; print(options('-b', sys.argv[1]))"
    done = subprocess.run([sys.executable, "-c", code, bus], cwd=ROOT, capture_output=True, text=True, check=False)
    assert ("WrongOption: the bus" in done.stderr) or ("ConnectionOptions" in done.stdout)
    assert SECRET not in done.stdout + done.stderr


def test_the_environment_stands_behind_the_options() -> None:
    environment = {"TROUTER_BUS": "h:1", "TROUTER_SASL_USERNAME": "ann", "TROUTER_SASL_PASSWORD": SECRET}
    found = options(environment=environment)
    assert (found.host, found.port, found.user, found.password, found.sasl) == ("h", 1, "ann", SECRET, True)
    found = options("-b", "g:2", "--sasl-username", "bob", "--sasl-password", "own", environment=environment)
    assert (found.host, found.port, found.user, found.password) == ("g", 2, "bob", "own")


def test_a_password_in_the_environment_alone_requests_no_sasl() -> None:
    found = options(environment={"TROUTER_SASL_PASSWORD": SECRET})
    assert (found.user, found.password, found.sasl, found.sasl_mechanisms()) == ("", "", False, ())


def test_user_and_password_may_stand_in_the_bus_percent_encoded() -> None:
    found = options("-b", "amqp://an%40n:p%3A%2F%40@h")
    assert (found.user, found.password, found.host) == ("an@n", "p:/@", "h")


def test_a_password_file_precedes_the_option_and_the_bus(tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_text(f"  {SECRET}\n")
    found = options("-b", "u:url@h", "--sasl-password", "option", "--sasl-password-file", file)
    assert found.password == SECRET
    assert options("-b", "u:url@h", "--sasl-password", "option").password == "option"
    assert options("--ssl-password-file", file, "--ssl-password", "x").key_password == SECRET
    assert options(environment={"TROUTER_SSL_PASSWORD": SECRET}).key_password == SECRET


def test_a_password_file_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="missing"):
        options("--sasl-password-file", tmp_path / "missing")
    file = tmp_path / "long"
    file.write_bytes(b"x" * MAX_SECRET_BYTES)
    assert len(options("--sasl-password-file", file).password) == MAX_SECRET_BYTES
    file.write_bytes(b"x" * (MAX_SECRET_BYTES + 1))
    with pytest.raises(ValueError, match="long holds more than"):
        options("--sasl-password-file", file)
    file.write_bytes(b"\xff")
    with pytest.raises(ValueError, match="long is not UTF-8"):
        options("--sasl-password-file", file)


def test_no_repr_shows_a_secret() -> None:
    found = options("-b", f"u:{SECRET}@h", "--ssl-password", SECRET)
    assert SECRET not in repr(found)
    assert SECRET not in str(found)


def test_the_help_shows_no_secret_of_the_environment() -> None:
    code = (
        "import argparse; from trouter.tools.options import add_connection_options as add;"
        "p = argparse.ArgumentParser(); add(p); print(p.format_help())"
    )
    variables = {"TROUTER_BUS": SECRET, "TROUTER_SASL_PASSWORD": SECRET, "TROUTER_SASL_USERNAME": SECRET}
    done = subprocess.run(
        [sys.executable, "-c", code], env=os.environ | variables, capture_output=True, text=True, check=True
    )
    assert "TROUTER_SASL_PASSWORD" in done.stdout
    assert SECRET not in done.stdout


@pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="needs /proc")
@pytest.mark.parametrize(
    "arguments",
    [
        ("--sasl-password", SECRET, "--sasl-username", "u"),
        (f"--sasl-password={SECRET}",),
        (f"--sasl-password-f={os.devnull}", f"--ssl-password={SECRET}"),
        ("-b", f"amqp://u:{SECRET}@h:1/x"),
        ("-b", f"u:{SECRET}@h:1", "--ssl-password", SECRET),
    ],
)
def test_the_title_of_the_process_does_not_show_a_secret(arguments: tuple[str, ...]) -> None:
    code = (
        "import argparse, pathlib; from trouter.tools.options import *;"
        "p = argparse.ArgumentParser(); add_connection_options(p); ConnectionOptions.of(p.parse_args());"
        "print(pathlib.Path('/proc/self/cmdline').read_text())"
    )
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True)
    assert arguments[0].partition("=")[0] in done.stdout
    assert SECRET not in done.stdout


def test_covering_keeps_everything_in_its_place() -> None:
    arguments = b"a\0--p=bc\0-b\0u:bc@h\0bc\0abc\0"
    assert covered(arguments, [b"bc"]) == b"a\0--p=xx\0-b\0u:xx@h\0xx\0abc\0"


@pytest.mark.parametrize("text", ["0", "-1", "nan", "inf", "x", ""])
def test_a_time_that_is_none_is_refused(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        options(f"--timeout={text}")
    assert "timeout: this must be a number of seconds, above 0" in capsys.readouterr().err


def test_a_router_and_an_edge_router_exclude_each_other(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        options("-r", "A", "-d", "B")
    assert "not allowed with" in capsys.readouterr().err


def test_options_may_be_shortened() -> None:
    found = options("--rout", "A", "--time", "3", "--sasl-user", "u")
    assert (found.router, found.timeout_s, found.user) == ("A", 3.0, "u")


def test_another_router_is_queried_over_the_same_connection() -> None:
    found = options("-b", "h:1/path", "-d", "E").to_router("R")
    assert (found.host, found.address) == ("h", "_topo/0/R/$management")


PASSWORDS = ["SCRAM-SHA-512", "SCRAM-SHA-256", "SCRAM-SHA-1", "PLAIN"]
MECHANISMS = {
    (): [],
    ("-b", "u:p@h"): PASSWORDS,
    ("--sasl-password", "p"): ["ANONYMOUS"],
    ("--sasl-mechanisms", "ANONYMOUS"): ["ANONYMOUS"],
    ("--sasl-mechanisms", "anonymous"): ["ANONYMOUS"],
    ("--sasl-mechanisms", "ANONYMOUS PLAIN", "-b", "u:p@h"): ["PLAIN", "ANONYMOUS"],
    ("--sasl-mechanisms", "PLAIN SCRAM-SHA-256", "-b", "u:p@h"): ["SCRAM-SHA-256", "PLAIN"],
    ("--sasl-mechanisms", "ANONYMOUS,PLAIN,SCRAM-SHA-256"): ["ANONYMOUS"],
    ("--sasl-mechanisms", "EXTERNAL"): ["EXTERNAL"],
    ("-b", "amqps://h"): ["ANONYMOUS"],
    ("-b", "amqps://u:p@h"): PASSWORDS,
    ("--ssl-trustfile", "x"): ["ANONYMOUS"],
    ("--ssl-certificate", "x"): ["EXTERNAL", "ANONYMOUS"],
    ("--ssl-certificate", "x", "-b", "u:p@h"): ["EXTERNAL", *PASSWORDS],
}


@pytest.mark.parametrize(("arguments", "names"), MECHANISMS.items(), ids=" ".join)
def test_the_mechanisms_fit_the_given_credentials(arguments: tuple[str, ...], names: list[str]) -> None:
    assert [each.name for each in options(*arguments).sasl_mechanisms()] == names


def test_an_unknown_mechanism_is_refused() -> None:
    with pytest.raises(ValueError, match="none of the SASL mechanisms GSSAPI is one of EXTERNAL SCRAM-SHA-512 "):
        options("--sasl-mechanisms", "GSSAPI")


def test_plain_needs_a_user() -> None:
    with pytest.raises(ValueError, match="--sasl-username"):
        options("--sasl-mechanisms", "PLAIN").sasl_mechanisms()


def test_a_missing_password_is_prompted_for_only_at_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    with pytest.raises(ValueError, match="password of u: not given"):
        options("--sasl-username", "u").sasl_mechanisms()


def test_tls_is_used_only_where_an_option_requests_tls() -> None:
    assert options().ssl_context() is None
    found = options("-b", "amqps://h").ssl_context()
    assert found is not None
    assert (found.check_hostname, found.verify_mode) == (True, ssl.CERT_REQUIRED)
    found = options("-b", "amqps://h", "--ssl-disable-peer-name-verify").ssl_context()
    assert found is not None
    assert (found.check_hostname, found.verify_mode) == (False, ssl.CERT_REQUIRED)


def test_files_for_tls_that_are_none_are_named(tmp_path: Path) -> None:
    rubbish = tmp_path / "rubbish"
    rubbish.write_text("x")
    for name in ("--ssl-trustfile", "--ssl-certificate"):
        with pytest.raises(SSLException, match="rubbish"):
            options(name, rubbish).ssl_context()
        with pytest.raises(FileNotFoundError, match="missing"):
            options(name, tmp_path / "missing").ssl_context()
    with pytest.raises(FileNotFoundError, match="missing"):
        options("--ssl-certificate", rubbish, "--ssl-key", tmp_path / "missing").ssl_context()


def test_defaults_are_those_of_the_older_tools() -> None:
    found = options()
    assert found == module.ConnectionOptions()
    assert (found.host, found.port, found.timeout_s, found.address) == ("0.0.0.0", 5672, 5.0, "$management")
