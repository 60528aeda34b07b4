"""Real brokers: RabbitMQ 3.10 with its AMQP 1.0 plugin and RabbitMQ 4.0, each with a port and a folder of its own.

3.10 is Debian 12's package. 4.0 is Debian 13's, which `make rabbitmq4` unpacks into build/rabbitmq4: its node runs with
that folder as its root. A node that was killed and is started again has the same port and the same durable queues.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
import signal
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final
from urllib.parse import quote

import pytest

from tests.ports import free_port
from tests.routers import DEADLINE_S, ROOT

#: Erlang and RabbitMQ start slowly on a busy machine; only a hang takes this long.
START_S: Final = 4 * DEADLINE_S
SERVER: Final = "usr/lib/rabbitmq/bin/rabbitmq-server"
#: Runs a node with a folder as the root of its file system, in which /home is the node's own folder.
WITH_ROOT: Final = 'mount --rbind /proc "$1/proc" && mount --bind "$2" "$1/home" && exec chroot "$1" "/$3"'
_READY: Final = r"completed with \d+ plugins"
#: Small settings, because a node runs beside the routers of a test: no spinning threads, one scheduler.
_ERLANG: Final = "+S 1:1 +sbwt none +sbwtdcpu none +sbwtdio none"
_CONFIGURATION: Final = """
listeners.tcp.1 = 127.0.0.1:{port}
log.file = false
log.console = true
log.console.level = info
load_definitions = {folder}/definitions.json
vm_memory_high_watermark.absolute = 512MiB
disk_free_limit.absolute = 50MB
"""


@dataclass(frozen=True)
class Version:
    """A version of RabbitMQ, and what differs between versions."""

    name: str
    #: The folder that is the root of its file system.
    root: Path
    #: What stands before the name of a queue in an address.
    queue: str
    plugins: str
    settings: str

    @property
    def missing(self) -> bool:
        """Return whether it is not installed here."""
        return shutil.which("epmd") is None or not (self.root / SERVER).exists()


V3 = Version("3.10", Path("/"), "/amq/queue/", "rabbitmq_amqp1_0", "amqp1_0.default_user = guest\n")
#: It refuses the addresses of RabbitMQ 3, which 4.3 does without this setting.
V4 = Version(
    "4.0", ROOT / "build" / "rabbitmq4", "/queues/", "", "deprecated_features.permit.amqp_address_v1 = false\n"
)

needs_rabbitmq = pytest.mark.skipif(V3.missing, reason="RabbitMQ (Debian: rabbitmq-server) is not installed")
needs_rabbitmq4 = pytest.mark.skipif(V4.missing, reason="RabbitMQ 4 is not installed (`make rabbitmq4`)")
#: The parameters of a test that runs with each version.
EACH_VERSION = [pytest.param(V3, id="3.10", marks=needs_rabbitmq), pytest.param(V4, id="4.0", marks=needs_rabbitmq4)]


class _Process:
    """A started program in a process group of its own, with its output as lines."""

    def __init__(self, command: list[str], environment: Mapping[str, str]) -> None:
        self.lines: list[str] = []
        self._changed = threading.Condition()
        self._over = False
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={**os.environ, **environment},
            start_new_session=True,
            text=True,
            errors="replace",
        )
        assert self._process.stdout is not None
        self._reader = threading.Thread(target=self._read, args=(self._process.stdout,), daemon=True)
        self._reader.start()

    def _read(self, output: IO[str]) -> None:
        with output:
            for line in output:
                with self._changed:
                    self.lines.append(line.rstrip("\n"))
                    self._changed.notify_all()
        with self._changed:
            self._over = True
            self._changed.notify_all()

    def wait_for_line(self, pattern: str) -> None:
        """Wait until a line of its output matches; AssertionError if the process ends before."""
        wanted = re.compile(pattern)

        def there() -> bool:
            return self._over or any(map(wanted.search, self.lines))

        with self._changed:
            came = self._changed.wait_for(there, START_S)
            text = "\n".join(self.lines[-40:])
        assert came, f"no {pattern!r} in time:\n{text}"
        assert any(map(wanted.search, self.lines)), f"it ended without {pattern!r}:\n{text}"

    def signal(self, number: int) -> None:
        """Send a signal to the process and all that it started."""
        os.killpg(self._process.pid, number)

    def kill(self) -> None:
        """Kill the process and all that it started."""
        try:
            self.signal(signal.SIGKILL)
        except ProcessLookupError:
            pass
        self._process.wait(DEADLINE_S)
        self._reader.join(DEADLINE_S)


def places_in(seen: Path) -> dict[str, str]:
    """Return the variables that name the files and folders of a node, which sees them in the folder ``seen``."""
    return {
        "HOME": str(seen),
        "RABBITMQ_CONF_ENV_FILE": str(seen / "env.conf"),
        "RABBITMQ_CONFIG_FILE": str(seen / "rabbitmq.conf"),
        "RABBITMQ_ENABLED_PLUGINS_FILE": str(seen / "enabled_plugins"),
        "RABBITMQ_MNESIA_BASE": str(seen / "mnesia"),
        "RABBITMQ_LOG_BASE": str(seen / "log"),
        "RABBITMQ_PID_FILE": str(seen / "pid"),
    }


class RabbitMQ:
    """One node; a test may ``start`` and ``kill`` it repeatedly. It starts with the objects of ``definitions``."""

    def __init__(self, folder: Path, epmd_port: int, version: Version, definitions: str) -> None:
        self.version = version
        self.name = f"trouter-{secrets.token_hex(4)}@localhost"
        self.port = free_port()
        self._process: _Process | None = None
        self._folder = folder
        folder.mkdir(parents=True)
        own = version.root == Path("/")
        seen = folder if own else Path("/home")
        configuration = _CONFIGURATION.format(port=self.port, folder=seen) + version.settings
        (folder / "rabbitmq.conf").write_text(configuration)
        (folder / "enabled_plugins").write_text(f"[{version.plugins}].\n")
        (folder / "definitions.json").write_text(definitions)
        (folder / "env.conf").write_text("")
        cookie = folder / ".erlang.cookie"
        cookie.write_text(secrets.token_hex(16))
        cookie.chmod(0o400)
        self._command = [f"/{SERVER}"]
        if not own:
            users = [] if os.geteuid() == 0 else ["--map-root-user"]
            self._command = ["unshare", "--mount", *users, "sh", "-c", WITH_ROOT, "sh", str(version.root), str(folder)]
            self._command.append(SERVER)
        self._environment = {
            **places_in(seen),
            "ERL_EPMD_ADDRESS": "127.0.0.1",
            "ERL_EPMD_PORT": str(epmd_port),
            "RABBITMQ_NODENAME": self.name,
            "RABBITMQ_DIST_PORT": str(free_port()),
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": f"{_ERLANG} -kernel inet_dist_use_interface {{127,0,0,1}}",
            # With this the script becomes the node, so that no shell is left that would have to be killed first.
            "RUNNING_UNDER_SYSTEMD": "true",
        }

    def start(self) -> None:
        """Start the node; return when it accepts connections."""
        assert self._process is None
        self._process = _Process(self._command, self._environment)
        self._process.wait_for_line(_READY)

    def address(self, queue: str) -> str:
        """Return the address of a queue that exists, in the form of the node's version."""
        return self.version.queue + (quote(queue, safe="") if self.version is V4 else queue)

    def kill(self) -> None:
        """Kill the node with SIGKILL, if it runs."""
        if self._process is not None:
            self._process.kill()
            self._process = None

    def pause(self) -> None:
        """Stop the node's process, which keeps its connections and answers nothing."""
        assert self._process is not None
        self._process.signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let the node go on."""
        assert self._process is not None
        self._process.signal(signal.SIGCONT)

    def text(self) -> str:
        """Return its log since it was started."""
        return "" if self._process is None else "\n".join(self._process.lines)


def connector(name: str, node: RabbitMQ) -> str:
    """Return the connector section with which a router dials a node."""
    return (
        f"connector {{ name: {name}, role: route-container, host: 127.0.0.1, port: {node.port}, "
        "saslMechanisms: ANONYMOUS }\n"
    )


@contextmanager
def nodes(
    folder: Path, *versions: Version, queues: Sequence[str] = (), definitions: str = ""
) -> Iterator[list[RabbitMQ]]:
    """Run a node of each of the versions, each a broker of its own, with one port mapper; kill all at the end.

    Without versions it is one node of 3.10. Each has these durable queues, or the objects of ``definitions``.
    """
    definitions = definitions or json.dumps(_definitions(queues))
    port = free_port()
    with ExitStack() as stack:
        mapper = _Process(["epmd", "-address", "127.0.0.1", "-port", str(port), "-d", "-d"], {})
        stack.callback(mapper.kill)
        mapper.wait_for_line("entering the main select")
        made = [
            RabbitMQ(folder / f"rabbitmq{number}", port, version, definitions)
            for number, version in enumerate(versions or (V3,))
        ]
        for node in made:
            stack.callback(node.kill)
            node.start()
        yield made


#: A user that may write to and read from queues whose names begin with "granted", and nothing else.
LIMITED: Final = "limited"
#: A topic exchange, which each node has, and the queue that is bound to it by the routing key ``red.#``.
EXCHANGE, BOUND, BINDING = "colours/all", "red things", "red.#"


def _definitions(queues: Sequence[str]) -> dict[str, object]:
    """Return the objects that a node has from its first start on, in RabbitMQ's form."""
    every = {"configure": ".*", "write": ".*", "read": ".*"}
    granted = {"configure": "^$", "write": "^(granted|amq.default)", "read": "^granted"}
    place = {"vhost": "/", "durable": True, "auto_delete": False, "arguments": {}}
    return {
        "vhosts": [{"name": "/"}],
        "users": [
            {"name": "guest", "password": "guest", "tags": "administrator"},
            {"name": LIMITED, "password": LIMITED, "tags": ""},
        ],
        "permissions": [
            {"user": "guest", "vhost": "/", **every},
            {"user": LIMITED, "vhost": "/", **granted},
        ],
        "queues": [{"name": name, **place} for name in (*queues, BOUND)],
        "exchanges": [{"name": EXCHANGE, "type": "topic", "internal": False, **place}],
        "bindings": [
            {
                "source": EXCHANGE,
                "vhost": "/",
                "destination": BOUND,
                "destination_type": "queue",
                "routing_key": BINDING,
                "arguments": {},
            }
        ],
    }
