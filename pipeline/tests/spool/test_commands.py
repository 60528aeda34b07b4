"""`trouter pipeline spool` as processes, with a real router and python-qpid-proton at the other end."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import pytest
import trio

from pipeline.tests.spool.feeds import until
from pipeline.tests.spool.support import fill, frames
from tests.client.support import Router
from tests.tools.live import status_of
from trouter.app.process import RouterProcess
from trouter.config import load
from trouter.hooks import Plugins
from trouter_pipeline.commands.spool import size as size_of
from trouter_pipeline.spool import Spool, SpoolReader, spools_in
from trouter_pipeline.spool.cursors import cursors_in

SPOOL = (sys.executable, "-m", "trouter", "pipeline", "spool")
OPEN_ROUTER = "router { id: R }\nlistener { host: 127.0.0.1, port: 0, saslMechanisms: ANONYMOUS }\n"

#: Sends numbered messages with a window, prints the number of each that was accepted, and sends the others again.
PROTON_SENDER = """
import sys
from proton import Message
from proton.handlers import MessagingHandler
from proton.reactor import Container

class Sender(MessagingHandler):
    def __init__(self, url, first, count):
        super().__init__()
        self.url, self.todo, self.under_way = url, list(range(first, first + count)), {}
        self.left = count

    def on_start(self, event):
        connection = event.container.connect(self.url, allowed_mechs="ANONYMOUS")
        self.sender = event.container.create_sender(connection, "orders")

    def on_sendable(self, event):
        while self.sender.credit and self.todo and len(self.under_way) < 500:
            number = self.todo.pop(0)
            self.under_way[self.sender.send(Message(id=str(number), body=f"order {number}"))] = number

    def on_accepted(self, event):
        print(self.under_way.pop(event.delivery), flush=True)
        self.left -= 1
        if not self.left:
            event.connection.close()
        else:
            self.on_sendable(event)

    def again(self, event):
        self.todo.append(self.under_way.pop(event.delivery))
        self.on_sendable(event)

    on_released = on_modified = again

