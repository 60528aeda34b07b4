"""Rows from the lines of a segment: Arrow tables, one for each kind.

Lines are decoded many at once, and one by one only after a failure. A fault is reported with file and offset, and
nothing of the segment is used. A record of an unknown kind is kept as written; unknown fields of a kind are left out
and reported.
"""

from __future__ import annotations

import operator
from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, NamedTuple, Union, cast

import msgspec
import pyarrow as pa

from trouter.records import KINDS, VERSION, Record
from trouter.records.reader import LAST_US, Corrupt, SegmentReader
from trouter.records.segments import COMPRESSED, Envelope, line_of, opened
from trouter_pipeline.datasets import UNKNOWN, SegmentFacts, arrow_schema_of, column_of, columns_of
from trouter_pipeline.proof import Proof, prove, there

#: Bytes of lines that are decoded at once, about.
_PIECE_BYTES: Final = 4 << 20
#: Records that are kept as objects before rows are made of them.
_MAX_WAITING: Final = 1 << 16


class Unknown(NamedTuple):
    """A record of an unknown kind."""

    n: int
    t: int
    k: str
    json: str


def _strict(kind: type[Record]) -> type[Record]:
    """Return a subclass of the kind that refuses unknown fields."""
    made = msgspec.defstruct(
        kind.__name__,
        [],
        bases=(kind,),
        forbid_unknown_fields=True,
        tag_field="k",
        tag=kind.__struct_config__.tag,
        kw_only=True,
        omit_defaults=True,
        gc=False,
    )
    return cast(type[Record], made)


_STRICT: Final = {name: _strict(kind) for name, kind in KINDS.items()}
#: Decoder for records of any known kind, many lines at a time.
_ALL: Final = msgspec.json.Decoder(Union[tuple(_STRICT.values())])  # noqa: UP007 - made of a list
_EACH: Final = {name: msgspec.json.Decoder(kind) for name, kind in KINDS.items()}
_ENVELOPE: Final = msgspec.json.Decoder(Envelope)
_MISTAKES: Final = (ValueError, RecursionError)
#: The field of each column that has one.
_FIELDS: Final = {
    **{name: {column_of(field): field for field in kind.__struct_fields__} for name, kind in KINDS.items()},
    UNKNOWN: {field: field for field in Unknown._fields},
}
_number: Final = operator.attrgetter("n")
_time: Final = operator.attrgetter("t")


class Rows(NamedTuple):
    """The contents of a segment: facts without days, rows by kind, and notes."""

    facts: SegmentFacts
    tables: dict[str, pa.Table]
    notes: list[str]


def rows_of(path: Path) -> Rows:
    """Return the rows of a segment, verified; Corrupt, OSError."""
    proof = prove(path)
    making = _Making(proof)
    path = there(path)
    with opened(path) as file:
        file.seek(len(line_of(proof.header)))
        making.read(_pieces(file, proof))
    return making.rows()


def _pieces(file: Any, proof: Proof) -> Iterator[bytes]:
    """Yield whole lines between header and trailer, many at a time; Corrupt."""
    left = proof.end - len(line_of(proof.header))
    torn = b""
    while left > 0:
        read = file.read(min(_PIECE_BYTES, left))
        left -= len(read)
        whole, end, rest = read.rpartition(b"\n")
        if not read or (left == 0 and rest):
            raise Corrupt(proof.path, proof.end - left, "the segment changed while it was read")
        if not end:
            torn += read
            continue
        yield b"".join((torn, whole, end))
        torn = rest


def _lines(octets: bytes) -> list[bytes]:
    """Return whole lines, each with its end."""
    return [line + b"\n" for line in octets.split(b"\n")[:-1]]


