"""Give trouter and an equivalent in python-qpid-proton the same load in turn, each as a module that is run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final

from bench.chapters import Bench
from bench.measure import Sample, Spread, ratios

#: The quick bench sends this part of the messages.
_QUICK: Final = 4


@dataclass(frozen=True, slots=True)
class Row:
    """Messages of ``size`` bytes, and the target: how many times as many a second trouter must handle."""

    name: str
    size: int
    count: int
    target: float | None = None

    def count_for(self, bench: Bench) -> int:
        return self.count if bench.extent.everything else self.count // _QUICK


def beside_proton(
    bench: Bench, what: str, row: Row, ours: str, theirs: str, run: Callable[[Bench, str, int, int], Sample]
) -> None:
    """Measure a row of both modules; ``run`` makes one sample of a module, a size and a count."""
    name = f"{what}, {row.name}"
    subjects: dict[str, Callable[[], Sample]] = {
        who: partial(run, bench, module, row.size, row.count_for(bench))
        for who, module in (("trouter", ours), ("python-qpid-proton", theirs))
    }
    of_us, of_them = bench.interleave(name, subjects).values()
    bench.figure(f"{name}: messages/s to proton's", rates(of_us, of_them), "x", row.target, at_least=True)
    bench.figure(f"{name}: proton's CPU per message to ours", ratios(of_them, of_us), "x")


def rates(over: list[Sample], under: list[Sample]) -> Spread:
    """Return the ratio of messages a second, repetition by repetition."""
    return Spread.of([above.per_second / below.per_second for above, below in zip(over, under, strict=True)])
