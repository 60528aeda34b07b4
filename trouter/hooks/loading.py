"""Descriptions of installed and loaded plugins, and the errors of refused ones."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class InstalledPlugin:
    """One plugin that could be loaded: its name, the target of its entry point, and its package."""

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
    """A plugin cannot be loaded; the router does not start without it, as the plugin may be there to deny access."""


class ConfigurationRefused(Exception):
    """A plugin cannot work with this configuration. ``problems`` are sentences for the operator, without secrets."""

    def __init__(self, *problems: str) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems
