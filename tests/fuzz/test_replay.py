"""Every seed and every past crash of every fuzz target passes, and the driver finds a planted failure."""

from __future__ import annotations

import ast
import random
import tracemalloc
from pathlib import Path

import pytest

from fuzz import run
from trouter.testing.fuzz import FuzzTarget, hunt_mutations, octets, text
from trouter.testing.fuzz.command import replay
from trouter.testing.fuzz.hunting import SlowInput, cuts, try_one
from trouter.testing.fuzz.mutation import MAX_BYTES

#: Count of inputs of all targets: seeds, and their beginnings.
SEEDS_IN_ALL = 2000
CUTS_BY_TARGET = 250


pytestmark = pytest.mark.usefixtures("quiet")


@pytest.mark.fuzz
@pytest.mark.parametrize("name", run.targets())
def test_the_seeds_pass_whole_and_cut(name: str) -> None:
    target = run.load(name)
    most = CUTS_BY_TARGET // len(target.inputs)
    assert [(seed, repr(error)) for seed, error in replay(target, most)] == []


@pytest.mark.parametrize("name", run.targets())
def test_a_target_has_seeds_and_documents_its_invariant_and_allowed_exceptions(name: str) -> None:
    text = ast.get_docstring(ast.parse((run.HERE / f"{name}.py").read_text())) or ""
    assert text.startswith("Any ")
    assert "Allowed: " in text
    assert len(run.load(name).inputs) >= 5


def test_the_manual_names_the_number_of_targets_and_seeds() -> None:
    assert len(run.targets()) >= 16
    assert sum(len(run.load(name).inputs) for name in run.targets()) >= SEEDS_IN_ALL


def finds_two_high_octets(data: bytes) -> None:
    if data.startswith(b"\xff\xff"):
        raise IndexError("found")


def test_a_failure_is_found_and_the_input_handed_out(tmp_path: Path) -> None:
    found = hunt_mutations(FuzzTarget("two", finds_two_high_octets, tmp_path / "two"), 1, executions=100_000)
    assert found.data is not None
    assert found.data.startswith(b"\xff\xff")
    assert isinstance(found.error, IndexError)
    assert found.tried < 100_000


def test_the_same_seed_of_the_generator_finds_the_same_input(tmp_path: Path) -> None:
    (tmp_path / "one").write_bytes(b"abcdef")
    target = FuzzTarget("two", finds_two_high_octets, tmp_path)
    first, again = (hunt_mutations(target, 1, executions=100_000) for _ in range(2))
    assert first.data == again.data != None  # noqa: E711 - all three
    assert first.tried == again.tried


def test_a_crash_is_kept_among_the_seeds_and_replayed(tmp_path: Path) -> None:
    target = FuzzTarget("kept", finds_two_high_octets, tmp_path / "kept")
    assert replay(target) == []
    path = target.keep(b"\xff\xffand more")
    assert target.keep(b"\xff\xffand more") == path
    assert [(found, type(error)) for found, error in replay(target)] == [(path.name, IndexError)]


def test_an_input_that_takes_too_long_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trouter.testing.fuzz.hunting.SLOW_S", 0.0)
    assert isinstance(try_one(lambda data: None, b""), SlowInput)


def test_a_mutation_is_bounded_and_an_empty_seed_does_not_stop_the_mutation() -> None:
    rng = random.Random(1)
    mutators = {run.load(name).mutator for name in run.targets()}
    for mutator in mutators:
        change = mutator or octets
        seeds = (b"", b"x" * MAX_BYTES, b"\0\0\0\x0c\2\0\0\0\0\x53\x18\x45")
        assert all(
            len(change(rng, data, other)) <= 2 * MAX_BYTES for data in seeds for other in seeds for _ in range(9)
        )


class _Draws(random.Random):
    """A random source that returns the given numbers in their order."""

    def __init__(self, *draws: float) -> None:
        super().__init__()
        self._draws = iter(draws)

    def random(self) -> float:
        return next(self._draws)


def test_a_word_that_is_repeated_again_and_again_stays_within_the_bound() -> None:
    again = (0.0, 0.99, 0.99)  # the first word, the last kind of change, the larger count
    tracemalloc.start()
    try:
        assert text(_Draws(0.5, *again, *again), b"x" * MAX_BYTES, b"") == b"x" * MAX_BYTES
        assert tracemalloc.get_traced_memory()[1] < 1000 * MAX_BYTES
    finally:
        tracemalloc.stop()


def test_cuts_are_bounded_and_reach_from_nothing_to_everything() -> None:
    assert list(cuts(b"abcdef", 3)) == [b"abcdef", b"", b"ab", b"abcd"]
    assert list(cuts(b"ab", 100)) == [b"ab", b"", b"a"]
    assert list(cuts(b"ab", 0)) == [b"ab"]
    assert list(cuts(b"", 5)) == [b""]


def invariant_of(name: str) -> str:
    """Return the first paragraph of a target's docstring."""
    text = ast.get_docstring(ast.parse((run.HERE / f"{name}.py").read_text())) or ""
    return " ".join(text.partition("\n\n")[0].split())


@pytest.mark.parametrize("name", run.targets())
def test_the_manual_has_the_invariant_of_a_target(name: str) -> None:
    page = (run.HERE.parent / "docs" / "fuzzing.md").read_text(encoding="utf-8")
    assert f"| `{name}` | {invariant_of(name)} |\n" in page
