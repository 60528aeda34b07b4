"""Takes over folders of before 0.3, whose tables were files named by a manifest, as Delta tables in the same place.

The files get their new names beside the old ones, without a copy where the file system has links, and are committed as
one version; then the manifest and the old names go. A run that was killed is continued by the next one, and until it is
done no other command reads or writes the table.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from trouter.records.disk import sync
from trouter_pipeline.compact import facts_table
from trouter_pipeline.datasets import BY_KIND, PRUNED, SEGMENTS, SegmentFacts, records_folder, table_columns
from trouter_pipeline.delta import WHOLE_LOG, BadTable, Folder
from trouter_pipeline.files import locked, make_folder
from trouter_pipeline.landing import BY_ADDRESS, Identity
from trouter_pipeline.parquet import File, folder_of, value_of, write_part
from trouter_pipeline.tables import BY_DAY, Commit

MANIFEST: Final = "_manifest.json"
IDENTITY: Final = "_land.json"
#: What the former program had in the folder of a table, beside the manifest.
_OLD: Final = ("data", ".staging", "LOCK")
#: Types without parameters, in Spark's spelling, and as Delta has them.
_PLAIN: Final = {
    "int": "integer",
    "bigint": "long",
    "smallint": "short",
    "tinyint": "byte",
    **{name: name for name in ("string", "boolean", "date", "timestamp", "binary", "double", "float")},
    "timestamp_ntz": "timestamp_ntz",
}


class _Records(msgspec.Struct):
    """The manifest of records."""

    version: int
    kinds: dict[str, dict[str, list[str]]] = {}
    segments: dict[str, SegmentFacts] = {}
    pruned: dict[str, dict[str, list[str]]] = {}


class _Table(msgspec.Struct):
    """The manifest of a table of a job: ``days`` are folders, ``schema`` the columns without ``date``."""

    version: int = 1
    job: str = ""
    job_version: int = 0
    schema: str = ""
    days: dict[str, str] = {}
    inputs: dict[str, int] = {}
    parameters: dict[str, Any] = {}
    pruned: dict[str, list[str]] = {}


class _Landed(msgspec.Struct):
    """The identity of a landed table; ``schema`` has the columns without those of the folders."""

    version: int
    checkpoint: str
    schema: str
    parameters: dict[str, str]


def migrate(root: Path, progress: Callable[[str], None] = lambda _: None) -> list[str]:
    """Take over all tables below ``root``; return their names. BadTable, TableBusy, OSError."""
    done = []
    folders = [Path(records_folder(root)), *sorted((Path(root) / "tables").glob("*"))]
    for folder in folders:
        for name, take in (
            (MANIFEST, _take_records if folder is folders[0] else _take_table),
            (IDENTITY, _take_landed),
        ):
            path = folder / name
            if not path.exists():
                continue
            progress(folder.name)
            with locked(folder / "LOCK"):  # which the former program would hold
                take(folder, path)
                _remove(folder, path)
            done.append(folder.name)
    return done


def _read(path: Path, shape: type[Any]) -> Any:
    try:
        return msgspec.json.decode(path.read_bytes(), type=shape)
    except ValueError as error:
        raise BadTable(f"{path}: this is not a manifest: {error}") from None


def _take_records(folder: Path, path: Path) -> None:
    manifest = _read(path, _Records)
    place = Folder(folder)
    version = place.create(table_columns(), BY_KIND)
    if version.number:
        return  # a run that was killed has committed it
    files = list(
        _linked(
            folder,
            (
                (folder / name, {"record": kind, "date": day})
                for kind, days in manifest.kinds.items()
                for day, names in days.items()
                for name in names
            ),
        )
    )
    with place.staged() as staged:
        written = [write_part(facts_table(manifest.segments), staged, {"record": SEGMENTS, "date": None})]
        if manifest.pruned:
            told = pa.table({"json": [msgspec.json.encode(manifest.pruned).decode()]})
            written.append(write_part(told, staged, {"record": PRUNED, "date": None}))
        files += place.place(staged, written)
    facts = {"job": "migrate", "segments": sorted(manifest.segments)}
    place.commit(version, files, (), facts, shown="trouter migrate")


def _take_table(folder: Path, path: Path) -> None:
    manifest = _read(path, _Table)
    place = Folder(folder)
    version = place.create(columns_of(manifest.schema) | {"date": "date"}, BY_DAY, properties=WHOLE_LOG)
    if version.number:
        return
    found = (
        (file, {"date": day})
        for day, name in manifest.days.items()
        for file in sorted((folder / name).glob("*.parquet"))
    )
    commit = Commit(manifest.job, manifest.job_version, manifest.inputs, manifest.parameters, manifest.pruned)
    files = list(_linked(folder, found))
    place.commit(version, files, (), msgspec.to_builtins(commit), shown="trouter migrate")


def _take_landed(folder: Path, path: Path) -> None:
    identity = _read(path, _Landed)
    place = Folder(folder)
    columns = columns_of(identity.schema) | {"address": "string", "date": "date"}
    described = msgspec.json.encode(Identity(identity.checkpoint, identity.parameters)).decode()
    version = place.create(columns, BY_ADDRESS, description=described)
    if version.number:
        return
    found = [
        (file, dict(part.partition("=")[::2] for part in file.parent.parts[-2:]))
        for file in sorted((folder / "data").glob("batch=*/address=*/date=*/*.parquet"))
    ]
    batches = [int(each.name.partition("=")[2]) for each in (folder / "data").glob("batch=*")]
    facts = {"job": "migrate", "checkpoint": identity.checkpoint}
    files = list(_linked(folder, ((file, _unquoted(values)) for file, values in found)))
    batch = (identity.checkpoint, max(batches)) if batches else None
    place.commit(version, files, (), facts, shown="trouter migrate", batch=batch)


def _unquoted(values: Mapping[str, str]) -> dict[str, str | None]:
    return {name: value_of(text) for name, text in values.items()}


def _linked(folder: Path, found: Iterable[tuple[Path, Mapping[str, str | None]]]) -> Iterator[File]:
    """Give each file its new name, durably, and yield it; OSError."""
    folders = set()
    for path, values in found:
        place = folder / folder_of(values) / path.name
        make_folder(place.parent)
        if not place.exists():
            try:
                os.link(path, place)
            except OSError:  # a file system without links
                part = place.with_name(f".{place.name}")
                shutil.copyfile(path, part)
                sync(part)
                part.rename(place)
        folders.add(place.parent)
        rows = pq.read_metadata(place).num_rows
        yield File(place.relative_to(folder).as_posix(), tuple(values.values()), rows, place.stat().st_size)
    for each in folders:
        sync(each)


def _remove(folder: Path, manifest: Path) -> None:
    """Delete the manifest, after which the table is the new one, and then the old names."""
    manifest.unlink()
    sync(folder)
    for path in (*(folder / name for name in _OLD), *folder.glob("kind=*")):
        if path.is_dir():
            shutil.rmtree(path)
        else:
            with suppress(FileNotFoundError):
                path.unlink()


def columns_of(text: str) -> dict[str, Any]:
    """Return the columns of a list in Spark's spelling, such as ```a` bigint, `b` array<string>``; BadTable."""
    return {name: type_of(kind) for name, kind in re.findall(r"`([^`]+)` ([^`]+?)(?=, `|\Z)", text)}


def type_of(text: str) -> Any:
    """Return Delta's type for one in Spark's spelling; BadTable."""
    if text in _PLAIN:
        return _PLAIN[text]
    if re.fullmatch(r"decimal\(\d+,\d+\)", text):
        return text
    outer, _, rest = text.partition("<")
    inner = _parts(rest.removesuffix(">"))
    if outer == "array" and len(inner) == 1:
        return {"type": "array", "elementType": type_of(inner[0]), "containsNull": True}
    if outer == "map" and len(inner) == 2:
        key, value = map(type_of, inner)
        return {"type": "map", "keyType": key, "valueType": value, "valueContainsNull": True}
    if outer == "struct":
        fields = [each.partition(":") for each in inner]
        return {
            "type": "struct",
            "fields": [
                {"name": name, "type": type_of(kind), "nullable": True, "metadata": {}} for name, _, kind in fields
            ],
        }
    raise BadTable(f"a column has the type {text}, which no table has")


def _parts(text: str) -> list[str]:
    """Return what is between commas that are in no brackets."""
    parts, depth = [""], 0
    for letter in text:
        depth += (letter in "<(") - (letter in ">)")
        if letter == "," and not depth:
            parts.append("")
        else:
            parts[-1] += letter
    return parts
