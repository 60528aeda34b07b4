"""What `run` and `check` share: load configuration and plugins, and list their problems."""

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
from trouter.config.findings import evaluate, finding_of, mechanisms, ordered, unsafe
from trouter.config.problems import Severity
from trouter.hooks import ConfigurationRefused, PluginError, Plugins
from trouter.logs.outputs import NAMED


class StartError(Exception):
    """The router cannot start. `lines` have a problem each; `problems` are those with a position in a file."""

    def __init__(self, *lines: str, problems: tuple[Problem, ...] = ()) -> None:
        super().__init__("\n".join(lines))
        self.lines = lines
        self.problems = problems


def prepare(path: Path | None, text: str | None = None) -> tuple[Configuration, Plugins]:
    """Return the configuration and the plugins, configured by it; StartError if the router cannot start with them.

    The configuration is ``text``, else the file at ``path``, else the built-in one.
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
    """Return all problems of a configuration on this machine, the gravest first."""
    found = [
        *evaluate(configuration, plugins),
        *log_files(configuration),
        *tls_material(configuration),
        *little_memory(configuration),
    ]
    return ordered(found)


def warnings(configuration: Configuration, plugins: Plugins) -> tuple[Problem, ...]:
    """Return the same without those that a router logs itself at its start: unusable files, entities not served."""
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

    import_module("trouter.app.process")  # the whole router, whose memory is measured

    needed = resident_bytes()
    if needed * 100 < limit * REFUSE_AT:
        return []
    least = -(-needed * 2 // 1_000_000) * 1_000_000
    return [finding_of("no-memory-left", configuration.router, needed=needed, least=least)]


def _may_append(path: Path) -> bool:
    if path.exists():
        return not path.is_dir() and os.access(path, os.W_OK)
    return os.access(path.parent, os.W_OK | os.X_OK)


def existing_path(text: str) -> Path:
    """Return a path of the command line, which loading checks; argparse.ArgumentTypeError if it is empty."""
    if not text:
        raise argparse.ArgumentTypeError("the name of a file is needed")
    return Path(text)
