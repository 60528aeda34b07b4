"""The operations of management, each declared once: its names, its answer in the manual, and who may call it.

``verb`` declares one at the function that performs it. The operations of entities are declared here, because each type
has its own of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from trouter.config.entities.group import LEVELS

from .context import Operation

NONE, READ, OPERATE, ADMIN = LEVELS


@dataclass(frozen=True, slots=True)
class Verb:
    """One operation.

    names: as requests have them, in capitals. answer: for the manual. level: the lowest that may call it, of the levels
    of a group's attribute ``management``; empty if that depends on the type of the entity. tenants: a tenant may call
    it, because it shows only the tenant's own entities, or what is the same for all. changes: it changes the router;
    these are done one after the other, beside those that only read. perform: what the management node does; None if
    entities have the operation.
    """

    names: tuple[str, ...]
    answer: str
    level: str = ""
    tenants: bool = False
    changes: bool = False
    perform: Operation | None = None


#: The operations of entities and QUERY; ``own.py`` adds those of the node.
VERBS: Final = [
    Verb(("QUERY",), "a map of `attributeNames` and `results`, a list of rows", READ, tenants=True),
    Verb(("UPDATE",), "of the entity that the body names, see above", changes=True),
    Verb(("CREATE",), "", changes=True),
    Verb(("DELETE",), "", changes=True),
    Verb(("CALLME",), "", READ),
]


def verb(
    *names: str, answer: str, level: str, tenants: bool = False, changes: bool = False
) -> Callable[[Operation], Operation]:
    """Declare an operation of the management node at the function that performs it; the arguments are those of Verb."""

    def declare(perform: Operation) -> Operation:
        VERBS.append(Verb(names, answer, level, tenants=tenants, changes=changes, perform=perform))
        return perform

    return declare


def verb_of(operation: str) -> Verb | None:
    """Return the operation with this name, in capitals; None for an unknown one."""
    return next((each for each in VERBS if operation in each.names), None)
