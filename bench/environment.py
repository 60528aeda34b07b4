"""The machine and the versions of a bench."""

from __future__ import annotations

import os
import platform
import subprocess
import time
from pathlib import Path
from typing import Any

import trouter
from tests.rabbitmq import V3, V4
from trouter import _twin


def describe() -> dict[str, Any]:
    """Return the machine, the versions, and the machine's load before the bench."""
    return {
        "when": time.strftime("%Y-%m-%d %H:%M:%S %z"),
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0)),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "trouter": f"{trouter.__version__} ({_twin.running()})",
        "commit": _first_line(["git", "-C", str(Path(__file__).parent), "describe", "--always", "--dirty"]),
        "haproxy": _first_line(["haproxy", "-v"]),
        "rabbitmq": " and ".join(_rabbits()) or "not here",
        "load_before": round(os.getloadavg()[0], 2),
    }


def _rabbits() -> list[str]:
    """Return the numbers of the versions of RabbitMQ that are installed."""
    folders = [version.root / "usr/lib/rabbitmq/lib" for version in (V3, V4)]
    return [path.name.partition("-")[2] for folder in folders for path in sorted(folder.glob("rabbitmq_server-*"))]


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def _first_line(command: list[str]) -> str:
    try:
        said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return "not here"
    return said.strip().partition("\n")[0]
