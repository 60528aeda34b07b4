"""The checksums of spools are zlib's, whichever library counts them."""

from __future__ import annotations

import builtins
import importlib
import platform
import random
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from trouter_pipeline.spool import checksums

pytestmark = pytest.mark.one_twin


@pytest.fixture
def without_isal(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., int]]:
    imported = builtins.__import__

    def refuse(name: str, *arguments: Any, **named: Any) -> Any:
        if name.startswith("isal"):
            raise ImportError(name)
        return imported(name, *arguments, **named)

    with monkeypatch.context() as patched:
        patched.setattr(builtins, "__import__", refuse)
        importlib.reload(checksums)
    yield checksums.crc32
    importlib.reload(checksums)


@pytest.mark.parametrize("size", [0, 1, 15, 16, 17, 255, 4096, 10_000, 1 << 20])
def test_a_checksum_is_that_of_zlib(size: int) -> None:
    data = random.Random(size).randbytes(size)
    view = memoryview(data)
    assert checksums.crc32(view) == zlib.crc32(data)
    assert checksums.crc32(view[size // 3 :], checksums.crc32(view[: size // 3])) == zlib.crc32(data)


def test_a_machine_without_isal_counts_with_zlib(without_isal: Callable[..., int]) -> None:
    assert without_isal is zlib.crc32


@pytest.mark.skipif(
    platform.machine() not in {"x86_64", "AMD64", "aarch64", "arm64"}, reason="isal is required on no other machine"
)
def test_this_machine_has_isal() -> None:
    assert checksums.crc32 is not zlib.crc32
