"""`trouter reply` answers `trouter request` through a real router."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from proton import Message
from proton.utils import BlockingConnection, SendException

from tests.routers import DEADLINE_S, PLAIN_LISTENER, ROOT, RunningRouter, running
from trouter.cli import main
from trouter.tools.answering import PLACES, check_template

CODE = "import os, sys; sys.stdout.write(os.environ['TROUTER_SUBJECT'] + sys.stdin.read().upper())"
UPPER = f'{sys.executable} -c "{CODE}"'


@pytest.fixture(scope="module")
def router(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningRouter]:
    with running(PLAIN_LISTENER, tmp_path_factory.mktemp("reply")) as started:
        yield started


@contextmanager
def replying(router: RunningRouter, *words: str, by: int = signal.SIGINT) -> Iterator[subprocess.Popen[str]]:
    """Run a responder on the address `service`; end it by Ctrl-C unless it has ended."""
    command = [sys.executable, "-m", "trouter", "reply", "service", "-b", f"127.0.0.1:{router.port}", *words]
    pipe = subprocess.PIPE
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(command, cwd=ROOT, stdout=pipe, stderr=pipe, text=True, env=environment) as process:
        try:
            yield process
            if process.poll() is None:
                process.send_signal(by)
            process.wait(DEADLINE_S)
        finally:
            process.kill()


def asked(router: RunningRouter, *words: str) -> subprocess.CompletedProcess[str]:
    """Ask the service; a request waits for the responder's credit."""
    command = [sys.executable, "-m", "trouter", "request", "service", "-b", f"127.0.0.1:{router.port}", *words]
    return subprocess.run(
        [*command, "-t", f"{DEADLINE_S:g}"], cwd=ROOT, capture_output=True, text=True, check=False, timeout=DEADLINE_S
    )


def ended(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    assert process.stdout is not None
    assert process.stderr is not None
    return process.wait(DEADLINE_S), process.stdout.read(), process.stderr.read()


def test_a_request_gets_its_own_body_back_and_is_printed(router: RunningRouter) -> None:
    with replying(router, "--count", "2") as process:
        assert asked(router, "ping", "pong").stdout == "ping\npong\n"
        status, out, err = ended(process)
    assert (status, out) == (0, "ping\npong\n")
    assert ": 2 accepted" in err


def test_the_answer_has_the_kind_of_the_request_and_its_correlation(router: RunningRouter) -> None:
    with replying(router, "-q", "--json", "--count", "1") as process:
        document = {"properties": {"subject": "s"}, "body": {"a": [1, None]}}
        done = subprocess.run(
            [sys.executable, "-m", "trouter", "request", "service", "-b", f"127.0.0.1:{router.port}", "--json"],
            input=json.dumps(document),
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
            timeout=DEADLINE_S,
        )
        assert ended(process)[0] == 0
    answer = json.loads(done.stdout)
    assert (answer["body"], answer["properties"]["subject"]) == ({"a": [1, None]}, "s")


def test_a_template_is_filled_from_the_request(router: RunningRouter) -> None:
    text = "{number}: {{{body}} of {subject}, {property.n}{property.none}"
    with replying(router, "--template", text, "--count", "1") as process:
        done = asked(router, "tea", "--subject", "drinks", "--property", "n=7")
        assert ended(process)[0] == 0
    assert done.stdout == "1: {tea} of drinks, 7\n"


def test_a_command_gets_the_body_and_its_output_is_the_answer(router: RunningRouter) -> None:
    with replying(router, "--exec", UPPER, "--count", "1") as process:
        assert asked(router, "loud", "--subject", "so ").stdout == "so LOUD\n"
        assert ended(process)[0] == 0


@pytest.mark.parametrize(
    ("command", "why"),
    [
        (f"{sys.executable} -c 'raise SystemExit(3)'", "the command ended with status 3"),
        ("/no/such/program", "the command does not start: No such file or directory"),
    ],
)
def test_a_request_whose_command_fails_is_rejected_with_the_reason(
    router: RunningRouter, command: str, why: str
) -> None:
    with replying(router, "--exec", command, "--count", "1") as process:
        done = asked(router, "x")
        status, _, err = ended(process)
    assert (done.returncode, status) == (1, 1)
    assert f"rejected (amqp:internal-error: {why})" in done.stderr
    assert f"rejected ({why})" in err


def test_a_command_that_takes_too_long_is_ended(router: RunningRouter) -> None:
    forever = f"{sys.executable} -c 'import signal; signal.pause()'"
    with replying(router, "--exec", forever, "--exec-timeout", "0.2", "--count", "1") as process:
        done = asked(router, "x")
        assert ended(process)[0] == 1
    assert "the command took longer than 0.2 s" in done.stderr


def test_a_message_without_a_reply_to_is_rejected(router: RunningRouter) -> None:
    with replying(router, "--count", "1") as process:
        connection = BlockingConnection(f"127.0.0.1:{router.port}", allowed_mechs="ANONYMOUS", timeout=DEADLINE_S)
        sender = connection.create_sender("service")
        with pytest.raises(SendException):
            sender.send(Message(body="to whom?"))
        status, out, err = ended(process)
        connection.close()
    assert (status, out) == (1, "to whom?\n")
    assert "rejected (the request has no reply-to)" in err


@pytest.mark.parametrize("by", [signal.SIGINT, signal.SIGTERM])
def test_a_responder_ends_well_when_it_is_told_to(router: RunningRouter, by: int) -> None:
    with replying(router, by=by) as process:
        assert asked(router, "x").returncode == 0
    assert process.returncode == 0


def test_a_place_that_does_not_exist_is_a_wrong_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as wrong:
        main(["reply", "service", "--template", "{bodie}"])
    assert wrong.value.code == 2
    assert "there is no place {bodie}; there are {body}, " in capsys.readouterr().err
    assert check_template("".join(f"{{{place}}}" for place in PLACES))
    with pytest.raises(SystemExit):
        main(["reply", "service", "--exec", "'"])
    assert "this is no command" in capsys.readouterr().err
