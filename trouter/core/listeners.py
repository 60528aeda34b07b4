"""Lists of the functions that an object calls with its events: none at first, any number later."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, ParamSpec

P = ParamSpec("P")


class EventListeners(Generic[P]):
    """The functions that are called with each event of one kind, in the order in which they were added."""

    __slots__ = ("_functions",)

    def __init__(self) -> None:
        self._functions: tuple[Callable[P, object], ...] = ()

    def add(self, listener: Callable[P, object]) -> None:
        """Call ``listener`` with each event from now on."""
        self._functions = (*self._functions, listener)

    def remove(self, listener: Callable[P, object]) -> None:
        """Call ``listener`` no more."""
        self._functions = tuple(each for each in self._functions if each != listener)

    def notify(self, *event: P.args, **details: P.kwargs) -> None:
        """Call all of them, also those that one of them removes."""
        for listener in self._functions:
            listener(*event, **details)
