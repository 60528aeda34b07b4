"""What `run` and `check` do alike: load configuration and plugins, and tell everything that is wrong with them."""

from __future__ import annotations

import argparse
import dataclasses
import os
import time
from importlib import import_module
from pathlib import Path

from trouter import logs
from trouter.config import Configuration, ConfigurationError, Problem, RouterEntity, load
from trouter.config.facts import router_facts
from trouter.config.findings import evaluate, mechanisms, ordered, told, unsafe
from trouter.config.problems import Severity
from trouter.hooks import ConfigurationRefused, PluginError, Plugins
from trouter.logs.outputs import NAMED


class StartError(Exception):
    """The router cannot start; `lines` tell why, one problem each. `problems` are those that have a place in a file."""

    def __init__(self, *lines: str, problems: tuple[Problem, ...] = ()) -> None:
        super().__init__("\n".join(lines))
        self.lines = lines
        self.problems = problems


def prepare(path: Path | None, text: str | None = None) -> tuple[Configuration, Plugins]:
    """Return the configuration in the file, or in ``text`` that is to stand there, or the built-in one, and the
    plugins, which know it. Raise StartError if the router cannot start with them.
    """
    logs.configure(Configuration(RouterEntity()))  # until the configuration says otherwise
    try:
        configuration = load(path, text)
        plugins = Plugins.load(dict(configuration.router.plugins))
        plugins.configure(router_facts(configuration), configuration.router.plugin_settings)
    except ConfigurationError as error:
        problems = tuple(dataclasses.replace(problem, severity=Severity.PROBLEM) for problem in error.problems)
        raise StartError(*map(str, problems), problems=problems) from error
    except ConfigurationRefused as refusal:
        raise StartError(*(f"{configuration.source}: {problem}" for problem in refusal.problems)) from refusal
    except PluginError as error:
        raise StartError(str(error)) from error
    return configuration, plugins


def evaluation(configuration: Configuration, plugins: Plugins) -> tuple[Problem, ...]:
    """Return everything that is to be told of a configuration on this machine, the gravest first."""
    found = [
        *evaluate(configuration, plugins),
        *log_files(configuration),
        *tls_material(configuration),
        *little_memory(configuration),
    ]
    return ordered(found)


def warnings(configuration: Configuration, plugins: Plugins) -> tuple[Problem, ...]:
    """Return the same without what a router logs itself at its start: files it cannot use, what it does not serve."""
    found = [*configuration.warnings, *unsafe(configuration), *mechanisms(configuration, plugins)]
    return ordered([*found, *little_memory(configuration)])


def log_files(configuration: Configuration) -> list[Problem]:
    """Return problems with the log files, without opening one: the user who runs the router may be another."""
    problems = []
    for entity in configuration.logs:
        name = entity.output_file
        if name is not None and name not in NAMED and not _may_append(Path(name)):
            message = f"Failed to open log file '{name}'"
            problems.append(Problem(entity.place, message, "log", "outputFile", severity=Severity.PROBLEM))
    return problems


def tls_material(configuration: Configuration) -> list[Problem]:
    """Return problems with the certificates, keys and lists that sslProfiles name, for entities that use them."""
    if not configuration.ssl_profiles:
        return []
    from trouter.tls.profiles import problems_in  # noqa: PLC0415 - libraries that only TLS needs

    return problems_in(configuration, time.time())


def little_memory(configuration: Configuration) -> list[Problem]:
    """Return a problem if the memory limit is below what the router takes before the first client connects."""
    limit = configuration.router.max_memory_bytes
    if limit is None:
        return []
    from trouter.admission.memory import REFUSE_AT, resident_bytes  # noqa: PLC0415

    import_module("trouter.app.process")  # the whole router: that is what is measured

    needed = resident_bytes()
    if needed * 100 < limit * REFUSE_AT:
        return []
    least = -(-needed * 2 // 1_000_000) * 1_000_000
    return [told("no-memory-left", configuration.router, needed=needed, least=least)]


def _may_append(path: Path) -> bool:
    if path.exists():
        return not path.is_dir() and os.access(path, os.W_OK)
    return os.access(path.parent, os.W_OK | os.X_OK)


def existing_path(text: str) -> Path:
    """Return a file named on the command line; whether it can be read is found out on loading."""
    if not text:
        raise argparse.ArgumentTypeError("the name of a file is needed")
    return Path(text)
