"""The plugins' part of a change of the configuration, and the error for a configuration that cannot be served."""

from __future__ import annotations

from contextlib import suppress

from trouter.config import Configuration
from trouter.config.facts import router_facts
from trouter.hooks import ConfigurationRefused, Plugins


class Unfit(Exception):
    """A configuration that cannot be served: a line for each reason, and the status that management answers."""

    def __init__(self, lines: list[str], status: int) -> None:
        super().__init__("\n".join(lines))
        self.lines = lines
        self.status = status


class PendingPlugins:
    """New settings of the plugins, in force at once and so prepared last; ConfigurationRefused if a plugin refuses."""

    def __init__(self, plugins: Plugins, old: Configuration, new: Configuration) -> None:
        self._plugins = plugins
        self._old = old
        try:
            plugins.configure(router_facts(new), new.router.plugin_settings)
        except ConfigurationRefused:
            self.drop()
            raise

    def apply(self) -> None:
        """Do nothing: the change is in force already."""

    def drop(self) -> None:
        with suppress(ConfigurationRefused):  # a plugin that cannot go back keeps what it has
            self._plugins.configure(router_facts(self._old), self._old.router.plugin_settings)
