"""`trouter pipeline pack`: write the file that Spark ships to workers without trouter."""

from __future__ import annotations

import argparse
from pathlib import Path

from trouter.tools.failures import print_problem


def add_parser(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = actions.add_parser(
        "pack",
        help="write what Spark ships to workers that have no trouter",
        description="Write a zip archive of trouter, its pipeline and the packages that they import on a worker, as "
        "they are installed here, and print the settings with which Spark unpacks it at each worker. The workers need "
        "the same Python and processor, pyarrow, pandas and protobuf.",
    )
    parser.add_argument("file", type=Path, metavar="FILE", help="the archive, such as workers.zip; it is replaced")
    parser.add_argument(
        "--with",
        dest="others",
        action="append",
        default=[],
        metavar="NAME",
        help="another installed package that workers lack, such as deltalake for `compact`; may be given again",
    )
    parser.add_argument(
        "--py-files",
        action="store_true",
        help="only the sources of trouter, for Spark's option --py-files: workers need msgspec and trio then, and "
        "decode messages at a tenth of the speed",
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Write the archive; return the exit status."""
    from trouter_pipeline.packing import NotPacked, pack, pack_sources, settings  # noqa: PLC0415  # only when it runs

    file = arguments.file.absolute()
    if arguments.py_files and arguments.others:
        raise argparse.ArgumentTypeError("--with is for an archive, not for --py-files")
    try:
        octets = pack_sources(file) if arguments.py_files else pack(file, arguments.others)
    except (NotPacked, OSError) as error:
        print_problem(arguments, error)
        return 1
    given = {"spark.submit.pyFiles": str(file)} if arguments.py_files else settings(file)
    print(f"{file} has {octets / 1e6:.1f} MB. Give Spark:")
    print(" ".join(f"--conf {name}={value}" for name, value in given.items()))
    return 0
