"""Requirements of the jobs on their machine, and the cures for missing ones."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Package(NamedTuple):
    """A package for pip and its versions: from ``least`` on, and below ``below`` if that is set."""

    name: str
    least: tuple[int, int]
    below: int | None = None


#: The cure is the same for all.
PACKAGES: Final = (
    Package("pyspark", (4, 0)),
    Package("pyarrow", (15, 0)),
    Package("pandas", (2, 2), below=3),
    Package("protobuf", (5, 0)),
)
#: Packages of the program that starts Spark, beside the others; workers do without.
ON_DRIVER: Final = (Package("deltalake", (1, 6)),)
CURE: Final = "pip install 'trouter[spark]'"
#: The oldest Java that Spark 4 runs on.
JAVA: Final = 17
JAVA_CURE: Final = f"install Java {JAVA} or newer (Debian: apt-get install openjdk-17-jre-headless)"
#: The package that a worker must import, beside the others.
OURS: Final = "trouter_pipeline"
#: A Java process with one gigabyte of heap, and Python beside it.
MEMORY_MB: Final = 1_500
#: Shuffles and state go to the disk; with less than this free even small jobs fail half-way.
SCRATCH_MB: Final = 1_000
#: Time-out for a program that prints its version.
RUN_TIMEOUT_S: Final = 60.0


class Need(NamedTuple):
    """A missing requirement, and the cure."""

    what: str
    cure: str


class Missing(Exception):
    """Spark cannot run here; the text names all that is missing."""


def missing() -> list[Need]:
    """Return all missing requirements, in the order in which a job would need them."""
    return [*_java(), *_packages(), *_spark_home(), *_workers_python()]


def require() -> None:
    """Raise Missing if a requirement is missing."""
    if found := missing():
        raise Missing("; ".join(lines(found)))


def lines(needs: Iterable[Need]) -> list[str]:
    """Return a line for each cure, after all that it cures."""
    cured: dict[str, list[str]] = {}
    for need in needs:
        cured.setdefault(need.cure, []).append(need.what)
    return [f"{', '.join(what)}: {cure}" for cure, what in cured.items()]


def scarce() -> list[Need]:
    """Return scarce resources; a job may still succeed."""
    needs = []
    if (free := _free_memory_mb()) is not None and free < MEMORY_MB:
        needs.append(
            Need(
                f"{free:,} MB of memory are free, and Spark and Python want about {MEMORY_MB:,} MB",
                "free some, or give less to Spark: --conf spark.driver.memory=512m",
            )
        )
    scratch = Path(os.environ.get("SPARK_LOCAL_DIRS", tempfile.gettempdir()).partition(",")[0])
    try:
        left = shutil.disk_usage(scratch).free >> 20
    except OSError as error:
        needs.append(
            Need(f"{scratch}: {error.strerror}", "name a folder for Spark's scratch files in SPARK_LOCAL_DIRS")
        )
    else:
        if left < SCRATCH_MB:
            needs.append(
                Need(
                    f"{left:,} MB are free in {scratch}, where Spark keeps its scratch files",
                    "make room, or name another folder in SPARK_LOCAL_DIRS",
                )
            )
    return needs


def _free_memory_mb() -> int | None:
    """Return the available memory in MB; None if it is unknown."""
    try:
        meminfo = Path("/proc/meminfo").read_text(encoding="ascii")
    except OSError:
        return None
    found = re.search(r"^MemAvailable:\s+(\d+) kB", meminfo, re.MULTILINE)
    return int(found[1]) >> 10 if found else None


def _java() -> list[Need]:
    home = os.environ.get("JAVA_HOME")
    program = Path(home, "bin", "java") if home else Path(shutil.which("java") or "java")
    if not shutil.which(str(program)):
        return [Need("Java is not on PATH" if not home else f"JAVA_HOME has no {program}", JAVA_CURE)]
    _, output = _output_of([str(program), "-version"])
    found = re.search(r'version "(\d+)', output)
    if found is None or int(found[1]) < JAVA:
        return [Need(f"{program} is too old or does not run: {output.splitlines()[:1]}", JAVA_CURE)]
    return []


def _output_of(command: list[str]) -> tuple[int, str]:
    """Return exit status and output of a program; 127 and the reason if it cannot run."""
    try:
        done = subprocess.run(  # noqa: S603  # what the operator's environment names
            command, capture_output=True, text=True, check=False, timeout=RUN_TIMEOUT_S, errors="replace"
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return 127, str(error)
    return done.returncode, done.stdout + done.stderr


def _packages() -> list[Need]:
    found: dict[str, str | None] = {}
    for package in (*PACKAGES, *ON_DRIVER):
        try:
            found[package.name] = version(package.name)
        except PackageNotFoundError:
            found[package.name] = None
    return list(judged(found, packages=(*PACKAGES, *ON_DRIVER)))


def judged(found: dict[str, str | None], where: str = "", packages: Sequence[Package] = PACKAGES) -> Iterator[Need]:
    """Yield the faults of package versions (None: not installed). ``where`` names another Python for the text."""
    if absent := [package.name for package in packages if found.get(package.name) is None]:
        named = f"package {absent[0]} is" if len(absent) == 1 else f"packages {', '.join(absent)} are"
        yield Need(f"the {named} not installed{where}", CURE + where)
    for package in packages:
        has = found.get(package.name)
        if has is None:
            continue
        number = tuple(int(part) for part in re.findall(r"\d+", has)[:2])
        if number < package.least:
            wanted = ".".join(map(str, package.least))
            yield Need(f"the package {package.name}{where} is {has}, and {wanted} or newer is needed", CURE + where)
        elif package.below is not None and number >= (package.below,):
            yield Need(
                f"the package {package.name}{where} is {has}, and one below {package.below} is needed", CURE + where
            )


def spark_home() -> Path | None:
    """Return the folder of Spark: SPARK_HOME, or the package's; None without both."""
    if home := os.environ.get("SPARK_HOME"):
        return Path(home)
    found = find_spec("pyspark")
    return Path(found.origin).parent if found and found.origin else None


