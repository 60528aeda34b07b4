"""Requests that other programs read differently: each is refused, and nothing after it is served."""

from __future__ import annotations

import pytest

from tests.http.sites import Site, client_of, listening

pytestmark = pytest.mark.attack

HOST = b"Host: x\r\n"
HEALTHZ = b"GET /healthz HTTP/1.1\r\n" + HOST + b"\r\n"
POST = b"POST /healthz HTTP/1.1\r\n" + HOST
CHUNKED = b"Transfer-Encoding: chunked\r\n"
EMPTY = b"0\r\n\r\n"

#: Name -> the request, and the status of its answer.
AMBIGUOUS = {
    "length and encoding": (POST + b"Content-Length: 5\r\n" + CHUNKED + b"\r\n" + EMPTY, 400),
    "encoding and length": (POST + CHUNKED + b"content-length: 5\r\n\r\n" + EMPTY, 400),
    "encoding and length 0": (POST + CHUNKED + b"Content-Length: 0\r\n\r\n" + EMPTY, 400),
    "two lengths": (POST + b"Content-Length: 5\r\nContent-Length: 50\r\n\r\nabcde", 400),
    "a list of lengths": (POST + b"Content-Length: 5, 50\r\n\r\nabcde", 400),
    "a length with a sign": (POST + b"Content-Length: +5\r\n\r\nabcde", 400),
    "a length with an underscore": (POST + b"Content-Length: 0_5\r\n\r\nabcde", 400),
    "a length of another base": (POST + b"Content-Length: 0x5\r\n\r\nabcde", 400),
    "an unknown encoding": (POST + b"Transfer-Encoding: xchunked\r\n\r\n" + EMPTY, 501),
    "two encodings": (POST + CHUNKED + CHUNKED + b"\r\n" + EMPTY, 501),
    "a list of encodings": (POST + b"Transfer-Encoding: identity, chunked\r\n\r\n" + EMPTY, 501),
    "a blank before the colon": (POST + b"Transfer-Encoding : chunked\r\n\r\n" + EMPTY, 400),
    "a tab before the colon": (POST + b"Content-Length\t: 5\r\n\r\nabcde", 400),
    "an encoding in HTTP/1.0": (b"POST /healthz HTTP/1.0\r\n" + HOST + CHUNKED + b"\r\n" + EMPTY, 400),
    "a chunk with a sign": (POST + CHUNKED + b"\r\n+0\r\n\r\n", 400),
    "a chunk that ends elsewhere": (POST + CHUNKED + b"\r\n1\r\nab\r\n" + EMPTY, 400),
    "a chunk's line without CR": (POST + CHUNKED + b"\r\n0\n\r\n\r\n", 400),
    "a request line without CR": (b"GET /healthz HTTP/1.1\n" + HOST + b"\r\n", 400),
    "a header without CR": (b"GET /healthz HTTP/1.1\r\nHost: x\n\r\n", 400),
    "a head without CR": (b"GET /healthz HTTP/1.1\nHost: x\n\n", 400),
    "a last line without CR": (b"GET /healthz HTTP/1.1\r\nHost: x\r\n\n", 400),
    "a CR in a value": (b"GET /healthz HTTP/1.1\r\n" + HOST + b"A: b\rc\r\n\r\n", 400),
    "two CR": (b"GET /healthz HTTP/1.1\r\n" + HOST + b"A: b\r\r\n\r\n", 400),
    "a folded header": (b"GET /healthz HTTP/1.1\r\n" + HOST + b"A: b\r\n c\r\n\r\n", 400),
    "a header folded by a tab": (b"GET /healthz HTTP/1.1\r\n" + HOST + b"A: b\r\n\tc\r\n\r\n", 400),
    "a folded first header": (b"GET /healthz HTTP/1.1\r\n " + HOST + b"\r\n", 400),
    "a form feed in a value": (b"GET /healthz HTTP/1.1\r\n" + HOST + b"A: b\x0cc\r\n\r\n", 400),
    "an escape in a value": (b"GET /healthz HTTP/1.1\r\n" + HOST + b"A: \x1b[2J\r\n\r\n", 400),
    "a NUL in a value": (b"GET /healthz HTTP/1.1\r\n" + HOST + b"A: b\x00\r\n\r\n", 400),
    "a header without a name": (b"GET /healthz HTTP/1.1\r\n" + HOST + b": b\r\n\r\n", 400),
    "a header without a colon": (b"GET /healthz HTTP/1.1\r\n" + HOST + b"abc\r\n\r\n", 400),
    "two hosts": (b"GET /healthz HTTP/1.1\r\n" + HOST + HOST + b"\r\n", 400),
    "no host": (b"GET /healthz HTTP/1.1\r\n\r\n", 400),
    "an empty line before": (b"\r\n" + HEALTHZ, 400),
    "a blank before": (b" " + HEALTHZ, 400),
    "two blanks between": (b"GET  /healthz HTTP/1.1\r\n" + HOST + b"\r\n", 400),
    "a tab between": (b"GET\t/healthz HTTP/1.1\r\n" + HOST + b"\r\n", 400),
    "a blank after": (b"GET /healthz HTTP/1.1 \r\n" + HOST + b"\r\n", 400),
    "HTTP/0.9": (b"GET /healthz\r\n\r\n", 400),
    "a version in lower case": (b"GET /healthz http/1.1\r\n" + HOST + b"\r\n", 400),
    "a version with leading zeros": (b"GET /healthz HTTP/01.1\r\n" + HOST + b"\r\n", 400),
    "HTTP/2": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505),
}


@pytest.mark.parametrize(("request_bytes", "status"), AMBIGUOUS.values(), ids=AMBIGUOUS)
async def test_an_ambiguous_request_is_refused_with_all_after_it(request_bytes: bytes, status: int) -> None:
    async with listening(Site()) as listener, client_of(listener) as client:
        await client.send(request_bytes + HEALTHZ)
        answer = await client.answer()
        assert (answer.status, answer.headers["connection"]) == (status, "close")
        await client.stream.send_eof()
        assert await client.rest() == b""


async def test_an_ambiguous_request_is_refused_however_it_is_cut() -> None:
    for request in (b"GET /healthz HTTP/1.1\nHost: x\n\n", b"GET /healthz HTTP/1.1\r\n" + HOST + b"A: b\r\n c\r\n\r\n"):
        async with listening(Site()) as listener, client_of(listener) as client:
            for byte in request[:40]:
                await client.send(bytes((byte,)))
            assert (await client.answer()).status == 400


async def test_an_honest_request_is_served_however_it_is_cut() -> None:
    async with listening(Site()) as listener, client_of(listener) as client:
        for byte in HEALTHZ + HEALTHZ:
            await client.send(bytes((byte,)))
        assert [(await client.answer()).status for _ in range(2)] == [200, 200]


@pytest.mark.parametrize("trailers", [b"", b"A: b\r\n", b"A: b\n", b"\n"])
async def test_no_request_follows_one_in_chunks(trailers: bytes) -> None:
    """The trailers of a body may be read differently."""
    async with listening(Site()) as listener, client_of(listener) as client:
        await client.send(POST + CHUNKED + b"\r\n5\r\nabcde\r\n0\r\n" + trailers + b"\r\n" + HEALTHZ)
        answer = await client.answer()
        assert (answer.status, answer.headers["connection"]) == (200, "close")
        await client.stream.send_eof()
        assert await client.rest() == b""
