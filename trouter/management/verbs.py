"""The operations of management, each declared once: its names, its arguments, its answer, and who may call it.

``verb`` declares one at the function that performs it. The operations of entities are declared here, because each type
has its own of them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final

from trouter.config.entities.group import LEVELS

from .arguments import ATTRIBUTE_NAMES, COUNT, ENTITY, ENTITY_TYPE, NAME, OFFSET, OPERATION, TYPE, Argument
from .context import Node, Operation
from .requests import Request
from .responses import OperationResult

NONE, READ, OPERATE, ADMIN = LEVELS


@dataclass(frozen=True, slots=True)
class Verb:
    """One operation.

    names: as requests have them, in capitals. answer: for the manual. level: the lowest that may call it, of the levels
    of a group's attribute ``management``; empty if that depends on the type of the entity. takes: its arguments.
    tenants: a tenant may call it, because it shows only the tenant's own entities, or what is the same for all.
    changes: it changes the router; these are done one after the other, beside those that only read. slow: it changes
    nothing, and takes long; likewise. perform: what the management node does; None if entities have the operation.
    """

    names: tuple[str, ...]
    answer: str
    level: str = ""
    takes: tuple[Argument[Any], ...] = ()
    tenants: bool = False
    changes: bool = False
    slow: bool = False
    perform: Operation | None = None


#: The operations of entities and QUERY; ``own.py`` adds those of the node.
VERBS: Final = [
    Verb(
        ("QUERY",),
        "a map of `attributeNames` and `results`, a list of rows",
        READ,
        (ENTITY_TYPE, OFFSET, COUNT, ATTRIBUTE_NAMES),
        tenants=True,
    ),
    Verb(("UPDATE",), "of the entity that the body names, see above", takes=ENTITY, changes=True),
    Verb(("CREATE",), "", takes=(TYPE, NAME), changes=True),
    Verb(("DELETE",), "", takes=ENTITY, changes=True),
    Verb(("CALLME",), "", READ, ENTITY),
]


def verb(
    *names: str,
    answer: str,
    level: str,
    takes: tuple[Argument[Any], ...] = (),
    tenants: bool = False,
    changes: bool = False,
    slow: bool = False,
) -> Callable[[Callable[..., Awaitable[OperationResult]]], Operation]:
    """Declare an operation of the management node at the function that performs it; the arguments are those of Verb.

    The function gets the node, the request, and the arguments that the operation takes, by the names of their
    parameters. A request with a wrong argument is refused before.
    """

    def declare(function: Callable[..., Awaitable[OperationResult]]) -> Operation:
        async def perform(node: Node, request: Request) -> OperationResult:
            return await function(node, request, **{each.parameter: each.read(request) for each in takes})

        VERBS.append(Verb(names, answer, level, takes, tenants, changes, slow, perform))
        return perform

    return declare


def arguments(verbs: Iterable[Verb] = VERBS) -> tuple[Argument[Any], ...]:
    """Return the arguments of operations, each once: those of every request, then the others."""
    return tuple(dict.fromkeys((OPERATION, *ENTITY, *(each for known in verbs for each in known.takes))))


def verb_of(operation: str) -> Verb | None:
    """Return the operation with this name, in capitals; None for an unknown one."""
    return next((each for each in VERBS if operation in each.names), None)
