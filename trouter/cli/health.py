"""`trouter health`: ask a router whether it is well, for scripts and probes."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict, dataclass, replace
from http import HTTPStatus
from http.client import HTTPException
from typing import Final
from urllib.parse import SplitResult, urlsplit

from trouter.tools.failures import (
    ConnectionException,
    MalformedAnswer,
    SSLException,
    StatusError,
    Timeout,
    UsageError,
    as_text,
    run_tool,
)
from trouter.tools.health_pages import ask_page
from trouter.tools.options import ConnectionOptions, add_server_options

#: Seconds that the whole question may take if --timeout is not given.
DEFAULT_S: Final = 2.0
#: The same with --ready: a router with several workers waits 3 s for one that hangs.
READY_S: Final = 5.0
#: The most reasons that are shown.
MAX_REASONS: Final = 50
#: The exit statuses besides 0: the router says that it is not well; it could not be asked.
NOT_WELL: Final = 1
NOT_ASKED: Final = 2

#: What may keep a router from being asked.
FAILURES: Final = (
    ConnectionException, MalformedAnswer, SSLException, StatusError, Timeout, OSError, HTTPException
)  # fmt: skip

_EPILOG: Final = """examples:
  trouter health                                    does the router at $TROUTER_BUS, or on this machine, let us in?
  trouter health --ready                            and is everything served that is configured? over AMQP
  trouter health --http http://127.0.0.1:8081       /healthz: does a message go through its core?
  trouter health --http http://127.0.0.1:8081 --ready --json

The exit status is 0 if the router is well, 1 if it says that it is not, and 2 if it could not be asked: it is out of
reach, does not answer in time, refuses the login, or the command line is wrong.
"""


@dataclass(frozen=True, slots=True)
class Health:
    """The answer: whether the router is well, what was asked, the status of HTTP, and the reasons if it is not."""

    healthy: bool
    asked: str
    status: int | None = None
    reasons: tuple[str, ...] = ()
    #: False if there was no answer.
    answered: bool = True


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "health",
        help="ask a router whether it is well, for scripts and probes",
        description="Ask a router whether it is well: by a connection of AMQP, or its health pages.",
        epilog=_EPILOG,
    )
    parser.add_argument(
        "--http", metavar="URL", help="ask a listener with http there, http[s]://HOST[:PORT]; without it, AMQP is used"
    )
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--ready", action="store_true", help="is all that is configured served? (/readyz)")
    what.add_argument("--live", action="store_true", help="with --http: does the process answer? (/livez)")
    parser.add_argument("--json", action="store_true", help="the answer as one JSON object")
    add_server_options(parser, f"the whole answer; default {DEFAULT_S:g}, with --ready {READY_S:g}")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Ask, print the answer, and return the exit status."""
    where = _page_of(arguments)
    found: list[Health] = []
    failed = run_tool(lambda: _ask(arguments, where, found), arguments)
    if failed or not found:
        return NOT_ASKED
    (health,) = found
    print(json.dumps(_as_map(health), indent=2) if arguments.json else _as_lines(health))
    return 0 if health.healthy else NOT_WELL if health.answered else NOT_ASKED


def _page_of(arguments: argparse.Namespace) -> SplitResult | None:
    """Return the URL of the page to ask; None for AMQP; UsageError."""
    if arguments.http is None:
        if arguments.live:
            raise UsageError("argument --live: it needs --http URL")
        return None
    parts: SplitResult
    try:
        parts = urlsplit(arguments.http)
        _ = parts.port
    except ValueError:
        parts = SplitResult("", "", "", "", "")
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.path not in ("", "/") or parts.query:
        raise UsageError("argument --http: this must be http[s]://HOST[:PORT]")
    page = "/readyz" if arguments.ready else "/livez" if arguments.live else "/healthz"
    return parts._replace(path=page, fragment="")


async def _ask(arguments: argparse.Namespace, where: SplitResult | None, found: list[Health]) -> None:
    """Append the router's answer, or that there is none."""
    import trio  # noqa: PLC0415  # a shell that completes does without

    options = ConnectionOptions.of(arguments)
    options = replace(options, timeout_s=arguments.timeout or (READY_S if arguments.ready else DEFAULT_S))
    asked = where.geturl() if where is not None else f"{'amqps' if options.tls else 'amqp'}://{options.server}"
    failure: Exception | None = None
    with trio.move_on_after(options.timeout_s):
        try:
            if where is None:
                found.append(Health(not (why := await _ask_router(options, arguments.ready)), asked, reasons=why))
            else:
                context = options.ssl_context() if where.scheme == "https" and options.tls else None
                status, reasons = await trio.to_thread.run_sync(
                    ask_page, where, context, options.timeout_s, abandon_on_cancel=True
                )
                good = status == HTTPStatus.OK
                found.append(Health(good, asked, status, () if good else reasons[:MAX_REASONS]))
            return
        except FAILURES as why_not:
            failure = why_not
    why_not_asked = f"no answer within {options.timeout_s:g} s" if failure is None else as_text(failure)
    found.append(Health(False, asked, reasons=(why_not_asked,), answered=False))


async def _ask_router(options: ConnectionOptions, ready: bool) -> tuple[str, ...]:
    """Connect by AMQP, and return why the router is not ready if that is asked; the failures of tools."""
    from trouter.tools.dialling import dialled  # noqa: PLC0415
    from trouter.tools.node import open_node  # noqa: PLC0415

    if not ready:
        async with dialled(options):
            return ()
    async with open_node(options) as node:
        state = await node.call_self("GET-DRAIN")
        drains = isinstance(state, dict) and state.get("state") != "serving"
        rows = (await node.query("finding", ["severity", "entity", "message"])).dicts()
        missing = node.take_incomplete()
    problems = [f"{row.get('entity')}: {row.get('message')}" for row in rows if row.get("severity") == "problem"]
    return (*(("draining",) if drains else ()), *((missing,) if missing else ()), *problems[:MAX_REASONS])


def _as_map(health: Health) -> dict[str, object]:
    return {**asdict(health), "reasons": list(health.reasons)}


def _as_lines(health: Health) -> str:
    """Return the answer as text: a line, and one more for each reason."""
    from trouter._text import escape_unprintable  # noqa: PLC0415

    status = "" if health.status is None else f" (status {health.status})"
    word = "OK" if health.healthy else "NOT OK" if health.answered else "NO ANSWER"
    return "\n".join((f"{word}: {health.asked}{status}", *(f"  {escape_unprintable(each)}" for each in health.reasons)))
