"""Plugins with one part broken on purpose: the router must refuse, count the fault, and go on."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from types import ModuleType
from typing import Any, Final, NoReturn

import trio

from trouter.hooks import Plugins, hookimpl

#: An answer that no hook may give.
RUBBISH: Final = object()


class Sabotage(Exception):
    """Raised by deliberately broken code."""


def broken(plugin: object, hook: str, answer: Callable[[], object]) -> ModuleType:
    """Return a copy of the plugin whose ``hook`` answers with ``answer``."""

    def replacement() -> object:
        return answer()

    return _with(plugin, hook, lambda _: hookimpl(replacement))


def timed(plugin: object, hook: str, took_s: list[float]) -> ModuleType:
    """Return a copy of the plugin whose ``hook`` appends its seconds to ``took_s``."""

    def noting(real: Callable[..., object]) -> Callable[..., object]:
        @functools.wraps(real)
        def measured(*given: object, **named: object) -> object:
            began_s = trio.current_time()
            try:
                return real(*given, **named)
            finally:
                took_s.append(trio.current_time() - began_s)

        return measured

    return _with(plugin, hook, noting)


def _with(plugin: object, hook: str, other: Callable[[Callable[..., object]], object]) -> ModuleType:
    """Return a copy of the plugin with one hook replaced by ``other`` of it."""
    whole = instance_of(plugin)
    copy = ModuleType("sabotaged")
    for name in hooks_of(plugin):
        setattr(copy, name, getattr(whole, name))
    setattr(copy, hook, other(getattr(whole, hook)))
    return copy


def hooks_of(plugin: object) -> tuple[str, ...]:
    """Return the names of the hooks that a plugin implements."""
    (description,) = Plugins([plugin]).describe()
    return description.hooks


def instance_of(plugin: object) -> object:
    """Return what the router would register: a module's class ``Plugin`` if it has one; an instance of a class."""
    if inspect.ismodule(plugin):
        plugin = getattr(plugin, "Plugin", plugin)
    return plugin() if inspect.isclass(plugin) else plugin


def raises() -> NoReturn:
    """Raise, like a hook or a step of an exchange with a bug."""
    raise Sabotage


class Once:
    """A plugin whose first exchange is ``first``; the rest is the plugin's own."""

    def __init__(self, plugin: object, first: Any) -> None:
        self._first = [first]
        whole = instance_of(plugin)
        for name in hooks_of(plugin):
            setattr(self, name, self._opening(getattr(whole, name)) if name == "open_sasl" else getattr(whole, name))

    def _opening(self, real: Callable[..., object]) -> Callable[..., object]:
        taken = inspect.signature(real).parameters

        @hookimpl
        def open_sasl(mechanism: str, peer: object) -> object:
            given = {"mechanism": mechanism, "peer": peer}
            exchange = real(**{name: value for name, value in given.items() if name in taken})
            return self._first.pop() if exchange is not None and self._first else exchange

        return open_sasl


class Raises:
    """An exchange with a bug."""

    async def respond(self, response: bytes) -> object:
        raise Sabotage(response.hex())


class Answers:
    """An exchange with an invalid answer."""

    async def respond(self, response: bytes) -> object:
        return RUBBISH


class StalledExchange:
    """An exchange that waits forever."""

    async def respond(self, response: bytes) -> object:
        await trio.sleep_forever()


#: Faulty exchanges, and whether they count as faults of the plugin: slowness may have other reasons.
BROKEN_EXCHANGES: Final[dict[str, tuple[type, bool]]] = {
    "raises": (Raises, True),
    "answers rubbish": (Answers, True),
    "stalls": (StalledExchange, False),
}