def _spark_home() -> list[Need]:
    home = spark_home()
    if home is None:
        return []  # the missing package is reported already
    unset = "unset SPARK_HOME, and the package's own Spark is used" if "SPARK_HOME" in os.environ else CURE
    jars = home / "jars"
    cores = sorted(jars.glob("spark-core_*.jar"))
    if not cores:
        return [Need(f"there is no Spark in {home}: it has no jars/spark-core_*.jar", unset)]
    theirs, ours = cores[0].stem.rpartition("-")[2], _version_of_pyspark()
    needs = []
    if ours is not None and theirs.split(".")[:2] != ours.split(".")[:2]:
        needs.append(Need(f"Spark in {home} is {theirs}, and the package pyspark is {ours}", unset))
    if not any(jars.glob("rocksdbjni-*.jar")):
        needs.append(Need(f"{jars} has no rocksdbjni-*.jar, which keeps the state of streams", unset))
    return needs


def _version_of_pyspark() -> str | None:
    try:
        return version("pyspark")
    except PackageNotFoundError:
        return None


#: The program that a Python runs to report its packages, as one line of JSON.
_PROBE: Final = """
import json, sys
from importlib.metadata import PackageNotFoundError, version
found = {{}}
for name in {names!r}:
    try:
        found[name] = version(name)
    except PackageNotFoundError:
        found[name] = None
try:
    import {ours}
    ours = ""
except ImportError as error:
    ours = str(error)
print(json.dumps([list(sys.version_info[:2]), found, ours]))
"""


def _workers_python() -> list[Need]:
    """Return the faults of the workers' Python on this machine, if PYSPARK_PYTHON names another than this one."""
    chosen = os.environ.get("PYSPARK_PYTHON")
    if not chosen or _same(chosen):
        return []
    cure = "unset PYSPARK_PYTHON, and workers run this Python"
    if shutil.which(chosen) is None:
        if os.path.sep in chosen and not Path(chosen).is_absolute():
            return []  # a path within an archive that a cluster unpacks: the workers are checked there
        return [Need(f"PYSPARK_PYTHON is {chosen}, which is not there", cure)]
    status, output = _output_of([chosen, "-c", probe_text()])
    if status:
        return [Need(f"PYSPARK_PYTHON is {chosen}, which does not run: {output.strip().splitlines()[-1:]}", cure)]
    return list(judged_worker(output, f" for {chosen}"))


def _same(program: str) -> bool:
    found = shutil.which(program)
    return found is not None and Path(found).absolute() == Path(sys.executable).absolute()


def probe_text() -> str:
    """Return a program that prints what its Python has, for `judged_worker`."""
    return _PROBE.format(names=[package.name for package in PACKAGES], ours=OURS)


def judged_worker(output: str, where: str) -> Iterator[Need]:
    """Yield the faults of a Python that printed ``output`` for the probe; ``where`` names it in the text."""
    try:
        (major, minor), found, ours = json.loads(output.strip().splitlines()[-1])
    except (ValueError, IndexError):
        yield Need(f"the Python{where} does not run: {output.strip().splitlines()[-1:]}", CURE + where)
        return
    if (major, minor) != sys.version_info[:2]:
        wanted = f"{sys.version_info[0]}.{sys.version_info[1]}"
        yield Need(
            f"the Python{where} is {major}.{minor}, and this one is {wanted}", f"run the same Python {wanted} in both"
        )
    yield from judged(found, where)
    if ours:
        yield Need(f"{OURS} cannot be imported{where} ({ours})", CURE + where)


def missing_at_workers(spark: SparkSession) -> list[Need]:
    """Return what the Pythons of a running Spark's workers lack, each fault once."""

    def answer(_: Iterable[int]) -> Iterator[tuple[str, str]]:
        import platform  # noqa: PLC0415  # this runs on a worker, which may have nothing of ours
        import subprocess as processes  # noqa: PLC0415
        import sys as system  # noqa: PLC0415

        done = processes.run([system.executable, "-c", text], capture_output=True, text=True, check=False)  # noqa: S603
        yield platform.node(), done.stdout or done.stderr

    text = probe_text()
    context = spark.sparkContext
    # As many tasks as cores, so that each worker gets one unless it is busy.
    answers = set(
        context.parallelize(range(context.defaultParallelism), context.defaultParallelism)
        .mapPartitions(answer)
        .collect()
    )
    needs: dict[Need, None] = {}
    for host, output in sorted(answers):
        needs.update(dict.fromkeys(judged_worker(output, f" at the worker {host}")))
    return list(needs)