Container(Sender(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))).run()
"""


@pytest.fixture
async def router() -> AsyncIterator[Router]:
    process = RouterProcess(load(text=OPEN_ROUTER), Plugins.load())
    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            await nursery.start(process.run)
            yield Router(process)
            nursery.cancel_scope.cancel()


class Command:
    """A process of `trouter pipeline spool`; ``output`` is its standard error so far."""

    def __init__(self, process: trio.Process) -> None:
        self.process = process
        self.output = ""
        self._more = trio.Event()

    async def listen(self) -> None:
        assert self.process.stderr is not None
        async for octets in self.process.stderr:
            self.output += octets.decode()
            self._more.set()
            self._more = trio.Event()

    async def until_printed(self, pattern: str) -> re.Match[str]:
        while not (found := re.search(pattern, self.output)):
            await self._more.wait()
        return found

    async def end(self, by: int = signal.SIGTERM) -> int:
        self.process.send_signal(by)
        return await self.process.wait()


@asynccontextmanager
async def spooling(url: str, folder: Path, *more: str) -> AsyncIterator[Command]:
    process = await trio.lowlevel.open_process(
        [*SPOOL, "--url", url, "--address", "orders", "--dir", str(folder), *more],
        stderr=subprocess.PIPE,
    )
    command = Command(process)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(command.listen)
        try:
            yield command
        finally:
            if process.poll() is None:
                process.kill()
        await process.wait()


@asynccontextmanager
async def proton_sending(url: str, count: int, first: int = 0) -> AsyncIterator[list[int]]:
    """Run a sender; yield the list of numbers that were accepted. The block ends when all were."""
    accepted: list[int] = []
    process = await trio.lowlevel.open_process(
        [sys.executable, "-c", PROTON_SENDER, url, str(first), str(count)], stdout=subprocess.PIPE
    )

    async def read() -> None:
        rest = b""
        assert process.stdout is not None
        async for octets in process.stdout:
            *lines, rest = (rest + octets).split(b"\n")
            accepted.extend(map(int, lines))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(read)
        try:
            yield accepted
            await process.wait()
        finally:
            if process.poll() is None:
                process.kill()
    assert process.returncode == 0


def reached(accepted: list[int], count: int) -> bool:
    return len(accepted) >= count


def numbers_in(*folders: Path) -> list[int]:
    """Return the numbers of the orders in spools, in their order there."""
    return [int(frame.message.rpartition(b"order ")[2]) for folder in folders for frame in frames(folder)]


async def test_proton_sends_through_a_router_and_everything_accepted_is_there(router: Router, folder: Path) -> None:
    metrics = folder.parent / "spool.prom"
    async with spooling(router.url, folder, "--metrics-file", str(metrics)) as command:
        async with proton_sending(router.url, 400) as accepted:
            pass
        assert await command.end() == 0
    assert sorted(accepted) == list(range(400))
    assert numbers_in(folder) == list(range(400))
    assert command.output.endswith("trouter pipeline spool: 400 messages kept\n")
    assert 'trouter_spool_accepted_total{address="orders",shard="0"} 400.0\n' in metrics.read_text()


async def test_a_cursor_that_nobody_moves_is_reported(router: Router, folder: Path) -> None:
    with Spool.open(folder, address="orders") as spool:
        fill(spool, 3)  # which came in 1970
    metrics = folder.parent / "spool.prom"
    more = ("--cursor", "kafka", "--cursor-age", "0.5", "--metrics-file", str(metrics))
    async with spooling(router.url, folder, *more) as command:
        await command.until_printed("cursor default keeps 3 messages .*: run its consumer, or remove it with")
        await command.until_printed("cursor kafka keeps 3 messages")
        assert await command.end() == 0
    assert cursors_in(folder) == ["default", "kafka"]
    assert 'trouter_spool_cursor_messages{address="orders",cursor="kafka",shard="0"} 3.0\n' in metrics.read_text()


@pytest.mark.slow
async def test_a_spool_killed_in_midstream_has_every_accepted_message_and_goes_on(router: Router, folder: Path) -> None:
    count = 3000
    async with proton_sending(router.url, count) as accepted:
        for milestone in (300, 1200):
            async with spooling(router.url, folder) as command:
                await until(partial(reached, accepted, milestone))
                command.process.kill()
            assert set(accepted) <= set(numbers_in(folder))
        async with spooling(router.url, folder) as command:
            await until(partial(reached, accepted, count))
            assert await command.end(signal.SIGINT) == 0
    found = frames(folder)
    assert [frame.sequence for frame in found] == list(range(len(found)))
    assert set(numbers_in(folder)) == set(range(count))
    assert len(found) - count <= 2 * 2000


@pytest.mark.slow
async def test_shards_share_the_messages_and_a_killed_shard_is_started_again(router: Router, folder: Path) -> None:
    async with spooling(router.url, folder, "--shards", "2") as command:
        await until(lambda: len(spools_in(folder)) == 2)
        first, second = spools_in(folder)
        async with proton_sending(router.url, 600):
            pass
        assert all(SpoolReader(each).durable() for each in (first, second))
        os.kill(int((second / "LOCK").read_text()), signal.SIGKILL)
        await command.until_printed(r"shard 1 \(process \d+\): was killed by signal 9; started again in 0.5 s")
        async with proton_sending(router.url, 400, first=600):
            pass
        assert await command.end() == 0
    assert sorted(set(numbers_in(first, second))) == list(range(1000))
    assert [SpoolReader(each).shard for each in (first, second)] == [0, 1]
    assert re.search(r"\d[\d,]+ messages kept\n$", command.output)


@pytest.mark.slow
async def test_shards_say_that_no_server_answers_and_try_again(folder: Path) -> None:
    with trio.fail_after(60):
        async with spooling("amqp://127.0.0.1:1", folder, "--shards", "2") as command:
            for shard in ("0", "1"):
                await command.until_printed(f"shard {shard}: cannot connect to amqp://127.0.0.1:1: ")
            assert await command.end() == 0
    assert "Traceback" not in command.output
    assert "started again" not in command.output


@pytest.mark.slow
async def test_shards_end_when_the_process_that_started_them_is_killed(router: Router, folder: Path) -> None:
    async with spooling(router.url, folder, "--shards", "2") as command:
        await until(lambda: len(spools_in(folder)) == 2)
        holders = [int((each / "LOCK").read_text()) for each in spools_in(folder)]
        command.process.kill()
        await until(lambda: not any(Path(f"/proc/{holder}").exists() for holder in holders))


@pytest.mark.slow
def test_shards_that_cannot_begin_end_together(folder: Path, spool_command: Callable[..., str]) -> None:
    Spool.open(folder / "shard-001", address="events", shard=1).close()
    output = spool_command("--url", "127.0.0.1:1", "--shards", "2")
    assert "shard 1: the spool in" in output
    assert "is that of address 'events', shard 1, not of 'orders', shard 1" in output


@pytest.fixture
def spool_command(folder: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Run the command in this process; it must fail; return its output."""

    def run(*arguments: str) -> str:
        assert status_of(["pipeline", "spool", "--dir", str(folder), "--address", "orders", *arguments]) in {1, 2}
        return capsys.readouterr().err

    return run


