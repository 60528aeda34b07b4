"""Which room may import which: the architecture as data. A line here is changed only on purpose."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.house.sources import PACKAGE, PACKAGES, PIPELINE_PACKAGE, ROOT, c_types, cimported, imported_by, named

# A room may import itself, these, and the rooms open to all. A dotted name opens one module of a room, not the room.
MAY_IMPORT = {
    "wire": (),
    "engine": ("wire",),
    "hooks": (),
    # The latencies of addresses have the buckets of the records.
    "core": ("engine", "wire", "hooks", "records.sketch"),
    # What management shows of running objects; the types of these objects are those of the core.
    "columns": ("core", "net.view", "wire", "backbone.changes", "config.point", "config.problems"),
    "mesh": ("wire",),
    # Patterns, tenant names and kinds of records are text, with one definition each.
    "config": ("columns", "hooks", "core.patterns", "core.tenants", "records.schema"),
    # A line of the log shows texts and frames of peers.
    "logs": ("config", "wire", "core.counters"),
    "management": ("columns", "config", "core", "wire", "engine", "logs", "net.view", "net.workers"),
    "http": ("columns", "config", "net.accepting", "net.descriptors", "net.turns"),
    # The router's own rooms, each above those that it may import: the process is the top.
    "net": ("config", "core", "engine", "hooks", "wire"),
    "telemetry": (
        "columns",
        "net",
        "logs",
        "config",
        "core",
        "engine",
        "hooks",
        "management.ports",
        "records",
        "wire",
    ),
    "tls": ("net", "telemetry", "config", "hooks", "records", "wire"),
    # It decides, counts and records, and waits for nothing: trio is not among the libraries that it may import.
    "policy": (
        "columns",
        "telemetry",
        "logs",
        "config",
        "core",
        "engine.ports",
        "hooks",
        "management.ports",
        "net.rates",
        "net.tallies",
        "net.view",
        "records",
        "wire",
    ),
    "admission": ("columns", "policy", "net", "telemetry", "config", "core", "engine", "hooks", "records", "wire"),
    "auth": ("admission", "tls", "net", "telemetry", "client", "config", "core", "engine", "hooks", "records", "wire"),
    "backbone": ("columns", "net", "telemetry", "logs", "config", "core", "engine", "mesh", "records", "wire"),
    "connections": (
        "columns",
        "backbone",
        "auth",
        "admission",
        "tls",
        "telemetry",
        "net",
        "client",
        "config",
        "core",
        "engine",
        "hooks",
        "logs",
        "management.ports",
        "policy",
        "wire",
    ),
    "app": (
        "connections",
        "backbone",
        "auth",
        "admission",
        "tls",
        "telemetry",
        "net",
        "http",
        "management",
        "columns",
        "config",
        "core",
        "engine",
        "hooks",
        "logs",
        "records",
        "policy",
        "wire",
    ),
    # The parent of several processes, and what each of them asks it for; it sees no message.
    "workers": (
        "app.supervision",
        "net.descriptors",
        "net.dialing",
        "net.parts",
        "net.reach",
        "net.sockets",
        "net.tallies",
        "net.workers",
        "config",
        "logs",
    ),
    "records": (),
    "tools": ("client", "columns", "config", "hooks.certificates", "wire"),
    "client": ("engine", "wire"),
    "load": ("client", "engine", "tools.failures", "tools.options", "tools.progress", "wire"),
    "testing": (
        "engine",
        "wire",
        "hooks",
        "core",
        "client",
        "app",
        "config",
        "net.hub",
        "net.poller",
        "net.shares",
        "net.timers",
        "net.turns",
        "records",
    ),
    "cli": (
        "wire",
        "engine",
        "hooks",
        "core",
        "config",
        "app",
        "admission.memory",
        "admission.process_memory",
        "tls.profiles",
        "net.sockets",
        "net.tallies",
        "http",
        "client",
        "load",
        "logs",
        "records",
        "testing",
        "tools",
        "policy",
        "workers",
    ),
    # The rooms of trouter_pipeline; nothing in the router imports it. Messages on disk until they are consumed, without
    # Spark:
    "pipeline.spool": ("client", "records.disk", "wire"),
    # The only room that imports Spark.
    "pipeline": ("pipeline.spool", "records", "client", "wire"),
    # A command calls the program that it is a command of, with the options by which all its commands connect; the
    # report reads the limits in a router's configuration.
    "pipeline.commands": (
        "pipeline",
        "pipeline.spool",
        "client",
        "records",
        "cli",
        "tools.contexts",
        "tools.failures",
        "tools.options",
        "config",
    ),
}
EVERYBODY_MAY_IMPORT = ("_bell", "_buckets", "_bugs", "_fetch", "_seldom", "_text", "_twin", "mechanisms")
#: What the pipeline shares with the router beside rooms: the choice of the twin.
SHARED = ("_twin",)
#: The rooms of the router that wait, read and write.
WAITING = {"net", "telemetry", "tls", "admission", "auth", "backbone", "connections", "app", "workers"}
PIPELINE = {"pipeline", "pipeline.spool", "pipeline.commands"}
ONLY_IN = {
    "trio": {*WAITING, "client", "load", "cli", "testing", "management", "http", "tools", *PIPELINE},
    "ssl": {"tls", "client", "load", "tools"},
    "socket": {"net", "tls", "connections", "app", "workers", "client", "load", "http", "pipeline"},
    "h11": {"http", "pipeline.commands"},
    "wsproto": {"http"},
    "prometheus_client": {"http", "pipeline.spool", "pipeline.commands"},
    "argcomplete": {"cli"},
    "tqdm": {"tools"},
    "pluggy": {"hooks", "plugins"},
    "msgspec": {"records", "pipeline"},
    "proton": set[str](),
    "asyncio": set[str](),
    "threading": {"pipeline"},
    "ctypes": {"app", "admission", "tools"},
    "multiprocessing": {"load", "cli", *PIPELINE},
    "pyspark": {"pipeline"},
    "pyarrow": {"pipeline"},
    "deltalake": {"pipeline"},
    "pandas": {"pipeline"},
    "matplotlib": {"pipeline"},
    "trouter_pipeline": PIPELINE,
}


def room_of(path: Path) -> str:
    """Return the room of a source; "" for a module beside the rooms of the router."""
    parts = path.relative_to(PACKAGE if path.is_relative_to(PACKAGE) else PIPELINE_PACKAGE).parts
    if path.is_relative_to(PACKAGE):
        return parts[0] if len(parts) > 1 else ""
    return room if (room := f"pipeline.{parts[0]}") in PIPELINE else "pipeline"


FILES: dict[str, list[Path]] = {}
for source in sorted({path for package in PACKAGES for path in package.rglob("*.py")} | c_types().keys()):
    FILES.setdefault(room_of(source), []).append(source)
ROOMS = sorted(FILES.keys() - {""})


def within(name: str, opened: str) -> bool:
    return name == opened or name.startswith(f"{opened}.")


def test_every_room_is_in_the_table() -> None:
    assert set(ROOMS) == set(MAY_IMPORT)


def forbidden_in(room: str, name: str) -> bool:
    top, _, rest = name.partition(".")
    opened = (room, *MAY_IMPORT[room], *(SHARED if room in PIPELINE else EVERYBODY_MAY_IMPORT))
    if room not in ONLY_IN.get(top, {room}):
        return True
    if top == PIPELINE_PACKAGE.name:
        inner = f"pipeline.{rest.partition('.')[0]}"
        return (inner if inner in PIPELINE else "pipeline") not in opened
    return top == "trouter" and rest != "" and not any(within(rest, other) for other in opened)


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_imports_only_its_neighbours(room: str) -> None:
    assert [(named(path), name) for path in FILES[room] for name in imported_by(path) if forbidden_in(room, name)] == []


@pytest.mark.parametrize("path", sorted((ROOT / "plugins").rglob("*.py")), ids=lambda path: path.stem)
def test_a_plugin_imports_only_the_hooks_of_the_router(path: Path) -> None:
    for name in imported_by(path):
        top, _, rest = name.partition(".")
        assert top not in {"ssl", "socket", "asyncio"}
        allowed = within(rest, "hooks") or within(rest, "mechanisms")
        assert top != "trouter" or allowed, f"a plugin may not import {name}"


def test_the_import_finder_sees_python_and_cython_imports() -> None:
    assert "trouter.core.patterns" in imported_by(PACKAGE / "config" / "rules.py")
    assert "trouter.hooks" in imported_by(PACKAGE / "cli" / "startup.py")
    types = "cimport cython\nfrom trouter.wire.codec cimport decode\ncimport trouter.engine.link\n"
    assert cimported(types) == {"trouter.wire.codec", "trouter.engine.link"}
    assert "trouter.wire.codec" in imported_by(PACKAGE / "wire" / "sections.pxd")
