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
from typing import Any, Final, NamedTuple

from trouter_pipeline import __version__


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
#: What a worker must import, beside the packages.
OURS: Final = "trouter_pipeline"
ON_WORKER: Final = (f"{OURS}.slices", f"{OURS}.sink")
#: The module whose twin decides how fast a worker reads messages.
HOT: Final = f"{OURS}.decoding"
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
    return [*_java(), *_packages(), *_spark_home(), *_workers_python(), *_other_package()]


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
    program = _java_program()
    if not shutil.which(str(program)):
        return [Need(f"JAVA_HOME has no {program}" if "JAVA_HOME" in os.environ else "Java is not on PATH", JAVA_CURE)]
    _, output = _output_of([str(program), "-version"])
    if int(_version_of_java(output).partition(".")[0] or 0) < JAVA:
        return [Need(f"{program} is too old or does not run: {output.splitlines()[:1]}", JAVA_CURE)]
    return []


def _java_program() -> Path:
    home = os.environ.get("JAVA_HOME")
    return Path(home, "bin", "java") if home else Path(shutil.which("java") or "java")


def _version_of_java(output: str) -> str:
    """Return the version that `java -version` printed, "" if it printed none."""
    found = re.search(r'version "(\d[^"]*)', output)
    return found[1] if found else ""


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


#: The program that a Python runs to report what it has, as one line of JSON. Spark's own folder on a cluster has
#: pyspark without metadata. Java is that of the executor which started this Python, if one did.
_PROBE: Final = """
import importlib, json, os, subprocess, sys
from importlib.metadata import PackageNotFoundError, version
packages = {{}}
for name in {names!r}:
    try:
        packages[name] = version(name)
    except PackageNotFoundError:
        packages[name] = None
try:
    packages["pyspark"] = importlib.import_module("pyspark").__version__
except ImportError:
    pass
found = dict(python=sys.version_info[:3], packages=packages, ours=None, compiled=False, why="", lacks="", java="")
try:
    for name in {modules!r}:
        importlib.import_module(name)
    found["ours"] = importlib.import_module({ours!r}).__version__
    found["compiled"] = importlib.import_module("trouter._twin").is_compiled({hot!r})
except ImportError as error:
    found.update(why=str(error), lacks=error.name or "")
above = os.getpid()
try:
    while above > 1 and not found["java"]:
        with open(f"/proc/{{above}}/stat") as file:
            above = int(file.read().rpartition(")")[2].split()[1])
        program = os.readlink(f"/proc/{{above}}/exe")
        if os.path.basename(program) == "java":
            told = subprocess.run([program, "-version"], capture_output=True, text=True).stderr
            found["java"] = told.partition('"')[2].partition('"')[0]
except (OSError, ValueError, IndexError):
    pass
print(json.dumps(found))
"""


class Found(NamedTuple):
    """What a Python reported; None or "" for what it lacks."""

    python: tuple[int, int, int]
    packages: dict[str, str | None]
    #: The version of our package, whether it runs compiled, why it cannot be imported, and the module that it lacks.
    ours: str | None = None
    compiled: bool = False
    why: str = ""
    lacks: str = ""
    java: str = ""

    def __str__(self) -> str:
        twin = "compiled" if self.compiled else "interpreted"
        return ", ".join(
            [
                f"Python {'.'.join(map(str, self.python))}",
                f"Java {self.java or 'unknown'}",
                f"Spark {self.packages.get('pyspark') or 'none'}",
                f"pyarrow {self.packages.get('pyarrow') or 'none'}",
                f"trouter {self.ours}, {twin}" if self.ours else "no trouter",
            ]
        )


def _workers_python() -> list[Need]:
    """Return the faults of the workers' Python on this machine, if PYSPARK_PYTHON names another than this one."""
    chosen = os.environ.get("PYSPARK_PYTHON")
    if not chosen or is_this_python(chosen):
        return []
    cure = "unset PYSPARK_PYTHON, and workers run this Python"
    if shutil.which(chosen) is None:
        if os.path.sep in chosen and not Path(chosen).is_absolute():
            return []  # a path within an archive that a cluster unpacks: the workers are checked there
        return [Need(f"PYSPARK_PYTHON is {chosen}, which is not there", cure)]
    status, output = _output_of([chosen, "-c", probe_text()])
    if status:
        return [Need(f"PYSPARK_PYTHON is {chosen}, which does not run: {output.strip().splitlines()[-1:]}", cure)]
    return list(judged_output(output, f" for {chosen}"))


def _other_package() -> list[Need]:
    """Return the fault of a working folder with another package of our name, such as a checkout's.

    Spark starts Pythons with ``-m``, which look there first, and would mix the two.
    """
    if os.environ.get("PYTHONSAFEPATH"):
        return []
    needs = []
    for name in ("trouter", OURS):
        there, spec = Path.cwd() / name / "__init__.py", find_spec(name)
        if spec is not None and spec.origin and there.is_file() and not there.samefile(spec.origin):
            needs.append(
                Need(
                    f"Spark's Pythons would import {there.parent} of the working folder, and not "
                    f"{Path(spec.origin).parent}, which is installed",
                    "run the command in another folder, or with PYTHONSAFEPATH=1",
                )
            )
    return needs


def is_this_python(program: str) -> bool:
    """Return whether ``program`` is the Python that runs this."""
    found = shutil.which(program)
    return found is not None and Path(found).absolute() == Path(sys.executable).absolute()


def probe_text() -> str:
    """Return a program that prints what its Python has, for `found_in`."""
    return _PROBE.format(names=[package.name for package in PACKAGES], ours=OURS, modules=ON_WORKER, hot=HOT)


def found_in(output: str) -> Found | None:
    """Return what a Python printed for the probe; None if that cannot be read."""
    try:
        told: dict[str, Any] = json.loads(output.strip().splitlines()[-1])
        return Found(**{**told, "python": tuple(told["python"])})
    except (ValueError, IndexError, TypeError, KeyError):
        return None


def found_here() -> Found:
    """Return what this Python has, and the Java that it would start."""
    _, output = _output_of([sys.executable, "-c", probe_text()])
    found = found_in(output) or Found(sys.version_info[:3], {})
    _, output = _output_of([str(_java_program()), "-version"])
    return found._replace(java=_version_of_java(output))


def judged_output(output: str, where: str, *, cure: str = CURE) -> Iterator[Need]:
    """Yield the faults of a Python that printed ``output`` for the probe; ``where`` names it in the text.

    ``cure`` is what to do if it lacks our package.
    """
    found = found_in(output)
    if found is None:
        yield Need(f"the Python{where} does not run: {output.strip().splitlines()[-1:]}", CURE + where)
        return
    if found.python[:2] != sys.version_info[:2]:
        wanted = f"{sys.version_info[0]}.{sys.version_info[1]}"
        yield Need(
            f"the Python{where} is {found.python[0]}.{found.python[1]}, and this one is {wanted}",
            f"run the same Python {wanted} in both",
        )
    yield from judged(found.packages, where)
    absent = {name for name, has in found.packages.items() if has is None}
    if found.why and found.lacks.partition(".")[0] not in absent:
        yield Need(f"{OURS} cannot be imported{where} ({found.why})", cure + where)
    elif found.ours is not None and found.ours != __version__:
        yield Need(f"{OURS}{where} is {found.ours}, and this one is {__version__}", cure + where)
