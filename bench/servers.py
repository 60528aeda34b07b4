"""The servers under test, each a process with ports and a folder of its own that ends with the bench."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from tests.rabbitmq import SERVER, WITH_ROOT, Version, places_in

START_S: Final = 60.0
STOP_S: Final = 10.0
_LISTEN: Final = "0A"
#: The lowest bits of the clock id of a whole process's CPU time, as in clock_getcpuclockid(3).
_CPU_CLOCK: Final = 2

ROUTER_CONF: Final = """
# trouter: accept vhost-policy: a measurement without users

router {{
    mode: {mode}
    id: {router_id}
    {own}
}}
# trouter: accept authenticate-peer: a measurement on this machine
listener {{
    host: 127.0.0.1
    port: {port}
    authenticatePeer: no
    saslMechanisms: ANONYMOUS
    linkCapacity: {capacity}
    maxLinks: 65536
    maxUnsettled: 1000000
}}
log {{
    module: DEFAULT
    enable: warning+
    outputFile: {folder}/router.log
}}
"""
HAPROXY_CONF: Final = """
global
    nbthread 1
    maxconn 8000
defaults
    mode tcp
    timeout connect 5s
    timeout client 1h
    timeout server 1h
listen bench
    bind 127.0.0.1:{port}{secured}
    {rest}
"""
#: HAProxy's rule for a connection: relay it to a server, or close it when it arrives.
TO_SINK: Final = "server sink 127.0.0.1:{}"
REFUSED: Final = "tcp-request connection reject"
RABBIT_CONF: Final = """
listeners.tcp.1 = 127.0.0.1:{port}
log.file.level = warning
log.console = false
load_definitions = {folder}/definitions.json
{more}
"""
#: The queue that both versions of RabbitMQ have, as the sender and the receiver of a bench would declare it.
RABBIT_DEFINITIONS: Final = """{
    "users": [{"name": "guest", "password": "guest", "tags": ""}],
    "vhosts": [{"name": "/"}],
    "permissions": [{"user": "guest", "vhost": "/", "configure": "", "write": ".*", "read": ".*"}],
    "queues": [{"name": "bench", "vhost": "/", "durable": true, "auto_delete": false, "arguments": {}}]
}
"""


class ServerError(Exception):
    """A server under test did not start, or has ended."""


class Server:
    """A started process and its child processes."""

    name = ""

    def __init__(self, command: list[str], folder: Path, environment: dict[str, str], port: int) -> None:
        self.port = port
        self._output = folder / f"{self.name}.out"
        with self._output.open("wb") as output:
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**os.environ, **environment},
                start_new_session=True,
            )

    def __enter__(self) -> Self:
        try:
            self._wait_until_ready()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """End the server and its child processes; kill those that ignore SIGTERM."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            if self.members():
                for pid in self.members():
                    try:
                        os.kill(pid, number)
                    except ProcessLookupError:
                        continue
                try:
                    self.process.wait(STOP_S)
                except subprocess.TimeoutExpired:
                    continue
        self.process.wait()

    def members(self) -> list[int]:
        """Return the processes of its session: its own and its children."""
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    fields = (entry / "stat").read_text().rpartition(")")[2].split()
                except OSError:
                    continue
                if int(fields[3]) == self.process.pid and fields[0] != "Z":
                    found.append(int(entry.name))
        return found

    def cpu_ns(self) -> int:
        """Return the CPU time of its live processes and threads so far, in nanoseconds."""
        total = 0
        for pid in self.members():
            try:
                total += time.clock_gettime_ns(~pid << 3 | _CPU_CLOCK)
            except OSError:
                continue
        return total

    def memory(self, field: str) -> int:
        """Return VmRSS or VmHWM of the main process, in bytes."""
        for line in Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith(f"{field}:"):
                return int(line.split()[1]) * 1024
        raise ServerError(f"{self.name}: no {field}")

    def forget_peak(self) -> None:
        """Reset VmHWM."""
        Path(f"/proc/{self.process.pid}/clear_refs").write_text("5")

    def _wait_until_ready(self) -> None:
        deadline_s = time.monotonic() + START_S
        while time.monotonic() < deadline_s:
            if self.process.poll() is not None:
                raise ServerError(f"{self.name} ended with status {self.process.returncode}: {self._last_words()}")
            if self._listens():
                return
            time.sleep(0.05)
        raise ServerError(f"{self.name} did not start within {START_S:g} s: {self._last_words()}")

    def _listens(self) -> bool:
        """Return whether one of its processes, and no other process, listens on the port."""
        listening = {
            fields[9]
            for line in Path("/proc/net/tcp").read_text().splitlines()[1:]
            if (fields := line.split())[3] == _LISTEN and int(fields[1].partition(":")[2], 16) == self.port
        }
        return any(inode in listening for pid in self.members() for inode in sockets_of(pid))

    def _last_words(self) -> str:
        return self._output.read_text(errors="replace").strip()[-500:] or "(it said nothing)"


