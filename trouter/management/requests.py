"""Parse management requests: from a message's bytes to operation, requester and entity.

The bytes are not trusted. A malformed request is still answered if its reply-to can be read.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from typing import Any, Final

from trouter.wire.constants import AMQP_SEQUENCE, AMQP_VALUE, APPLICATION_PROPERTIES, DATA, PROPERTIES
from trouter.wire.errors import DecodeError
from trouter.wire.message import SectionReader
from trouter.wire.types import Described, ULong

from .ports import Rights
from .status import Refusal, bad_request

#: The largest request, in bytes; of a larger one only the properties are read, for its refusal.
MAX_REQUEST_BYTES: Final = 262_144
#: The longest reply-to in bytes, like that of an address.
MAX_REPLY_TO_BYTES: Final = 4096
_SHOWN: Final = 80
_NO_BODY: Final = object()

_MESSAGE_ID: Final = 0
_REPLY_TO: Final = 4
_CORRELATION_ID: Final = 5


class Request:
    """One request. ``reply_to`` is empty if it cannot be answered; ``malformed`` is the refusal of an invalid one."""

    def __init__(self) -> None:
        self.reply_to = ""
        #: The number of the requester's connection; 0 for the router itself.
        self.origin = 0
        #: The correlation id of the answer: that of the request, else the request's message id.
        self.correlation_id: object = None
        self.properties: Mapping[Any, Any] = {}
        self.body: object = _NO_BODY
        self.malformed: Refusal | None = None
        #: The rights that another worker found that the requester has; None for a request that came here.
        self.granted: Rights | None = None
        #: What records say of the requester's connection at another worker; None for a request that came here.
        self.requester: Mapping[str, object] | None = None

    @property
    def operation(self) -> str:
        """The operation, in capitals and with dashes; Refusal if it is missing or no string."""
        written = self.text("operation")
        if not written:
            raise bad_request("the property 'operation' is missing")
        return written.upper().replace("_", "-")

    def asks_for(self, operations: Collection[str]) -> bool:
        """Return whether the request names one of these operations."""
        try:
            return self.operation in operations
        except Refusal:
            return False

    def text(self, name: str) -> str:
        """Return the application property ``name``, empty if absent; Refusal if it is no string."""
        value = self.properties.get(name)
        if value is None:
            return ""
        if not isinstance(value, str):
            raise bad_request(f"the property '{name}' must be a string, not {type_of(value)}")
        return value

    def number(self, name: str) -> int | None:
        """Return the application property ``name``, an integer or its decimal text; None if absent; Refusal."""
        value = self.properties.get(name)
        if value is None:
            return None
        if isinstance(value, int) and not isinstance(value, bool):
            return int(value)
        if isinstance(value, str) and value.strip().removeprefix("-").isdecimal() and len(value) < _SHOWN:
            return int(value)
        raise bad_request(f"the property '{name}' must be an integer, not {shown(value)}")

    def map_body(self) -> dict[str, Any]:
        """Return the body as a map of attributes, empty if there is none; Refusal if it is something else."""
        body = self._body_as_map()
        _check_names(body)
        return body

    def new_attributes(self) -> dict[str, Any]:
        """Return the body of a CREATE: as ``map_body``, without attributes whose name is null or empty; Refusal."""
        body = {name: value for name, value in self._body_as_map().items() if name not in (None, "")}
        _check_names(body)
        return body

    def _body_as_map(self) -> dict[Any, Any]:
        if self.body is _NO_BODY or self.body is None:
            return {}
        if not isinstance(self.body, dict):
            raise bad_request("Body of request must be a map")
        return self.body

    def summary(self, logged: Iterable[str]) -> str:
        """Return the request in one line for the log: the operation, the arguments ``logged``, names of attributes."""
        parts = [
            f"{name}={shown(self.properties[name])}" for name in logged if self.properties.get(name) not in (None, "")
        ]
        if isinstance(self.body, dict) and self.body:
            parts.append("body={" + ", ".join(shown(name) for name in list(self.body)[:20]) + "}")
        operation = self.properties.get("operation")
        return " ".join((shown(operation) if operation is not None else "without operation", *parts))


def _check_names(body: Mapping[Any, Any]) -> None:
    for name in body:
        if not isinstance(name, str):
            raise bad_request(f"the keys of the body must be strings, not {type_of(name)}")


def shown(value: object) -> str:
    """Return a client's value for a description or a log line, cut short."""
    text = value if isinstance(value, str) else repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def type_of(value: object) -> str:
    """Return the AMQP name of a decoded value's type."""
    return _TYPE_NAMES.get(type(value), type(value).__name__.lower())


_TYPE_NAMES: Final = {
    type(None): "null",
    bool: "boolean",
    int: "long",
    float: "double",
    bytes: "binary",
    str: "string",
    list: "list",
    dict: "map",
    Described: "another kind of section",
}


def reply_to_of(data: bytes) -> str:
    """Return the reply-to of a message, empty without one; never raises."""
    request = Request()
    with suppress(DecodeError):
        reader = SectionReader(data, MAX_REQUEST_BYTES)
        while (code := reader.next_section()) and code <= PROPERTIES:
            value = reader.read_value()
            if code == PROPERTIES:
                _take_properties(request, value)
    return request.reply_to


def read_request(data: bytes) -> Request:
    """Return the request of a message; never raises."""
    request = Request()
    try:
        _read(request, data)
    except DecodeError as error:
        request.malformed = bad_request(f"the message is malformed: {error}")
    return request


def _read(request: Request, data: bytes) -> None:
    too_large = len(data) > MAX_REQUEST_BYTES
    if too_large:
        request.malformed = bad_request(
            f"the request has {len(data)} bytes; at most {MAX_REQUEST_BYTES} bytes are accepted"
        )
    reader = SectionReader(data, MAX_REQUEST_BYTES)
    while code := reader.next_section():
        value = reader.read_value()
        if code == PROPERTIES:
            _take_properties(request, value)
            if too_large:
                return
        elif code == APPLICATION_PROPERTIES:
            if not isinstance(value, dict):
                raise DecodeError("application-properties hold a map with unique keys", reader.start)
            request.properties = value
        elif code == AMQP_VALUE:
            request.body = value
        elif code in (DATA, AMQP_SEQUENCE):
            request.body = Described(ULong(code), value)


def _take_properties(request: Request, fields: object) -> None:
    if not isinstance(fields, list):
        raise DecodeError("the properties section holds a list", 0)
    row = [*fields, *[None] * (_CORRELATION_ID + 1)]
    request.correlation_id = row[_MESSAGE_ID] if row[_CORRELATION_ID] is None else row[_CORRELATION_ID]
    if isinstance(row[_REPLY_TO], str) and len(row[_REPLY_TO].encode()) <= MAX_REPLY_TO_BYTES:
        request.reply_to = row[_REPLY_TO]
