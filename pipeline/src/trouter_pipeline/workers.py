"""The workers of a running Spark: what they have, what they see, and what their clocks say.

Workers may have nothing of ours. So each function that runs there is nested, which Spark ships by value, and imports
what it needs itself.
"""

from __future__ import annotations

import sys
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from trouter_pipeline.needs import CURE, Found, Need, found_in, judged_output, probe_text
from trouter_pipeline.packing import PACKAGES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Row = TypeVar("Row")

#: The cure for a worker without our package.
SHIP: Final = f"ship it (`trouter pipeline pack FILE` says how), or {CURE}"
#: Clocks may differ by so much.
CLOCK_S: Final = 1.0
CLOCK_CURE: Final = "let a service such as chrony set the clocks of all machines"
MOUNT_CURE: Final = "mount the same file system under this path on all machines"


def missing_at_workers(spark: SparkSession) -> list[Need]:
    """Return what the Pythons of the workers lack, each fault once."""
    return lacking(reports(spark))


def reports(spark: SparkSession) -> dict[str, set[str]]:
    """Return what the probe printed at each worker, by its host."""

    def answer(_: Iterable[int]) -> Iterator[tuple[str, str]]:
        import os  # noqa: PLC0415  # on a worker
        import platform  # noqa: PLC0415
        import subprocess as processes  # noqa: PLC0415
        import sys as system  # noqa: PLC0415

        there = {**os.environ, "PYTHONPATH": os.pathsep.join(system.path)}  # with what --py-files has brought
        command = [system.executable, "-c", text]
        done = processes.run(command, capture_output=True, text=True, check=False, env=there)  # noqa: S603
        yield platform.node(), done.stdout or done.stderr

    text = probe_text()
    told: dict[str, set[str]] = {}
    for host, output in _at_each(spark, answer):
        told.setdefault(host, set()).add(output)
    return dict(sorted(told.items()))


def lacking(told: dict[str, set[str]]) -> list[Need]:
    """Return the faults in what the probe printed at the workers."""
    needs: dict[Need, None] = {}
    for host, outputs in told.items():
        for output in sorted(outputs):
            needs.update(dict.fromkeys(judged_output(output, f" at the worker {host}", cure=SHIP)))
    return list(needs)


def differing(here: Found, told: dict[str, set[str]]) -> list[Need]:
    """Return what workers have otherwise than this process, and what that costs; jobs run all the same or fail soon."""
    needs: dict[Need, None] = {}
    for host, outputs in told.items():
        for there in filter(None, map(found_in, sorted(outputs))):
            spark, own = there.packages.get("pyspark"), here.packages.get("pyspark")
            if spark and own and spark != own:
                cure = f"submit with the cluster's own Spark (SPARK_HOME), or pip install pyspark=={spark} here"
                needs[Need(f"Spark at the worker {host} is {spark}, and here {own}", cure)] = None
            if there.ours and here.compiled and not there.compiled:
                what = f"the worker {host} runs trouter interpreted, which decodes messages at a tenth of the speed"
                needs[Need(what, "ship it as an archive: `trouter pipeline pack FILE` says how")] = None
    return list(needs)


def wrong_clocks(spark: SparkSession) -> list[Need]:
    """Return the workers whose clocks differ from this machine's."""

    def answer(_: Iterable[int]) -> Iterator[tuple[str, float]]:
        import platform  # noqa: PLC0415  # on a worker
        import time as clock  # noqa: PLC0415

        yield platform.node(), clock.time()

    before = time.time()
    told = _at_each(spark, answer)
    return clocks_off(told, before, time.time())


def clocks_off(told: Iterable[tuple[str, float]], before: float, after: float) -> list[Need]:
    """Return the hosts whose time was not between ``before`` and ``after``, as far as that is certain."""
    off = {host: at - after if at > after else at - before for host, at in told if not before <= at <= after}
    return [
        Need(f"the clock at the worker {host} is {abs(by):,.0f} s {'ahead' if by > 0 else 'behind'}", CLOCK_CURE)
        for host, by in sorted(off.items())
        if abs(by) > CLOCK_S
    ]


def unshared(spark: SparkSession, folder: Path) -> list[Need]:
    """Return the workers that do not see this folder as this machine does, or cannot write into it."""
    name = f".trouter-doctor-{uuid.uuid4().hex}"
    probe = folder / name

    def answer(_: Iterable[int]) -> Iterator[tuple[str, str, str]]:
        import os  # noqa: PLC0415  # on a worker
        import platform  # noqa: PLC0415
        import uuid as ids  # noqa: PLC0415

        host, path = platform.node(), os.path.join(where, name)  # noqa: PTH118
        mine = f"{path}-{ids.uuid4().hex}"
        if not os.path.exists(path):  # noqa: PTH110
            yield host, "is not what the worker {} sees there", ""
            return
        try:
            os.close(os.open(mine, os.O_CREAT | os.O_WRONLY))
        except OSError as error:
            yield host, f"cannot be written by the worker {{}} ({error.strerror})", ""
        else:
            yield host, "", mine

    where = str(folder.absolute())
    try:
        probe.touch()
    except OSError as error:
        return [Need(f"{folder} cannot be written here: {error.strerror}", "make it, or give another folder")]
    needs: dict[Need, None] = {}
    try:
        for host, wrong, mine in sorted(_at_each(spark, answer)):
            if not wrong:
                try:
                    Path(mine).unlink()
                except FileNotFoundError:
                    wrong = "does not have here what the worker {} writes there"
            if wrong:
                needs[Need(f"{folder} {wrong.format(host)}", MOUNT_CURE)] = None
    finally:
        with suppress(OSError):
            probe.unlink()
    return list(needs)


def _at_each(spark: SparkSession, answer: Callable[[Iterable[int]], Iterator[Row]]) -> set[Row]:
    """Return what the workers answer: as many tasks as cores, so that each worker gets one unless it is busy."""
    context = spark.sparkContext
    tasks: Any = context.parallelize(range(context.defaultParallelism), context.defaultParallelism)
    return set(tasks.mapPartitions(answer).collect())


def paths_of_ours() -> list[str]:
    """Return the folders from which this Python imports our packages and their needs."""
    ours = [str(Path(import_module(name).__path__[0]).parent) for name in PACKAGES]
    installed = [each for each in sys.path if each.endswith(("site-packages", "dist-packages"))]
    return list(dict.fromkeys([*ours, *installed]))
