"""Inputs of a target for tests with Hypothesis, which reduces an input that fails to a small one."""

from __future__ import annotations

from hypothesis import strategies as st

from trouter.testing.fuzz.mutation import MAX_BYTES, octets
from trouter.testing.fuzz.target import FuzzTarget


def inputs(target: FuzzTarget) -> st.SearchStrategy[bytes]:
    """Return a strategy for the inputs of a target: any bytes, its seeds, and changes of them by its mutator."""
    seeds = st.sampled_from(target.seeds or [b""])
    changed = st.builds(target.mutator or octets, st.randoms(use_true_random=False), seeds, seeds)
    return st.one_of(st.binary(max_size=MAX_BYTES), changed, changed.flatmap(_cut))


def _cut(data: bytes) -> st.SearchStrategy[bytes]:
    return st.integers(0, len(data)).map(lambda end: data[:end])
