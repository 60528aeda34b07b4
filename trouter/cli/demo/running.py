"""Runs the demonstration: its routers as processes, its clients as tasks; prints the URLs."""

from __future__ import annotations

import re
import secrets
import signal
import subprocess
import sys
import tempfile
from collections import deque
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Final

import trio

from trouter.cli.console import at_a_desktop, show_in_browser
from trouter_plugins.users_file import put_user

from .network import LOGINS, MEMBERS, ROUTER, SERVICES, TENANTS, Dial, Member, configuration
from .traffic import CLIENTS, work

#: Seconds that a router may take to start.
START_S: Final = 60.0
#: Seconds that a router may take to drain, and then to stop, before the next signal.
DRAIN_S: Final = 3.0
#: Lines of a router's log that are shown when it fails.
TAIL: Final = 15
_LISTENING: Final = re.compile(rb"Listening (?:for HTTP )?on 127\.0\.0\.1:(\d+) \(([\w-]+)\)")
_READY: Final = b"Operational, "
WELCOME: Final = """\

The network of the demonstration runs: the routers main, north and south, the edge router branch, and their clients.

  {console}   the web console
  {tenants}

{logins}

Look for the receiver `printer-that-jams`, which settles nothing, and for the user `mallory`, who is denied.
Ctrl-C ends all of it.
"""


class RouterFailed(Exception):
    """A router of the demonstration did not start, or ended."""


class DemoRouter:
    """A router process, whose log is read for the ports of its listeners."""

    def __init__(self, member: Member, process: trio.Process, log: trio.abc.ReceiveStream) -> None:
        self.member = member
        self._log = log
        #: The port of each listener, by its name.
        self.ports: dict[str, int] = {}
        self._process = process
        self._ready = trio.Event()
        self._tail: deque[str] = deque(maxlen=TAIL)

    async def ready(self) -> None:
        """Wait until the router runs; RouterFailed after ``START_S``."""
        with trio.move_on_after(START_S):
            await self._ready.wait()
            return
        raise self._failure("did not start in time")

    async def watch(self) -> None:
        """Read the router's log; RouterFailed once the router ends."""
        rest = b""
        async for data in self._log:
            *lines, rest = (rest + data).split(b"\n")
            for line in lines:
                self._note(line)
        raise self._failure("ended")

    async def stop(self) -> None:
        """Let the router drain, then stop it at once, and wait for its end."""
        for number in (signal.SIGTERM, signal.SIGTERM, signal.SIGKILL):
            self._process.send_signal(number)
            with trio.move_on_after(DRAIN_S):
                await self._process.wait()
                return

    def _note(self, line: bytes) -> None:
        self._tail.append(line.decode(errors="replace"))
        if listening := _LISTENING.search(line):
            self.ports[listening[2].decode()] = int(listening[1])
        if _READY in line:
            self._ready.set()

    def _failure(self, what: str) -> RouterFailed:
        return RouterFailed("\n".join((f"The router {self.member.name} {what}. The end of its log:", *self._tail)))


def run(browser: bool | None) -> int:
    """Run the demonstration until a signal ends it; return the exit status.

    browser: whether to open the console in a browser; None decides by `at_a_desktop`.
    """
    status = 0
    try:
        with tempfile.TemporaryDirectory(prefix="trouter-demo-") as folder:
            trio.run(_main, Path(folder), browser)
    except* RouterFailed as failures:
        for failure in _each(failures):
            print(failure, file=sys.stderr)
        status = 1
    return status


def _each(failures: BaseExceptionGroup[Exception]) -> Iterator[Exception]:
    """Yield every failure of a group and of the groups in it."""
    for failure in failures.exceptions:
        if isinstance(failure, BaseExceptionGroup):
            yield from _each(failure)
        else:
            yield failure


async def _main(folder: Path, browser: bool | None) -> None:
    with trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM, signal.SIGHUP) as signals:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_end_on, signals, nursery.cancel_scope)
            names = ", ".join(member.name for member in MEMBERS)
            print(f"Starting the routers {names}, one after the other ...", flush=True)
            passwords = await trio.to_thread.run_sync(_make_users, folder)
            async with _network(folder) as routers:
                for client in CLIENTS:
                    port = routers[client.router].ports[client.listener]
                    nursery.start_soon(work, client, port, passwords[client.user])
                url = _print_urls(routers["main"].ports, passwords)
                if at_a_desktop() if browser is None else browser:
                    show_in_browser(url)
                await trio.sleep_forever()


async def _end_on(signals: AsyncIterator[int], scope: trio.CancelScope) -> None:
    async for _ in signals:
        print("\nThe demonstration ends.", flush=True)
        scope.cancel()
        return


def _make_users(folder: Path) -> dict[str, str]:
    """Write the file of users with new passwords, and the routers' password file; return the passwords by user."""
    passwords = {user: secrets.token_urlsafe(9) for user in (*LOGINS, *SERVICES, ROUTER)}
    for user, password in passwords.items():
        put_user(folder / "users", user, password.encode(), ("SCRAM-SHA-256",))
    (folder / "router").touch(mode=0o600)
    (folder / "router").write_text(passwords[ROUTER], encoding="ascii")
    return passwords


@asynccontextmanager
async def _network(folder: Path) -> AsyncIterator[dict[str, DemoRouter]]:
    """Run all routers for the block, each started once those that it dials listen; yield them by name."""
    routers: dict[str, DemoRouter] = {}
    async with AsyncExitStack() as stack:
        for member in MEMBERS:
            ports = {dial: routers[dial.router].ports[dial.listener] for dial in member.dials}
            routers[member.name] = await stack.enter_async_context(_router(member, folder, ports))
            print(f"  {member.name} runs", flush=True)
        yield routers


@asynccontextmanager
async def _router(member: Member, folder: Path, ports: Mapping[Dial, int]) -> AsyncIterator[DemoRouter]:
    path = folder / f"{member.name}.conf"
    path.touch(mode=0o600)
    path.write_text(configuration(member, folder, ports), encoding="utf-8")
    process = await trio.lowlevel.open_process(
        [sys.executable, "-m", "trouter", "run", "-c", str(path)],
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        process_group=0,  # the terminal's Ctrl-C is for this process, which then stops its routers
    )
    if process.stderr is None:
        raise RouterFailed(f"The log of the router {member.name} cannot be read.")
    router = DemoRouter(member, process, process.stderr)
    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(router.watch)
            await router.ready()
            yield router
            nursery.cancel_scope.cancel()
    finally:
        with trio.CancelScope(shield=True):
            await router.stop()


def _print_urls(ports: Mapping[str, int], passwords: Mapping[str, str]) -> str:
    """Print the URLs of the consoles, and the logins; return the URL of the whole network's console."""
    urls = {name: f"http://127.0.0.1:{ports[name]}/" for name in ("console", *TENANTS)}
    tenants = "\n  ".join(f"{urls[tenant]}   the same for the tenant {tenant}.example" for tenant in TENANTS)
    logins = "\n".join(f"  {user:9} {passwords[user]}   {what}" for user, what in LOGINS.items())
    print(WELCOME.format(console=urls["console"], tenants=tenants, logins=logins), flush=True)
    return urls["console"]
