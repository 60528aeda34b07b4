"""Sites of routers: a router that is killed is started again with the same file and the same ports."""

from __future__ import annotations

import os
import re
import signal
import sys
from collections.abc import Mapping
from contextlib import ExitStack, nullcontext
from pathlib import Path

from tests.lines import Namespace
from tests.ports import free_ports
from tests.routers import ROOT, RunningRouter, watched

_RELOADED = r"MAIN \(info\) Reloaded "
_ANY_PORT = re.compile(r"port: 0\b")


class Site:
    """The place of one router: its file, its ports, and the router that runs now."""

    def __init__(
        self,
        name: str,
        text: str,
        folder: Path,
        stack: ExitStack,
        namespace: Namespace | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.name = name
        self.namespace = namespace
        self.file = folder / f"{name}.conf"
        #: The ports are fixed in the file, so that a router that is started again has the same ones.
        self.ports = tuple(free_ports(len(_ANY_PORT.findall(text))))
        given = iter(self.ports)
        self.file.write_text(_ANY_PORT.sub(lambda _: f"port: {next(given)}", text))
        self._stack = stack
        #: The folder in which `python -m trouter` runs the build that this site starts.
        self.build = ROOT
        #: Added to the environment of the routers that this site starts.
        self.environment = dict(environment or {})
        self.past: list[RunningRouter] = []
        self.start()

    @property
    def url(self) -> str:
        return f"amqp://127.0.0.1:{self.ports[0]}"

    @property
    def pid(self) -> int:
        return self.router.process.pid

    def start(self) -> None:
        """Start a router; return when it accepts connections."""
        command = [sys.executable, "-m", "trouter", "run", "-c", str(self.file)]
        environment = {**os.environ, **self.environment}
        with self.namespace.inside() if self.namespace else nullcontext():
            self.router = self._stack.enter_context(watched(command, self.file, self.build, environment))
        self.router.wait_for_line(r"SERVER \(notice\) (\[W1\] )?Operational")
        self.past.append(self.router)

    def kill(self) -> None:
        """Kill the router with SIGKILL."""
        self.router.process.kill()
        self.router.wait()

    def restart(self) -> None:
        """Kill the router, and start another."""
        self.kill()
        self.start()

    def stop(self) -> None:
        """Stop the router as an operator does, and check that its exit status is 0."""
        status = self.router.stop()
        assert status == 0, self.router.text()

    def pause(self) -> None:
        """Stop the process with SIGSTOP: its connections stay open and carry nothing."""
        os.kill(self.pid, signal.SIGSTOP)

    def resume(self) -> None:
        """Resume a stopped process."""
        os.kill(self.pid, signal.SIGCONT)

    def reload(self) -> None:
        """Make the router reload its configuration, and wait until it has."""
        before = len(self.router.matching(_RELOADED))
        os.kill(self.pid, signal.SIGHUP)
        self.router.wait_for_line(_RELOADED, before + 1)
