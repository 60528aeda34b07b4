"""The folder of a pipeline on the command line: a path or the URI of an object store, with the options of the store."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

from trouter_pipeline.places import BadPlace, Place

#: What is said of every ROOT.
ROOT: Final = "the folder of the pipeline, or a URI such as s3://BUCKET/PATH"


def add_root(parser: argparse.ArgumentParser, *, made: bool = False, option: str | None = None) -> None:
    """Add the argument ROOT, or an option for it, and the options of object stores.

    ``made``: the action makes the folder if it does not exist.
    """
    text = f"{ROOT}; made if it does not exist" if made else ROOT
    if option is None:
        parser.add_argument("root", metavar="ROOT", help=text)
    else:
        parser.add_argument(option, dest="root", required=True, metavar="ROOT", help=text)
    group = parser.add_argument_group(
        "object stores",
        "Options of the store that ROOT names, as delta-rs and polars have them. Those of the environment count, too: "
        "AWS_..., AZURE_... or GOOGLE_... Give secrets there or in a file.",
    )
    group.add_argument(
        "--storage-option",
        action="append",
        type=_option,
        default=[],
        metavar="KEY=VALUE",
        help="such as aws_region=eu-west-1; may be given again",
    )
    group.add_argument("--storage-options-file", type=Path, metavar="FILE", help="holds one KEY=VALUE a line")


def local_folder(text: str) -> Path:
    """Return a folder of the command line; argparse.ArgumentTypeError for the URI of an object store."""
    try:
        place = Place.of(text)
    except BadPlace as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    if not place.is_local:
        raise argparse.ArgumentTypeError(f"{text}: this is a folder of this machine; only tables may be elsewhere")
    return Path(place)


def with_root(run: Callable[[argparse.Namespace], int]) -> Callable[[argparse.Namespace], int]:
    """Return an action that gets ROOT as a place."""
    return partial(_with_root, run)


def _with_root(run: Callable[[argparse.Namespace], int], arguments: argparse.Namespace) -> int:
    from trouter.client.cover import cover_arguments  # noqa: PLC0415  # only when it runs

    cover_arguments(f"{name}={value}" for name, value in arguments.storage_option)
    try:
        arguments.storage_option = [*_in_file(arguments.storage_options_file), *arguments.storage_option]
        arguments.root = Place.of(arguments.root, dict(arguments.storage_option))
    except BadPlace as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    if arguments.root.is_local and arguments.storage_option:
        raise argparse.ArgumentTypeError(f"storage options are for a URI, and {arguments.root} is a folder")
    return run(arguments)


def _option(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise argparse.ArgumentTypeError("write KEY=VALUE")
    return name, value


def _in_file(path: Path | None) -> list[tuple[str, str]]:
    """Return the options in a file; BadPlace without its contents if it cannot be read or has other lines."""
    if path is None:
        return []
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not text"
        raise BadPlace(f"{path}: {why}") from None
    options = []
    for number, line in enumerate(lines, 1):
        name, equals, value = line.partition("=")
        if line.strip() and not line.startswith("#"):
            if not equals:
                raise BadPlace(f"{path}, line {number}: write KEY=VALUE")
            options.append((name.strip(), value.strip()))
    return options
