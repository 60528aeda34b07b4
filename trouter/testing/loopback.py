"""A whole router on a local port, in the event loop of the test.

    async with open_router(plugins={"tickets": tickets}, configuration=TEXT) as router:
        async with router.connect(user="alice", password="...") as connection:
            ...

A client that blocks, such as python-qpid-proton, runs in a thread (``trio.to_thread.run_sync``) against ``router.url``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from types import MappingProxyType
from typing import Any, Final

import trio

from trouter.app.process import RouterProcess
from trouter.client import Connection, connect
from trouter.config import Configuration, load
from trouter.config.facts import router_facts
from trouter.hooks import Plugins

#: Admits every client of this machine.
ANONYMOUS_ROUTER: Final = "router { id: R }\nlistener { host: 127.0.0.1, port: 0, saslMechanisms: ANONYMOUS }\n"
NO_PLUGINS: Final[Mapping[str, object]] = MappingProxyType({})


class LoopbackRouter:
    """A running router; ``configuration`` is the one that it was started with."""

    def __init__(self, process: RouterProcess, configuration: Configuration, plugins: Plugins) -> None:
        self.process = process
        self.configuration = configuration
        self.plugins = plugins

    @property
    def ports(self) -> list[int]:
        """The ports of its listeners, in the order of the configuration."""
        return [listener.sockets[0].getsockname()[1] for listener in self.process.listeners]

    @property
    def url(self) -> str:
        """The URL of its first listener."""
        return f"amqp://127.0.0.1:{self.ports[0]}"

    @property
    def faults(self) -> Counter[str]:
        """The number of exceptions and invalid answers of plugins, by hook."""
        return self.plugins.faults

    def connect(self, **options: Any) -> AbstractAsyncContextManager[Connection]:
        """Return a client's connection to the first listener; ``options`` are those of ``trouter.client.connect``."""
        return connect(self.url, **options)


@asynccontextmanager
async def open_router(
    configuration: str | Configuration = ANONYMOUS_ROUTER, plugins: Mapping[str, object] | Plugins = NO_PLUGINS
) -> AsyncIterator[LoopbackRouter]:
    """Run a router until the end of the block, with ``plugins`` by name beside those of trouter.

    A ``Plugins`` replaces those of trouter. Listeners should have ``port: 0``. Raise ConfigurationError,
    ConfigurationRefused or PluginError if the router cannot start.
    """
    if isinstance(plugins, Plugins):
        loaded = plugins
    else:
        loaded = Plugins.load()
        for name, plugin in plugins.items():
            loaded.add(plugin, name)
    read = load(text=configuration) if isinstance(configuration, str) else configuration
    loaded.configure(router_facts(read), read.router.plugin_settings)
    process = RouterProcess(read, loaded)
    failure: Exception | None = None
    async with trio.open_nursery() as nursery:
        await nursery.start(process.run)
        try:
            yield LoopbackRouter(process, read, loaded)
        except Exception as error:  # noqa: BLE001 - raised below, outside of the nursery's group
            failure = error
        finally:
            nursery.cancel_scope.cancel()
    if failure is not None:
        raise failure
