"""What a job has seen: files beside its table, and one number in each version that names them.

    TABLE/_state/NUMBER.json       what a version was made of; its inputs are in parts
    TABLE/_state/NAME.inputs       a part, in Parquet: the columns ``name`` and ``checksum`` (null: no longer an input)

A later part goes before an earlier one. A commit writes only what has changed, with the parts that are not at least
twice as large, so that there are few parts, and an input is written again as often as their number doubles. The number
is the version of the application transaction ``APPLICATION`` in the log, which its checkpoints keep (Delta's protocol,
"Transaction Identifiers"); so old versions of the log may go, and their states with them.
"""

from __future__ import annotations

import io
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, cast

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from trouter_pipeline.delta import LOG, BadTable
from trouter_pipeline.files import make_folder, replace
from trouter_pipeline.places import Place, Unreached

FOLDER: Final = "_state"
#: The application whose transaction in the log is the number of a version's state.
APPLICATION: Final = "trouter.state"
#: A table has its old states deleted every so many versions.
CLEANED_EVERY: Final = 20
#: A part is written again with changes that are more than one in so many of it.
_GROWTH: Final = 2
#: A state is written before its version, and a writer may take a while in between.
_LATE_S: Final = 86_400
_CURE: Final = "bring the file back, or move the table away and run its job again"
_PART: Final = pa.schema({"name": pa.string(), "checksum": pa.int64()})


class Part(msgspec.Struct, frozen=True):
    """A file with inputs, and their number."""

    name: str
    count: int


class State(msgspec.Struct):
    """What a version was made of, without its inputs, and the parts that have these, oldest first."""

    facts: dict[str, Any]
    parts: list[Part]


class States:
    """The states of one table."""

    def __init__(self, table: Place) -> None:
        self._folder = table / FOLDER
        self._log = table / LOG

    def read(self, number: int) -> State:
        """Return the state of a number; BadTable, OSError."""
        place = self._folder / f"{number}.json"
        try:
            return msgspec.json.decode(place.read_bytes(), type=State)
        except FileNotFoundError:
            raise _gone(place) from None
        except msgspec.DecodeError as error:
            raise BadTable(f"{place}: this is no state of a table: {error}; {_CURE}") from None

    def inputs(self, state: State) -> dict[str, int]:
        """Return the inputs of a state with their checksums; BadTable, OSError."""
        found: dict[str, int | None] = {}
        for part in state.parts:
            found |= self._read(part)
        return _without_former(found)

    def write(self, facts: Mapping[str, Any], before: State | None, changes: Mapping[str, int | None]) -> int:
        """Write the state that follows another by changes of inputs, durably; return its number. BadTable, OSError.

        The value of a change is the new checksum, or None for an input that is no longer one.
        """
        parts = [] if before is None else list(before.parts)
        if changes:
            new = dict(changes)
            while parts and parts[-1].count <= _GROWTH * len(new):
                new = self._read(parts.pop()) | new
            if not parts:
                new = dict(_without_former(new))
            if new:
                parts.append(Part(uuid.uuid4().hex, len(new)))
                self._put(f"{parts[-1].name}.inputs", _part(new))
        number = uuid.uuid4().int >> 65  # a number of a transaction has 63 bits
        self._put(f"{number}.json", msgspec.json.encode(State(dict(facts), parts)))
        return number

    def discard(self, number: int, before: State | None) -> None:
        """Delete the state that was to follow another, because its version did not come to be. BadTable, OSError."""
        kept = [] if before is None else before.parts
        for part in self.read(number).parts:
            if part not in kept:
                (self._folder / f"{part.name}.inputs").delete()
        (self._folder / f"{number}.json").delete()

    def clean(self, current: int) -> None:
        """Delete the states that are older than every version in the log, and parts that no state has; OSError.

        The state ``current`` stays, whatever its age. Those that a killed writer left go as others do.
        """
        kept_from = min((changed for _, changed in self._log.files(".json")), default=0.0)
        files = self._folder.files(".json") + self._folder.files(".inputs")
        old = {place.name: place for place, changed in files if changed < kept_from - _LATE_S}
        numbers = {place.name for place, _ in files if place.name.endswith(".json")} - old.keys() | {f"{current}.json"}
        for name in numbers:
            try:
                used = self.read(int(name.removesuffix(".json"))).parts
            except BadTable:  # another process cleans, too
                continue
            for part in used:
                old.pop(f"{part.name}.inputs", None)
        old.pop(f"{current}.json", None)
        for place in old.values():
            place.delete()

    def _read(self, part: Part) -> dict[str, int | None]:
        place = self._folder / f"{part.name}.inputs"
        try:
            rows = pq.read_table(pa.BufferReader(place.read_bytes()), schema=_PART)
        except FileNotFoundError:
            raise _gone(place) from None
        except Unreached:
            raise
        except (OSError, pa.ArrowException) as error:
            raise BadTable(f"{place}: {error}; {_CURE}") from None
        return dict(zip(rows["name"].to_pylist(), rows["checksum"].to_pylist(), strict=True))

    def _put(self, name: str, octets: bytes) -> None:
        place = self._folder / name
        if place.is_local:
            make_folder(Path(self._folder))
            replace(Path(place), octets)
        else:
            place.write_bytes(octets)


def _without_former(found: dict[str, int | None]) -> dict[str, int]:
    """Return the inputs among these, without those that are no longer any."""
    for name in [name for name, checksum in found.items() if checksum is None]:
        del found[name]
    return cast("dict[str, int]", found)


def _gone(place: Place) -> BadTable:
    return BadTable(f"{place}: a version of this table names this file, but it does not exist: {_CURE}")


def _part(inputs: Mapping[str, int | None]) -> bytes:
    """Return a Parquet file with inputs, by name."""
    names = sorted(inputs)
    rows = pa.table([names, [inputs[name] for name in names]], schema=_PART)
    file = io.BytesIO()
    pq.write_table(
        rows,
        file,
        compression="zstd",
        use_dictionary=False,
        column_encoding={"name": "DELTA_BYTE_ARRAY", "checksum": "PLAIN"},
    )
    return file.getvalue()
