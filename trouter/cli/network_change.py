"""The steps of a change of several routers, whatever it changes: checked by all, and made by all or by none."""

from __future__ import annotations

import argparse
import getpass
import json
import platform
import secrets
import sys
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from trouter.tools.failures import ConnectionException, print_problem, run_telling
from trouter.tools.options import add_server_options, positive

if TYPE_CHECKING:
    from trouter.tools.networks.applying import ChangedRouter, JointChange
    from trouter.tools.networks.checking import CheckedRouter
    from trouter.tools.networks.folder import RouterFile
    from trouter.tools.networks.survey import NetworkStatus
    from trouter.tools.node import NodeClient

#: Has routers check their texts.
Check = Callable[[Sequence["RouterFile"]], Awaitable[list["CheckedRouter"]]]
#: Routers at which a change is made at the same time, unless the operator says otherwise.
AT_ONCE: Final = 8


def add_order_options(parser: argparse.ArgumentParser) -> None:
    """Add the options for which routers a command comes to, and in which order."""
    parser.add_argument("--only", metavar="ID", action="append", default=[], help="only this router; may be repeated")
    parser.add_argument("--edges-first", action="store_true", help="edge routers before interior ones, not after them")


def add_change_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that each command which changes several routers has, and those of a connection."""
    add_order_options(parser)
    parser.add_argument(
        "--concurrency",
        metavar="N",
        type=positive,
        default=AT_ONCE,
        help=f"the routers that make the change at the same time; default {AT_ONCE}",
    )
    parser.add_argument(
        "--yes", action="store_true", help="do not ask before a change of what this connection may go through"
    )
    parser.add_argument("--json", action="store_true", help="as one JSON document")
    add_server_options(parser)


def run_change(
    arguments: argparse.Namespace, work: Callable[[argparse.Namespace, list[JointChange]], Awaitable[None]]
) -> int:
    """Run a command that appends the changes that it begins to a list; after Ctrl-C their state is printed."""
    begun: list[JointChange] = []

    def tell() -> None:
        for change in begun:
            _print_interrupted(arguments, change)

    return run_telling(lambda: work(arguments, begun), arguments, tell)


async def change_all(
    arguments: argparse.Namespace,
    begun: list[JointChange],
    node: NodeClient,
    status: NetworkStatus,
    files: Sequence[RouterFile],
    check: Check,
    part: str = "",
) -> tuple[JointChange, list[CheckedRouter]]:
    """Have the texts of ``files`` checked by ``check``, and made and confirmed by all routers unless it is a dry run.

    Before the confirmation the routers that had their text already are checked again, because another user may have
    changed one of them. ``part``: what of their configurations the texts are.
    ConnectionException if the change is not everywhere.
    """
    _check_open(arguments, status)
    checked = await check(files)
    _print_plans(arguments, files, checked, part)
    _check_good(arguments, checked, part)
    _check_hops(status, files)
    change = _plan(arguments, node, status, files, checked, part)
    _check_way(arguments, node, checked)
    if not arguments.dry_run:
        begun.append(change)
        if change.routers:
            named = {router.id for router in change.routers}
            await _make(arguments, change, lambda: check([file for file in files if file.id not in named]))
    return change, checked


def _print_interrupted(arguments: argparse.Namespace, change: JointChange) -> None:
    from trouter.tools.networks.applying import ends_of  # noqa: PLC0415

    opened = [router.id for router in change.routers if router.is_open]
    if not opened:
        print_problem(arguments, "interrupted: no router has the change")
        return
    for line in _lines_of(change.routers):
        print_problem(arguments, line)
    print_problem(arguments, f"interrupted: the change {change.id} is open; {ends_of(change.id)}")


def _check_open(arguments: argparse.Namespace, status: NetworkStatus) -> None:
    """Raise ConnectionException if another change is open, or if the one to go on with is not."""
    from trouter.tools.networks.applying import ends_of  # noqa: PLC0415

    opened = status.open_changes()
    others = sorted(opened.keys() - {arguments.resume})
    if others:
        where = "; ".join(f"{name} at {', '.join(router.id for router in opened[name])}" for name in others)
        raise ConnectionException(f"a change is open ({where}): {ends_of(others[0])}; nothing was changed")
    if arguments.resume and not opened:
        raise ConnectionException(f"no router in reach has the change {arguments.resume} open: nothing was changed")


def _print_plans(
    arguments: argparse.Namespace, files: Sequence[RouterFile], checked: Sequence[CheckedRouter], part: str
) -> None:
    """Print what changes, and findings: of a part those that are new, of a whole file those that keep it from use."""
    from trouter.tools.networks.checking import lines_of  # noqa: PLC0415

    if arguments.json:
        return
    for file, each in zip(files, checked, strict=True):
        print("\n".join(lines_of(file, each, findings=bool(part) or not each.is_good)))


def _check_good(arguments: argparse.Namespace, checked: Sequence[CheckedRouter], part: str) -> None:
    """Raise ConnectionException unless every router can make the change; print why a router cannot."""
    bad = []
    for each in checked:
        refusals = _refusals(each, arguments.resume or "", part)
        for why in refusals:
            print_problem(arguments, f"{each.router}: {why}")
        if refusals or not each.is_good:
            bad.append(each.router)
    if bad:
        raise ConnectionException(f"{', '.join(bad)} cannot make the change: nothing was changed")


def _refusals(checked: CheckedRouter, resumed: str, part: str) -> list[str]:
    """Return why a router would refuse a change; that the same change is open there is no reason."""
    if checked.fault or checked.plan is None:
        return []
    if checked.outlook is None:
        return ["its version takes no changes over the network"]
    if checked.outlook.part != part:  # it would take the text for its whole configuration
        return [f"its version takes no {part} alone over the network"]
    is_own = bool(resumed) and checked.outlook.open == resumed
    return [why for why in checked.outlook.refusals if not (is_own and why.startswith(f"the change {resumed} "))]


def _check_hops(status: NetworkStatus, files: Sequence[RouterFile]) -> None:
    """Raise ConnectionException if a router wants TLS on the way, and routers have connections without it."""
    named = {file.id for file in files}
    wanting = [router.id for router in status.routers if router.wants_tls and router.id in named]
    clear = status.clear_hops()
    if wanting and clear:
        raise ConnectionException(
            f"{', '.join(wanting)} has secureDefaults, and connections between routers have no TLS "
            f"({'; '.join(clear)}): nothing was changed; allowNetworkChanges: yes in its router section allows it "
            "without"
        )


def _plan(
    arguments: argparse.Namespace,
    node: NodeClient,
    status: NetworkStatus,
    files: Sequence[RouterFile],
    checked: Sequence[CheckedRouter],
    part: str,
) -> JointChange:
    """Return the change of the routers whose file is another one, and of those that have the resumed one already."""
    from trouter.tools.networks.applying import (  # noqa: PLC0415
        POLICY_CHANGE,
        ChangedRouter,
        JointChange,
        Outcome,
        groups_of,
    )

    known = {router.id: router for router in status.routers}
    routers: list[ChangedRouter] = []
    for file, each in zip(files, checked, strict=True):
        outlook, change = each.outlook, known[file.id].change
        is_edge = known[file.id].mode == "edge"
        is_same = outlook is not None and outlook.same
        if change is not None and (change.state == "edited" or (change.state == "made" and not is_same)):
            raise ConnectionException(
                f"{file.id} has the change {change.id}, but another text than this folder: nothing was changed; "
                f"--abandon {change.id} takes it back, --keep {change.id} ends it as it is"
            )
        if change is not None and change.state == "made":
            routers.append(ChangedRouter(file.id, is_edge, Outcome.MADE))
        elif outlook is not None and not (outlook.same and _is_empty(each)):
            routers.append(ChangedRouter(file.id, is_edge, file=file, state=outlook.state))
    named = {file.id for file in files}
    for router in status.routers:  # a resumed change ends where it is open, also without a file
        if router.change is not None and router.id not in named:
            is_made = router.change.state == "made"
            if not is_made:
                raise ConnectionException(
                    f"the change is {router.change.state} at {router.id}, which is not among the files: nothing was "
                    "changed"
                )
            routers.append(ChangedRouter(router.id, router.mode == "edge", Outcome.MADE))
    groups = groups_of(routers, node.router_id, edges_first=arguments.edges_first)
    name = arguments.resume or f"{POLICY_CHANGE if part else ''}{secrets.token_hex(4)}"
    return JointChange(node, name, _operator(), groups, arguments.concurrency, part)


def why_without_text(checked: CheckedRouter) -> str:
    """Return why a router does not have, or may not keep, the text that it checked; empty if it has it."""
    if checked.fault:
        return checked.fault
    if checked.outlook is None or not (checked.outlook.same and _is_empty(checked)):
        return "another user, or another command, has changed it since the check"
    return f"the change {checked.outlook.open} is open there" if checked.outlook.open else ""


def _is_empty(checked: CheckedRouter) -> bool:
    """Return whether a router would change nothing."""
    return not any((checked.plan or {}).get(part) for part in ("created", "updated", "deleted"))


def _operator() -> str:
    """Return the operator's user name and machine, which other operators see if this command leaves a change open."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a user without a name
        user = "unknown"
    return f"{user}@{platform.node()}"[:200]


