"""`trouter network apply`: the files of a folder at all routers of a network, or at none."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Final

from trouter.cli.network_absent import add_absence_options, list_pending, note_absent, present_of, print_absent
from trouter.cli.network_change import add_change_options, change_all, end_change, print_result, run_change
from trouter.cli.startup import existing_path
from trouter.tools.failures import ConnectionException, UsageError, print_problem
from trouter.tools.options import ConnectionOptions

if TYPE_CHECKING:
    from trouter.tools.networks.applying import JointChange

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
    what.add_argument("--resume", metavar="ID", help="go on with this change")
    what.add_argument("--abandon", metavar="ID", help="take this change back at every router that has it")
    what.add_argument("--keep", metavar="ID", help="end this change as it is, whatever is missing of it")
    add_absence_options(parser, what)
    add_change_options(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Make, list, or end a change; return the exit status. After Ctrl-C the state of the change is printed."""
    if arguments.folder is None and not (arguments.abandon or arguments.keep):
        raise UsageError("give the folder with the files of the routers")
    if arguments.pending:
        return list_pending(arguments)
    return run_change(arguments, _work)


async def _work(arguments: argparse.Namespace, begun: list[JointChange]) -> None:
    from trouter.tools.networks.survey import survey  # noqa: PLC0415  # a shell that completes does without
    from trouter.tools.node import open_node  # noqa: PLC0415

    if arguments.abandon or arguments.keep:
        async with open_node(ConnectionOptions.of(arguments)) as node:
            await end_change(arguments, node, await survey(node))
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
        present, absent = present_of(arguments, wanted, status)
        change, checked = await change_all(
            arguments, begun, node, status, present, lambda files: check_files(node, files, status)
        )
        if arguments.dry_run:
            print_result(arguments, change, checked, "checked")
            return
        note_absent(arguments, present, absent)
        print_result(arguments, change, checked, "applied" if change.routers else "unchanged")
        print_absent(arguments, absent)
