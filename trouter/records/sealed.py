"""Verifies the seals of a folder's segments with the verification key."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, NamedTuple

from trouter.records.reader import FoundSeal, RecordLine, SegmentReader
from trouter.records.schema import RecordsSealed
from trouter.records.seals import MAX_STEPS, KeyState, first_key, key_path, later_key, read_state, seal_of
from trouter.records.segments import SegmentPosition, numbered

_SUFFIX: Final = ".sealkey"
#: Keys that a check computes for the seals of all routers, so that a forged number costs no more than half a minute:
#: those of a seal a minute for 64 years, or of one a second for a year.
MAX_KEYS: Final = 1 << 25
#: Keys computed at once that take more than a second, so that the check says what it does.
_MANY_KEYS: Final = 1 << 20


class _Router:
    """The seals of one router so far: the next key and its number, and the records that no seal covers yet.

    ``present`` is the key that the router has, None if it cannot be read; ``computed`` is what it should be by the
    verification key, None as long as the check has not come to it.
    """

    def __init__(self, key: bytes, present: KeyState | None) -> None:
        self.epoch = 0
        self.key = key
        self.present = present
        self.computed: bytes | None = None
        self.move(0)
        self.sealed = False
        self.sealed_us = 0
        self.pending = 0

    def move(self, epoch: int) -> None:
        """Compute the key of seal ``epoch``, which is not before that of `key`."""
        present = None if self.present is None else self.present.epoch
        if present is not None and self.epoch <= present <= epoch:
            self.computed = later_key(self.key, present - self.epoch)
            self.epoch, self.key = present, self.computed
        self.key = later_key(self.key, epoch - self.epoch)
        self.epoch = epoch


class SealGap(NamedTuple):
    """Seals that are missing before one in the segment at ``place``, and where that one is.

    ``segment_missing`` if the segment before is missing, too.
    """

    place: SegmentPosition
    where: str
    first: int
    last: int
    segment_missing: bool


class Seals:
    """The seals of a folder, verified in the order of its segments; what is wrong is added to ``errors``."""

    def __init__(
        self, folder: Path, key: bytes, errors: list[str], notes: list[str], announce: Callable[[str], object]
    ) -> None:
        """Read the routers' present keys, before any segment is read; OSError.

        ``announce`` is called with what takes more than a second.
        """
        self.unproved = 0
        #: Missing seals, which reports of deleted segments should name.
        self.gaps: list[SealGap] = []
        self._folder = folder
        self._key = key
        self._errors = errors
        self._notes = notes
        self._announce = announce
        self._routers: dict[str, _Router] = {}
        self._present: dict[str, KeyState] = {}
        self._keys_left = MAX_KEYS
        for path in sorted(folder.glob(f"*{_SUFFIX}")):
            label = path.name.removesuffix(_SUFFIX)
            try:
                state = read_state(path)
            except (OSError, ValueError) as error:
                errors.append(f"{path}: cannot be read, so nothing proves the end: {error}")
                continue
            if state is not None:
                self._present[label] = state
                self._router(label)

    def _router(self, label: str) -> _Router:
        router = self._routers.get(label)
        if router is None:
            router = self._routers[label] = _Router(first_key(self._key, label), self._present.get(label))
        return router

    def begin(self, place: SegmentPosition, *, linked: bool) -> None:
        """Begin with a segment; ``linked`` if its header proves the segment before."""
        router = self._router(place.router)
        if not linked:
            self.unproved += router.pending
            router.pending = 0

    def read(self, place: SegmentPosition, reader: SegmentReader, line: RecordLine, *, gap: bool) -> bool:
        """Take a record; return whether it is a seal. ``gap``: the segment before this one is missing."""
        router = self._router(place.router)
        router.pending += 1
        seal, found = line.record, reader.seal
        if not isinstance(seal, RecordsSealed) or found is None:
            return False
        if line.octets != numbered(line.n, RecordsSealed(t=seal.t, epoch=seal.epoch, mac=seal.mac)) + b"\n":
            self._errors.append(f"{place.path}: byte {line.offset}: the seal was changed after it was written")
        where = f"{place.path}: byte {line.offset}"
        if not self._is_possible(place.router, seal.epoch, where):
            return False
        self._note_gap(place, where, seal.epoch, gap=gap)
        return self._verify(router, where, found, seal.t)

    def end(self, place: SegmentPosition, reader: SegmentReader, *, gap: bool) -> bool:
        """End a segment; return whether its trailer has a seal."""
        router, trailer, found = self._router(place.router), reader.trailer, reader.seal
        if trailer is None:
            return False
        if trailer.epoch is None or found is None:
            if trailer.recovered:
                self._notes.append(
                    f"{place.path}: {router.pending} records at its end were not sealed when it was recovered"
                )
            elif router.sealed:
                self._errors.append(f"{place.path}: byte {reader.end}: is complete without a seal, after sealed ones")
            return False
        where = f"{place.path}: byte {reader.end}"
        if not self._is_possible(place.router, trailer.epoch, where):
            return False
        self._note_gap(place, where, trailer.epoch, gap=gap)
        return self._verify(router, where, found, trailer.t or 0)

    def _is_possible(self, label: str, epoch: int, where: str) -> bool:
        """Return whether a router can have made a seal of this number, and its key can be computed; else an error."""
        router, present = self._router(label), self._present.get(label)
        if epoch < router.epoch:
            self._errors.append(f"{where}: seal {epoch} comes where seal {router.epoch} should be")
        elif present is not None and epoch > present.epoch + MAX_STEPS:
            self._errors.append(f"{where}: seal {epoch} comes, and the router's key is for seal {present.epoch}")
        elif epoch - router.epoch > self._keys_left:
            self._errors.append(
                f"{where}: seal {epoch} is not verified: a check computes no more than {MAX_KEYS} keys, those of a "
                "seal a minute for 64 years"
            )
        else:
            return True
        return False

    def _note_gap(self, place: SegmentPosition, where: str, epoch: int, *, gap: bool) -> None:
        """Note the seals that are missing before seal ``epoch``."""
        following = self._router(place.router).epoch
        if epoch > following:
            self.gaps.append(SealGap(place, where, following, epoch - 1, gap))

    def _verify(self, router: _Router, where: str, seal: FoundSeal, moment: int) -> bool:
        """Return whether a seal of this ``moment``, in microseconds since 1970, is one of the router's."""
        self._move(router, seal.epoch)
        if seal_of(router.key, seal.digest, seal.line) != seal.mac:
            self._errors.append(f"{where}: seal {seal.epoch} is not of this key and these records")
            return False
        self._move(router, seal.epoch + 1)
        router.sealed, router.sealed_us, router.pending = True, moment, 0
        return True

    def _move(self, router: _Router, epoch: int) -> None:
        """Compute the key of a seal, and count it among those that a check computes."""
        steps = epoch - router.epoch
        if steps > _MANY_KEYS:
            self._announce(f"computing the keys of {steps} seals, which takes up to a second for each million")
        router.move(epoch)
        self._keys_left -= steps

    def conclude(self, now_us: int) -> None:
        """Compare the ends with the routers' present keys, and note what is proved."""
        if not self._routers:
            self._errors.append(f"{self._folder}: there is no seal and no key of a router here")
        for label, router in self._routers.items():
            self.unproved += router.pending
            path = key_path(self._folder, label)
            state = self._present.get(label)
            if not router.sealed and (state is None or state.epoch):
                self._errors.append(f"{path}: no segment of this router has a seal of this key")
                continue
            if state is None:
                self._errors.append(
                    f"{path}: is missing or cannot be used, so later seals may have been cut off; check where the "
                    "router writes, as its user or root"
                )
            elif state.epoch > router.epoch:
                self._errors.append(f"{path}: seals missing at the end: {router.epoch}-{state.epoch - 1}")
            else:
                self._compare(path, router, state)
            if router.sealed:
                moment = datetime.fromtimestamp(router.sealed_us / 1_000_000, UTC).strftime("%Y-%m-%d %H:%M:%S")
                age = (now_us - router.sealed_us) // 1_000_000
                self._notes.append(
                    f"{label}: the last seal is number {router.epoch - 1}, of {moment} UTC, {age} seconds ago; "
                    f"{router.pending} records came after it"
                )

    def _compare(self, path: Path, router: _Router, state: KeyState) -> None:
        if router.computed is None or router.computed.hex() != state.key:
            self._errors.append(f"{path}: is not the key of seal {state.epoch} by this verification key")
