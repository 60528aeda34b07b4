"""The clients of other projects, and what each of them does: a table of programs and their things.

`THING JSON` stand on the command line of a program. It prints a JSON object a line: `done` with its counts, `held` and
`ready` where it waits, or `failed`. The messages have the bodies `00000000`, `00000001` and so on, filled up to `size`.
Each thing begins at the end `from`; `exchange` and `request` go on to the end `to`.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Final

HERE: Final = Path(__file__).parent
#: What `make field-clients` builds.
BUILT: Final = HERE.parents[1] / "build" / "field"
DEBIAN_PYTHON: Final = "/usr/bin/python3"
NODE_MODULES: Final = HERE / "node_modules" / ".package-lock.json"


@dataclass(frozen=True)
class Client:
    """A client library or a set of its authors' programs."""

    #: What the page calls it, and where its version stands.
    name: str
    version: Callable[[], str]
    command: tuple[str, ...]
    #: The reason why it cannot be tried here; "" if it can.
    why_not: Callable[[], str]
    #: Things that it does not do, by name, and why.
    lacks: Mapping[str, str] = field(default_factory=dict)
    #: Its messages go to queues of a container, also where others need none.
    routed: bool = False
    #: It connects over WebSockets too.
    web: bool = False

    def why_without(self, thing: str, way: str) -> str:
        """Return why it does not do a thing, or does not go a way; "" if it does."""
        if way == "WebSockets" and not self.web:
            return "it has no WebSockets, or they are not tried"
        return self.lacks.get(thing) or self.lacks.get(way, "")


def locked(package: str) -> str:
    """Return the version of an npm package in the lock."""
    packages = json.loads((HERE / "package-lock.json").read_text(encoding="utf-8"))["packages"]
    return str(packages[f"node_modules/{package}"]["version"])


def without_node() -> str:
    """Return why programs of Node.js cannot run; "" if they can."""
    if shutil.which("node") is None:
        return "Node.js is missing"
    return "" if NODE_MODULES.exists() else "`make field-clients` has not installed the packages of npm"


@cache
def debian_proton() -> str:
    """Return the version of Debian's python3-qpid-proton; "" without it."""
    if not Path(DEBIAN_PYTHON).exists():
        return ""
    words = [DEBIAN_PYTHON, "-c", "import proton; print(*proton.VERSION, sep='.')"]
    return subprocess.run(words, check=False, capture_output=True, text=True).stdout.strip()


@cache
def debian_version(package: str) -> str:
    """Return the version of an installed Debian package, without Debian's own part; "" without it."""
    if shutil.which("dpkg-query") is None:
        return ""
    words = ["dpkg-query", "--show", "--showformat", "${Version}", package]
    version = subprocess.run(words, check=False, capture_output=True, text=True).stdout
    return version.partition("-")[0]


def pinned(package: str) -> str:
    """Return the version of a Python package in the list of pip."""
    lines = (HERE / "requirements.lock").read_text(encoding="utf-8").splitlines()
    return next(line.partition("==")[2] for line in lines if line.startswith(f"{package}=="))


def _javascript(package: str, program: str, lacks: Mapping[str, str] | None = None, **more: bool) -> Client:
    command = ("node", "--no-warnings", str(HERE / "clients" / program))
    return Client(package, lambda: locked(package), command, without_node, lacks or {}, **more)


def _stock(name: str, family: str, version: Callable[[], str], built: str, lacks: Mapping[str, str]) -> Client:
    """Return a client whose authors' programs are used; ``built`` is one of them, below build/field."""
    command = (sys.executable, str(HERE / "clients" / "stock.py"), family)
    missing = "`make field-clients` has not built its programs"
    return Client(name, version, command, lambda: "" if (BUILT / built).exists() else missing, lacks)


def _newest_proton() -> str:
    from proton import VERSION  # the library starts threads of its own

    return ".".join(map(str, VERSION))


def _rabbitmq() -> Client:
    python = BUILT / "venv" / "bin" / "python"
    alone = "only its publisher and its consumer are tried"
    lacks = dict.fromkeys(("request", "browse", "unsubscribe", "abrupt end", "reconnect"), alone)
    return Client(
        "rabbitmq-amqp-python-client",
        partial(pinned, "rabbitmq-amqp-python-client"),
        (str(python), str(HERE / "clients" / "rabbitmq_client.py")),
        lambda: "" if python.exists() else "`make field-clients` has not installed it",
        {**lacks, "an edge, TLS": "only its connections in clear are tried"},
        routed=True,
    )


_SHORT: Final = "its example sends short messages"
_GREEDY: Final = "its example chooses its credit itself"
_EAGER: Final = "its example accepts each message at once"
_UNTRUSTING: Final = "its example trusts the authorities of the machine only"
CLIENTS: Final = {
    client.name: client
    for client in (
        _javascript("rhea", "rhea.js", web=True),
        _javascript("rhea-promise", "rhea_promise.js"),
        _javascript("amqp10", "amqp10.js"),
        _javascript(
            "@azure/service-bus",
            "azure_service_bus.js",
            {"request": "it has no dynamic addresses"},
            routed=True,
            web=True,
        ),
        Client(
            "python-qpid-proton",
            _newest_proton,
            (sys.executable, str(HERE / "clients" / "proton_client.py")),
            lambda: "",
        ),
        Client(
            "python3-qpid-proton of Debian",
            debian_proton,
            (DEBIAN_PYTHON, str(HERE / "clients" / "proton_client.py")),
            lambda: "" if debian_proton() else "Debian's python3-qpid-proton is missing",
        ),
        _stock(
            "proton-C, its examples",
            "c",
            partial(debian_version, "libqpid-proton11-dev-examples"),
            "c/receive",
            {
                "request": "it has no such example",
                "browse": "it has no such example",
                "reconnect": "it has no such example",
                "large messages": _SHORT,
                "slow receiver": _GREEDY,
                "abrupt end": _EAGER,
                "an edge, TLS": _UNTRUSTING,
            },
        ),
        _stock(
            "proton-C++, its examples",
            "cpp",
            partial(debian_version, "libqpid-proton11-dev-examples"),
            "cpp/simple_recv",
            {
                "large messages": _SHORT,
                "slow receiver": _GREEDY,
                "abrupt end": _EAGER,
                "an edge, TLS": _UNTRUSTING,
            },
        ),
        _stock(
            "cli-proton-python",
            "cli",
            partial(pinned, "cli-proton-python"),
            "venv/bin/cli-proton-python-receiver",
            {
                "request": "its replies fail with python-qpid-proton 0.40",
                "abrupt end": "it accepts each message at once",
                "an edge, TLS": "only its connections in clear are tried",
            },
        ),
        _rabbitmq(),
    )
}
