"""`trouter manage`: change and read a running router."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final

from trouter.cli import COMPLETING, completion
from trouter.tools.failures import UsageError, run_tool
from trouter.tools.options import ConnectionOptions, add_connection_options
from trouter.tools.values import as_json, from_json, json_or_text
from trouter.tools.words import attributes_of, known_type, long_type, secrets_of

if TYPE_CHECKING:
    from trouter.tools.node import NodeClient

#: The largest text that is read from stdin.
MAX_INPUT_CHARACTERS: Final = 64 * 1024 * 1024

EPILOG: Final = """examples:
  trouter manage query --type listener name host port
  trouter manage create --type listener port=5673 saslMechanisms=ANONYMOUS
  trouter manage update log/DEFAULT enable=debug+
  trouter manage delete --name listener/:5673
  trouter manage get-log limit=20

Any other operation is sent as it is, with ATTR=VALUE as properties of the request: `get-operations` lists them.
"""

#: Sends the requests to the node, and returns the text to print.
Plan = Callable[["NodeClient"], Awaitable[str]]


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "manage",
        help="create, read, update and delete the entities of a running router",
        description="Ask a router's management node.",
        epilog=EPILOG,
        intermixed=True,
    )
    add_options(parser)


def add_options(parser: argparse.ArgumentParser, *, older: bool = False) -> None:
    """Add every option; ``older``: READ and DELETE take no name as a word."""
    operation = parser.add_argument(
        "operation", metavar="OPERATION", help=f"{', '.join(PLANS)}, or another one that the router knows"
    )
    words = parser.add_argument(
        "words",
        nargs="+" if COMPLETING in os.environ else "*",  # "*" would let a shell complete nothing here
        default=(),
        metavar="ATTR[=VALUE]",
        help="attributes; without a value: null",
    )
    kind = parser.add_argument("--type", default="", help="the type of entity, as in `listener`, `connection`")
    completion.completed(operation, lambda **_: PLANS)
    completion.completed(words, completion.words)
    completion.completed(kind, completion.types)
    parser.add_argument("--name", default="", help="the name of the entity")
    parser.add_argument("--identity", default="", metavar="ID", help="the identity of the entity")
    parser.add_argument(
        "--indent", type=int, default=2, metavar="N", help="blanks per level of JSON, -1 for one line; default 2"
    )
    parser.add_argument("--stdin", action="store_true", help="read attributes from stdin, a JSON map or a list of them")
    parser.add_argument("--body", metavar="JSON", help="the body of the request, for operations not listed here")
    parser.add_argument("--properties", metavar="JSON", help="a map of properties for such a request")
    add_connection_options(parser, contexts=not older)
    parser.set_defaults(run=run, older=older)


def run(arguments: argparse.Namespace) -> int:
    """Run one operation and print the answer; return the exit status."""

    async def work() -> None:
        from trouter.tools.node import open_node  # noqa: PLC0415  # the client, which other commands do without

        options = ConnectionOptions.of(arguments)
        named = long_type if arguments.older else known_type
        arguments.type, arguments.words = named(arguments.type), list(arguments.words)
        plan = PLANS.get(arguments.operation.lower(), plan_other)(arguments)
        async with open_node(options) as node:
            text = await plan(node)
            if text:
                print(text)
            node.check_complete()

    return run_tool(work, arguments)


# --- plans: a wrong command line is refused before any request is sent


def plan_query(arguments: argparse.Namespace) -> Plan:
    """Plan to list entities as maps, without nulls; words are names of attributes."""

    async def ask(node: NodeClient) -> str:
        table = await node.query(arguments.type, arguments.words)
        return as_json(table.dicts(), arguments.indent)

    return ask


def plan_create(arguments: argparse.Namespace) -> Plan:
    """Plan to create an entity, or one for each map of a list on stdin."""
    return _plan_bulk(arguments, "CREATE", lenient_booleans=False)


def plan_update(arguments: argparse.Namespace) -> Plan:
    """Plan to change an entity; a first word without `=` is its name if nothing else names it."""
    words = arguments.words
    named = arguments.name or arguments.identity or any(word.startswith(("name=", "identity=")) for word in words)
    if words and not named and "=" not in words[0]:
        arguments.name, arguments.words = words[0], words[1:]
    return _plan_bulk(arguments, "UPDATE", lenient_booleans=True)


def _plan_bulk(arguments: argparse.Namespace, operation: str, *, lenient_booleans: bool) -> Plan:
    if arguments.stdin:
        if arguments.words:
            words = " ".join(arguments.words)
            raise UsageError(f"with --stdin the attributes come from standard input; remove these words: {words}")
        given = _read_stdin()
    else:
        named = long_type if arguments.older else known_type
        type_name = arguments.type or named(_word_value(arguments.words, "type"))
        given = attributes_of(arguments.words, type_name, strict=True, lenient_booleans=lenient_booleans)
        from trouter.client.cover import cover_arguments  # noqa: PLC0415  # where tools only parse, trio stays out

        cover_arguments(secrets_of(given))
    maps: list[dict[str, Any]] = given if isinstance(given, list) else [given]
    if operation == "CREATE" and not arguments.older and not all(arguments.type or each.get("type") for each in maps):
        raise UsageError("create needs a type: --type TYPE, or type=TYPE among the attributes")
    for each in maps:
        if isinstance(each.get("type"), str):
            each["type"] = long_type(each["type"])

    async def ask(node: NodeClient) -> str:
        answers = [await node.call(operation, **_target(arguments, each, operation), body=each) for each in maps]
        return as_json(answers if isinstance(given, list) else answers[0], arguments.indent)

    return ask


def plan_read(arguments: argparse.Namespace) -> Plan:
    """Plan to read one entity as a map."""
    _take_name(arguments)

    async def ask(node: NodeClient) -> str:
        return as_json(await node.call("READ", **_target(arguments, {}, "READ")), arguments.indent)

    return ask


def plan_delete(arguments: argparse.Namespace) -> Plan:
    """Plan to delete one entity; nothing is printed."""
    _take_name(arguments)

    async def ask(node: NodeClient) -> str:
        await node.call("DELETE", **_target(arguments, {}, "DELETE"))
        return ""

    return ask


def plan_schema(arguments: argparse.Namespace) -> Plan:
    """Plan to show the types, or their properties; those of one type if a word names it."""
    _refuse(arguments.words[1:])
    named = long_type if arguments.older else known_type
    type_name = arguments.type or named(next(iter(arguments.words), ""))

    async def ask(node: NodeClient) -> str:
        answer = await node.call_self(arguments.operation.upper(), entityType=type_name or None)
        return as_json(answer, arguments.indent)

    return ask


def plan_nodes(arguments: argparse.Namespace) -> Plan:
    """Plan to list the addresses of the management nodes of the network."""
    _refuse(arguments.words)

    async def ask(node: NodeClient) -> str:
        return as_json(await node.nodes(), arguments.indent)

    return ask


def plan_other(arguments: argparse.Namespace) -> Plan:
    """Plan any other operation: words are properties of the request, a text as answer is printed as it is."""
    properties = attributes_of(arguments.words, arguments.type, strict=False)
    if arguments.properties:
        more = json_or_text(arguments.properties)
        if not isinstance(more, dict):
            raise ValueError("--properties is not a JSON map")
        properties |= more
    for name in ("type", "name", "identity"):
        given = getattr(arguments, name)
        if given:
            properties[name] = given
    properties.pop("operation", None)
    body = None if arguments.body is None else json_or_text(arguments.body)

    async def ask(node: NodeClient) -> str:
        answer = await node.call(arguments.operation, body=body, **properties)
        if isinstance(answer, str):
            return answer
        return as_json(answer, arguments.indent) if answer else ""

    return ask


PLANS: Final[dict[str, Callable[[argparse.Namespace], Plan]]] = {
    "query": plan_query,
    "create": plan_create,
    "read": plan_read,
    "update": plan_update,
    "delete": plan_delete,
    "get-types": plan_schema,
    "get-attributes": plan_schema,
    "get-operations": plan_schema,
    "get-annotations": plan_schema,
    "get-mgmt-nodes": plan_nodes,
}


def _target(arguments: argparse.Namespace, attributes: dict[str, Any], operation: str) -> dict[str, str]:
    """Return the type, and the name or identity, of an entity from options or else attributes."""
    found = {"type": arguments.type or attributes.get("type")}
    which = {"name": arguments.name, "identity": arguments.identity}
    if not any(which.values()):
        which = {name: attributes.get(name) for name in which}
    if operation == "CREATE":
        found["name"] = which["name"]
    elif which["identity"]:
        found["identity"] = which["identity"]
    else:
        found["name"] = which["name"]
    return {name: str(value) for name, value in found.items() if value}


def _take_name(arguments: argparse.Namespace) -> None:
    """Take the first word as the name if no option names the entity; UsageError for further words."""
    if not arguments.older and arguments.words and not (arguments.name or arguments.identity):
        arguments.name = arguments.words.pop(0)
    _refuse(arguments.words)


def _refuse(words: list[str]) -> None:
    if words:
        raise UsageError(f"unexpected arguments: {' '.join(words)}")


def _word_value(words: list[str], name: str) -> str:
    return next((word.removeprefix(f"{name}=") for word in words if word.startswith(f"{name}=")), "")


def _read_stdin() -> dict[str, Any] | list[dict[str, Any]]:
    """Return the JSON map, or list of maps, on stdin; ValueError."""
    text = sys.stdin.read(MAX_INPUT_CHARACTERS + 1)
    if len(text) > MAX_INPUT_CHARACTERS:
        raise ValueError(f"stdin holds more than {MAX_INPUT_CHARACTERS} characters")
    try:
        found = from_json(text)
    except RecursionError:
        raise ValueError("the JSON on stdin is nested too deeply") from None
    if isinstance(found, dict) or (isinstance(found, list) and all(isinstance(each, dict) for each in found)):
        return found
    raise ValueError("stdin is not a JSON map or a list of maps")
