"""Counts and logs the faults of plugins, by plugin."""

from __future__ import annotations

import inspect
import logging
from collections import Counter
from typing import NamedTuple

from trouter.hooks.registration import Registration

log = logging.getLogger("trouter.PLUGIN")


class Culprit(NamedTuple):
    """A plugin and the hook in which it failed; ``plugin`` is empty if unknown, ``exception`` if none was raised."""

    hook: str
    plugin: str
    exception: str


class Faults:
    """The faults of one router's plugins."""

    def __init__(self, registered: Registration) -> None:
        #: Exceptions and wrong answers, counted by hook name (``respond`` for exchanges).
        self.by_hook: Counter[str] = Counter()
        #: The same, by hook, plugin and exception.
        self.culprits: Counter[Culprit] = Counter()
        self._registered = registered

    def raised(self, hook: str, error: Exception, plugin: str = "") -> None:
        """Count and log an exception that a plugin raised in ``hook``."""
        plugin = plugin or self._registered.raiser(hook, error)
        self._count(hook, plugin, error)
        log.error("plugin %s failed in %s", plugin or "(unknown)", hook, exc_info=error)

    def failed(self, hook: str, made: object, what: str, error: Exception) -> None:
        """Count and log an exception of an object that a plugin made; ``what`` names the kind of object in the log.

        Only the exception's type and place are logged, because its message may quote a peer's secret.
        """
        self._count(hook, self._registered.owner_of(made), error)
        log.error("%s (%s) failed: %s", what, type(made).__qualname__, place_of(error))

    def rubbish(self, hook: str, answer: object, plugin: str = "") -> None:
        """Count an answer of the wrong type; its value may be a secret, so only the type is logged."""
        plugin = plugin or self._registered.only_plugin_in(hook)
        self._count(hook, plugin)
        if inspect.iscoroutine(answer):
            answer.close()  # else Python would warn that it was never awaited
        log.error(
            "plugin %s answered the hook %s with a value of the wrong type, %s",
            plugin or "(unknown)",
            hook,
            type(answer).__qualname__,
        )

    def ignored(self, name: str, what: str, error: Exception | None = None) -> None:
        """Count a fault in ``observe``; it may occur with each record, so only the 1st, 2nd, 4th, 8th ... is logged."""
        self._count("observe", name, error)
        count = self.by_hook["observe"]
        if count & (count - 1) == 0:
            log.error("plugin %s failed in observe: %s (%d so far)", name, what, count)

    def _count(self, hook: str, plugin: str, error: Exception | None = None) -> None:
        self.by_hook[hook] += 1
        self.culprits[Culprit(hook, plugin, "" if error is None else type(error).__qualname__)] += 1


def place_of(error: BaseException) -> str:
    """Return the exception's type with the file and line where it was raised, without its message."""
    place = error.__traceback__
    while place is not None and place.tb_next is not None:
        place = place.tb_next
    where = f" at {place.tb_frame.f_code.co_filename}:{place.tb_lineno}" if place is not None else ""
    return f"{type(error).__qualname__}{where}"
