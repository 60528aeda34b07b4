"""Pages over real sockets."""

from __future__ import annotations

import http.client
from pathlib import Path

import pytest
import trio
from prometheus_client.parser import text_string_to_metric_families
from trio.testing import MockClock

from tests.http.sites import NO_TOTALS, Site, ask, client_of, http_entity, listening
from trouter.http import Figures
from trouter.http.pages import Pages
from trouter.http.settings import HEALTH_S, http_settings

METHODS = ["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"]


@pytest.mark.parametrize("method", METHODS)
async def test_a_probe_answers_any_known_method(method: str) -> None:
    async with listening(Site()) as listener:
        for path in ("/healthz", "/livez", "/readyz"):
            answer = await ask(listener, path, method)
            assert answer.status == 200
            assert answer.headers["content-type"].startswith("text/plain")
            assert answer.headers["content-length"] == "2"
            assert answer.body == (b"" if method == "HEAD" else b"OK")


@pytest.mark.parametrize(
    ("path", "attribute"), [("/healthz", "is_healthy"), ("/livez", "is_live"), ("/readyz", "is_ready")]
)
async def test_a_failing_probe_answers_503(path: str, attribute: str) -> None:
    site = Site(**{attribute: False})  # type: ignore[arg-type]
    async with listening(site) as listener:
        answer = await ask(listener, path)
        assert (answer.status, answer.body) == (503, b"NOT OK")
        setattr(site, attribute, True)
        assert (await ask(listener, path)).status == 200


async def test_a_core_that_does_not_answer_is_not_healthy(autojump_clock: MockClock) -> None:
    class Stuck(Site):
        async def healthy(self) -> bool:
            await trio.sleep_forever()

    pages = Pages(http_settings(http_entity()), Stuck())
    begun = trio.current_time()
    assert (await pages._healthz()).status == 503
    assert trio.current_time() - begun == HEALTH_S


@pytest.mark.parametrize("switch", ["healthz", "metrics"])
async def test_a_page_that_is_switched_off_is_not_there(switch: str) -> None:
    async with listening(Site(), **{switch: False}) as listener:
        for path, needs in {
            "/healthz": "healthz",
            "/livez": "healthz",
            "/readyz": "healthz",
            "/metrics": "metrics",
        }.items():
            assert (await ask(listener, path)).status == (404 if needs == switch else 200)


async def test_metrics_are_text_that_a_scraper_parses() -> None:
    async with listening(Site(totals=NO_TOTALS | {"connections": 7})) as listener:
        answer = await ask(listener, "/metrics")
    assert answer.status == 200
    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    families = {family.name: family for family in text_string_to_metric_families(answer.body.decode())}
    assert families["qdr_connections_total"].samples[0].value == 7


@pytest.mark.parametrize("method", ["TRACE", "CONNECT", "ANYTHING", "get"])
async def test_a_probe_answers_no_other_method(method: str) -> None:
    async with listening(Site()) as listener:
        answer = await ask(listener, "/healthz", method)
        assert (answer.status, answer.headers["allow"]) == (405, "GET, HEAD, DELETE, OPTIONS, PATCH, POST, PUT")


@pytest.mark.parametrize(("path", "status"), [("/metrics", 405), ("/", 405), ("/x", 405)])
async def test_only_get_and_head_are_allowed_on_pages(path: str, status: int) -> None:
    async with listening(Site()) as listener:
        answer = await ask(listener, path, "POST", Content_Length="0")
        assert answer.status == status
        assert answer.headers["allow"] == "GET, HEAD"


