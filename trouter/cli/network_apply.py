"""`trouter network apply`: the files of a folder at all routers of a network, or at none."""

from __future__ import annotations

import argparse
import getpass
import io
import json
import platform
import secrets
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from trouter.cli.startup import existing_path
from trouter.tools.failures import ConnectionException, UsageError, print_problem, run_tool
from trouter.tools.options import ConnectionOptions, add_server_options, positive

if TYPE_CHECKING:
    from trouter.tools.networks.applying import ChangedRouter, JointChange
    from trouter.tools.networks.checking import CheckedRouter
    from trouter.tools.networks.folder import RouterFile
    from trouter.tools.networks.survey import NetworkStatus
    from trouter.tools.node import NodeClient

#: Routers at which a change is made at the same time, unless the operator says otherwise.
AT_ONCE: Final = 8

_EPILOG: Final = """examples:
  trouter network apply network/               check at every router, then make the change at all of them
  trouter network apply network/ --dry-run     say what would be done
  trouter network apply network/ --only A      only at router A
  trouter network apply network/ --resume ID   go on with a change that was interrupted
  trouter network apply --abandon ID           take it back, at every router that has it

The folder is that of `trouter network check`. First every router checks its file, and nothing is changed unless all can
make the change. Then each router puts its file into force as a whole and into its own configuration file, whose text
before stays beside it as NAME.before. If a router fails, those that made the change take it back. Until the end the
change is open at each router: `trouter network status` shows it, with what ends it, also if this command was killed.
The user needs the management level `admin` at each router.
"""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "apply",
        help="give every router its file: at all of them, or at none",
        description="Make the files of a folder the configurations of the routers: at all of them, or at none.",
        epilog=_EPILOG,
    )
    parser.add_argument(
        "folder", metavar="FOLDER", nargs="?", type=existing_path, help="the folder with the files of the routers"
    )
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--dry-run", action="store_true", help="only check, and say what would be done")
    what.add_argument("--pending", action="store_true", help="list the routers whose files wait because they were away")
    what.add_argument("--resume", metavar="ID", help="go on with this change")
    what.add_argument("--abandon", metavar="ID", help="take this change back at every router that has it")
    what.add_argument("--keep", metavar="ID", help="end this change as it is, whatever is missing of it")
    parser.add_argument("--only", metavar="ID", action="append", default=[], help="only this router; may be repeated")
    parser.add_argument("--edges-first", action="store_true", help="edge routers before interior ones, not after them")
    parser.add_argument(
        "--concurrency",
        metavar="N",
        type=positive,
        default=AT_ONCE,
        help=f"the routers that make the change at the same time; default {AT_ONCE}",
    )
    parser.add_argument(
        "--skip-absent", action="store_true", help="leave out routers that are away; their files wait in the folder"
    )
    parser.add_argument(
        "--yes", action="store_true", help="do not ask before a change of what this connection may go through"
    )
    parser.add_argument("--json", action="store_true", help="as one JSON document")
    add_server_options(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Make, list, or end a change; return the exit status. After Ctrl-C the state of the change is printed."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    if arguments.folder is None and not (arguments.abandon or arguments.keep):
        raise UsageError("give the folder with the files of the routers")
    if arguments.pending:
        return _list_pending(arguments)
    begun: list[JointChange] = []
    status, interrupted = 1, False
    try:
        status = run_tool(lambda: _work(arguments, begun), arguments)
    except* KeyboardInterrupt:
        interrupted = True
    if interrupted:
        for change in begun:
            _print_interrupted(arguments, change)
        raise KeyboardInterrupt
    return status


def _list_pending(arguments: argparse.Namespace) -> int:
    from trouter.tools.networks.pending import read_pending  # noqa: PLC0415

    waiting = read_pending(arguments.folder)
    if arguments.json:
        print(json.dumps({"pending": waiting}, indent=2))
        return 0
    for router, since in sorted(waiting.items()):
        print(f"{router}: its file waits since {since}")
    return 0


def _print_interrupted(arguments: argparse.Namespace, change: JointChange) -> None:
    opened = [router.id for router in change.routers if router.is_open]
    if not opened:
        print_problem(arguments, "interrupted: no router has the change")
        return
    for line in _lines_of(change.routers):
        print_problem(arguments, line)
    print_problem(arguments, f"interrupted: the change {change.id} is open; {_ends(change.id)}")


def _ends(change: str) -> str:
    return f"`apply FOLDER --resume {change}` goes on with it, `apply --abandon {change}` takes it back"


async def _work(arguments: argparse.Namespace, begun: list[JointChange]) -> None:
    from trouter.tools.networks.survey import survey  # noqa: PLC0415  # a shell that completes does without
    from trouter.tools.node import open_node  # noqa: PLC0415

    if arguments.abandon or arguments.keep:
        async with open_node(ConnectionOptions.of(arguments)) as node:
            await _end(arguments, node, await survey(node))
        return
    from trouter.tools.networks.checking import check_files  # noqa: PLC0415
    from trouter.tools.networks.folder import contradictions, read_folder  # noqa: PLC0415

    files = read_folder(arguments.folder)
    if unknown := sorted(set(arguments.only).difference(file.id for file in files)):
        raise UsageError(f"there is no file for {', '.join(unknown)} in {arguments.folder / 'routers'}")
    grave = [text for text, is_grave in contradictions(files) if is_grave]
    for text in grave:
        print_problem(arguments, text)
    if grave:
        raise ConnectionException("the files of the network contradict each other: nothing was changed")
    wanted = [file for file in files if not arguments.only or file.id in arguments.only]
    async with open_node(ConnectionOptions.of(arguments)) as node:
        status = await survey(node)
        present, absent = _present(arguments, wanted, status)
        _check_open(arguments, status)
        checked = await check_files(node, present, status)
        _print_plans(arguments, present, checked)
        _check_good(arguments, checked)
        _check_hops(status, present)
        change = _plan(arguments, node, status, present, checked)
        _check_way(arguments, node, checked)
        if arguments.dry_run:
            _print_result(arguments, change, checked, "checked")
            return
        begun.append(change)
        if change.routers:
            await _make(arguments, change)
        _note_pending(arguments.folder, absent, [file.id for file in present])
        _print_result(arguments, change, checked, "applied" if change.routers else "unchanged")
        for router in absent:
            print_problem(arguments, f"{router} is away: its file waits; the next run gives it to the router")


def _present(
    arguments: argparse.Namespace, wanted: Sequence[RouterFile], status: NetworkStatus
) -> tuple[list[RouterFile], list[str]]:
    """Return the files whose routers answer, and the ids of the others; ConnectionException if there may be none."""
    faults = {router.id: router.fault for router in status.routers}
    present = [file for file in wanted if faults.get(file.id) == ""]
    absent = [file.id for file in wanted if file not in present]
    if absent and not arguments.skip_absent:
        for router in absent:
            print_problem(arguments, f"{router}: {faults.get(router) or 'it is not in reach'}")
        raise ConnectionException(
            f"{', '.join(absent)} would miss the change: nothing was changed (--skip-absent lets their files wait)"
        )
    return present, absent


def _check_open(arguments: argparse.Namespace, status: NetworkStatus) -> None:
    """Raise ConnectionException if another change is open, or if the one to go on with is not."""
    opened = status.open_changes()
    others = sorted(opened.keys() - {arguments.resume})
    if others:
        where = "; ".join(f"{name} at {', '.join(router.id for router in opened[name])}" for name in others)
        raise ConnectionException(f"a change is open ({where}): {_ends(others[0])}; nothing was changed")
    if arguments.resume and not opened:
        raise ConnectionException(f"no router in reach has the change {arguments.resume} open: nothing was changed")


def _print_plans(arguments: argparse.Namespace, files: Sequence[RouterFile], checked: Sequence[CheckedRouter]) -> None:
    from trouter.tools.networks.checking import lines_of  # noqa: PLC0415

    if arguments.json:
        return
    for file, each in zip(files, checked, strict=True):
        print("\n".join(lines_of(file, each, findings=not each.is_good)))


def _check_good(arguments: argparse.Namespace, checked: Sequence[CheckedRouter]) -> None:
    """Raise ConnectionException unless every router can make the change; print why a router cannot."""
    bad = []
    for each in checked:
        refusals = _refusals(each, arguments.resume or "")
        for why in refusals:
            print_problem(arguments, f"{each.router}: {why}")
        if refusals or not each.is_good:
            bad.append(each.router)
    if bad:
        raise ConnectionException(f"{', '.join(bad)} cannot make the change: nothing was changed")


def _refusals(checked: CheckedRouter, resumed: str) -> list[str]:
    """Return why a router would refuse a change; that the same change is open there is no reason."""
    if checked.fault or checked.plan is None:
        return []
    if checked.outlook is None:
        return ["its version takes no changes over the network"]
    is_own = bool(resumed) and checked.outlook.open == resumed
    return [why for why in checked.outlook.refusals if not (is_own and why.startswith(f"the change {resumed} "))]


def _check_hops(status: NetworkStatus, files: Sequence[RouterFile]) -> None:
    """Raise ConnectionException if a router wants TLS on the way, and routers have connections without it."""
    named = {file.id for file in files}
    wanting = [router.id for router in status.routers if router.wants_tls and router.id in named]
    clear = [f"{router.id} with {', '.join(router.without_tls)}" for router in status.routers if router.without_tls]
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
) -> JointChange:
    """Return the change of the routers whose file is another one, and of those that have the resumed one already."""
    from trouter.tools.networks.applying import ChangedRouter, JointChange, Outcome, groups_of  # noqa: PLC0415

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
    return JointChange(node, arguments.resume or secrets.token_hex(4), _operator(), groups, arguments.concurrency)


