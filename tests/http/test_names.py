"""The names under which requests may address a listener."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest
from trio.testing import MockClock

from tests.http.sites import Site, client_of, http_entity, listening
from tests.http.test_websockets import upgrade
from trouter._seldom import LOG_EVERY_S
from trouter.config import Secret, load
from trouter.config.findings import unsafe
from trouter.config.schema import BadValue
from trouter.config.texts import allowed_hosts
from trouter.http.names import known_names, machine_names

pytestmark = pytest.mark.attack

OWN = {
    "host": "router.example",
    "allowed_hosts": ("console.example", "*.svc.example"),
    "web_socket_origins": ("https://pages.example:8443", "null"),
}
FOREIGN_PAGE = (
    "GET / HTTP/1.1\r\nHost: localhost\r\nOrigin: http://evil.example\r\nUpgrade: websocket\r\n"
    "Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA=="
)


@pytest.mark.parametrize(
    "host",
    [
        "",
        "router.example",
        "ROUTER.example.",
        "router.example:8080",
        "console.example",
        "trouter.svc.example:8080",
        "pages.example",
        "10.1.2.3",
        "10.1.2.3:8080",
        "[2001:db8::1]:8080",
        "localhost",
        "localhost:8080",
        "a.localhost",
        "127.0.0.1",
        socket.gethostname(),
    ],
)
def test_a_listener_is_known_by_its_own_names_and_by_every_address(host: str) -> None:
    names = known_names(http_entity(**OWN))
    assert names.hold(host)


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:8080",
        "router.example.evil",
        "localhost.evil.example",
        "127.0.0.1.evil.example",
        "svc.example",
        "a.b.svc.example",
        "router.example@evil.example",
        "evil.example:80:80",
        "router.example evil.example",
        "router.example, evil.example",
        "[evil.example]",
        "127.1",
        "wpad",
        "wpad:5682",
        "trouter.",
        "*",
        ".",
        "*.svc.example.",
        "\xe9vil.example",
    ],
)
def test_a_listener_is_known_by_no_other_name(host: str) -> None:
    names = known_names(http_entity(**OWN))
    assert not names.hold(host)
    assert known_names(http_entity(allowed_hosts=("*",))).hold(host)


def test_a_name_without_a_dot_is_known_only_if_it_is_named() -> None:
    names = known_names(http_entity(allowed_hosts=("trouter",)))
    assert names.hold("trouter:8080")
    assert not names.hold("wpad:8080")
    assert not names.hold("wpad")


def test_the_machine_has_its_name_and_those_beside_it_in_the_file_of_hosts(tmp_path: Path) -> None:
    own, hosts = socket.gethostname().lower(), tmp_path / "hosts"
    hosts.write_text(
        f"127.0.0.1 localhost\n192.0.2.1\tFull.Name.example. {own} nick # not-this\n192.0.2.2 other.example other\n"
        f"# 192.0.2.3 {own} commented\n"
    )
    assert machine_names(hosts) == {own, own.partition(".")[0], "full.name.example", "nick"}
    assert machine_names(tmp_path / "absent") == {own, own.partition(".")[0]}
    assert machine_names() >= {own}


@pytest.mark.parametrize("name", ["wpad", "wpad:5682", "isatap"])
async def test_a_page_of_a_name_without_a_dot_reads_nothing_and_opens_no_websocket(name: str) -> None:
    """Whoever answers for `wpad` in the local network makes it lead here."""
    async with listening(Site(), allowed_hosts=(), web_socket_origins=()) as listener:
        async with client_of(listener) as client:
            await client.send(f"GET /metrics HTTP/1.1\r\nHost: {name}\r\n\r\n".encode())
            assert (await client.answer()).status == 421
        async with client_of(listener) as client:
            answer = await upgrade(client, f"http://{name}/", Origin=f"http://{name}")
            assert answer.status == 421
            assert listener.websockets == 0


@pytest.mark.parametrize("path", ["/healthz", "/livez", "/readyz", "/healthz?a", "http://localhost/readyz"])
async def test_a_page_opens_no_websocket_where_probes_may_name_any_host(path: str) -> None:
    """The page's name leads here, so that its origin is the listener's own: only the name gives it away."""
    async with listening(Site(), allowed_hosts=(), web_socket_origins=()) as listener, client_of(listener) as client:
        request = FOREIGN_PAGE.replace("GET /", f"GET {path}").replace("Host: localhost", "Host: evil.example")
        await client.send(f"{request}\r\n\r\n".encode())
        assert (await client.answer()).status == 421
        assert listener.websockets == 0


@pytest.mark.parametrize("path", ["/metrics", "/", "/assets/x.js", "http://localhost/metrics"])
async def test_a_page_whose_name_leads_here_reads_nothing(path: str) -> None:
    async with listening(Site(), allowed_hosts=()) as listener:
        for host, status in (("evil.example:8080", (421,)), ("localhost", (200, 404)), ("127.0.0.1:1", (200, 404))):
            async with client_of(listener) as client:
                await client.send(f"GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
                answer = await client.answer()
                assert answer.status in status
    async with listening(Site(), allowed_hosts=("evil.example",)) as listener, client_of(listener) as client:
        await client.send(b"GET /metrics HTTP/1.1\r\nHost: evil.example\r\n\r\n")
        assert (await client.answer()).status == 200


async def test_the_name_in_a_target_counts_too() -> None:
    async with listening(Site(), allowed_hosts=()) as listener, client_of(listener) as client:
        await client.send(b"GET http://evil.example/metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert (await client.answer()).status == 421


@pytest.mark.parametrize("path", ["/healthz", "/livez", "/readyz"])
async def test_probes_are_answered_under_every_name(path: str) -> None:
    async with listening(Site(), allowed_hosts=()) as listener, client_of(listener) as client:
        await client.send(f"GET {path} HTTP/1.1\r\nHost: evil.example\r\n\r\n".encode())
        assert (await client.answer()).status == 200


async def test_a_page_whose_name_leads_here_opens_no_websocket() -> None:
    """Its origin is the host of its requests, as that of the listener's own pages is."""
    async with listening(Site(), allowed_hosts=(), web_socket_origins=()) as listener, client_of(listener) as client:
        answer = await upgrade(client, "http://evil.example/", Origin="http://evil.example")
        assert answer.status == 421
        assert listener.websockets == 0


