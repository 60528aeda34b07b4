"""A spool that is opened after any cut or change: it has an exact prefix, with at least the accepted messages."""

from __future__ import annotations

import shutil
import struct
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from pipeline.tests.spool.support import fill, frames, holds, message
from trouter_pipeline.spool import Spool, SpoolCorrupt, SpoolReader, SpoolReplaced

GROUPS = 2
SIZES = (0, 8, 40)
#: A folder in memory, if there is one: these cases do not depend on the disk.
MEMORY = Path("/dev/shm")


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    with TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else tmp_path) as made:
        yield Path(made) / "spool"


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a spool of one segment with six messages."""
    folder = tmp_path_factory.mktemp("written") / "spool"
    with Spool.open(folder) as spool:
        for _ in range(GROUPS):
            for size in SIZES:
                spool.append(message(spool.next, size), tag=b"tag", ingest_us=spool.next)
            spool.sync()
    return folder


def ends_of(segment: bytes) -> list[int]:
    """Return the end of each frame of a segment, the header first; computed from the format, without trouter's code."""
    ends = [64]
    while ends[-1] < len(segment):
        ends.append(ends[-1] + 8 + int.from_bytes(segment[ends[-1] : ends[-1] + 4], "big"))
    return ends


def again(written: Path, folder: Path, segment: bytes, marked: int) -> Path:
    """Return the same spool with another segment, and the mark at ``marked``."""
    if not folder.exists():
        shutil.copytree(written, folder)
    (folder / f"{0:016}.spool").write_bytes(segment)
    (folder / "durable").write_bytes(struct.pack(">QQ", marked, marked ^ 0xFFFFFFFFFFFFFFFF))
    return folder


def test_cut_at_any_octet_the_frames_before_are_there_and_the_sequence_goes_on(written: Path, folder: Path) -> None:
    whole = (written / f"{0:016}.spool").read_bytes()
    ends = ends_of(whole)
    assert len(ends) == 1 + GROUPS * len(SIZES)
    for cut in range(len(whole)):
        again(written, folder, whole[:cut], marked=0)
        good = sum(end <= cut for end in ends[1:])
        with Spool.open(folder) as spool:
            assert (spool.next, spool.durable) == (good, good), cut
            spool.append(b"more", ingest_us=0)
            assert spool.sync() == good + 1
        found = frames(folder)
        assert [frame.message for frame in found[:-1]] == [message(n, SIZES[n % 3]) for n in range(good)], cut
        assert (found[-1].sequence, found[-1].message) == (good, b"more")


def test_any_changed_octet_is_noticed_and_no_later_message_is_read(written: Path, folder: Path) -> None:
    whole = (written / f"{0:016}.spool").read_bytes()
    ends = ends_of(whole)
    for at in range(len(whole)):
        for bit in (1, 128):
            again(written, folder, whole[:at] + bytes([whole[at] ^ bit]) + whole[at + 1 :], marked=0)
            good = 0 if at < 64 else sum(end <= at for end in ends[1:])
            with Spool.open(folder) as spool:
                assert (spool.next, spool.durable) == (good, good), (at, bit)


def test_damage_to_accepted_messages_is_an_error_with_its_place(written: Path, folder: Path) -> None:
    whole = (written / f"{0:016}.spool").read_bytes()
    ends = ends_of(whole)
    for good in range(len(ends) - 1):
        at = ends[good] + 20
        again(written, folder, whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :], marked=len(ends) - 1)
        with pytest.raises(SpoolCorrupt, match=f"offset {ends[good]}: a frame with a wrong checksum") as caught:
            Spool.open(folder)
        assert (caught.value.path.name, caught.value.offset) == (f"{0:016}.spool", ends[good])
        with pytest.raises(SpoolCorrupt, match=f"offset {ends[good]}"):
            frames(folder)
        again(written, folder, whole[:at], marked=len(ends) - 1)
        with pytest.raises(SpoolCorrupt, match="ends within the frame"):
            Spool.open(folder)
        again(written, folder, whole[: ends[good]], marked=len(ends) - 1)
        with pytest.raises(SpoolCorrupt, match=f"messages {good} to 5 are gone"):
            Spool.open(folder)


def test_a_bad_frame_in_a_sealed_segment_is_never_cut_off(folder: Path) -> None:
    with Spool.open(folder, segment_bytes=500) as spool:
        for _ in range(3):
            fill(spool, 5)
    (folder / "durable").write_bytes(struct.pack(">QQ", 0, 0xFFFFFFFFFFFFFFFF))
    sealed = folder / f"{5:016}.spool"
    good = sealed.read_bytes()
    for octets, why in [
        (good[:190] + b"????????" + good[198:], "wrong checksum"),
        (good[:-1], "ends within the frame of message 9"),
        (good[: ends_of(good)[3]], "ends before message 8, but the next one begins with message 10"),
        (good + b"more", "ends within the frame of message 10"),
        (good[:30], "ends within its header"),
        (b"?" * 64 + good[64:], "not a segment of a spool"),
    ]:
        sealed.write_bytes(octets)
        with pytest.raises(SpoolCorrupt, match=why) as caught:
            Spool.open(folder)
        assert caught.value.path == sealed
        assert sealed.read_bytes() == octets
    sealed.write_bytes(good)
    Spool.open(folder).close()
    holds(folder, 0, 15)


def test_a_segment_of_another_spool_does_not_pass(folder: Path, tmp_path: Path) -> None:
    for each in (folder, tmp_path / "other"):
        with Spool.open(each) as spool:
            fill(spool, 3)
    shutil.copy(tmp_path / "other" / f"{0:016}.spool", folder)
    with pytest.raises(SpoolReplaced, match="but this is the folder of spool"):
        Spool.open(folder)


@pytest.mark.parametrize("name", ["spool.json", "durable", "consumed"])
@pytest.mark.parametrize("octets", [b"", b"?", b"\0" * 16, b"[]", b'{"version":2}'])
def test_damage_to_the_small_files_is_reported_and_never_taken_for_the_beginning(
    folder: Path, name: str, octets: bytes
) -> None:
    with Spool.open(folder) as spool:
        fill(spool, 3)
    (folder / name).write_bytes(octets)
    with pytest.raises(SpoolCorrupt, match=name):
        Spool.open(folder)
    (folder / name).unlink()
    with pytest.raises((SpoolCorrupt, FileNotFoundError), match=name):
        Spool.open(folder)


def test_segments_that_are_all_gone_are_not_an_empty_spool(folder: Path) -> None:
    with Spool.open(folder) as spool:
        fill(spool, 3)
    (folder / f"{0:016}.spool").unlink()
    with pytest.raises(SpoolCorrupt, match="every segment up to message 3 is gone"):
        Spool.open(folder)


def test_halves_of_files_that_were_being_made_do_no_harm(folder: Path) -> None:
    with Spool.open(folder, segment_bytes=500) as spool:
        fill(spool, 3)
    for name in ("spare.part", "spool.json.part"):
        (folder / name).write_bytes(b"half")
    (folder / "spare").write_bytes(b"")
    with Spool.open(folder, segment_bytes=500) as spool:
        for _ in range(3):
            fill(spool, 3)
    holds(folder, 0, 12)


def test_a_spool_whose_making_was_cut_short_is_made_again(folder: Path) -> None:
    folder.mkdir()
    (folder / "durable").write_bytes(b"")
    (folder / "spool.json.part").write_bytes(b"{")
    with Spool.open(folder) as spool:
        fill(spool, 1)
    assert SpoolReader(folder).durable() == 1