async def test_every_answer_forbids_guessing_and_framing(tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text("hello")
    async with listening(Site(), http_root_dir=str(tmp_path)) as listener:
        for path in ("/", "/metrics", "/healthz", "/nothing", "/../x"):
            headers = (await ask(listener, path)).headers
            assert headers["x-content-type-options"] == "nosniff"
            assert headers["x-frame-options"] == "SAMEORIGIN"
            assert headers["content-security-policy"] == "frame-ancestors 'self'"
            assert "server" not in headers


@pytest.mark.parametrize(
    "target",
    [
        "/../secret",
        "/%2e%2e/secret",
        "/..%2fsecret",
        "/..\\secret",
        "/link/secret",
        "//etc/passwd",
        "/sub/../../secret",
    ],
)
async def test_no_target_leads_out_of_the_root(tmp_path: Path, target: str) -> None:
    root = tmp_path / "www"
    (root / "sub").mkdir(parents=True)
    (root / "link").symlink_to(tmp_path)
    (tmp_path / "secret").write_text("secret")
    async with listening(Site(), http_root_dir=str(root)) as listener:
        assert (await ask(listener, target)).status == 404


async def test_a_file_is_served_in_full_and_its_head_without_a_body(tmp_path: Path) -> None:
    data = bytes(range(256)) * 2000
    (tmp_path / "x.bin").write_bytes(data)
    async with listening(Site(), http_root_dir=str(tmp_path)) as listener, client_of(listener) as client:
        assert (await client.ask("/x.bin")).body == data
        head = await client.ask("/x.bin", "HEAD")
        assert (head.status, head.headers["content-length"], head.body) == (200, str(len(data)), b"")
        assert (await client.ask("/x.bin")).body == data


async def test_an_empty_file_is_an_answer(tmp_path: Path) -> None:
    (tmp_path / "x.txt").write_bytes(b"")
    async with listening(Site(), http_root_dir=str(tmp_path)) as listener, client_of(listener) as client:
        assert (await client.ask("/x.txt")).status == 200
        assert (await client.ask("/healthz")).status == 200


async def test_a_file_that_shrinks_while_being_sent_is_not_sent_as_whole(tmp_path: Path) -> None:
    path = tmp_path / "x.bin"
    with path.open("wb") as file:
        file.truncate(64 * 1024 * 1024)
    async with listening(Site(), http_root_dir=str(tmp_path)) as listener, client_of(listener) as client:
        await client.send(b"GET /x.bin HTTP/1.1\r\nHost: x\r\n\r\n")
        assert (await client.stream.receive_some(10)).startswith(b"HTTP/1.1 2")
        path.write_bytes(b"")
        assert len(await client.rest()) < 64 * 1024 * 1024


async def test_an_error_in_the_server_is_one_answer_of_500(caplog: pytest.LogCaptureFixture) -> None:
    class Broken(Site):
        def live(self) -> bool:
            raise ZeroDivisionError

    async with listening(Broken()) as listener, client_of(listener) as client:
        answer = await client.ask("/livez")
        assert (answer.status, answer.body) == (500, b"500 Internal Server Error\n")
        assert (await client.ask("/healthz")).status == 200
    assert "internal error while answering" in caplog.text


async def test_the_clients_of_the_standard_library_are_served(tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text("<h1>hello</h1>")

    def browse(port: int) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        for path, kind in (("/", "text/html; charset=utf-8"), ("/healthz", "text/plain; charset=utf-8")):
            connection.request("GET", path)
            response = connection.getresponse()
            assert response.status == 200
            assert response.getheader("Content-Type") == kind
            assert len(response.read()) == int(response.getheader("Content-Length") or -1)
        connection.request("POST", "/healthz", body=b"x" * 1000)
        assert connection.getresponse().read() == b"OK"
        connection.request("POST", "/healthz", body=iter([b"a", b"b"]), encode_chunked=True)
        assert connection.getresponse().read() == b"OK"
        connection.close()

    async with listening(Site(), http_root_dir=str(tmp_path)) as listener:
        await trio.to_thread.run_sync(browse, listener.sockets[0].getsockname()[1])


async def test_a_client_of_http_1_0_gets_an_answer_and_the_end() -> None:
    async with listening(Site()) as listener, client_of(listener) as client:
        await client.send(b"GET /healthz HTTP/1.0\r\n\r\n")
        rest = await client.rest()
        assert rest.startswith(b"HTTP/1.1 200 ")
        assert rest.endswith(b"\r\n\r\nOK")


async def test_concurrent_scrapes_share_one_text() -> None:
    site = Site()
    async with listening(site) as listener, trio.open_nursery() as nursery:
        for _ in range(50):
            nursery.start_soon(ask, listener, "/metrics")
    assert 1 <= site.shown < 50


async def test_failing_figures_are_an_error_for_every_waiting_client() -> None:
    class Broken(Site):
        def figures(self) -> Figures:
            self.shown += 1
            raise ZeroDivisionError

    statuses: list[int] = []

    async def scrape() -> None:
        statuses.append((await ask(listener, "/metrics")).status)

    async with listening(Broken()) as listener, trio.open_nursery() as nursery:
        for _ in range(5):
            nursery.start_soon(scrape)
    assert statuses == [500] * 5


async def test_figures_are_of_a_moment_after_the_question() -> None:
    site = Site()
    async with listening(site) as listener:
        for count in range(5):
            site.totals = NO_TOTALS | {"connections": count}
            assert f"qdr_connections_total {count}.0\n" in (await ask(listener, "/metrics")).body.decode()
