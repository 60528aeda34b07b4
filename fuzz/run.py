"""Fuzz one target: `python fuzz/run.py codec --seconds 60`.

A target is a module beside this one with a function `check(data)` that returns for every input; the first line of its
docstring is the invariant it holds the code to. With atheris installed, libFuzzer steers by the coverage of the
interpreted twin; without it, mutations of the seeds are tried at random on whichever twin is installed. An input that
fails is kept in `seeds/TARGET/` as `crash-...`, where tests/fuzz replays it for ever after.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import importlib.util
import os
import random
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

HERE = Path(__file__).resolve().parent
SEEDS = HERE / "seeds"
SLOW_S = 1.0  # no input of at most a few kB may take this long
MAX_BYTES = 4096
LENGTHS = (0, 1, 2, 0x7F, 0x80, 0xFE, 0xFF, 0x100, 0xFFFF, 0x10000, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFE, 0xFFFFFFFF)
CODES = bytes.fromhex("00404142434445505152535455566061707172737480818283849498a0a1a3b0b1b3c0c1d0d1e0f0")

Check = Callable[[bytes], None]


class SlowInput(AssertionError):
    """An input took longer than SLOW_S."""


def targets() -> list[str]:
    """Every target there is."""
    return sorted(path.stem for path in HERE.glob("*.py") if path.stem != "run")


def load(target: str) -> Check:
    """The `check` of a target; its module is importable as fuzz.TARGET from the root of the project."""
    if str(HERE.parent) not in sys.path:
        sys.path.insert(0, str(HERE.parent))
    check: Check = importlib.import_module(f"fuzz.{target}").check
    return check


def seeds_of(target: str) -> list[Path]:
    """The seeds and past crashes of a target."""
    return sorted(path for path in (SEEDS / target).iterdir() if path.is_file())


def mutate(rng: random.Random, seeds: Sequence[bytes]) -> bytes:
    """One to eight changes to one of the seeds, of the kinds that hurt decoders."""
    data = bytearray(rng.choice(seeds))
    for _ in range(rng.choice((1, 1, 1, 2, 2, 4, 8))):
        at = rng.randrange(len(data) + 1)
        kind = rng.randrange(8)
        if kind == 0 and at < len(data):
            data[at] ^= 1 << rng.randrange(8)
        elif kind == 1 and at < len(data):
            data[at] = rng.choice(CODES)
        elif kind == 2:
            data[at : at + 4] = rng.choice(LENGTHS).to_bytes(4, "big")
        elif kind == 3 and at < len(data):
            data[at] = rng.randrange(256)
        elif kind == 4:
            del data[at : at + rng.randrange(1, 9)]
        elif kind == 5:
            data[at:at] = rng.randbytes(rng.randrange(1, 5))
        elif kind == 6:
            piece = data[at : at + rng.randrange(1, 17)]
            data[at:at] = piece * rng.choice((1, 2, 40))
        else:
            other = rng.choice(seeds)
            cut = rng.randrange(len(other) + 1)
            data[at:] = other[cut:]
    return bytes(data[:MAX_BYTES])


def mutations(rng: random.Random, seeds: Sequence[bytes], seconds: float) -> Iterator[bytes]:
    """The seeds themselves, then mutations until the time is up."""
    yield from seeds
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for _ in range(100):
            yield mutate(rng, seeds)


def hunt(check: Check, inputs: Iterator[bytes]) -> tuple[int, bytes | None, BaseException | None]:
    """How many inputs were tried, and the first that failed with what it raised."""
    tried = 0
    for data in inputs:
        tried += 1
        begun = time.thread_time()  # not that of others on a busy machine
        try:
            check(data)
            if time.thread_time() - begun > SLOW_S:
                raise SlowInput(f"{len(data)} bytes took {time.thread_time() - begun:.1f} s")
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # noqa: BLE001 - whatever it is, it is what we look for
            return tried, data, error
    return tried, None, None


def keep(target: str, data: bytes) -> Path:
    """Store a failing input among the seeds."""
    path = SEEDS / target / f"crash-{hashlib.sha256(data).hexdigest()[:16]}"
    path.write_bytes(data)
    return path


def run_plain(target: str, seconds: float, rng_seed: int) -> int:
    """Random mutation; the exit status."""
    seeds = [path.read_bytes() for path in seeds_of(target)]
    print(f"fuzz {target}: {len(seeds)} seeds, {seconds:g} s, --rng-seed {rng_seed}", flush=True)
    tried, data, error = hunt(load(target), mutations(random.Random(rng_seed), seeds, seconds))
    if data is None or error is None:
        print(f"fuzz {target}: {tried} inputs, no failure")
        return 0
    traceback.print_exception(error)
    print(f"fuzz {target}: input {tried} failed, kept as {keep(target, data)}")
    return 1


def run_atheris(target: str, seconds: float, rng_seed: int) -> int:
    """Coverage-guided; libFuzzer ends the process itself."""
    os.environ["TROUTER_PURE"] = "1"  # coverage is of Python code
    atheris = importlib.import_module("atheris")
    with atheris.instrument_imports(include=["trouter", "fuzz"]):
        check = load(target)
    arguments = [
        f"-max_total_time={int(seconds)}",
        f"-seed={rng_seed}",
        f"-max_len={MAX_BYTES}",
        "-timeout=10",
        f"-artifact_prefix={SEEDS / target}/",
        tempfile.mkdtemp(prefix=f"fuzz-{target}-"),  # what it finds interesting; the seeds are only read
        str(SEEDS / target),
    ]
    atheris.Setup([sys.argv[0], *arguments], check)
    atheris.Fuzz()
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description="Fuzz one target.")
    parser.add_argument("target", choices=targets())
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--rng-seed", type=int, default=random.randrange(1, 2**31))
    parser.add_argument("--plain", action="store_true", help="random mutation even if atheris is installed")
    options = parser.parse_args()
    if options.plain or importlib.util.find_spec("atheris") is None:
        return run_plain(options.target, options.seconds, options.rng_seed)
    return run_atheris(options.target, options.seconds, options.rng_seed)


if __name__ == "__main__":
    sys.exit(main())
