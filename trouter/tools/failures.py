"""The errors of tools. A command of trouter prints `PROGRAM: text` on stderr and exits with 1.

Under the names of Qpid Dispatch's tools they are `ClassName: text` on stdout: scripts read those names and texts.
"""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Final

from trouter._text import escape_controls

#: Set to anything, a failure ends with its traceback.
DEBUG_VARIABLE: Final = "_QPID_DISPATCH_TOOLS_DEBUG_"


class StatusError(Exception):
    """The router refused a request; `kind` is the class name that Qpid Dispatch's tools print, `phrase` its words."""

    def __init__(self, kind: str, text: str, phrase: str) -> None:
        super().__init__(text)
        self.kind = kind
        self.text = text
        self.phrase = phrase


class _Told(Exception):
    """A failure with the text of Qpid Dispatch's tools, and ``plain``, that of trouter where it differs."""

    def __init__(self, text: str, plain: str = "") -> None:
        super().__init__(text)
        self.plain = plain or text


class Timeout(_Told):
    """No answer came in time."""


class ConnectionException(_Told):
    """The connection failed or was lost."""


class SSLException(Exception):
    """The material for TLS cannot be used."""


class MalformedAnswer(Exception):
    """The answer is no valid answer of management."""


class ValidationError(Exception):
    """A request does not fit the schema; nothing was sent."""


class Incomplete(Exception):
    """Workers of the router are missing in what was printed; the text names them."""


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
    return StatusError(f"{kind}Status", description or phrase, phrase.lower())


def as_text(failure: BaseException) -> str:
    """Return what is wrong in plain words; of a group, its first member; of a file, its path and the reason."""
    while isinstance(failure, BaseExceptionGroup):
        failure = failure.exceptions[0]
    if isinstance(failure, _Told):
        return failure.plain
    if isinstance(failure, StatusError):
        return f"{failure.phrase}: {failure.text}" if failure.text.lower() != failure.phrase else failure.phrase
    if isinstance(failure, OSError) and failure.strerror:
        return failure.strerror if failure.filename is None else f"{failure.filename}: {failure.strerror}"
    if isinstance(sentence := getattr(failure, "sentence", None), str):  # errors of the client
        return sentence
    if type(failure).__name__ == "TooSlowError":  # trio's, which is imported by then, or never
        return "no answer in time"
    if isinstance(failure, ArithmeticError | AssertionError | AttributeError | LookupError | RuntimeError | TypeError):
        return f"a fault of this program ({failure}); set {DEBUG_VARIABLE}=1 to see where, and report it"
    return str(failure)


def older_text(failure: BaseException) -> str:
    """Return `ClassName: text`, as Qpid Dispatch's tools tell a failure."""
    while isinstance(failure, BaseExceptionGroup):
        failure = failure.exceptions[0]
    if isinstance(failure, WrongOption):
        return f"{ValueError.__name__}: {failure}"
    kind = failure.kind if isinstance(failure, StatusError) else type(failure).__name__
    return f"{kind}: {failure}"


def _is_usage(failure: Exception, older: bool) -> bool:
    return isinstance(failure, UsageError) and not (older and isinstance(failure, WrongOption))


def print_problem(arguments: argparse.Namespace, problem: BaseException | str) -> None:
    """Print on stderr what is wrong, each line behind the name of the command that the arguments are of."""
    text = problem if isinstance(problem, str) else as_text(problem)
    for line in text.split("\n"):
        sys.stderr.write(f"{arguments.command_parser.prog}: {escape_controls(line)}\n")


def run_telling(work: Callable[[], Awaitable[None]], arguments: argparse.Namespace, tell: Callable[[], None]) -> int:
    """Run a tool that prints what others chose, as ``run_tool``; after Ctrl-C ``tell`` says how far it came."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    status, interrupted = 1, False
    try:
        status = run_tool(work, arguments)
    except* KeyboardInterrupt:
        interrupted = True
    if interrupted:
        tell()
        raise KeyboardInterrupt
    return status


def run_tool(work: Callable[[], Awaitable[None]], arguments: argparse.Namespace) -> int:
    """Run a tool; return its exit status. UsageError, Ctrl-C and a closed output are left to the caller.

    With ``older`` among the arguments, print failures on stdout, and end with 1 after Ctrl-C, as Qpid Dispatch's tools.
    """
    older: bool = getattr(arguments, "older", False)
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
    except Incomplete as lack:  # on stderr under the names of Qpid Dispatch too: stdout has the rest
        print_problem(arguments, lack)
        return 1
    except Exception as failure:  # the one place where a tool's failure ends
        if DEBUG_VARIABLE in os.environ or _is_usage(failure, older):
            raise
        if older:
            sys.stdout.write(f"{older_text(failure)}\n")
        else:
            print_problem(arguments, failure)
        return 1
    return 0