def _check_way(arguments: argparse.Namespace, node: NodeClient, checked: Sequence[CheckedRouter]) -> None:
    """Ask before a change of what this connection may go through; ConnectionException without a yes."""
    from trouter.tools.networks.applying import ways_changed  # noqa: PLC0415

    ways = ways_changed(checked, node.router_id)
    if not ways or arguments.yes or arguments.dry_run:
        return
    for way in ways:
        print_problem(arguments, way)
    question = "this command, or the routers, may lose each other by that"
    if not sys.stdin.isatty() or arguments.json:
        raise ConnectionException(f"{question}: nothing was changed (--yes makes the change)")
    sys.stderr.write(f"{question}: go on? [y/N] ")
    sys.stderr.flush()
    if sys.stdin.readline().strip().lower() not in {"y", "yes"}:
        raise ConnectionException("nothing was changed")


async def _make(
    arguments: argparse.Namespace, change: JointChange, check_others: Callable[[], Awaitable[list[CheckedRouter]]]
) -> None:
    """Make and confirm a change, or take it back; ConnectionException if it is not everywhere.

    ``check_others`` checks the routers that had their text before.
    """
    from trouter.tools.networks.applying import ends_of  # noqa: PLC0415

    await change.make()
    others = await check_others() if change.is_made else []
    lost = [f"{each.router}: {why}" for each in others if (why := why_without_text(each))]
    if lost or not change.is_made:
        await change.take_back()
        _raise_if_open(arguments, change)
        print_result(arguments, change, (), "taken back")
        failed = [f"{router.id}: {router.why}" for router in change.routers if router.why]
        which = "every other router" if lost else "every router"
        end = f"the change was not made: {which} has what it had before"
        raise ConnectionException("\n".join([*lost, *failed, end]))
    await change.confirm()
    unconfirmed = [router for router in change.routers if router.is_open]
    if unconfirmed:
        print_result(arguments, change, (), "open")
        raise ConnectionException(
            f"every router has the change {change.id}, but it is still open at "
            f"{'; '.join(f'{router.id}: {router.why}' for router in unconfirmed)}; {ends_of(change.id)}"
        )


