"""A real broker: RabbitMQ with its AMQP 1.0 plugin, with ports and folders of its own, on this machine only.

A node that was killed and is started again has the same port and the same durable queues.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
import signal
import subprocess
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Any, Final

import pytest
from proton import Terminus
from proton.reactor import SenderOption
from proton.utils import BlockingConnection

from tests.ports import free_port
from tests.routers import DEADLINE_S

_SCRIPTS: Final = Path("/usr/lib/rabbitmq/bin")
#: Erlang and RabbitMQ start slowly on a busy machine; only a hang takes this long.
START_S: Final = 4 * DEADLINE_S
_READY: Final = r"completed with \d+ plugins"
#: Small settings, because a node runs beside the routers of a test: no spinning threads, one scheduler.
_ERLANG: Final = "+S 1:1 +sbwt none +sbwtdcpu none +sbwtdio none"
_CONFIGURATION: Final = """
listeners.tcp.1 = 127.0.0.1:{port}
log.file = false
log.console = true
log.console.level = info
amqp1_0.default_user = guest
vm_memory_high_watermark.absolute = 512MiB
disk_free_limit.absolute = 50MB
"""

needs_rabbitmq = pytest.mark.skipif(
    shutil.which("epmd") is None or not (_SCRIPTS / "rabbitmq-server").exists(),
    reason="RabbitMQ (Debian: rabbitmq-server) is not installed",
)


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

    def kill(self) -> None:
        """Kill the process and all that it started."""
        try:
            os.killpg(self._process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self._process.wait(DEADLINE_S)
        self._reader.join(DEADLINE_S)


class RabbitMQ:
    """One node; a test may ``start`` and ``kill`` it repeatedly."""

    def __init__(self, folder: Path, epmd_port: int) -> None:
        self.name = f"trouter-{secrets.token_hex(4)}@localhost"
        self.port = free_port()
        self._process: _Process | None = None
        folder.mkdir(parents=True)
        (folder / "rabbitmq.conf").write_text(_CONFIGURATION.format(port=self.port))
        (folder / "enabled_plugins").write_text("[rabbitmq_amqp1_0].\n")
        (folder / "env.conf").write_text("")
        cookie = folder / ".erlang.cookie"
        cookie.write_text(secrets.token_hex(16))
        cookie.chmod(0o400)
        self._environment = {
            "HOME": str(folder),
            "ERL_EPMD_ADDRESS": "127.0.0.1",
            "ERL_EPMD_PORT": str(epmd_port),
            "RABBITMQ_NODENAME": self.name,
            "RABBITMQ_DIST_PORT": str(free_port()),
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": f"{_ERLANG} -kernel inet_dist_use_interface {{127,0,0,1}}",
            "RABBITMQ_CONF_ENV_FILE": str(folder / "env.conf"),
            "RABBITMQ_CONFIG_FILE": str(folder / "rabbitmq.conf"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(folder / "enabled_plugins"),
            "RABBITMQ_MNESIA_BASE": str(folder / "mnesia"),
            "RABBITMQ_LOG_BASE": str(folder / "log"),
            "RABBITMQ_PID_FILE": str(folder / "pid"),
            # With this the script becomes the node, so that no shell is left that would have to be killed first.
            "RUNNING_UNDER_SYSTEMD": "true",
        }

    def start(self) -> None:
        """Start the node; return when it accepts connections."""
        assert self._process is None
        self._process = _Process([str(_SCRIPTS / "rabbitmq-server")], self._environment)
        self._process.wait_for_line(_READY)

    def kill(self) -> None:
        """Kill the node with SIGKILL, if it runs."""
        if self._process is not None:
            self._process.kill()
            self._process = None

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
def nodes(folder: Path, count: int = 1) -> Iterator[list[RabbitMQ]]:
    """Run ``count`` nodes, each a broker of its own, with one port mapper; all are killed at the end."""
    port = free_port()
    with ExitStack() as stack:
        mapper = _Process(["epmd", "-address", "127.0.0.1", "-port", str(port), "-d", "-d"], {})
        stack.callback(mapper.kill)
        mapper.wait_for_line("entering the main select")
        made = [RabbitMQ(folder / f"rabbitmq{number}", port) for number in range(count)]
        for node in made:
            stack.callback(node.kill)
            node.start()
        yield made


def declare(rabbit: RabbitMQ, queue: str) -> None:
    """Declare a durable queue: RabbitMQ creates one for a link with a durable terminus."""
    client = BlockingConnection(f"127.0.0.1:{rabbit.port}", timeout=DEADLINE_S, allowed_mechs="ANONYMOUS")
    client.create_sender(f"/queue/{queue}", options=_Durable())
    client.close()


class _Durable(SenderOption):
    def apply(self, sender: Any) -> None:
        sender.target.durability = Terminus.DELIVERIES
