"""Registers the plugins of one router, checks their hooks, and finds the plugin that is to blame for a fault.

A plugin that would deny nothing stops the start: its hook is misspelt, async or missing.
"""

from __future__ import annotations

import difflib
import inspect
import logging
from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from importlib import metadata

import pluggy

from trouter.hooks import specs
from trouter.hooks.installed import allowed_plugins, installed_plugins, uncached
from trouter.hooks.loading import PluginDescription, PluginError

log = logging.getLogger("trouter.PLUGIN")


class Registration:
    """The plugins of one router by name, in the order of registration."""

    def __init__(self) -> None:
        self._manager = pluggy.PluginManager(specs.PROJECT)
        self._manager.add_hookspecs(specs)
        self._hook_names = frozenset(name for name, value in vars(specs).items() if _is_hookspec(value))
        #: Name of each plugin -> its package and target.
        self.origins: dict[str, str] = {}

    @property
    def hook(self) -> pluggy.HookRelay:
        """The hooks, each of which calls every plugin."""
        return self._manager.hook

    def only(self, name: str, hook: str) -> pluggy.HookCaller:
        """Return the caller of ``hook`` for the plugin ``name`` only."""
        others = [plugin for other, plugin in self._manager.list_name_plugin() if other != name]
        return self._manager.subset_hook_caller(hook, others)

    # Registering.

    def load(self, listed: Mapping[str, str], entry_point_group: str) -> None:
        """Load trouter's plugins and those ``listed``, with a hash of their code or ""; PluginError."""
        found = installed_plugins(entry_point_group)
        allowed = allowed_plugins(found, listed)
        for each in found:
            if each not in allowed:
                package = f"{each.distribution} {each.version}"
                log.warning(
                    "plugin %s (%s) is installed but not loaded: the configuration does not list it", each.name, package
                )
        for each in allowed:
            entry = metadata.EntryPoint(each.name, each.target, entry_point_group)
            try:
                with uncached() if listed.get(each.name) else nullcontext():
                    plugin = entry.load()
            except Exception as error:
                raise PluginError(f"plugin {each.name} ({each.target}) cannot be imported: {error!r}") from error
            package = f"{each.distribution} {each.version}, " if each.distribution else ""
            self._register(plugin, each.name, f"{package}{each.target}")

    def add(self, plugin: object, name: str = "") -> None:
        """Register a plugin, which is a module, an object or a class; PluginError if it is unusable."""
        self._register(plugin, name or _name_of(plugin), _name_of(plugin))

    def describe(self) -> tuple[PluginDescription, ...]:
        """Return a description of each plugin, in the order of registration."""
        return tuple(
            PluginDescription(name, origin, tuple(sorted(caller.name for caller in self._callers_of(name))))
            for name, origin in self.origins.items()
        )

    def _register(self, plugin: object, name: str, origin: str) -> None:
        try:
            if inspect.ismodule(plugin):
                plugin = getattr(plugin, "Plugin", plugin)
            if inspect.isclass(plugin):
                plugin = plugin()
            self._manager.register(plugin, name)
        except Exception as error:
            raise PluginError(f"plugin {name} cannot be registered: {error}") from error
        self.origins[name] = origin
        self._check(name)

    def _check(self, name: str) -> None:
        """Raise PluginError if the plugin ``name`` has a misspelt or async hook, or none."""
        try:
            self._manager.check_pending()
        except pluggy.PluginValidationError as error:
            raise PluginError(f"plugin {name}: {self._explain_unknown(name, error)}") from error
        callers = list(self._callers_of(name))
        if not callers:
            raise PluginError(f"plugin {name} implements no hook (hooks: {', '.join(sorted(self._hook_names))})")
        for caller in callers:
            for implementation in caller.get_hookimpls():
                if implementation.plugin_name == name and inspect.iscoroutinefunction(implementation.function):
                    raise PluginError(f"plugin {name}: {caller.name} is async, but hooks are never awaited")

    def _explain_unknown(self, name: str, error: pluggy.PluginValidationError) -> str:
        for caller in self._callers_of(name):
            if caller.name not in self._hook_names:
                near = difflib.get_close_matches(caller.name, sorted(self._hook_names), 1)
                return f"there is no hook {caller.name}" + (f", did you mean {near[0]}?" if near else "")
        return str(error)

    def _callers_of(self, name: str) -> Iterator[pluggy.HookCaller]:
        return iter(self._manager.get_hookcallers(self._manager.get_plugin(name)) or ())

    # Finding the plugin to blame.

    def _implementations(self, hook: str) -> list[pluggy.HookImpl]:
        caller = getattr(self.hook, hook, None)
        return [] if caller is None else caller.get_hookimpls()

    def raiser(self, hook: str, error: BaseException) -> str:
        """Return the plugin whose implementation of ``hook`` is in the traceback; empty if it is unknown."""
        frames = set()
        place = error.__traceback__
        while place is not None:
            frames.add(place.tb_frame.f_code)
            place = place.tb_next
        for each in self._implementations(hook):
            if getattr(inspect.unwrap(each.function), "__code__", None) in frames:
                return each.plugin_name
        return self.only_plugin_in(hook)

    def only_plugin_in(self, hook: str) -> str:
        """Return the plugin that implements ``hook``; empty if several do or none does."""
        names = {each.plugin_name for each in self._implementations(hook)}
        return names.pop() if len(names) == 1 else ""

    def owner_of(self, made: object) -> str:
        """Return the plugin whose module defines the class of ``made``; empty if none does."""
        for name, plugin in self._manager.list_name_plugin():
            if type(made).__module__ == (plugin.__name__ if inspect.ismodule(plugin) else type(plugin).__module__):
                return name
        return ""


def _is_hookspec(value: object) -> bool:
    return inspect.isfunction(value) and hasattr(value, f"{specs.PROJECT}_spec")


def _name_of(plugin: object) -> str:
    """Return the dotted name of a module or class, or of an object's class."""
    named = plugin if inspect.ismodule(plugin) or inspect.isclass(plugin) else type(plugin)
    if inspect.isclass(named):
        return f"{named.__module__}.{named.__qualname__}"
    return str(getattr(named, "__name__", named))
