"""The arguments of operations, each declared once: its name and type, what it is for, its bounds, and how it is read.

Most are application properties of a request. What is declared here and named by an operation (``verbs.py``) is in the
manual's page, and a wrong value is refused when the argument is read.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from .requests import Request, type_of
from .status import bad_request

#: The most names that a QUERY may ask for.
MAX_NAMES: Final = 1000

Value_co = TypeVar("Value_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Argument(ABC, Generic[Value_co]):
    """One argument."""

    name: str
    #: What it is, for the manual.
    text: str
    #: The log's line about a request shows it.
    logged: bool = False

    @property
    def parameter(self) -> str:
        """The parameter of the function that performs an operation: `entity_type` for `entityType`."""
        return re.sub(r"(?<=[a-z])[A-Z]", lambda capital: f"_{capital[0].lower()}", self.name)

    @property
    @abstractmethod
    def kind(self) -> str:
        """The type of its values, for the manual."""

    @abstractmethod
    def read(self, request: Request) -> Value_co:
        """Return the value in a request; Refusal."""


@dataclass(frozen=True, slots=True)
class Text(Argument[str]):
    """A string; empty if it is absent."""

    #: The request is refused without it.
    required: bool = False
    #: Its most bytes; 0 for no limit but that of a request.
    max_bytes: int = 0

    @property
    def kind(self) -> str:
        return "string, required" if self.required else "string"

    def read(self, request: Request) -> str:
        value = request.text(self.name)
        too_long = 0 < self.max_bytes < len(value.encode("utf-8", "replace"))
        if self.required and (too_long or not value):
            raise bad_request(f"{request.operation} needs the property '{self.name}', of 1 to {self.max_bytes} bytes")
        if too_long:
            raise bad_request(f"the property '{self.name}' is longer than {self.max_bytes} bytes")
        return value


@dataclass(frozen=True, slots=True)
class Number(Argument[int | None]):
    """An integer, or its decimal text; None if it is absent."""

    @property
    def kind(self) -> str:
        return "integer"

    def read(self, request: Request) -> int | None:
        return request.number(self.name)


@dataclass(frozen=True, slots=True)
class Flag(Argument[bool]):
    """Present, with any value, or absent."""

    @property
    def kind(self) -> str:
        return "any"

    def read(self, request: Request) -> bool:
        return self.name in request.properties


@dataclass(frozen=True, slots=True)
class Names(Argument[list[str]]):
    """A list of strings in the body; empty if it is absent."""

    @property
    def kind(self) -> str:
        return "list of strings, in the body"

    def read(self, request: Request) -> list[str]:
        names = request.map_body().get(self.name)
        if not isinstance(names, list) or not names:
            return []
        if len(names) > MAX_NAMES:
            raise bad_request(f"{self.name} has {len(names)} entries; at most {MAX_NAMES} are accepted")
        for name in names:
            if not isinstance(name, str):
                raise bad_request(f"{self.name} holds {type_of(name)}; it must be a list of strings")
        return names


#: Those of every request. One without type, name and identity is for the management node.
OPERATION: Final = Text("operation", "in upper or lower case, with `-` or `_`", required=True)
TYPE: Final = Text(
    "type",
    "short (`listener`) or full (`org.apache.qpid.dispatch.listener`); optional if name or identity suffice",
    logged=True,
)
NAME: Final = Text("name", "the name of the entity; for CREATE the name that it gets", logged=True)
IDENTITY: Final = Text("identity", "the identity of the entity; name and identity must agree", logged=True)
#: The arguments that name an entity.
ENTITY: Final = (TYPE, NAME, IDENTITY)

ENTITY_TYPE: Final = Text("entityType", "the type asked about; without it all types", logged=True)
OFFSET: Final = Number("offset", "the number of the first row of the page, from 0", logged=True)
COUNT: Final = Number("count", "the rows of the page; without it (or 0, or less) everything", logged=True)
ATTRIBUTE_NAMES: Final = Names(
    "attributeNames", f"the columns of the answer, at most {MAX_NAMES}; without it, or with an empty list, all columns"
)
