"""A plugin with one part broken on purpose, to see that the router then refuses, counts it, and goes on."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from types import ModuleType
from typing import Any, Final, NoReturn

import trio

from trouter.hooks import Plugins, hookimpl

#: What no hook may answer.
RUBBISH: Final = object()


class Sabotage(Exception):
    """Raised by what was broken on purpose."""


def broken(plugin: object, hook: str, answer: Callable[[], object]) -> ModuleType:
    """Return the plugin with ``answer`` in the place of one of its hooks; the others are its own."""

    def replacement() -> object:
        return answer()

    return _with(plugin, hook, lambda _: hookimpl(replacement))


def timed(plugin: object, hook: str, took_s: list[float]) -> ModuleType:
    """Return the plugin, one of whose hooks notes how long it took each time."""

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
    """The plugin with something else in the place of one hook."""
    whole = instance_of(plugin)
    copy = ModuleType("sabotaged")
    for name in hooks_of(plugin):
        setattr(copy, name, getattr(whole, name))
    setattr(copy, hook, other(getattr(whole, hook)))
    return copy


def hooks_of(plugin: object) -> tuple[str, ...]:
    """Return the hooks that a plugin implements."""
    (description,) = Plugins([plugin]).describe()
    return description.hooks


def instance_of(plugin: object) -> object:
    """Return what the router would register: of a module its class ``Plugin`` if it has one, of a class an instance."""
    if inspect.ismodule(plugin):
        plugin = getattr(plugin, "Plugin", plugin)
    return plugin() if inspect.isclass(plugin) else plugin


def raises() -> NoReturn:
    """Raise, as a hook or a step of an exchange with a bug does."""
    raise Sabotage


class Once:
    """A plugin whose first exchange is ``first``; everything else of it is as it was."""

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
    """An exchange that answers with what it may not."""

    async def respond(self, response: bytes) -> object:
        return RUBBISH


class Stalls:
    """An exchange that waits for something that never comes."""

    async def respond(self, response: bytes) -> object:
        await trio.sleep_forever()


#: What may become of an exchange, and whether that counts as a fault of the plugin: being slow may have other reasons.
BROKEN_EXCHANGES: Final[dict[str, tuple[type, bool]]] = {
    "raises": (Raises, True),
    "answers rubbish": (Answers, True),
    "stalls": (Stalls, False),
}
