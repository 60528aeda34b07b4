"""The plugin that a suite tries: how it is configured, and who can log in."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from trouter.client.sasl import SaslMechanism
from trouter.config import Configuration, load
from trouter.config.facts import listener_facts, router_facts
from trouter.hooks import ListenerFacts, PeerFacts, Plugins

from .loopback import ANONYMOUS_ROUTER

NAME: Final = "subject"


@dataclass(frozen=True, slots=True)
class Login:
    """A way in. ``right`` and ``wrong`` make a client's side: the one gets in as ``user``, the other does not."""

    right: Callable[[], SaslMechanism]
    wrong: Callable[[], SaslMechanism]
    user: str
    #: What may never stand in a log, in plain or encoded.
    secrets: Sequence[str | bytes] = ()


@dataclass(frozen=True, slots=True)
class Subject:
    """The plugin to try (a module, a class or an object), and a configuration in which it works."""

    plugin: object
    #: Its first listener is the one that ``logins`` are for. The settings of the plugin stand under ``name``.
    configuration: str = ANONYMOUS_ROUTER
    logins: Sequence[Login] = ()
    name: str = NAME

    def loaded(self) -> Configuration:
        """Return what the text says."""
        return load(text=self.configuration)

    def plugins(self, plugin: object = None) -> Plugins:
        """Return the plugin alone, or another in its place, configured."""
        plugins = self.registered(plugin)
        self.configure(plugins)
        return plugins

    def registered(self, plugin: object = None) -> Plugins:
        """Return the plugin alone, or another in its place."""
        plugins = Plugins()
        plugins.add(self.plugin if plugin is None else plugin, self.name)
        return plugins

    def configure(self, plugins: Plugins) -> None:
        """Hand over the configuration; ConfigurationRefused."""
        configuration = self.loaded()
        plugins.configure(router_facts(configuration), configuration.router.plugin_settings)

    @property
    def listener(self) -> ListenerFacts:
        """Return the listener that plugins are asked about."""
        return listener_facts(self.loaded().listeners[0])

    def peer(self, number: int = 1) -> PeerFacts:
        """Return facts about a peer on this machine, whose connection id is ``number``."""
        return PeerFacts(
            connection_id=number,
            listener=self.listener,
            remote_host="127.0.0.1",
            remote_port=40000 + number,
            encrypted=True,
            loopback=True,
        )
