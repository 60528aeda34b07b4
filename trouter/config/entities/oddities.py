"""Kept from the older router: its console, and the type that tools are tested with."""

from __future__ import annotations

from dataclasses import dataclass

from trouter.config.entities.base import Numbered, Single, entity
from trouter.config.schema import Kind, attribute

NO_CONSOLE = "trouter starts no other programs; a listener with http serves the router's own console"


@entity(
    "console",
    "Starts the proxy of an old console in the older router.",
    "console",
    instead="it does nothing",
    singleton=True,
    deprecated=True,
    unserved=NO_CONSOLE,
)
@dataclass(frozen=True, slots=True, kw_only=True)
class ConsoleEntity(Single):
    """An old console."""

    listener: str | None = attribute(Kind.STRING, "The listener for the console.", update=False)
    wsport: int = attribute(Kind.INTEGER, "The port of the proxy.", 5673, high=65535, update=False)
    proxy: str = attribute(Kind.STRING, "The program.", required=True, update=False)
    home: str = attribute(Kind.STRING, "Where the pages of the console are.", required=True, update=False)
    args: str | None = attribute(Kind.STRING, "The arguments of the program.", update=False)


@entity(
    "dummy",
    "Nothing; tools are tested with it.",
    "dummy",
    bases=("entity",),
    operations=("CREATE", "READ", "UPDATE", "DELETE", "CALLME"),
    inherited=(),
)
@dataclass(frozen=True, slots=True, kw_only=True)
class DummyEntity(Numbered):
    """Nothing."""

    arg1: str | None = attribute(Kind.STRING, "A text.")
    arg2: str | None = attribute(Kind.STRING, "Another text.")
    num1: int | None = attribute(Kind.INTEGER, "A number.", low=-(2**31))
    num2: int | None = attribute(Kind.INTEGER, "Another number.", low=-(2**31))

    def _default_name(self) -> str:
        return self.identity
