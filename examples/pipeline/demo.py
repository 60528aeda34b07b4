"""Run the pipeline from end to end: `make pipeline-demo`, or `python examples/pipeline/demo.py [FOLDER]`.

It starts a router on a free port, sends traffic with an attack and a fraud in it, runs every job, and prints a report.
The exit status is 1 if the jobs did not find what the traffic planted. All files are in FOLDER (build/pipeline-demo),
which is emptied first.
"""

import json
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from trouter.cli import main as trouter
from trouter_pipeline.needs import Missing
from trouter_pipeline.progress import Progress
from trouter_pipeline.session import session

HERE = Path(__file__).parent
USERS = ("acme", "globex", "initech", "bank")
TROUTER = (sys.executable, "-m", "trouter")
#: A file in the folder, so that the program never empties another folder.
MARK = ".trouter-demo"
#: The fields in the body of a message about a card.
CARD = "id bigint, card string, channel string, amount string, t string"
PATIENCE_S = 60


def say(text: str) -> None:
    print(f"==> {text}", flush=True)


def emptied(folder: Path) -> Path:
    """Empty the folder, except for the mark, and write the configuration and the users; return the folder."""
    if folder.exists() and any(folder.iterdir()) and not (folder / MARK).exists():
        sys.exit(f"{folder} is not empty, and no demonstration made it: name another folder")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / MARK).touch()
    (folder / "secret").write_text("sesame\n", encoding="utf-8")
    for user in USERS:
        command = [*TROUTER, "passwd", "add", "users", user, "--password-file", "secret", "--scram", ""]
        subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)  # noqa: S603
    configuration = (HERE / "demo.conf").read_text(encoding="utf-8")
    (folder / "demo.conf").write_text(re.sub(r"port: \d+", "port: 0", configuration), encoding="utf-8")
    return folder


@contextmanager
def running(folder: Path, name: str, *words: str) -> Iterator[Path]:
    """Run a `trouter` command during the block; yield its log file."""
    log = folder / f"{name}.log"
    with (
        log.open("w", encoding="utf-8") as file,
        subprocess.Popen([*TROUTER, *words], cwd=folder, stderr=file) as process,  # noqa: S603
    ):
        try:
            yield log
        finally:
            process.send_signal(signal.SIGTERM)
            if process.wait(PATIENCE_S):
                sys.exit(f"{name} failed; see {log}")


def waited(log: Path, pattern: str) -> re.Match[str]:
    """Wait for a pattern in a log; return the match, or end the program after the time limit."""
    for _ in range(PATIENCE_S * 10):
        if found := re.search(pattern, log.read_text(encoding="utf-8")):
            return found
        time.sleep(0.1)
    sys.exit(f"{log} does not say {pattern!r}:\n{log.read_text(encoding='utf-8')}")


def record(folder: Path) -> dict[str, object]:
    """Send the traffic through a recording router; return what it planted."""
    with running(folder, "router", "run", "-c", "demo.conf") as log:
        waited(log, "Operational")
        url = "amqp://" + waited(log, r"Listening on (127\.0\.0\.1:\d+)")[1]
        spool = ("--url", url, "--address", "cards", "--dir", "spool", "--user", "bank", "--password-file", "secret")
        with running(folder, "spool", "pipeline", "spool", *spool):
            command = [sys.executable, str(HERE / "traffic.py"), url, "secret"]
            done = subprocess.run(command, cwd=folder, check=True, stdout=subprocess.PIPE, text=True)  # noqa: S603
    planted: dict[str, object] = json.loads(done.stdout)
    return planted


def analyse(folder: Path) -> dict[str, set[object]]:
    """Run every job on one Spark, and the report; return the rules and cards that raised an alert."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415  # Spark was seen to be there

    from trouter_pipeline.datasource import register  # noqa: PLC0415
    from trouter_pipeline.jobs import fraud  # noqa: PLC0415
    from trouter_pipeline.tables import Table  # noqa: PLC0415

    root = folder / "root"
    spark = session("trouter demonstration")
    begun = time.monotonic()
    say("Spark is up; looking for fraud in what the spool has")
    register(spark)
    cards = spark.read.format("amqp").options(spool=str(folder / "spool"), receiver="none").load()
    bodies = fraud.read_bodies(cards.select(F.col("body").alias("card_body")), "card_body", CARD)
    progress = Progress("demonstration")
    with progress.watching(spark):
        fraud.run(root, bodies, fraud.Pattern(), progress)
    say("every job on what the router recorded")
    status = trouter(["pipeline", "run", str(folder / "records"), str(root), "--config", str(folder / "demo.conf")])
    found: dict[str, set[object]] = {
        "rules": {row["rule"] for row in Table(root, "audit_alerts").read(spark).select("rule").distinct().collect()},
        "cards": {row["key"] for row in Table(root, fraud.TABLE).read(spark).select("key").collect()},
    }
    spark.stop()
    if status:
        sys.exit(status)
    say(f"{time.monotonic() - begun:.0f} seconds after Spark was up, the report is in {root / 'report.html'}")
    return found


def read_elsewhere(root: Path) -> bool:
    """Read the meter with programs that know nothing of trouter; return whether they agree on its version."""
    import duckdb  # noqa: PLC0415  # not before it is asked for
    from deltalake import DeltaTable  # noqa: PLC0415

    table = DeltaTable(str(root / "tables" / "meter"))
    connection = duckdb.connect()
    connection.register("meter", table.to_pyarrow_dataset())
    sums = {"DuckDB": connection.execute("SELECT sum(msgs)::BIGINT FROM meter").fetchall()[0][0]}
    if find_spec("polars") is not None:
        import polars as pl  # noqa: PLC0415

        lazy = pl.scan_delta(str(root / "tables" / "meter"), version=table.version())
        sums["polars"] = lazy.select(pl.col("msgs").sum()).collect().item()
    told = ", ".join(f"{count} by {name}" for name, count in sums.items())
    say(f"version {table.version()} of the meter, by {table.history(1)[0]['userMetadata']}; messages: {told}")
    return len({*sums.values()}) == 1


def main(folder: Path) -> int:
    """Return 0 if the jobs found everything that was planted."""
    say(f"a router, its tenants, an attack and a fraud, in {folder}")
    planted = record(emptied(folder))
    say("starting Spark")
    try:
        found = analyse(folder)
    except Missing as error:
        print(error, file=sys.stderr)
        return 1
    attack = {"brute-force", "success-after"} <= found["rules"]
    stolen = found["cards"] == {planted["stolen"]}
    say(f"{planted['guesses']} guesses of a password, and then the right one: {'found' if attack else 'NOT FOUND'}")
    say(f"a small payment and a large one with card {planted['stolen']}: {'found' if stolen else 'NOT FOUND'}")
    same = read_elsewhere(folder / "root")
    return 0 if attack and stolen and same else 1


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1] if len(sys.argv) > 1 else "build/pipeline-demo").absolute()))
