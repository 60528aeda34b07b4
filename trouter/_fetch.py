"""One request over HTTP and its answer, for plugins that ask others, such as issuers of tokens.

An answer is bounded in size and comes from the host that was named: no redirection is followed. The caller sets the
deadline, as with all of trio.
"""

from __future__ import annotations

import ssl
from base64 import b64encode
from typing import Final
from urllib.parse import SplitResult, unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

import h11
import trio

MAX_HEAD_BYTES: Final = 16384
_READ_BYTES: Final = 16384
#: The longest reason of a failure, in characters.
_MAX_REASON: Final = 200
_OK: Final = 200


class FetchError(ValueError):
    """There is no answer that can be used; the text says why."""


async def _exchange(stream: trio.abc.Stream, parts: SplitResult, accept: str, max_bytes: int) -> bytes:
    """Ask for a URL over a stream to its host, and return the body of the answer, at most ``max_bytes``.

    FetchError, OSError, BrokenResourceError, h11.ProtocolError; UnicodeError for a host that is none.
    """
    http = h11.Connection(h11.CLIENT, max_incomplete_event_size=MAX_HEAD_BYTES)
    host = parts.netloc if parts.netloc.isascii() else parts.netloc.encode("idna").decode("ascii")
    headers = [("Host", host), ("Accept", accept), ("User-Agent", "trouter"), ("Connection", "close")]
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    sent = http.send(h11.Request(method="GET", target=target, headers=headers)) or b""
    http.send(h11.EndOfMessage())
    await stream.send_all(sent)
    await _read_head(http, stream)
    found = b""
    while not isinstance(event := await _next_event(http, stream), h11.EndOfMessage):
        if not isinstance(event, h11.Data):
            raise FetchError("there is no answer")
        found += event.data
        if len(found) > max_bytes:
            raise FetchError(f"there are more than {max_bytes} bytes")
    return found


async def get(url: str, accept: str, *, max_bytes: int) -> bytes:
    """Return what is at an http or https URL, at most ``max_bytes``; FetchError.

    https goes through the proxy that the environment names, http goes straight to its host.
    """
    parts = urlsplit(url)
    try:
        stream = await (_connect_secure(parts) if parts.scheme == "https" else _connect(parts, 80))
        async with stream:
            return await _exchange(stream, parts, accept, max_bytes)
    except FetchError:
        raise
    except (OSError, ValueError, trio.BrokenResourceError, h11.ProtocolError) as error:
        raise FetchError(_reason(error)) from None


def _reason(error: BaseException) -> str:
    """Return why a connection or an answer failed, of several reasons the first."""
    cause = error.__cause__ or error
    if isinstance(cause, BaseExceptionGroup):
        cause = cause.exceptions[0]
    return str(cause)[:_MAX_REASON] or type(cause).__name__


async def _connect(parts: SplitResult, port: int) -> trio.abc.Stream:
    return await trio.open_tcp_stream(parts.hostname or "", parts.port or port)


async def _connect_secure(parts: SplitResult) -> trio.abc.Stream:
    """Return a stream over TLS to the host, whose certificate the system's authorities have signed."""
    host = parts.hostname or ""
    context = await trio.to_thread.run_sync(ssl.create_default_context)  # which reads files
    proxy = "" if proxy_bypass(host) else getproxies().get("https", "")
    if proxy:
        by = urlsplit(proxy if "://" in proxy else f"http://{proxy}")
        below = await _connect(by, 80)
        try:
            await _open_tunnel(below, by, f"{f'[{host}]' if ':' in host else host}:{parts.port or 443}")
        except BaseException:
            await trio.aclose_forcefully(below)
            raise
    else:
        below = await _connect(parts, 443)
    return trio.SSLStream(below, context, server_hostname=host, https_compatible=True)


async def _open_tunnel(stream: trio.abc.Stream, proxy: SplitResult, where: str) -> None:
    """Have a proxy connect to ``where``; FetchError if it refuses."""
    headers = [("Host", where)]
    if proxy.username is not None:
        login = f"{unquote(proxy.username)}:{unquote(proxy.password or '')}"
        headers.append(("Proxy-Authorization", f"Basic {b64encode(login.encode()).decode()}"))
    http = h11.Connection(h11.CLIENT, max_incomplete_event_size=MAX_HEAD_BYTES)
    await stream.send_all(http.send(h11.Request(method="CONNECT", target=where, headers=headers)) or b"")
    await _read_head(http, stream, "the proxy's answer")


async def _read_head(http: h11.Connection, stream: trio.abc.Stream, name: str = "the answer") -> None:
    """Read the head of an answer; FetchError unless its status is 200."""
    while isinstance(event := await _next_event(http, stream), h11.InformationalResponse):
        pass
    if not isinstance(event, h11.Response):
        raise FetchError("there is no answer")
    if event.status_code != _OK:
        raise FetchError(f"{name} was {event.status_code}")


async def _next_event(http: h11.Connection, stream: trio.abc.Stream) -> object:
    while (event := http.next_event()) is h11.NEED_DATA:
        data = bytes(await stream.receive_some(_READ_BYTES))
        if not data and http.their_state is h11.SEND_RESPONSE:
            raise trio.BrokenResourceError("the connection ended without an answer")
        http.receive_data(data)
    return event
