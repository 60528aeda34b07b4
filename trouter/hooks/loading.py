"""What is said of plugins that are installed, loaded, or refused."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class InstalledPlugin:
    """One plugin that could be loaded: its name, what its entry point names, and where that comes from."""

    name: str
    target: str
    distribution: str
    version: str
    #: The source file, empty if it is unknown.
    file: str
    #: It comes with trouter.
    ours: bool


@dataclass(frozen=True, slots=True)
class PluginDescription:
    """One loaded plugin: its name, where it came from, and the hooks it implements."""

    name: str
    origin: str
    hooks: tuple[str, ...]


class PluginError(Exception):
    """A plugin cannot be loaded; the router does not start without it, for it may have been a guard."""


class ConfigurationRefused(Exception):
    """A plugin cannot work with this configuration. ``problems`` are sentences for the operator, without secrets."""

    def __init__(self, *problems: str) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems
