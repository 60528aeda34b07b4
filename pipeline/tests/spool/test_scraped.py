"""`trouter pipeline spool --metrics`: scraped over real sockets, while a real router feeds it."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Callable
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest
import trio
import trio.testing
from prometheus_client.parser import text_string_to_metric_families

from pipeline.tests.spool.test_commands import Command, proton_sending, router, spool_command, spooling
from tests.client.support import Router
from trouter_pipeline.commands.scraped import _serve, place_of
from trouter_pipeline.spool import SpoolReader, spools_in
from trouter_pipeline.spool.receiver import Progress
from trouter_pipeline.spool.reports import Shard

__all__ = ["router", "spool_command"]  # fixtures


class Page:
    """The metrics page of a command."""

    def __init__(self, base: str) -> None:
        self.base = base

    async def get(self, path: str) -> tuple[int, str]:
        return await trio.to_thread.run_sync(self._get, path)

    def _get(self, path: str) -> tuple[int, str]:
        try:
            with urlopen(self.base + path, timeout=60) as answer:
                return answer.status, answer.read().decode()
        except HTTPError as refused:
            return refused.code, refused.read().decode()

    async def figures(self, shard: int = 0) -> dict[str, float]:
        """Return the samples of one shard by name, without the prefix; the last error by its kind."""
        _, text = await self.get("/metrics")
        return {
            sample.name.removeprefix("trouter_spool_") + sample.labels.get("kind", ""): sample.value
            for family in text_string_to_metric_families(text)
            for sample in family.samples
            if sample.labels["shard"] == str(shard)
        }

    async def until(self, path: str, status: int) -> None:
        while (await self.get(path))[0] != status:
            await trio.lowlevel.checkpoint()

    async def until_figures(self, wanted: Callable[[dict[str, float]], bool], shard: int = 0) -> dict[str, float]:
        while not wanted(found := await self.figures(shard)):
            await trio.lowlevel.checkpoint()
        return found


async def page_of(command: Command) -> Page:
    return Page((await command.until_printed(r"metrics at (http://127\.0\.0\.1:\d+)/metrics\n"))[1])


async def test_the_metrics_show_the_received_messages_and_readiness(router: Router, folder: Path) -> None:
    async with spooling(router.url, folder, "--metrics", "127.0.0.1:0") as command:
        page = await page_of(command)
        await page.until("/readyz", 200)
        async with proton_sending(router.url, 200):
            pass
        found = await page.until_figures(lambda figures: figures["accepted_total"] == 200)
        assert {found[name] for name in ("messages_total", "next_sequence", "durable_sequence")} == {200}
        assert found["octets_total"] > 200 * 10
        assert (found["linked"], found["credit_stopped"], found["reconnects_total"]) == (1, 0, 0)
        assert not [name for name in found if name.startswith("last_error")]
        assert [(await page.get(path))[0] for path in ("/healthz", "/livez", "/", "/../spool.json")] == [
            200,
            200,
            404,
            404,
        ]
        router.cut()
        found = await page.until_figures(lambda figures: figures["reconnects_total"] == 1)
        assert found["last_error_timestamp_secondsconnection"] > found["start_timestamp_seconds"]
        assert await command.end() == 0


async def test_a_receiver_is_not_ready_without_a_server_nor_without_a_consumer(router: Router, folder: Path) -> None:
    async with spooling("127.0.0.1:1", folder.parent / "lost", "--metrics", "127.0.0.1:0") as lost:
        page = await page_of(lost)
        found = await page.until_figures(lambda figures: "last_error_timestamp_secondsconnection" in figures)
        assert (found["up"], found["linked"]) == (1, 0)
        assert [(await page.get(path))[0] for path in ("/readyz", "/healthz", "/livez")] == [503, 503, 200]
    more = ("--backlog-bytes", "8k", "--segment-bytes", "4k", "--credit", "50", "--metrics", "127.0.0.1:0")
    async with spooling(router.url, folder, *more) as command:
        page = await page_of(command)
        async with proton_sending(router.url, 400):
            found = await page.until_figures(lambda figures: figures["credit_stopped"] == 1)
            assert found["backlog_bytes"] >= 8192
            assert (await page.get("/readyz"))[0] == 503
            reader = SpoolReader(folder)
            while (await page.figures())["accepted_total"] < 400:
                reader.consumed(reader.durable())
        reader.consumed(reader.durable())
        reader.close()
        await page.until("/readyz", 200)
        assert (await page.figures())["credit_stopped"] == 0


@pytest.mark.slow
async def test_a_shard_that_was_killed_shows(router: Router, folder: Path) -> None:
    async with spooling(router.url, folder, "--shards", "2", "--metrics", "127.0.0.1:0") as command:
        page = await page_of(command)
        await page.until("/readyz", 200)
        _, second = spools_in(folder)
        os.kill(int((second / "LOCK").read_text()), signal.SIGKILL)
        await page.until("/readyz", 503)
        found = await page.until_figures(lambda figures: figures["restarts_total"] == 1, shard=1)
        assert found["last_error_timestamp_secondskilled"] > found["start_timestamp_seconds"]
        assert not [name for name in await page.figures(0) if name.startswith("last_error")]
        await page.until("/readyz", 200)
        assert (await page.figures(1))["reconnects_total"] == 1
        assert await command.end() == 0


def test_a_port_in_use_is_reported_before_the_folder_is_made(folder: Path, spool_command: Callable[..., str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        where = f"127.0.0.1:{taken.getsockname()[1]}"
        output = spool_command("--url", "127.0.0.1:1", "--metrics", where)
    assert f"no metrics: cannot listen on {where}: Address already in use" in output
    assert not folder.exists()


@pytest.mark.parametrize("where", ["9100", ":9100", "host:", "host:65536", "::1:9100", "host:http", "http://host:9"])
def test_a_faulty_metrics_address_is_reported(where: str, folder: Path, spool_command: Callable[..., str]) -> None:
    assert f"--metrics {where}: is no HOST:PORT" in spool_command("--url", "127.0.0.1:1", "--metrics", where)
    assert not folder.exists()


def test_an_ipv6_address_stands_in_brackets() -> None:
    assert place_of("[::1]:0", "--metrics") == ("::1", 0)
    assert place_of("localhost:9100", "--metrics") == ("localhost", 9100)


async def answer_to(request: bytes) -> bytes:
    """Return all bytes that the pages send to a client that sends these and then waits."""
    near, far = trio.testing.memory_stream_pair()
    shards = [Shard(0, "orders", Progress())]
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_serve, shards, trio.CapacityLimiter(1), near)
        await far.send_all(request)
        return b"".join([part async for part in far])


@pytest.mark.parametrize(
    ("request_line", "status", "body"),
    [
        (b"HEAD /metrics", b"200", b""),
        (b"POST /metrics", b"405", b"GET reads this page\n"),
        (b"GET /livez?verbose", b"200", b"OK"),
        (b"GET /readyz", b"503", b"NOT OK"),
        (b"GET /../spool.json", b"404", b"there is no such page\n"),
    ],
)
async def test_a_page_is_read_and_another_request_is_refused(request_line: bytes, status: bytes, body: bytes) -> None:
    head, _, found = (await answer_to(request_line + b" HTTP/1.1\r\nHost: x\r\n\r\n")).partition(b"\r\n\r\n")
    assert (head.split()[1], found) == (status, body)


@pytest.mark.parametrize("sent", [b"AMQP\0\1\0\0", b"GET /" + b"a" * 20_000, b"\x16\x03\x01"])
async def test_a_client_that_sends_no_request_is_closed(sent: bytes, autojump_clock: trio.testing.MockClock) -> None:
    assert await answer_to(sent) == b""


async def test_a_client_that_stays_silent_is_closed(autojump_clock: trio.testing.MockClock) -> None:
    assert await answer_to(b"GET /metrics HTTP/1.1\r\n") == b""


async def test_one_client_too_many_is_closed_at_once() -> None:
    near, far = trio.testing.memory_stream_pair()
    free = trio.CapacityLimiter(1)
    free.acquire_on_behalf_of_nowait("another")
    await _serve([], free, near)
    assert await far.receive_some() == b""
