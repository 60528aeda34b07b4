"""The order of memory that workers state for their shared numbers is enough, and each part of it is needed.

Spin tries all orders in which the steps of the workers can take effect (`tests/net/order/`). The last test runs the
operations of the compiled twin on this processor.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.house.sources import ROOT, compiled_modules, module_of

MODELS = ROOT / "tests/net/order"
TURNS = 20_000

needs_spin = pytest.mark.skipif(shutil.which("spin") is None, reason="spin is not installed: apt-get install spin")


def errors(model: str, folder: Path, *left_out: str) -> int:
    """Return how many errors Spin finds in a model, of which it shows the first, without some of its orders."""
    defined = [f"-D{each}=1" for each in left_out]
    for command in (
        ["spin", *defined, "-a", str(MODELS / model)],
        ["cc", "-O1", "-w", "-DSAFETY", "-o", "pan", "pan.c"],
    ):
        subprocess.run(command, cwd=folder, check=True, capture_output=True)
    done = subprocess.run([str(folder / "pan")], cwd=folder, check=True, capture_output=True, text=True)
    return int(done.stdout.partition("errors: ")[2].split()[0])


@needs_spin
@pytest.mark.parametrize("model", ["places.pml", "slot.pml"])
def test_with_all_orders_spin_finds_no_error(model: str, tmp_path: Path) -> None:
    assert errors(model, tmp_path) == 0


@needs_spin
@pytest.mark.parametrize(
    ("model", "left_out"),
    [
        ("places.pml", "NO_FENCE"),
        ("slot.pml", "NO_ZERO_FIRST"),
        ("slot.pml", "NO_RELEASE"),
        ("slot.pml", "NO_ACQUIRE"),
        ("slot.pml", "NO_LOOK_AGAIN"),
    ],
)
def test_without_one_of_the_orders_spin_finds_an_error(model: str, left_out: str, tmp_path: Path) -> None:
    assert errors(model, tmp_path, left_out) == 1


def test_only_compiled_modules_use_the_operations() -> None:
    """Others would get those of the interpreted twin, which state no order."""
    using = (path for path in (ROOT / "trouter").rglob("*.py") if "import atomics" in path.read_text(encoding="utf-8"))
    users = {module_of(path) for path in using}
    assert users
    assert users <= set(compiled_modules())


@pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")
@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="two processors are needed for two writers at once")
def test_two_writers_on_this_processor_see_each_other(tmp_path: Path) -> None:
    """The same program without the fence shows whether this machine had the chance to reorder."""
    operations = (ROOT / "trouter/net/atomics.pxd").read_text(encoding="utf-8").split('"""')[1]
    (tmp_path / "operations.h").write_text(operations, encoding="utf-8")
    missed = {}
    for fence in (0, 1):
        program = str(tmp_path / f"writers{fence}")
        flags = ["-O2", "-pthread", f"-DFENCE={fence}", "-DCYTHON_INLINE=inline", "-DPy_ssize_t=long"]
        subprocess.run(["cc", *flags, f"-I{tmp_path}", "-o", program, str(MODELS / "writers.c")], check=True)
        missed[fence] = int(subprocess.run([program, str(TURNS)], check=True, capture_output=True, text=True).stdout)
    assert missed[1] == 0
    if not missed[0]:
        pytest.skip("without the fence, too, this machine let both see each other each time: nothing is shown")
