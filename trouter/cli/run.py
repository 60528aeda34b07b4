"""`trouter run`: start a router in the foreground."""

from __future__ import annotations

import argparse
import logging
import os
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Final

from trouter import logs
from trouter.app.descriptor_findings import descriptor_limit, few_by_default
from trouter.app.privileges import (
    Account,
    PrivilegeError,
    account_of,
    forbid_inspection,
    forbid_new_privileges,
    switch_user,
)
from trouter.cli.console import at_a_desktop, console_url, show_in_browser
from trouter.cli.startup import StartError, existing_path, prepare, warnings
from trouter.config import Configuration, ConfigurationError, Kind, load, texts
from trouter.config.configuration import BUILT_IN
from trouter.config.keepers import keepers_of_process
from trouter.config.problems import Severity
from trouter.config.schema import BadValue
from trouter.config.workers import count_workers, why_not_shared, with_workers
from trouter.logs.outputs import NAMED

#: The addresses are those of the built-in configuration.
LOOK_AROUND: Final = """\

The router takes clients of this machine on 127.0.0.1:5672. From another terminal:
  {command} stat                   how it is; --connections, --links, --address, --watch 1
  {command} stat --why ADDRESS     why nothing arrives there
  {command} manage query --type listener
  {url}           the web console; /metrics for Prometheus, /readyz and /livez for probes
Ctrl-C stops it. `{command} run -c FILE` uses a configuration of your own.

"""

