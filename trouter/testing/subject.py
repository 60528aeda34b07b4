"""The plugin under test: its configuration and its logins."""

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
    """Credentials for a test: ``right`` and ``wrong`` make clients, of which only the first logs in, as ``user``."""

    right: Callable[[], SaslMechanism]
    wrong: Callable[[], SaslMechanism]
    user: str
    #: Texts that must not be in a log, plain or encoded.
    secrets: Sequence[str | bytes] = ()
    #: The name that ``wrong`` tries, None for ``user``; "" for a mechanism whose messages name no user: then no user is
    #: locked out, and only failures of the host are delayed.
    tried: str | None = None

    @property
    def guessed(self) -> str:
        """The name that the wrong credentials are for."""
        return self.user if self.tried is None else self.tried


@dataclass(frozen=True, slots=True)
class Subject:
    """The plugin under test (a module, a class or an object), and a configuration in which it works."""

    plugin: object
    #: ``logins`` are for its first listener. Settings of the plugin are under ``name``.
    configuration: str = ANONYMOUS_ROUTER
    logins: Sequence[Login] = ()
    name: str = NAME

    def loaded(self) -> Configuration:
        """Return the configuration."""
        return load(text=self.configuration)

    def plugins(self, plugin: object = None) -> Plugins:
        """Return a configured registry with only the plugin, or with ``plugin`` instead."""
        plugins = self.registered(plugin)
        self.configure(plugins)
        return plugins

    def registered(self, plugin: object = None) -> Plugins:
        """Return a registry with only the plugin, or with ``plugin`` instead."""
        plugins = Plugins()
        plugins.add(self.plugin if plugin is None else plugin, self.name)
        return plugins

    def configure(self, plugins: Plugins) -> None:
        """Configure the plugins; ConfigurationRefused."""
        configuration = self.loaded()
        plugins.configure(router_facts(configuration), configuration.router.plugin_settings)

    @property
    def listener(self) -> ListenerFacts:
        """The listener for calls of hooks."""
        return listener_facts(self.loaded().listeners[0])

    def peer(self, number: int = 1) -> PeerFacts:
        """Return facts about a local peer with connection id ``number``."""
        return PeerFacts(
            connection_id=number,
            listener=self.listener,
            remote_host="127.0.0.1",
            remote_port=40000 + number,
            encrypted=True,
            loopback=True,
        )
