"""The plugins of one router: how they come in, whether they are fit to be asked, and which of them did what.

A plugin that would guard nothing stops the start: its hook misspelt, async, or not there.
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
    """The plugins by name, in the order in which they came."""

    def __init__(self) -> None:
        self._manager = pluggy.PluginManager(specs.PROJECT)
        self._manager.add_hookspecs(specs)
        self._hook_names = frozenset(name for name, value in vars(specs).items() if _is_hookspec(value))
        #: Where each comes from, by its name.
        self.origins: dict[str, str] = {}

    @property
    def hook(self) -> pluggy.HookRelay:
        """Return the hooks, each of which asks every plugin."""
        return self._manager.hook

    def only(self, name: str, hook: str) -> pluggy.HookCaller:
        """Return a hook that asks one plugin."""
        others = [plugin for other, plugin in self._manager.list_name_plugin() if other != name]
        return self._manager.subset_hook_caller(hook, others)

    # Coming in.

    def load(self, listed: Mapping[str, str], entry_point_group: str) -> None:
        """Take in what comes with trouter and what is ``listed``, with a hash of its code or ""; PluginError."""
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
        """Register one more: a module, an object or a class; PluginError if it is unusable."""
        self._register(plugin, name or _name_of(plugin), _name_of(plugin))

    def describe(self) -> tuple[PluginDescription, ...]:
        """Return what is there, in the order of registration."""
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
        """PluginError if the newly registered ``name`` would guard nothing: a hook misspelt, async, or not there."""
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

    # Who did what.

    def _implementations(self, hook: str) -> list[pluggy.HookImpl]:
        caller = getattr(self.hook, hook, None)
        return [] if caller is None else caller.get_hookimpls()

    def raiser(self, hook: str, error: BaseException) -> str:
        """Return the plugin through whose part of ``hook`` the exception came."""
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
        """Return the plugin that implements ``hook``, if there is one only."""
        names = {each.plugin_name for each in self._implementations(hook)}
        return names.pop() if len(names) == 1 else ""

    def owner_of(self, made: object) -> str:
        """Return the plugin whose module has the class of ``made``."""
        for name, plugin in self._manager.list_name_plugin():
            if type(made).__module__ == (plugin.__name__ if inspect.ismodule(plugin) else type(plugin).__module__):
                return name
        return ""


def _is_hookspec(value: object) -> bool:
    return inspect.isfunction(value) and hasattr(value, f"{specs.PROJECT}_spec")


def _name_of(plugin: object) -> str:
    """Return a module's or class's own dotted name, or that of the object's class."""
    named = plugin if inspect.ismodule(plugin) or inspect.isclass(plugin) else type(plugin)
    if inspect.isclass(named):
        return f"{named.__module__}.{named.__qualname__}"
    return str(getattr(named, "__name__", named))
