"""Kept from Qpid Dispatch: its console, and the type that tools are tested with."""

from __future__ import annotations

from dataclasses import dataclass

from trouter.config.entities.base import Numbered, Single, entity
from trouter.config.schema import integer, string

NO_CONSOLE = "trouter starts no other programs; a listener with http serves the router's own console"


@entity(
    "console",
    "In Qpid Dispatch: starts the proxy of an old console. Here without effect.",
    "console",
    instead="it does nothing",
    singleton=True,
    deprecated=True,
    unserved=NO_CONSOLE,
)
@dataclass(frozen=True, slots=True, kw_only=True)
class ConsoleEntity(Single):
    """An old console."""

    listener: str | None = string("The listener for the console.", update=False)
    wsport: int = integer("The port of the proxy.", 5673, high=65535, update=False)
    proxy: str = string("The program.", required=True, update=False)
    home: str = string("Where the pages of the console are.", required=True, update=False)
    args: str | None = string("The arguments of the program.", update=False)


@entity(
    "dummy",
    "An entity without effect, for tests of tools.",
    "dummy",
    bases=("entity",),
    operations=("CREATE", "READ", "UPDATE", "DELETE", "CALLME"),
    inherited=(),
)
@dataclass(frozen=True, slots=True, kw_only=True)
class DummyEntity(Numbered):
    """Nothing."""

    arg1: str | None = string("A text.")
    arg2: str | None = string("Another text.")
    num1: int | None = integer("A number.", low=-(2**31))
    num2: int | None = integer("Another number.", low=-(2**31))

    def _default_name(self) -> str:
        return self.identity
