"""Connects by the options of a tool, and turns failures into a tool's errors."""

from __future__ import annotations

import os
import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager

import trio

from trouter.client import AuthenticationFailed, Connection, ConnectionClosed, DecodeError, connect
from trouter.client.servers import reason_of, tls_reason, unreachable

from .failures import ConnectionException, MalformedAnswer, Timeout
from .options import ConnectionOptions


@asynccontextmanager
async def dialled(options: ConnectionOptions) -> AsyncIterator[Connection]:
    """Connect for the block. Raise ConnectionException, Timeout, SSLException; OSError for a file of the options."""
    mechanisms = options.sasl_mechanisms()
    context = options.ssl_context()
    connecting = connect(
        f"{'amqps' if options.tls else 'amqp'}://{options.server}",
        sasl=mechanisms,
        ssl_context=context,
        hostname=options.host,
        timeout=options.timeout_s,
        close_timeout=min(options.timeout_s, 5.0),
    )
    async with AsyncExitStack() as stack:
        with tool_error(options, connecting=True):
            connection = await stack.enter_async_context(connecting)
        yield connection


@contextmanager
def in_time(options: ConnectionOptions, otherwise: str) -> Iterator[None]:
    """Raise Timeout, beginning with ``otherwise``, if the block takes longer than the options allow."""
    with trio.move_on_after(options.timeout_s) as scope:
        yield
    if scope.cancelled_caught:
        raise Timeout(f"{otherwise} within {options.timeout_s:g} s, over {options.named_server}")


@contextmanager
def tool_error(options: ConnectionOptions, *, connecting: bool = False) -> Iterator[None]:
    """Turn failures of the connection, and of answers over it, into a tool's errors."""
    scheme = "amqps" if options.tls else "amqp"
    url, named = f"{scheme}://{options.server}", f"{scheme}://{options.named_server}"

    def broken(older: str, failure: BaseException) -> ConnectionException:
        told = unreachable(named, failure, options.timeout_s) if connecting else f"lost {named}: {reason_of(failure)}"
        return ConnectionException(f"Connection {url} disconnected: {older}", told)

    try:
        yield
    except trio.TooSlowError as late:
        text = f"Connection {url} timed out: no router answered within {options.timeout_s:g} s"
        raise Timeout(text, unreachable(named, late, options.timeout_s)) from None
    except AuthenticationFailed as refused:
        raise broken(f"Authentication failed: {refused.description}", refused) from refused
    except ConnectionClosed as closed:
        raise broken(str(closed), closed) from closed
    except ssl.SSLError as failure:
        raise broken(f"SSL Failure: {_reason(failure)}", failure) from failure
    except OSError as failure:
        raise broken(_reason(failure), failure) from failure
    except DecodeError as bad:
        raise MalformedAnswer(f"the answer cannot be decoded: {bad}") from bad


def _reason(failure: OSError) -> str:
    """Return the reason without numbers, that of the first attempt if there were several."""
    cause: BaseException = failure.__cause__ or failure
    while isinstance(cause, BaseExceptionGroup):
        cause = cause.exceptions[0]
    if isinstance(cause, ssl.SSLCertVerificationError):
        return f"certificate verify failed: {cause.verify_message}"
    if isinstance(cause, ssl.SSLError):
        return tls_reason(cause)
    if isinstance(cause, OSError) and cause.errno is not None and cause.errno > 0:
        return os.strerror(cause.errno)
    return (cause.strerror if isinstance(cause, OSError) else None) or str(cause)
