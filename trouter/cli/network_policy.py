"""`trouter network policy push`: one policy for all routers of a network, or for none."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from trouter.cli.network_absent import add_absence_options, list_pending, note_absent, present_of, print_absent
from trouter.cli.network_change import (
    Check,
    add_change_options,
    change_all,
    print_result,
    run_change,
    why_without_text,
)
from trouter.cli.startup import existing_path
from trouter.tools.failures import ConnectionException, Incomplete, UsageError, print_problem
from trouter.tools.options import ConnectionOptions

if TYPE_CHECKING:
    from trouter.tools.networks.applying import JointChange
    from trouter.tools.networks.checking import CheckedRouter
    from trouter.tools.networks.folder import RouterFile
    from trouter.tools.networks.policy_folder import PolicyFolder
    from trouter.tools.networks.survey import NetworkStatus
    from trouter.tools.node import NodeClient

#: The part of a configuration that is changed; see the operation APPLY.
_PART: Final = "policy"
_EPILOG: Final = """examples:
  trouter network policy push policy/               give every router this policy
  trouter network policy push policy/ --dry-run     say what would change at each
  trouter network policy push policy/ --skip-absent leave out routers that do not answer, until they do
  trouter network policy push policy/ --resume ID   go on with a change that was interrupted
  trouter network apply --abandon ID                take it back, at every router that has it

A folder of a policy:
  policy/*.conf, policy/*.json    vhosts with their groups, and at most one section `policy`; as in a configuration,
                                  or as in the folder of a policyDir
  policy/tests/*.json             expectations, as `trouter policy test` takes them; optional

First this command holds the policy to the expectations. Then every router checks the policy and holds it to them as
well, and nothing is changed unless all can make the change. Each puts the vhosts into force, and into its file in the
place of those that it had; all else stays. If a router fails, those that made the change take it back. In the end the
digests of the policies are compared. Users and their passwords (usersFile) are not part of it. The user needs the
management level `admin` at each router.
"""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "policy",
        help="give every router the same policy: all of them, or none",
        description="Give every router of the network the same policy.",
    )
    within = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    push = within.add_parser(
        "push",
        help="give every router the policy of a folder: all of them, or none",
        description="Make the policy in a folder that of every router: of all of them, or of none.",
        epilog=_EPILOG,
    )
    push.add_argument("folder", metavar="FOLDER", type=existing_path, help="the folder with the policy")
    what = push.add_mutually_exclusive_group()
    what.add_argument("--dry-run", action="store_true", help="only check, and say what would be done")
    what.add_argument("--resume", metavar="ID", help="go on with this change")
    add_absence_options(push, what)
    add_change_options(push)
    push.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Push the policy, or list the routers for which it waits; return the exit status."""
    return list_pending(arguments) if arguments.pending else run_change(arguments, _push)


async def _push(arguments: argparse.Namespace, begun: list[JointChange]) -> None:
    from trouter.tools.networks.policy_folder import read_policy_folder  # noqa: PLC0415  # as for a shell that completes
    from trouter.tools.networks.survey import survey  # noqa: PLC0415
    from trouter.tools.node import open_node  # noqa: PLC0415

    folder = read_policy_folder(arguments.folder)
    _hold(arguments, folder)
    async with open_node(ConnectionOptions.of(arguments)) as node:
        status = await survey(node)
        files, absent = present_of(arguments, _files(arguments, folder, status), status)

        async def check(wanted: Sequence[RouterFile]) -> list[CheckedRouter]:
            return await _check(node, wanted, status, folder)

        change, checked = await change_all(arguments, begun, node, status, files, check, _PART)
        after = status if arguments.dry_run else await survey(node)
        state = "checked" if arguments.dry_run else "applied" if change.routers else "unchanged"
        print_result(arguments, change, checked, state, policies=after.policies())
        if arguments.dry_run:
            return
        note_absent(arguments, files, absent)
        print_absent(arguments, absent)
        await _compare(arguments, after, files, check)


def _hold(arguments: argparse.Namespace, folder: PolicyFolder) -> None:
    """Hold the policy to its expectations, as if it were enforced; ConnectionException with those that fail."""
    from trouter.policy.configured import policy_of  # noqa: PLC0415
    from trouter.policy.expectation_file import expectations_in  # noqa: PLC0415
    from trouter.policy.expectations import hold  # noqa: PLC0415

    enforced = replace(folder.configuration.policy, enable_vhost_policy=True)
    policy = policy_of(replace(folder.configuration, policy=enforced))
    failures = [
        failure
        for path, text in folder.expectations.items()
        for failure in hold(expectations_in(text, path), policy).failures
    ]
    for failure in failures:
        print_problem(arguments, failure)
    if failures:
        raise ConnectionException("the policy is not as expected: no router was asked, and nothing was changed")


def _files(arguments: argparse.Namespace, folder: PolicyFolder, status: NetworkStatus) -> list[RouterFile]:
    """Return the policy as the text for each router of the network, those lost lately, and those skipped before."""
    from trouter.tools.networks.folder import RouterFile  # noqa: PLC0415
    from trouter.tools.networks.pending import read_pending  # noqa: PLC0415

    known = list(dict.fromkeys([*status.configured(), *status.lost, *read_pending(folder.path)]))
    if unknown := sorted(set(arguments.only).difference(known)):
        raise UsageError(f"{', '.join(unknown)} is not in reach")
    wanted = [router for router in known if not arguments.only or router in arguments.only]
    return [RouterFile(router, folder.path, folder.text, folder.path, 0) for router in wanted]


async def _check(
    node: NodeClient, files: Sequence[RouterFile], status: NetworkStatus, folder: PolicyFolder
) -> list[CheckedRouter]:
    """Have each router check the policy, and hold it to each file of expectations."""
    from trouter.tools.networks.checking import check_files  # noqa: PLC0415

    checked: list[CheckedRouter] = []
    for expectations in list(folder.expectations.values()) or [""]:
        answers = await check_files(node, files, status, part=_PART, expectations=expectations)
        checked = [each.joined(other) for each, other in zip(checked, answers, strict=True)] if checked else answers
    return checked


async def _compare(
    arguments: argparse.Namespace, status: NetworkStatus, files: Sequence[RouterFile], check: Check
) -> None:
    """Print the digest of each router's policy; Incomplete, with the reason, if those of ``files`` have several."""
    digests = status.policies()
    if not arguments.json:
        for digest, routers in digests.items():
            print(f"policy {digest}: {', '.join(routers)}")
    pushed = {file.id for file in files}
    shared = [", ".join(sorted(pushed.intersection(routers))) for routers in digests.values()]
    if len(groups := [routers for routers in shared if routers]) < 2:
        return
    if lost := [f"{each.router}: {why}" for each in await check(files) if (why := why_without_text(each))]:
        raise Incomplete("\n".join([*lost, "the routers have several policies now: push again"]))
    raise Incomplete(
        f"the routers have the same vhosts now, but sections policy that differ ({' | '.join(groups)}): write one into "
        "the folder, so that all have it"
    )