class Router(Server):
    """trouter with the configuration that the figures apply to."""

    name = "router"

    def __init__(
        self,
        folder: Path,
        *,
        pure: bool = False,
        capacity: int = 1000,
        port: int = 0,
        own: str = "",
        more: str = "",
        mode: str = "standalone",
        router_id: str = "Bench",
        python: str = sys.executable,
    ) -> None:
        """Start a router; ``own`` has attributes of the router, ``more`` has sections of the configuration.

        ``python`` is the interpreter of the environment whose trouter runs.
        """
        port = port or free_port()
        folder.mkdir(parents=True)
        configuration = folder / "router.conf"
        text = ROUTER_CONF.format(port=port, capacity=capacity, folder=folder, own=own, mode=mode, router_id=router_id)
        configuration.write_text(text + more)
        command = [python, "-P", "-m", "trouter", "run", "-c", str(configuration)]
        super().__init__(command, folder, {"TROUTER_PURE": "1"} if pure else {}, port)


class HAProxy(Server):
    """HAProxy that copies bytes to a server behind it, or closes every connection; one thread, as the router has."""

    name = "haproxy"

    def __init__(self, folder: Path, sink_port: int | None, certificate: Path | None = None) -> None:
        """With ``certificate``, a file that has the key too, clients use TLS, and so does the server behind."""
        port = free_port()
        folder.mkdir(parents=True)
        configuration = folder / "haproxy.cfg"
        rest = REFUSED if sink_port is None else TO_SINK.format(sink_port)
        secured = ""
        if certificate is not None:
            secured = f" ssl crt {certificate}"
            rest += " ssl verify none"
        configuration.write_text(HAPROXY_CONF.format(port=port, rest=rest, secured=secured))
        super().__init__(["haproxy", "-db", "-q", "-f", str(configuration)], folder, {}, port)


class Epmd(Server):
    """Erlang's port mapper, in the foreground and on a port of its own, so that it ends with the bench."""

    name = "epmd"

    def __init__(self, folder: Path) -> None:
        port = free_port()
        folder.mkdir(parents=True)
        super().__init__(["epmd", "-address", "127.0.0.1", "-port", str(port)], folder, {}, port)


class Rabbit(Server):
    """A node of RabbitMQ with its own name, ports and data, and one durable queue."""

    name = "rabbitmq"

    def __init__(self, folder: Path, epmd: Epmd, version: Version) -> None:
        port = free_port()
        folder.mkdir(parents=True)
        own = version.root == Path("/")
        seen = folder.resolve() if own else Path("/home")  # as the node sees its folder
        configuration = RABBIT_CONF.format(port=port, folder=seen, more=version.settings)
        (folder / "rabbitmq.conf").write_text(configuration)
        (folder / "definitions.json").write_text(RABBIT_DEFINITIONS)
        (folder / "enabled_plugins").write_text(f"[{version.plugins}].\n")
        (folder / "env.conf").write_text("")
        environment = {
            **places_in(seen),
            "ERL_EPMD_PORT": str(epmd.port),
            "RABBITMQ_NODENAME": f"bench{os.getpid()}-{port}@localhost",
            "RABBITMQ_DIST_PORT": str(free_port()),
        }
        command = [f"/{SERVER}"]
        if not own:
            users = [] if os.geteuid() == 0 else ["--map-root-user"]
            paths = (str(version.root), str(folder.resolve()), SERVER)
            command = ["unshare", "--mount", *users, "sh", "-c", WITH_ROOT, "sh", *paths]
        super().__init__(command, folder, environment, port)


class ProtonBroker(Server):
    """The broker among Qpid Proton's examples for Python, as Debian has it, with the python-qpid-proton used here."""

    name = "proton-broker"
    #: Of the package libqpid-proton11-dev-examples.
    PROGRAM: Final = Path("/usr/share/proton/examples/python/broker.py")

    def __init__(self, folder: Path) -> None:
        port = free_port()
        folder.mkdir(parents=True)
        super().__init__([sys.executable, str(self.PROGRAM), "-a", f"127.0.0.1:{port}"], folder, {}, port)


def sockets_of(pid: int) -> list[str]:
    """Return the inodes of a process's sockets; none if it has ended."""
    links: list[str] = []
    with suppress(OSError):
        for descriptor in Path(f"/proc/{pid}/fd").iterdir():
            with suppress(FileNotFoundError):  # the process has closed it meanwhile
                links.append(descriptor.readlink().name)
    return [link[len("socket:[") : -1] for link in links if link.startswith("socket:[")]


def free_port() -> int:
    """Return a port that no process listened on a moment ago."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port: int = probe.getsockname()[1]
        return port