def _raise_if_open(arguments: argparse.Namespace, change: JointChange) -> None:
    """Raise ConnectionException if a router may still have a change that was taken back."""
    from trouter.tools.networks.applying import ends_of  # noqa: PLC0415

    opened = [router.id for router in change.routers if router.is_open]
    if opened:
        print_result(arguments, change, (), "open")
        raise ConnectionException(
            f"the change {change.id} failed, and {', '.join(opened)} may still have it: `trouter network status` shows "
            f"it once they are in reach; {ends_of(change.id)}"
        )


async def end_change(arguments: argparse.Namespace, node: NodeClient, status: NetworkStatus) -> None:
    """Take an open change back, or end it as it is, wherever it is open; ConnectionException if it stays open."""
    from trouter.tools.networks.applying import ChangedRouter, JointChange, Outcome  # noqa: PLC0415

    name = arguments.abandon or arguments.keep
    found = status.open_changes().get(name, [])
    if not found:
        raise ConnectionException(f"no router in reach has the change {name} open")
    routers = [ChangedRouter(router.id, router.mode == "edge", Outcome.MADE) for router in found]
    change = JointChange(node, name, _operator(), [routers], AT_ONCE)
    await (change.take_back() if arguments.abandon else change.confirm())
    absent = {router for each in found if each.change for router in each.change.routers}
    absent -= {router.id for router in status.routers if not router.fault}
    opened = [router for router in routers if router.is_open]
    print_result(arguments, change, (), "open" if opened else "taken back" if arguments.abandon else "kept")
    if opened:
        raise ConnectionException(
            f"the change {name} is still open at {'; '.join(f'{router.id}: {router.why}' for router in opened)}"
        )
    if absent:
        raise ConnectionException(
            f"{', '.join(sorted(absent))} may have the change {name} too and does not answer: repeat this once it does"
        )


def _lines_of(routers: Sequence[ChangedRouter]) -> list[str]:
    return [f"{router.id}: {router.outcome}{f' ({router.why})' if router.why else ''}" for router in routers]


def print_result(
    arguments: argparse.Namespace, change: JointChange, checked: Sequence[CheckedRouter], state: str, **more: object
) -> None:
    """Print how far a change came at each router; ``more`` belongs to the JSON document."""
    if not arguments.json:
        if state == "unchanged":
            print(f"every router has {'this policy' if change.part else 'its file'}: nothing was changed")
        elif state == "checked":
            print(f"{len(change.routers)} router(s) would change, nothing was changed")
        else:
            print("\n".join([*_lines_of(change.routers), f"change {change.id}: {state}"]))
        return
    plans = {each.router: each.plan for each in checked}
    document: dict[str, Any] = {
        "change": change.id if change.routers and state != "checked" else None,
        "state": state,
        "routers": [
            {"router": each.id, "outcome": str(each.outcome), "why": each.why, "plan": plans.get(each.id)}
            for each in change.routers
        ],
        **more,
    }
    print(json.dumps(document, indent=2, default=str, skipkeys=True))
