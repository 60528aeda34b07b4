"""`send`, `receive` and `request` against a live router, with another implementation's client at the other end."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from proton import Condition, Delivery, Message
from proton.utils import BlockingConnection

from tests.routers import DEADLINE_S, PLAIN_LISTENER, ROOT, running
from trouter.cli import main


@pytest.fixture(scope="module")
def bus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with running(PLAIN_LISTENER, tmp_path_factory.mktemp("router")) as router:
        yield f"127.0.0.1:{router.port}"


def started(bus: str, *words: object, **settings: Any) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "trouter", words[0], "-b", bus, *words[1:]]
    pipe = subprocess.PIPE
    return subprocess.Popen([str(word) for word in command], cwd=ROOT, stdout=pipe, stderr=pipe, **settings)


def ended(process: subprocess.Popen[bytes], given: bytes | None = None) -> tuple[int, bytes, str]:
    """Return exit status, output and errors of a command."""
    with process:
        out, err = process.communicate(given, DEADLINE_S)
    return process.returncode, out, err.decode()


def ran(bus: str, *words: object, given: bytes | None = None) -> tuple[int, bytes, str]:
    return ended(started(bus, *words, stdin=subprocess.DEVNULL if given is None else subprocess.PIPE), given)


@pytest.fixture
def proton(bus: str) -> Iterator[BlockingConnection]:
    connection = BlockingConnection(bus, allowed_mechs="ANONYMOUS", timeout=DEADLINE_S)
    yield connection
    connection.close()


def took(proton: BlockingConnection, address: str, count: int, send: Callable[[], Any]) -> tuple[list[Message], Any]:
    """Return the messages that arrived while `send` ran, each accepted, and the result of `send`."""
    receiver = proton.create_receiver(address, credit=count)
    with ThreadPoolExecutor(1) as beside:
        sending = beside.submit(send)
        found = []
        for _ in range(count):
            found.append(receiver.receive(DEADLINE_S))
            receiver.accept()
        receiver.close()
        return found, sending.result()


def test_words_are_sent_with_the_given_properties(bus: str, proton: BlockingConnection) -> None:
    options = ("--subject", "S", "--property", "n=1", "--property", "t=true", "--property", "s=1x", "--ttl", "60")
    found, (status, out, err) = took(
        proton,
        "words",
        3,
        lambda: ran(bus, "send", "words", "a", *options, "b", "--priority", 7, "--durable", "--count", 3),
    )
    assert [message.body for message in found] == ["a", "b", "a"]
    first: Any = found[0]
    assert (first.subject, first.properties) == ("S", {"n": 1, "t": True, "s": "1x"})
    assert (first.ttl, first.priority, first.durable) == (60.0, 7, True)
    assert (status, out) == (0, b"")
    assert re.fullmatch(r"sent 3 messages in .* s \([\d,]+/s\): 3 accepted\n", err)


def test_lines_and_whole_messages_come_from_standard_input(bus: str, proton: BlockingConnection) -> None:
    lines, done = took(proton, "lines", 3, lambda: ran(bus, "send", "lines", "--lines", "-q", given=b"one\r\n\n\xff"))
    assert [message.body for message in lines] == ["one", "", b"\xff"]
    assert done == (0, b"", "")
    given = (
        b'{"body": {"a": [1, null]}, "properties": {"message-id": 7, "reply-to": "r"}, "message-annotations": {"x": 1}}'
    )
    (whole,), _ = took(proton, "lines", 1, lambda: ran(bus, "send", "lines", "--json", given=given))
    assert (whole.body, whole.id, whole.reply_to, whole.annotations) == ({"a": [1, None]}, 7, "r", {"x": 1})


def test_files_of_any_size_arrive_as_they_are(bus: str, proton: BlockingConnection, tmp_path: Path) -> None:
    small, large = tmp_path / "small", tmp_path / "large"
    small.write_bytes(b"\0\xff")
    large.write_bytes(bytes(range(256)) * 4000)
    found, done = took(proton, "files", 2, lambda: ran(bus, "send", "files", "--file", small, "--file", large, "-q"))
    assert [message.body for message in found] == [small.read_bytes(), large.read_bytes()]
    assert done == (0, b"", "")
    (whole,), _ = took(proton, "files", 1, lambda: ran(bus, "send", "files", given=large.read_bytes()))
    assert whole.body == large.read_bytes()


def test_outcomes_are_counted_and_the_status_is_1_unless_all_are_accepted(bus: str, proton: BlockingConnection) -> None:
    receiver = proton.create_receiver("outcomes", credit=4)
    sending = started(bus, "send", "outcomes", "m", "--count", 4)
    for outcome in (Delivery.ACCEPTED, Delivery.REJECTED, Delivery.RELEASED, Delivery.MODIFIED):
        receiver.receive(DEADLINE_S)
        assert receiver.fetcher is not None
        delivery = receiver.fetcher.unsettled[0]
        if outcome == Delivery.REJECTED:
            delivery.local.condition = Condition("shop:closed", "come back \x1b[2J tomorrow")
        receiver.settle(outcome)
    receiver.close()
    status, _, err = ended(sending)
    assert status == 1
    counts = "1 accepted, 1 rejected (shop:closed: come back \\x1b[2J tomorrow), 1 released, 1 modified"
    assert sorted(err.strip().split(": ", 1)[1].split(", ")) == sorted(counts.split(", "))


def test_messages_are_written_as_text_as_json_and_as_files(
    bus: str, proton: BlockingConnection, tmp_path: Path
) -> None:
    sent = [Message(body="text", subject="S", id=1), Message(body=b"octets", inferred=True), Message(body={"a": [1]})]
    large = Message(body=bytes(3_000_000), inferred=True)

    def received(*options: object, messages: list[Message]) -> tuple[bytes, str]:
        receiving = started(bus, "receive", "sink", "--count", len(messages), *options)
        sender = proton.create_sender("sink")
        for message in messages:
            sender.send(message)
        sender.close()
        status, out, err = ended(receiving)
        assert status == 0, err
        return out, err

    out, err = received(messages=sent)
    assert out == b'text\noctets\n{"a": [1]}\n'
    assert "received 3 messages" in err
    assert err.endswith(": 3 accepted\n")
    out, _ = received("--json", messages=sent)
    assert [json.loads(line) for line in out.splitlines()] == [
        {"properties": {"message-id": 1, "subject": "S"}, "body": "text"},
        {"body": "octets", "body-kind": "data"},
        {"body": {"a": [1]}},
    ]
    folder = tmp_path / "in"
    out, _ = received("--save", folder, messages=[*sent, large])
    assert out.decode().split() == [str(folder / f"00000{number}") for number in (1, 2, 3, 4)]
    assert [path.read_bytes() for path in sorted(folder.iterdir())] == [b"text", b"octets", b'{"a": [1]}', large.body]


def test_receive_prints_the_lines_that_send_reads(bus: str) -> None:
    lines = (
        b'{"header": {"durable": true}, "properties": {"content-type": "a/b"}, "body-base64": "/wA="}\n'
        b'{"application-properties": {"n": 1.5}, "body": [[1], ["two"]], "body-kind": "sequence"}\n'
    )
    receiving = started(bus, "receive", "echo", "--json", "--count", 2)
    assert (
        ran(
            bus,
            "send",
            "echo",
            "--json",
            given=lines,
        )[0]
        == 0
    )
    assert ended(receiving)[1] == lines


def test_a_receiver_requests_no_more_messages_than_its_count(bus: str, proton: BlockingConnection) -> None:
    receiving = started(bus, "receive", "few", "--count", 2, "--credit", 50, "-q")
    sender = proton.create_sender("few")
    assert [sender.send(Message(body=str(number))).remote_state for number in range(2)] == [Delivery.ACCEPTED] * 2
    assert ended(receiving) == (0, b"0\n1\n", "")
    sender.close()


def test_interrupted_commands_print_their_counts(bus: str) -> None:
    receiving = started(bus, "receive", "half")
    sending = started(bus, "send", "half", "--lines", stdin=subprocess.PIPE)
    assert sending.stdin is not None
    assert receiving.stdout is not None
    sending.stdin.write(b"one\n")
    sending.stdin.flush()
    assert receiving.stdout.readline() == b"one\n"
    for process in (sending, receiving):
        process.send_signal(signal.SIGINT)
    status, _, err = ended(sending)
    assert (status, err.split(": ")[-1]) == (130, "1 accepted\n")
    status, out, err = ended(receiving)
    assert (status, out, err.split(": ")[-1]) == (0, b"", "1 accepted\n")


def test_a_request_prints_its_answer_or_why_there_is_none(bus: str, proton: BlockingConnection) -> None:
    receiver, sender = proton.create_receiver("service", credit=2), proton.create_sender(None)
    asking = started(bus, "request", "service", "ping", "pong")
    request = receiver.receive(DEADLINE_S)
    sender.send(Message(address=request.reply_to, correlation_id=request.id, body=str(request.body).upper()))
    receiver.accept()
    request = receiver.receive(DEADLINE_S)
    receiver.accept()
    sender.send(Message(address=request.reply_to, correlation_id="another's", body="dropped"))
    sender.send(Message(address=request.reply_to, correlation_id=request.id, body=str(request.body).upper()))
    assert ended(asking) == (0, b"PING\nPONG\n", "")
    asking = started(bus, "request", "service", "ping")
    receiver.flow(1)
    receiver.receive(DEADLINE_S)
    receiver.reject()
    receiver.close()
    assert ended(asking) == (1, b"", "trouter request: sent 1 message: 1 rejected\n")


def test_failures_are_printed_on_standard_error(bus: str, tmp_path: Path) -> None:
    status, out, err = ran(bus, "send", "nowhere", "x", "--timeout", 0.2)
    assert (status, out) == (1, b"")
    assert "trouter send: no credit for 0.2 s" in err
    assert ran(bus, "send", "nowhere", "--file", tmp_path / "absent")[0] == 1
    assert ran(bus, "send", "nowhere", "--json", given=b'{"bod": 1}')[2].startswith(
        "sent 0 messages\ntrouter send: line 1"
    )
    assert ran(bus, "receive", "nowhere", "--count", 1, "--timeout", 0.2)[0] == 1
    assert ran(bus, "receive", "nowhere", "--timeout", 0.2) == (0, b"", "received 0 messages\n")


def test_a_rate_that_is_none_is_refused_as_a_rate(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(("send", "a", "b", "--rate", "fast"))
    assert "--rate: this must be a number of messages a second, above 0" in capsys.readouterr().err


@pytest.mark.parametrize(
    "wrong",
    [
        ("send", "a", "b", "--lines"),
        ("receive",),
        ("request", "a", "--file", "-", "--file", "-"),
        ("send", "a", "--count", "2"),
        ("send", "a", "b", "-b", "127.0.0.1/path"),
    ],
)
def test_a_wrong_command_line_is_reported_before_any_message_is_sent(
    wrong: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(wrong)
    assert ended.value.code == 2
    assert f"(see `trouter {wrong[0]} --help`)" in capsys.readouterr().err
