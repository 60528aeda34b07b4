"""`trouter migrate --interconnect`: the manifest of AMQ Interconnect's operator as values for the Helm chart."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final, TextIO

from trouter._text import escape_unprintable
from trouter.config.migrate.interconnect import NotAManifest, TakenOver, taken_over, written_values
from trouter.tools.failures import UsageError, print_problem
from trouter.tools.files import replace

#: Bytes of a file; manifests have a few thousand.
MAX_BYTES: Final = 1 << 20
#: Values name Secrets, and hold none.
MODE: Final = 0o644


class CannotRead(Exception):
    """The file cannot be read; the text says why."""


def run_interconnect(arguments: argparse.Namespace) -> int:
    """Write the values and the report; return the exit status."""
    source: Path = arguments.interconnect
    output: Path | None = arguments.output
    if arguments.old is not None or arguments.secure:
        raise UsageError("--interconnect FILE stands alone: leave out OLD and --secure")
    if arguments.check and output is not None:
        raise UsageError("--check writes nothing: leave out one of --check and -o")
    if arguments.json and output is None and not arguments.check:
        raise UsageError("--json needs -o PATH, or --check")
    try:
        result = taken_over(_documents(source))
    except (CannotRead, NotAManifest) as error:
        print_problem(arguments, f"{source}: {error}")
        return 1
    text = written_values(result, source.name)
    if output is not None and not _write(arguments, output, text):
        return 1
    if output is None and not arguments.check:
        sys.stdout.write(text)
    if arguments.json:
        left = [each._asdict() for each in result.left]
        print(json.dumps({"name": result.name, "written": str(output) if output else None, "left": left}, indent=2))
    else:
        _print(result, source, output, sys.stdout if output is not None or arguments.check else sys.stderr)
    return 1 if arguments.check and result.left else 0


def _write(arguments: argparse.Namespace, output: Path, text: str) -> bool:
    """Write the file whole or not at all; True if it was written."""
    if output.exists() and not arguments.force:
        print_problem(arguments, f"{output} exists already, and is left as it is (--force overwrites it)")
        return False
    try:
        replace(output, text.encode(), MODE, like=output.stat() if output.exists() else None)
    except OSError as failure:
        print_problem(arguments, f"{output} cannot be written: {failure.strerror}")
        return False
    return True


def _print(result: TakenOver, source: Path, output: Path | None, stream: TextIO) -> None:
    for left in result.left:
        print(escape_unprintable(f"left: {left.where}: {left.why}; {left.cure}"), file=stream)
    done = f"; written to {output}" if output is not None else ""
    print(f"{source}: release {result.name}, {len(result.left)} thing(s) left to do{done}", file=stream)


def _documents(path: Path) -> Sequence[object]:
    """Return the documents of a file in YAML or JSON; CannotRead."""
    try:
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except OSError as failure:
        raise CannotRead(failure.strerror or "it cannot be read") from None
    if len(content) > MAX_BYTES:
        raise CannotRead(f"larger than {MAX_BYTES >> 20} MiB, which no manifest is")
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        raise CannotRead("it is not UTF-8 text") from None
    try:
        if text.lstrip().startswith("{"):
            return [json.loads(text)]
        return _yaml_documents(text)
    except RecursionError:
        raise CannotRead("it nests too deep for a manifest") from None
    except ValueError as error:
        raise CannotRead(f"it is neither JSON nor YAML: {error}") from None


def _yaml_documents(text: str) -> Sequence[object]:
    try:
        import yaml  # noqa: PLC0415 - an extra that only this needs
    except ImportError:
        raise CannotRead(
            "YAML needs one more package: `pip install 'trouter[kubernetes]'`, or take JSON: "
            "`kubectl get interconnect NAME -o json`"
        ) from None
    try:
        return list(yaml.safe_load_all(text))
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f", line {mark.line + 1}" if mark is not None else ""
        raise ValueError(f"{getattr(error, 'problem', None) or 'no YAML'}{where}") from None