class _Making:
    """Collects the rows of one segment."""

    def __init__(self, proof: Proof) -> None:
        self._proof = proof
        self._offset = len(line_of(proof.header))
        self._last = proof.header.first - 1
        self._last_t = 0
        self._first_t = 0
        self._count = 0
        self._gaps: list[tuple[int, int, int, int]] = []
        self._notes: list[str] = []
        self._odd: dict[str, set[str]] = {}
        self._waiting: defaultdict[type, list[Any]] = defaultdict(list)
        self._tables: dict[str, list[pa.Table]] = {}

    def read(self, pieces: Iterator[bytes]) -> None:
        for octets in pieces:
            try:
                records = _ALL.decode_lines(octets)
            except _MISTAKES:
                records = []
            if len(records) != octets.count(b"\n"):
                records = self._one_by_one(_lines(octets))
            self._count_in(records, octets)
            for record in records:
                self._waiting[type(record)].append(record)
            for shape in [shape for shape, waiting in self._waiting.items() if len(waiting) >= _MAX_WAITING]:
                self._make(shape)
            self._offset += len(octets)

    def _one_by_one(self, lines: list[bytes]) -> list[Any]:
        """Return the records of lines of which at least one is unusual; Corrupt."""
        records: list[Any] = []
        offset = self._offset
        for line in lines:
            try:
                records.append(self._record(line))
            except _MISTAKES as error:
                raise Corrupt(self._proof.path, offset, f"this is not a record: {error}") from None
            offset += len(line)
        return records

    def _record(self, line: bytes) -> Any:
        """Return the record of a line; raises the errors of decoding."""
        envelope = _ENVELOPE.decode(line)
        decoder = _EACH.get(envelope.k)
        if decoder is None:
            return Unknown(envelope.n, envelope.t, envelope.k, line.decode().rstrip("\n"))
        record = decoder.decode(line)
        if odd := msgspec.json.decode(line).keys() - {"k", *record.__struct_fields__}:
            self._odd.setdefault(envelope.k, set()).update(odd)
        return record

    def _count_in(self, records: list[Any], octets: bytes) -> None:
        """Verify the order of numbers and times, and note gaps; Corrupt."""
        if not records:
            return
        numbers, times = list(map(_number, records)), list(map(_time, records))
        if numbers[0] <= self._last or not all(map(operator.lt, numbers, numbers[1:])):
            at = next(at for at, (a, b) in enumerate(pairwise([self._last, *numbers])) if b <= a)
            before = [self._last, *numbers][at]
            self._refuse(octets, at, f"the number {numbers[at]} comes after {before}")
        if min(times) < 0 or max(times) > LAST_US:
            at = next(at for at, t in enumerate(times) if not 0 <= t <= LAST_US)
            self._refuse(octets, at, "a record must have a number and a time")
        if numbers[-1] - self._last != len(numbers):
            before = [(self._last, self._last_t), *zip(numbers, times, strict=True)]
            self._gaps += [(a + 1, b - 1, ta, tb) for (a, ta), (b, tb) in pairwise(before) if b > a + 1]
        if not self._count:
            self._first_t = times[0]
        self._last, self._last_t = numbers[-1], times[-1]
        self._count += len(records)

    def _refuse(self, octets: bytes, at: int, why: str) -> None:
        before = _lines(octets)[:at]
        raise Corrupt(self._proof.path, self._offset + sum(map(len, before)), why)

    def _make(self, shape: type) -> None:
        records = self._waiting.pop(shape)
        kind = UNKNOWN if shape is Unknown else records[0].tag
        try:
            table = _table(kind, records, self._proof)
        except (ValueError, OverflowError):  # a number of more than 64 bits, or an invalid text
            self._refuse_value(kind, records)
            raise
        self._tables.setdefault(kind, []).append(table)

    def _refuse_value(self, kind: str, records: list[Any]) -> None:
        """Find the record that no row can be made of; Corrupt."""
        for record in records:
            try:
                _table(kind, [record], self._proof)
            except (ValueError, OverflowError) as error:
                with opened(self._proof.path) as file:
                    lines = SegmentReader(self._proof.path, file).lines()
                    offset = next(line.offset for line in lines if line.n == record.n)
                raise Corrupt(self._proof.path, offset, f"{kind} has a value that fits no table: {error}") from None

    def rows(self) -> Rows:
        """Return all rows; Corrupt if they differ from the trailer."""
        header, trailer = self._proof.header, self._proof.trailer
        if (trailer.count, trailer.last) != (self._count, self._last):
            why = f"the trailer counts {trailer.count} records up to number {trailer.last}"
            raise Corrupt(self._proof.path, self._proof.end, f"{why}, and there are {self._count} up to {self._last}")
        for shape in list(self._waiting):
            self._make(shape)
        for kind, odd in sorted(self._odd.items()):
            names = ", ".join(sorted(odd)[:10])
            self._notes.append(f"{self._proof.path}: {kind} has fields that are not known and left out: {names}")
        facts = SegmentFacts(
            router=header.router,
            boot=header.boot,
            first=header.first,
            last=self._last,
            count=self._count,
            crc=trailer.crc,
            whole=self._proof.whole,
            t_min=self._first_t,
            t_max=self._last_t,
            gaps=tuple(self._gaps),
            recovered=trailer.recovered,
        )
        return Rows(facts, {kind: pa.concat_tables(parts) for kind, parts in self._tables.items()}, self._notes)


def _table(kind: str, records: list[Any], proof: Proof) -> pa.Table:
    """Return rows of one kind, with their origin."""
    schema = arrow_schema_of(kind)
    header, count = proof.header, len(records)
    name = proof.path.name.removesuffix(COMPRESSED)
    constant = {"v": VERSION, "router": header.router, "boot": header.boot, "seg": name}
    fields = _FIELDS[kind]
    columns = []
    for column in columns_of(kind):
        shape = schema.field(column.name).type
        if column.name in constant:
            columns.append(pa.repeat(pa.scalar(constant[column.name], shape), count))
            continue
        values = list(map(operator.attrgetter("t" if column.name == "t_us" else fields[column.name]), records))
        if column.type.startswith("map"):
            values = [None if value is None else list(value.items()) for value in values]
        columns.append(pa.array(values, shape))
    return pa.Table.from_arrays(columns, schema=schema)
