"""What actions that run on Spark share: their options, session, progress and errors."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final

from trouter.tools.failures import print_problem

if TYPE_CHECKING:
    from trouter_pipeline.progress import Progress

#: Values of `--engine`.
SPARK: Final = "spark"
DUCKDB: Final = "duckdb"
#: What is said of a Java process that has ended.
GONE: Final = (
    "the Java process of Spark has ended: it was killed, as by a machine without free memory (see dmesg), or its own "
    "stack or heap has overflowed, which Java prints above. What was committed stays, and the command goes on there if "
    "it is run again. Give Java more memory with --conf spark.driver.memory=2g, or a deeper stack, as a regular "
    "expression that recurses needs, with --conf spark.driver.extraJavaOptions=-Xss16m"
)


def add_spark(parser: argparse.ArgumentParser) -> None:
    """Add the options of an action that starts Spark."""
    group = parser.add_argument_group("Spark")
    group.add_argument(
        "--master",
        help="where Spark runs: local[2], spark://HOST:7077, yarn, k8s://...; by default what spark-submit was given, "
        "else all cores of this machine",
    )
    group.add_argument(
        "--conf",
        action="append",
        type=_setting,
        default=[],
        metavar="NAME=VALUE",
        help="a setting of Spark's, such as spark.driver.memory=4g; may be given again",
    )
    group.add_argument("--quiet", "-q", action="store_true", help="no progress on stderr")


def add_engine(parser: argparse.ArgumentParser) -> None:
    """Add the choice of the engine to an action that adds Spark's options, too, and whose job runs without Spark."""
    parser.add_argument(
        "--engine",
        choices=(SPARK, DUCKDB),
        default=SPARK,
        help="what computes: Spark (the default), or DuckDB in this process, without Java; the rows are the same",
    )
    parser.set_defaults(around=f"--engine {DUCKDB}, for which `pip install 'trouter[records]'` is enough")


def is_in_process(arguments: argparse.Namespace) -> bool:
    """Return whether the action is to run without Spark; ArgumentTypeError for options that only Spark has."""
    if arguments.engine == SPARK:
        return False
    refuse_spark(arguments, arguments.engine)
    return True


def refuse_spark(arguments: argparse.Namespace, engine: str) -> None:
    """Raise ArgumentTypeError for options that only Spark has; ``engine`` is the one that was chosen."""
    for name in ("master", "conf"):
        if getattr(arguments, name):
            raise argparse.ArgumentTypeError(f"--{name} is for --engine {SPARK}, not {engine}")


def cures(arguments: argparse.Namespace, found: str) -> str:
    """Return what Spark lacks and the cures, with the way around Spark if the action has one."""
    around = getattr(arguments, "around", "")
    return f"{found}; or run without Spark: {around}" if around else found


def _setting(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.startswith("spark."):
        raise argparse.ArgumentTypeError("write spark.NAME=VALUE")
    return name, value


def settings_of(arguments: argparse.Namespace) -> dict[str, str]:
    """Return the settings of Spark on the command line."""
    return dict(arguments.conf)


@contextmanager
def started(arguments: argparse.Namespace) -> Iterator[tuple[Any, Progress]]:
    """Yield a SparkSession for one action, whose progress is shown; stop Spark at the end, unless it ran before.

    SystemExit if Spark cannot run here.
    """
    with held(arguments) as (spark, progress), progress.watching(spark):
        yield spark, progress


@contextmanager
def held(arguments: argparse.Namespace) -> Iterator[tuple[Any, Progress]]:
    """Yield the same for an action that runs others, which show their own progress."""
    from trouter_pipeline.needs import Missing  # noqa: PLC0415  # only when an action runs
    from trouter_pipeline.progress import Progress  # noqa: PLC0415
    from trouter_pipeline.session import is_gone, is_running, session  # noqa: PLC0415

    shared, name = is_running(), arguments.command_parser.prog
    progress = Progress(name, quiet=arguments.quiet)
    if not shared:
        progress("starting Spark")
    try:
        spark = session(name, master=arguments.master, settings=settings_of(arguments))
        yield spark, progress
    except Missing as error:
        progress.close()
        print_problem(arguments, cures(arguments, str(error)))
        raise SystemExit(1) from None
    except Exception:
        if not is_gone():
            raise
        progress.close()
        print_problem(arguments, GONE)
        raise SystemExit(1) from None
    finally:
        if not shared and is_running():
            with suppress(Exception):  # a process that has ended cannot be stopped
                spark.stop()