async def test_a_program_that_names_no_host_is_served() -> None:
    async with listening(Site(), allowed_hosts=()) as listener, client_of(listener) as client:
        await client.send(b"GET /metrics HTTP/1.0\r\n\r\n")
        assert (await client.answer()).status == 200


def test_allowed_hosts_are_names() -> None:
    assert allowed_hosts("A.example, *.b.example. c") == ("a.example", "*.b.example", "c")
    assert allowed_hosts("*") == ("*",)
    assert allowed_hosts("None") == allowed_hosts(" ") == ()
    for text in ("https://a.example", "a.example:80", "a.*", "*, a.example", "[::1]"):
        with pytest.raises(BadValue, match="not the name of a host"):
            allowed_hosts(text)


def test_only_its_own_names_are_known_unless_others_are_given() -> None:
    for given, strict, compatible in (
        ("", (), ("*",)),
        (", allowedHosts: none", (), ()),
        (", allowedHosts: a.example", ("a.example",), ("a.example",)),
        (", allowedHosts: *", ("*",), ("*",)),
    ):
        text = f"listener {{ host: ::1, port: 0, http: yes{given} }}\n"
        secure = f"router {{ secureDefaults: yes }}\n{text}"
        for configuration, names in ((load(text=secure), strict), (load(text=text), compatible)):
            assert configuration.listeners[0].allowed_hosts == names
            reported = "names-of-strangers" in {finding.point for finding in unsafe(configuration)}
            assert reported is ("*" in names)


CERTIFICATES = "sslProfile {\n name: s\n caCertFile: /ca\n}\n"
TLS = "sslProfile: s\n requireSsl: yes\n"


@pytest.mark.parametrize(
    ("listener", "is_found"),
    [
        ("host: 0.0.0.0", True),
        ("host: router.example", True),
        ("host: 127.0.0.1", False),
        ("host: 0.0.0.0\n metrics: no", False),
        ("host: 0.0.0.0\n metricsHosts: 10.0.0.0/8", False),
        ("host: 0.0.0.0\n metricsHosts: *", True),
        ("host: 0.0.0.0\n metricsToken: env:TOKEN", False),
        (f"host: 0.0.0.0\n {TLS}", True),
        (f"host: 0.0.0.0\n {TLS} clientCert: optional", True),
        (f"host: 0.0.0.0\n {TLS} clientCert: required", False),
        (f"host: 0.0.0.0\n {TLS} authenticatePeer: yes", False),
        ("host: 0.0.0.0\n sslProfile: s\n requireSsl: no\n clientCert: required", True),
        ("host: 0.0.0.0\n multiTenant: yes", False),
    ],
)
def test_metrics_that_every_machine_may_read_are_reported(
    monkeypatch: pytest.MonkeyPatch, listener: str, is_found: bool
) -> None:
    monkeypatch.setenv("TOKEN", "0123456789abcdef0123")
    configuration = load(text=f"{CERTIFICATES}listener {{\n port: 0\n http: yes\n {listener}\n}}\n")
    assert ("metrics-for-others" in {finding.point for finding in unsafe(configuration)}) is is_found


@pytest.mark.parametrize(
    ("head", "line"),
    [
        ("GET / HTTP/1.1\r\nHost: evil.example", "request for 'evil.example'"),
        (FOREIGN_PAGE, "its origin http://evil.example"),
        ("GET /metrics HTTP/1.1\r\nHost: localhost", "request for /metrics"),
    ],
    ids=["host", "origin", "metrics"],
)
async def test_requests_without_end_that_are_refused_write_few_lines(
    head: str, line: str, caplog: pytest.LogCaptureFixture, mock_clock: MockClock
) -> None:
    """All strangers share a line; the next one says how many were left out."""
    caplog.set_level("INFO")
    token = Secret("secret") if "metrics" in head else None
    async with listening(Site(), allowed_hosts=(), web_socket_origins=(), metrics_token=token) as listener:
        for _ in range(3):
            async with client_of(listener) as client:
                for _ in range(5):
                    await client.send(f"{head}\r\n\r\n".encode())
                    assert (await client.answer()).status in {401, 403, 421}
        mock_clock.jump(LOG_EVERY_S)
        async with client_of(listener) as client:
            await client.send(f"{head}\r\n\r\n".encode())
            assert (await client.answer()).status in {401, 403, 421}
    first, second = [text for text in caplog.messages if line in text]
    assert second.endswith("(14 more since the last such line)")
    assert "more" not in first
