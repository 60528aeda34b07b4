"""Every seed and every past crash of every fuzz target passes, and the driver does find a failure when there is one."""

from __future__ import annotations

import ast
import random
from pathlib import Path

import pytest

from fuzz import run

INPUTS = [(target, path) for target in run.targets() for path in run.seeds_of(target)]


@pytest.mark.fuzz
@pytest.mark.parametrize(("target", "path"), INPUTS, ids=[f"{target}/{path.name}" for target, path in INPUTS])
def test_a_seed_passes_whole_and_cut_anywhere(target: str, path: Path) -> None:
    check = run.load(target)
    data = path.read_bytes()
    for end in range(max(0, len(data) - 400), len(data) + 1):
        check(data[:end])


@pytest.mark.parametrize("target", run.targets())
def test_a_target_has_seeds_and_states_its_invariant_and_what_it_allows(target: str) -> None:
    text = ast.get_docstring(ast.parse((run.HERE / f"{target}.py").read_text())) or ""
    assert text.startswith("Any ")
    assert "Allowed: " in text
    assert len(run.seeds_of(target)) >= 5


@pytest.mark.fuzz
@pytest.mark.parametrize("target", run.targets())
def test_some_mutations_of_the_seeds_pass(target: str) -> None:
    rng = random.Random(20261121)
    seeds = [path.read_bytes() for path in run.seeds_of(target)]
    tried, data, error = run.hunt(run.load(target), (run.mutate(rng, seeds) for _ in range(2000)))
    assert (tried, data, error) == (2000, None, None)


def test_a_failure_is_found_and_the_input_handed_out() -> None:
    def check(data: bytes) -> None:
        if data.startswith(b"\xff\xff"):
            raise IndexError("found")

    rng = random.Random(1)
    tried, data, error = run.hunt(check, (run.mutate(rng, [b"abcdef"]) for _ in range(100_000)))
    assert data is not None
    assert data.startswith(b"\xff\xff")
    assert isinstance(error, IndexError)
    assert tried < 100_000


def test_a_mutation_is_bounded_and_an_empty_seed_does_not_stop_it() -> None:
    rng = random.Random(1)
    assert all(len(run.mutate(rng, [b"", b"x" * run.MAX_BYTES])) <= run.MAX_BYTES for _ in range(2000))