#: The levels of the log at which findings of some severities stand; the others are warnings.
_LEVELS: Final = {Severity.PROBLEM: logging.CRITICAL, Severity.ACCEPTED: logging.INFO}


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "run",
        help="start a router in the foreground",
        description="Start a router in the foreground. TERM or INT once: drain and stop; a second time: stop at once.",
        epilog="Without a file: a standalone router on 127.0.0.1:5672 that lets in clients of this machine, with "
        "secureDefaults.",
    )
    parser.add_argument(
        "-c", "--config", metavar="FILE", type=existing_path, help="configuration, in .conf or (named *.json) JSON form"
    )
    parser.add_argument("--user", metavar="NAME", help="become this user once every socket is bound; needs root")
    parser.add_argument("--group", metavar="NAME", help="with --user: with this group instead of the user's own")
    parser.add_argument(
        "--demo",
        action="store_true",
        help="start a small network with traffic, to look at, on free ports of this machine",
    )
    parser.add_argument(
        "--workers",
        metavar="N|auto",
        type=number_of_workers,
        help="as `workers` of the router section, which it replaces: the processes that serve the listeners together",
    )
    parser.add_argument(
        "--browser",
        action=argparse.BooleanOptionalAction,
        help="open the web console in a browser once the router listens; at a desktop's terminal the built-in "
        "configuration does so without being asked",
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Run the router until a signal stops it; return the exit status."""
    parser: argparse.ArgumentParser = arguments.command_parser
    if arguments.group and not arguments.user:
        parser.error("--group needs --user")
    if arguments.demo:
        if arguments.config or arguments.user or arguments.workers:
            parser.error("--demo has configurations, users and workers of its own")
        from trouter.cli import demo  # noqa: PLC0415  # the router does not need the client

        return demo.run(arguments.browser)
    return route(
        arguments.config,
        user=arguments.user or "",
        group=arguments.group or "",
        welcome=partial(show_around, arguments.browser),
        workers=arguments.workers,
    )


def show_around(browser: bool | None, configuration: Configuration) -> None:
    """Show the user who started the built-in configuration where to look next.

    browser: whether to open the web console in a browser; None opens it for the built-in configuration, `at_a_desktop`.
    """
    built_in = configuration.source == BUILT_IN
    url = console_url(configuration) if built_in or browser else None
    if built_in:
        command = sys.argv[0] if Path(sys.argv[0]).name == "trouter" else f"{sys.executable} -m trouter"
        print(LOOK_AROUND.format(command=command, url=url), end="", flush=True)
    if url is None and browser:
        logs.of("MAIN").warning("no browser is opened: no listener serves the web console on a port that is known")
    elif url is not None and (built_in and at_a_desktop() if browser is None else browser):
        show_in_browser(url)


def route(
    path: Path | None,
    ready: Callable[[], None] | None = None,
    ended: Callable[[], None] | None = None,
    *,
    user: str = "",
    group: str = "",
    welcome: Callable[[Configuration], None] | None = None,
    workers: str | None = None,
) -> int:
    """Load the configuration, log its problems, and run the router until a signal stops it; return the exit status.

    ready: called once every listener is open. ended: called at the end. user, group: take this identity once every
    socket is bound. welcome: called in place of ``ready`` with the configuration. workers: replaces those of the
    router section.
    """
    try:
        account = account_of(user, group) if user else None
        keepers = keepers_of_process(*(() if account is None else (account.uid,)))
        configuration, plugins = prepare(path, keepers=keepers)
        configuration = with_workers(configuration, workers)
        logs.configure(configuration, keepers)
        check_workers(configuration, account)
    except (StartError, ConfigurationError, PrivilegeError) as error:
        print(error, file=sys.stderr)
        logs.always("MAIN", logging.CRITICAL, "Router start-up failed: see the lines above")
        return 1
    for finding in warnings(configuration, plugins):  # the router itself logs what it does not serve
        prefix = "" if finding.severity is Severity.NOTE else f"{finding.severity}: "
        logs.of("MAIN").log(_LEVELS.get(finding.severity, logging.WARNING), "%s%s", prefix, finding)
    for finding in few_by_default(configuration, descriptor_limit()):
        logs.of("MAIN").info("%s", finding)
    if welcome is not None:
        ready = partial(welcome, configuration)
    count = count_workers(configuration.router)
    if count > 1:
        from trouter.workers.parent import Parent, run_parent  # noqa: PLC0415  # most routers have one process

        source = None if path is None else str(path)
        status = run_parent(Parent(configuration.router.id, count, source, workers, ready))
        if ended is not None:
            ended()
        return status
    from trouter.app.process import run as serve  # noqa: PLC0415  # the whole router, which other commands do not need

    return serve(configuration, plugins, partial(load, path), ready, ended, partial(confine, configuration, account))


def check_workers(configuration: Configuration, account: Account | None) -> None:
    """Check that the router can have as many workers as it is to have; StartError."""
    problems = tuple(why_not_shared(configuration))
    if problems:
        raise StartError(*map(str, problems), problems=problems)
    if account is not None and count_workers(configuration.router) > 1:
        raise StartError(
            "--user cannot be used with workers: start the router as that user; systemd does so with User= and "
            "AmbientCapabilities=CAP_NET_BIND_SERVICE"
        )


def number_of_workers(text: str) -> str:
    """Return a number of workers of the command line; argparse.ArgumentTypeError."""
    try:
        return texts.workers(text)
    except BadValue as wrong:
        raise argparse.ArgumentTypeError(f"'{text}' {wrong}") from wrong


def confine(configuration: Configuration, account: Account | None) -> None:
    """Take the identity of ``account``, and give up privileges, once the sockets are bound; PrivilegeError."""
    if account is not None:
        logs.give(account.uid, account.gid)
        switch_user(account)
        if configuration.router.pam_service is None:  # PAM runs a setuid program if this user cannot read the passwords
            forbid_new_privileges()
        for line in out_of_reach(configuration):
            logs.of("MAIN").warning("user %s %s", account.user, line)
    if account is not None or configuration.router.secure_defaults:
        forbid_inspection()


def out_of_reach(configuration: Configuration) -> Iterator[str]:
    """Yield a text for each file and folder of the configuration that this process cannot use any more."""
    for path in paths_of(configuration):
        if Path(path).exists() and not os.access(path, os.R_OK):
            yield f"cannot read {path}: a reload will be refused"
    outputs = {log.output_file for log in configuration.logs if log.output_file} - set(NAMED)
    folders = {Path(output).parent for output in outputs}
    for folder in sorted(folders):
        if not os.access(folder, os.W_OK | os.X_OK):
            yield f"cannot make files in {folder}: after a rotation the log goes on in the old file"


def paths_of(configuration: Configuration) -> Iterator[str]:
    """Yield the path of the configuration, and every path in its attributes."""
    if configuration.source != BUILT_IN:
        yield configuration.source
    for entity in configuration.entities:
        for attribute in entity.type.fields:
            value = getattr(entity, attribute.field)
            if attribute.kind is Kind.PATH and value and isinstance(value, str):
                yield value
