"""What plugins fetch from the web: from the host that was named, bounded, by the proxy that the environment names."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio

from tests.certificates import Authority
from trouter.hooks.web import FetchError, get

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
Serve = Callable[[trio.abc.Stream], Awaitable[None]]


@asynccontextmanager
async def listening(serve: Serve) -> AsyncIterator[int]:
    """Yield the port at which ``serve`` gets each connection."""
    async with trio.open_nursery() as nursery:
        (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")

        async def closing(stream: trio.SocketStream) -> None:
            async with stream:
                await serve(stream)

        nursery.start_soon(trio.serve_listeners, closing, [listener])
        yield listener.socket.getsockname()[1]
        nursery.cancel_scope.cancel()


async def head_from(stream: trio.abc.Stream) -> bytes:
    head = b""
    while b"\r\n\r\n" not in head:
        head += await stream.receive_some(1) or b"\r\n\r\n"
    return bytes(head)


def answering(answer: bytes, heads: list[bytes], context: ssl.SSLContext | None = None) -> Serve:
    async def serve(stream: trio.abc.Stream) -> None:
        if context is not None:
            stream = trio.SSLStream(stream, context, server_side=True, https_compatible=True)
        try:
            heads.append(await head_from(stream))
            await stream.send_all(answer)
        except trio.BrokenResourceError:
            heads.append(b"")

    return serve


@pytest.fixture
def authority(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Authority:
    """Return an authority that this machine trusts."""
    for name in ("https_proxy", "HTTPS_PROXY", "no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    made = Authority(tmp_path, "test")
    monkeypatch.setenv("SSL_CERT_FILE", str(made.certificate))
    return made


async def test_an_answer_comes_over_tls_from_a_host_that_this_machine_trusts(authority: Authority) -> None:
    heads: list[bytes] = []
    async with listening(answering(OK, heads, authority.server("127.0.0.1"))) as port:
        assert await get(f"https://127.0.0.1:{port}/keys?a=b", "text/plain", max_bytes=5) == b"hello"
    assert heads[0].startswith(b"GET /keys?a=b HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nAccept: text/plain\r\n" % port)


async def test_a_host_that_this_machine_does_not_trust_gets_no_request(
    authority: Authority, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "nobody.pem").touch()
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "nobody.pem"))
    heads: list[bytes] = []
    async with listening(answering(OK, heads, authority.server("127.0.0.1"))) as port:
        with pytest.raises(FetchError, match="certificate verify failed"):
            await get(f"https://127.0.0.1:{port}/", "text/plain", max_bytes=5)
    assert heads in ([], [b""])


async def test_a_host_with_the_certificate_of_another_gets_no_request(authority: Authority) -> None:
    heads: list[bytes] = []
    async with listening(answering(OK, heads, authority.server("127.0.0.2"))) as port:
        with pytest.raises(FetchError, match=r"certificate is not valid for '127\.0\.0\.1'"):
            await get(f"https://127.0.0.1:{port}/", "text/plain", max_bytes=5)
    assert heads in ([], [b""])


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (OK.replace(b"200 OK", b"302 Found\r\nLocation: http://127.0.0.1/"), "the answer was 302"),
        (OK.replace(b"200 OK", b"500 No"), "the answer was 500"),
        (OK.replace(b"5", b"6") + b"!", "there are more than 5 bytes"),
        (OK.replace(b"5", b"6"), "closed connection"),
        (
            OK.partition(b"Content")[0] + b"Transfer-Encoding: chunked\r\n\r\n" + b"4\r\nabcd\r\n" * 99,
            "more than 5 bytes",
        ),
        (OK.partition(b"Content")[0] + b"\r\n" + b"x" * (1 << 20), "there are more than 5 bytes"),
        (b"SSH-2.0-OpenSSH\r\n\r\n", "."),
        (b"HTTP/1.1 200 OK\r\nX: " + bytes(1 << 20), "."),
        (b"", "ended without an answer"),
    ],
    ids=lambda value: str(value)[:30],
)
async def test_an_answer_that_cannot_be_used_is_refused_with_the_reason(answer: bytes, why: str) -> None:
    async with listening(answering(answer, [])) as port:
        with pytest.raises(FetchError, match=why):
            await get(f"http://127.0.0.1:{port}/", "text/plain", max_bytes=5)


@pytest.mark.parametrize("host", ["127.0.0.1", "a" * 64, "a..b", "\u00fc" * 64])
async def test_a_host_that_is_not_there_is_refused_with_the_reason(host: str) -> None:
    (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
    port = listener.socket.getsockname()[1]
    await listener.aclose()
    with pytest.raises(FetchError, match=r"\w"):
        await get(f"http://{host}:{port}/", "text/plain", max_bytes=5)


@pytest.mark.parametrize("login", ["", "user:p%40ss@"])
async def test_https_goes_through_the_proxy_of_the_environment(
    authority: Authority, monkeypatch: pytest.MonkeyPatch, login: str
) -> None:
    asked: list[bytes] = []

    async def proxy(stream: trio.abc.Stream) -> None:
        head = await head_from(stream)
        asked.append(head)
        port = int(head.split()[1].rpartition(b":")[2])
        await stream.send_all(b"HTTP/1.1 200 Connection established\r\n\r\n")
        async with await trio.open_tcp_stream("127.0.0.1", port) as behind, trio.open_nursery() as nursery:
            nursery.start_soon(copy, stream, behind)
            await copy(behind, stream)
            nursery.cancel_scope.cancel()

    async with listening(answering(OK, [], authority.server("127.0.0.1"))) as port, listening(proxy) as proxy_port:
        monkeypatch.setenv("https_proxy", f"http://{login}127.0.0.1:{proxy_port}")
        assert await get(f"https://127.0.0.1:{port}/", "text/plain", max_bytes=5) == b"hello"
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        assert await get(f"https://127.0.0.1:{port}/", "text/plain", max_bytes=5) == b"hello"
    (head,) = asked
    assert head.startswith(b"CONNECT 127.0.0.1:%d HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n" % (port, port))
    assert (b"Proxy-Authorization: Basic dXNlcjpwQHNz\r\n" in head) is bool(login)


async def copy(source: trio.abc.Stream, target: trio.abc.Stream) -> None:
    try:
        while data := await source.receive_some(65536):
            await target.send_all(data)
    except trio.BrokenResourceError:
        return


async def test_a_proxy_that_refuses_is_named(authority: Authority, monkeypatch: pytest.MonkeyPatch) -> None:
    refusal = b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n"
    async with listening(answering(refusal, [])) as port:
        monkeypatch.setenv("https_proxy", f"127.0.0.1:{port}")
        with pytest.raises(FetchError, match="the proxy's answer was 407"):
            await get("https://keys.invalid/", "text/plain", max_bytes=5)
