"""The errors of tools, printed as `ClassName: text` on stderr, with exit status 1.

Scripts read those names, which are those of Qpid Dispatch's tools.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Final

#: Set to anything, a failure ends with its traceback.
DEBUG_VARIABLE: Final = "_QPID_DISPATCH_TOOLS_DEBUG_"


class StatusError(Exception):
    """The router refused a request; `kind` is the class name that Qpid Dispatch's tools print."""

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(text)
        self.kind = kind
        self.text = text


class Timeout(Exception):
    """No answer came in time."""


class ConnectionException(Exception):
    """The connection failed or was lost."""


class SSLException(Exception):
    """The material for TLS cannot be used."""


class MalformedAnswer(Exception):
    """The answer is no valid answer of management."""


class ValidationError(Exception):
    """A request does not fit the schema; nothing was sent."""


class RequestRefused(Exception):
    """A service's address did not accept a request."""


class NoPath(Exception):
    """No path leads from one router to another; the text names possible causes."""


class UsageError(argparse.ArgumentTypeError):
    """The command line is invalid; printed on stderr with exit status 2."""


class WrongOption(UsageError, ValueError):
    """The value of an option is invalid; Qpid Dispatch's tools tell it as a ValueError."""


def status_error(code: int, description: str) -> StatusError:
    """Return the failure for a status code: 404 makes a NotFoundStatus."""
    try:
        phrase = HTTPStatus(code).phrase
    except ValueError:
        phrase = f"Code{code}"
    kind = "".join(word.capitalize() for word in phrase.replace("-", " ").split())
    return StatusError(f"{kind}Status", description or phrase)


def as_text(failure: BaseException, *, older: bool = False) -> str:
    """Return `ClassName: text`; of a group, that of its first member; of a file, its path and what is wrong with it.

    older: with the class of every failure, as Qpid Dispatch's tools.
    """
    while isinstance(failure, BaseExceptionGroup):
        failure = failure.exceptions[0]
    if isinstance(failure, OSError) and failure.filename is not None and failure.strerror and not older:
        return f"{failure.filename}: {failure.strerror}"
    if isinstance(failure, WrongOption):
        return f"{ValueError.__name__}: {failure}"
    kind = failure.kind if isinstance(failure, StatusError) else type(failure).__name__
    return f"{kind}: {failure}"


def _is_usage(failure: Exception, older: bool) -> bool:
    return isinstance(failure, UsageError) and not (older and isinstance(failure, WrongOption))


def run_tool(work: Callable[[], Awaitable[None]], *, older: bool = False) -> int:
    """Run a tool; return its exit status. UsageError, Ctrl-C and a closed output are left to the caller.

    older: print failures on stdout, and end with 1 after Ctrl-C, as Qpid Dispatch's tools do.
    """
    try:
        import trio  # noqa: PLC0415  # commands that do not connect do without

        trio.run(work)
    except KeyboardInterrupt:
        if not older:
            raise
        sys.stdout.write("\n")
        return 1
    except BrokenPipeError:
        raise
    except Exception as failure:  # the one place where a tool's failure ends
        if DEBUG_VARIABLE in os.environ or _is_usage(failure, older):
            raise
        print(as_text(failure, older=older), file=sys.stdout if older else sys.stderr)
        return 1
    return 0
