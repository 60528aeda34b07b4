"""`trouter policy`: explain the decisions of a policy, test them against expectations, and learn a policy.

Exit status: 0 if the client is allowed or every expectation is met; 1 if not, or if there is no answer.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Final

from trouter.cli.learn import add_learn
from trouter.cli.startup import existing_path
from trouter.config import Configuration, ConfigurationError, load
from trouter.config.keepers import EVERYBODY
from trouter.config.tenant_spaces import tenants_in
from trouter.policy.compiled import Policy
from trouter.policy.expectation_file import read_expectations
from trouter.policy.expectations import hold
from trouter.policy.explain import Question, explain
from trouter.tools.failures import print_problem

EPILOG: Final = "exit status: 0 if the answer is yes, 1 if it is no or if there is none; docs/policy.md has more"


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "policy",
        help="explain what a policy decides, and test it",
        description="Explain what a policy decides, and test it.",
        epilog=EPILOG,
    )
    within = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    _add_explain(within)
    _add_test(within)
    add_learn(within)


def _add_explain(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "explain",
        help="say whether a user may connect, receive or send, and by which rule",
        description="Say whether a user may connect, and receive or send, and by which rule.",
        epilog=EPILOG,
    )
    _add_config(parser, required=True)
    parser.add_argument("--vhost", metavar="NAME", default="", help="the host name that the client asks for")
    parser.add_argument(
        "--user", metavar="NAME", default="", help="the user; without it the client has not authenticated"
    )
    parser.add_argument("--host", metavar="ADDRESS", default="", help="the address that it comes from")
    parser.add_argument("--unauthenticated", action="store_true", help="the user has not authenticated")
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--policy-vhost", metavar="NAME", default="", help="the policyVhost of the listener")
    where.add_argument("--listener", metavar="NAME", default="",
                       help="the listener, with its policyVhost, allowedUsers and multiTenant")  # fmt: skip
    parser.add_argument("--connector", action="store_true", help="it is a connector's, with that policyVhost")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--source", metavar="ADDRESS", help="an address to receive from")
    what.add_argument("--target", metavar="ADDRESS", help="an address to send to")
    parser.add_argument("--resolve", metavar="NAME=ADDRESS", action="append", default=[], type=_resolved,
                        help="the address of a host name in remoteHosts; names are not looked up")  # fmt: skip
    parser.add_argument("--json", action="store_true", help="one JSON object")
    parser.set_defaults(run=run_explain)


def _add_test(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "test",
        help="hold a policy to a table of expectations",
        description="Check a policy against a table of expectations, a JSON file, and print those that it does "
        "not meet.",
        epilog=EPILOG,
    )
    parser.add_argument("file", metavar="FILE", type=existing_path, help="the expectations")
    _add_config(parser, required=False)
    parser.add_argument("--json", action="store_true", help="one JSON object")
    parser.set_defaults(run=run_test)


def _add_config(parser: argparse.ArgumentParser, *, required: bool) -> None:
    parser.add_argument(
        "-c",
        "--config",
        metavar="PATH",
        type=existing_path,
        required=required,
        help="the configuration, or a folder as for policyDir" + ("" if required else "; without it the file says"),
    )
    parser.add_argument("--enforce", action="store_true", help="as if the policy said enableVhostPolicy: yes")


def _resolved(text: str) -> tuple[str, str]:
    name, equals, address = text.partition("=")
    if not (name and equals and address):
        raise argparse.ArgumentTypeError("write NAME=ADDRESS")
    return name.lower().removesuffix("."), address


def policy_at(path: Path, *, enforce: bool = False) -> Policy:
    """Return the policy of a configuration, or of the files in a folder; ConfigurationError if it cannot be used."""
    return _policy_of(_configuration_at(path, enforce=enforce))


def _configuration_at(path: Path, *, enforce: bool) -> Configuration:
    if path.is_dir():
        text = json.dumps([["policy", {"policyDir": str(path)}]])
        configuration, enforce = load(Path("policyDir.json"), text), True
    else:
        configuration = load(path, keepers=EVERYBODY)
    entity = replace(configuration.policy, enable_vhost_policy=enforce or configuration.policy.enable_vhost_policy)
    return replace(configuration, policy=entity)


def _policy_of(configuration: Configuration) -> Policy:
    return Policy.compile(
        configuration.policy,
        configuration.vhosts,
        tenants=tenants_in(configuration),
        secure=configuration.router.secure_defaults,
    )


def run_explain(arguments: argparse.Namespace) -> int:
    """Print the decision; return the exit status."""
    try:
        configuration = _configuration_at(arguments.config, enforce=arguments.enforce)
        policy = _policy_of(configuration)
    except ConfigurationError as error:
        print_problem(arguments, error)
        return 1
    listener = next((each for each in configuration.listeners if each.name == arguments.listener), None)
    if arguments.listener and listener is None:
        named = ", ".join(each.name for each in configuration.listeners if each.name)
        print_problem(
            arguments, f"no listener is called {arguments.listener!r}; there is {named or 'none with a name'}"
        )
        return 1
    question = Question(
        vhost=arguments.vhost,
        user=arguments.user,
        host=arguments.host,
        authenticated=bool(arguments.user) and not arguments.unauthenticated,
        policy_vhost=arguments.policy_vhost,
        connector=arguments.connector,
        source=arguments.source,
        target=arguments.target,
    )
    if listener is not None:
        question = replace(
            question,
            listener=listener.name,
            role=listener.role,
            policy_vhost=listener.policy_vhost or "",
            allowed_users=listener.allowed_users,
            has_tenancy=listener.multi_tenant,
        )
    explanation = explain(policy.with_addresses(_gathered(arguments.resolve)), question)
    print(json.dumps(explanation.as_map(), indent=2) if arguments.json else explanation.as_text())
    return 0 if explanation.allowed else 1


def run_test(arguments: argparse.Namespace) -> int:
    """Print the expectations that the policy does not meet; return the exit status."""
    try:
        expectations = read_expectations(arguments.file)
        path = arguments.config or expectations.policy
        if path is None:
            print_problem(arguments, f'{arguments.file}: which policy? write "policy": "PATH" into it, or give -c PATH')
            return 1
        outcome = hold(expectations, policy_at(path, enforce=arguments.enforce or expectations.enforce))
    except ConfigurationError as error:
        print_problem(arguments, error)
        return 1
    if arguments.json:
        found = {"file": str(arguments.file), "held": outcome.held, "failures": outcome.failures}
        print(json.dumps(found, indent=2))
        return 0 if outcome.held and not outcome.failures else 1
    for failure in outcome.failures:
        print(failure)
    if outcome.failures:
        count = len(outcome.failures)
        print(f"{arguments.file}: {count} of {count + outcome.held} not as expected")
        return 1
    if not outcome.held:
        print_problem(arguments, f"{arguments.file}: the file has no expectations")
        return 1
    print(f"{arguments.file}: {outcome.held} as expected")
    return 0


def _gathered(pairs: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    addresses: dict[str, list[str]] = {}
    for name, address in pairs:
        addresses.setdefault(name, []).append(address)
    return addresses
