"""Each planted bug can be planted; `make planted` does it, and takes minutes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.planted.bugs import BUGS, Bug
from tests.planted.run import COPIED, ROOT

KINDS = 14


@pytest.mark.parametrize("bug", BUGS, ids=[f"{bug.kind}: {bug.what}" for bug in BUGS])
def test_the_place_of_a_bug_is_there_once_and_so_are_its_tests_and_targets(bug: Bug) -> None:
    source = (ROOT / bug.file).read_text(encoding="utf-8")
    assert source.count(bug.old) == 1
    compile(source.replace(bug.old, bug.new), bug.file, "exec")
    assert all((ROOT / test.partition("::")[0]).is_file() for test in bug.tests)
    assert all((ROOT / "fuzz" / f"{target}.py").is_file() for target in bug.targets)


def test_every_kind_of_bug_is_planted() -> None:
    assert len({bug.kind for bug in BUGS}) == KINDS


def test_a_copy_has_the_folders_of_every_row_and_what_pytest_reads() -> None:
    needed = {Path(name.partition("::")[0]).parts[0] for bug in BUGS for name in (bug.file, *bug.tests)}
    needed |= {path.name for path in ROOT.glob("conftest.py")} | {"fuzz", "pyproject.toml"}
    assert needed <= set(COPIED)