def _is_empty(checked: CheckedRouter) -> bool:
    """Return whether a router would change nothing."""
    return not any((checked.plan or {}).get(part) for part in ("created", "updated", "deleted"))


def _operator() -> str:
    """Return who runs this command, for those who find its change open."""
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


async def _make(arguments: argparse.Namespace, change: JointChange) -> None:
    """Make and confirm a change, or take it back; ConnectionException if it is not everywhere."""
    await change.make()
    if not change.is_made:
        await change.take_back()
        _raise_if_open(arguments, change)
        _print_result(arguments, change, (), "taken back")
        failed = [f"{router.id}: {router.why}" for router in change.routers if router.why]
        raise ConnectionException("\n".join([*failed, "the change was not made: every router has what it had before"]))
    await change.confirm()
    unconfirmed = [router for router in change.routers if router.is_open]
    if unconfirmed:
        _print_result(arguments, change, (), "open")
        raise ConnectionException(
            f"every router has the change {change.id}, but it is still open at "
            f"{'; '.join(f'{router.id}: {router.why}' for router in unconfirmed)}; {_ends(change.id)}"
        )


def _raise_if_open(arguments: argparse.Namespace, change: JointChange) -> None:
    """Raise ConnectionException if a router may still have a change that was taken back."""
    opened = [router.id for router in change.routers if router.is_open]
    if opened:
        _print_result(arguments, change, (), "open")
        raise ConnectionException(
            f"the change {change.id} failed, and {', '.join(opened)} may still have it: `trouter network status` shows "
            f"it once they are in reach; {_ends(change.id)}"
        )


async def _end(arguments: argparse.Namespace, node: NodeClient, status: NetworkStatus) -> None:
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
    _print_result(arguments, change, (), "open" if opened else "taken back" if arguments.abandon else "kept")
    if opened:
        raise ConnectionException(
            f"the change {name} is still open at {'; '.join(f'{router.id}: {router.why}' for router in opened)}"
        )
    if absent:
        raise ConnectionException(
            f"{', '.join(sorted(absent))} may have the change {name} too and does not answer: repeat this once it does"
        )


def _note_pending(folder: Path, absent: Sequence[str], done: Sequence[str]) -> None:
    from trouter.tools.networks.pending import note_pending  # noqa: PLC0415

    note_pending(folder, absent, done)


def _lines_of(routers: Sequence[ChangedRouter]) -> list[str]:
    return [f"{router.id}: {router.outcome}{f' ({router.why})' if router.why else ''}" for router in routers]


def _print_result(
    arguments: argparse.Namespace, change: JointChange, checked: Sequence[CheckedRouter], state: str
) -> None:
    """Print how far a change came at each router."""
    if not arguments.json:
        if state == "unchanged":
            print("every router has its file: nothing was changed")
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
    }
    print(json.dumps(document, indent=2, default=str, skipkeys=True))