@pytest.mark.parametrize(
    ("more", "why"),
    [
        (("--address", ""), "the receiver needs an address to receive from"),
        (("--shards", "0"), "--shards is 0"),
        (("--credit", "0"), "credit is 0"),
        (("--url", "http://x"), "the scheme is 'http'"),
        (("--user", "me"), "a user without a password"),
        (("--password-file", "/nowhere"), "/nowhere"),
        (("--password-file", "/dev/null", "--user", "me"), "/dev/null holds no password"),
        (("--sasl-mechanisms", "KERBEROS"), "none of the SASL mechanisms KERBEROS is one of"),
        (("--sasl-mechanisms", "PLAIN"), "SASL PLAIN needs a user and a password"),
        (("--tls-key", "/k"), "a private key without its certificate"),
        (("--backlog-bytes", "ten"), "--backlog-bytes: invalid size value: 'ten'"),
        (("--backlog-bytes", "0"), "--backlog-bytes: invalid size value: '0'"),
    ],
)
def test_wrong_arguments_are_reported_before_the_folder_is_made(
    folder: Path, spool_command: Callable[..., str], more: tuple[str, ...], why: str
) -> None:
    assert why in spool_command("--url", "amqp://127.0.0.1:1", *more)
    assert not folder.exists()


@pytest.mark.parametrize(("text", "value"), [("7", 7), ("1k", 1024), ("3M", 3 << 20), ("2g", 2 << 30)])
def test_a_size_is_a_number_with_a_unit(text: str, value: int) -> None:
    assert size_of(text) == value


def test_shards_of_another_number_are_not_forgotten(folder: Path, spool_command: Callable[..., str]) -> None:
    Spool.open(folder / "shard-002", address="orders", shard=2).close()
    output = spool_command("--url", "127.0.0.1:1", "--shards", "2")
    assert "shard-002 is a spool that --shards 2 does not receive into" in output


def test_a_server_that_is_not_there_is_given_up_after_as_many_attempts(spool_command: Callable[..., str]) -> None:
    assert "Connection refused" in spool_command("--url", "127.0.0.1:1", "--attempts", "1")


def test_a_spool_in_use_and_a_damaged_one_are_reported(folder: Path, spool_command: Callable[..., str]) -> None:
    with Spool.open(folder, address="orders"):
        assert f"spool {folder} is in use by process {os.getpid()}" in spool_command("--url", "127.0.0.1:1")
    (folder / "durable").write_bytes(b"?")
    assert f"{folder}/durable, offset 1: a mark has 16 bytes" in spool_command("--url", "127.0.0.1:1")


def test_a_password_in_a_url_is_never_shown(folder: Path, spool_command: Callable[..., str]) -> None:
    output = spool_command("--url", "amqp://me:hush@127.0.0.1:1", "--attempts", "1")
    assert "hush" not in output
    assert "amqp://127.0.0.1:1" in output
