"""Targets under atheris, the fuzzer of OSS-Fuzz and ClusterFuzzLite, which keeps inputs that reach new code.

``write_harness`` writes what these services take: for each target a program with ``TestOneInput``, its seeds in a zip
archive, and a dictionary. ``hunt_guided`` runs such a program on this machine. Both take the target as it is declared.
"""

from __future__ import annotations

import importlib.util
import os
import random
import re
import subprocess
import sys
import tempfile
import zipfile
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

from trouter.testing.fuzz.mutation import MAX_BYTES, Mutator
from trouter.testing.fuzz.target import FuzzTarget

#: The end of the name of a harness: the services' example scripts look for files that are named so.
HARNESS_END: Final = "_fuzzer"
#: Packages whose interpreted modules atheris watches for a target that covers no modules of its own.
_WATCHED: Final = ("trouter", "trouter_plugins", "trouter_pipeline")
_WORD: Final = re.compile(rb"[A-Za-z][\w.:/$-]{2,30}")
_MAX_WORDS: Final = 300
_HARNESS: Final = '''\
"""The fuzz target `{name}` under atheris; written by trouter.testing.fuzz from the target's file."""

import gc
import logging
import sys

import atheris

with atheris.instrument_imports(include={watched!r}, exclude={excluded!r}):
    import {module} as target

from trouter.testing.fuzz.guided import custom_mutators


def TestOneInput(data: bytes) -> None:
    target.check(data)


logging.disable()
gc.set_threshold(20_000)
atheris.Setup(sys.argv, TestOneInput, **custom_mutators(getattr(target, "MUTATOR", None)))
atheris.Fuzz()
'''


def custom_mutators(mutator: Mutator | None) -> dict[str, Any]:
    """Return the arguments of ``atheris.Setup`` by which libFuzzer changes inputs with ``mutator`` half of the time."""
    if mutator is None:
        return {}
    import atheris  # noqa: PLC0415 - only a harness needs it

    def change(data: bytes, max_bytes: int, seed: int) -> bytes:
        rng = random.Random(seed)
        if rng.random() < 0.5:
            return bytes(atheris.Mutate(data, max_bytes))
        return mutator(rng, data, data)[:max_bytes]

    def cross(data: bytes, other: bytes, max_bytes: int, seed: int) -> bytes:
        return mutator(random.Random(seed), data, other)[:max_bytes]

    return {"custom_mutator": change, "custom_crossover": cross}


def write_harness(target: FuzzTarget, folder: Path) -> Path:
    """Write the harness of a target, its seeds and its dictionary to a folder; return the harness's path; OSError.

    OSS-Fuzz and ClusterFuzzLite take ``NAME_fuzzer.py`` through `compile_python_fuzzer`, and
    ``NAME_fuzzer_seed_corpus.zip`` and ``NAME_fuzzer.dict`` by their names.
    """
    folder.mkdir(parents=True, exist_ok=True)
    name = f"{target.name}{HARNESS_END}"
    ours = [f"{__package__}.{path.stem}" for path in sorted(Path(__file__).parent.glob("*.py"))]
    watched = target.covers or _WATCHED
    path = folder / f"{name}.py"
    text = _HARNESS.format(name=target.name, module=target.module, watched=watched, excluded=ours)
    path.write_text(text, encoding="utf-8")
    with zipfile.ZipFile(folder / f"{name}_seed_corpus.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for number, seed in enumerate(target.seeds):
            archive.writestr(f"{number:04}", seed)
    lines = [f'"{_escaped(word)}"\n' for word in words_of(target.seeds)]
    if lines:  # libFuzzer takes no empty dictionary
        path.with_suffix(".dict").write_text("".join(lines), encoding="ascii")
    return path


def words_of(seeds: Iterable[bytes]) -> list[bytes]:
    """Return the words that occur in more than one seed, the most frequent ones, sorted."""
    counts = Counter(word for seed in seeds for word in set(_WORD.findall(seed)))
    return sorted(word for word, count in counts.most_common(_MAX_WORDS) if count > 1)


def _escaped(word: bytes) -> str:
    return "".join(chr(octet) if 32 < octet < 127 and octet not in b'"\\' else f"\\x{octet:02x}" for octet in word)


def hunt_guided(target: FuzzTarget, counted: Path | None, options: Sequence[str]) -> int:
    """Run a target under atheris, from its seeds, with options of libFuzzer; return the exit status.

    An input that fails is kept among the seeds. Coverage guides atheris in the modules compiled with counters in the
    folder ``counted``, or else in interpreted ones.
    """
    with tempfile.TemporaryDirectory(prefix="guided-") as name:
        harness = write_harness(target, Path(name))
        corpus = Path(name, "corpus")
        corpus.mkdir()
        for number, seed in enumerate(target.seeds):
            (corpus / f"{number:04}").write_bytes(seed)
        target.folder.mkdir(parents=True, exist_ok=True)
        every = [*options, f"-max_len={MAX_BYTES}", f"-artifact_prefix={target.folder}/"]
        if (words := harness.with_suffix(".dict")).exists():
            every.append(f"-dict={words}")
        environment = guiding(counted, target.place)
        done = subprocess.run([sys.executable, str(harness), *every, str(corpus)], env=environment, check=False)  # noqa: S603 - this very program
    if not any(target.folder.iterdir()):
        target.folder.rmdir()
    return done.returncode


def guiding(counted: Path | None, place: Path) -> dict[str, str]:
    """Return the environment of a process whose coverage is counted: in modules with counters or in interpreted ones.

    ``place`` is a folder that it imports from. ModuleNotFoundError without atheris.
    """
    spec = importlib.util.find_spec("atheris")
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError("atheris is not installed: pip install atheris")
    paths = [*([str(counted.resolve())] if counted else []), str(place)]
    if before := os.environ.get("PYTHONPATH"):
        paths.append(before)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    if counted is None:
        return {**environment, "TROUTER_PURE": "1"}
    # libFuzzer comes before the modules that call it
    return {**environment, "LD_PRELOAD": str(Path(spec.origin).parents[1] / "ubsan_with_fuzzer.so")}
