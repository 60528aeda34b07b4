"""A standalone cluster of Spark on this machine: a master and workers, each a process that a test may kill.

Its workers run a Python that has what Spark's own operators need, and nothing of trouter or of trouter's needs. So a
test that passes on it ships all that a worker needs.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import Final

from trouter_pipeline.needs import spark_home
from trouter_pipeline.packing import pack
from trouter_pipeline.packing import settings as settings_of

#: What the workers' Python has, with its needs.
THERE: Final = ("pyarrow", "pandas", "protobuf")
MEMORY: Final = "512m"
#: A quick start, and little memory, for processes that live for a minute.
JAVA: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
_HERE: Final = ("--host", "127.0.0.1", "--webui-port", "0")
#: Of a worker and of what runs in its executors: as on a machine that has nothing of the driver's.
_NOT_THEIRS: Final = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "PYSPARK_PYTHON", "TROUTER_PURE")


def _with_needs(names: Iterable[str]) -> dict[str, Distribution]:
    """Return the installed distributions of these names and of all that they need."""
    found: dict[str, Distribution] = {}
    wanted = list(names)
    while wanted:
        name = re.split(r"[^\w.-]", wanted.pop(), maxsplit=1)[0].lower().replace("_", "-")
        if name in found:
            continue
        try:
            found[name] = distribution(name)
        except PackageNotFoundError:  # a need of another platform or version
            continue
        wanted += [each for each in found[name].requires or () if "extra ==" not in each]
    return found


def bare_python(folder: Path) -> Path:
    """Make a Python that has only ``THERE``, and return its program."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    python = folder / "bin" / "python"
    where = [str(python), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]
    site = Path(subprocess.run(where, capture_output=True, text=True, check=True).stdout.strip())
    for found in _with_needs(THERE).values():
        for top in {file.parts[0] for file in found.files or () if ".." not in file.parts} - {"__pycache__"}:
            (site / top).symlink_to(Path(str(found.locate_file(top))))
    return python


class Daemon:
    """A process of Spark, whose log goes to a file."""

    def __init__(self, log: Path, environment: Mapping[str, str], *command: str | Path) -> None:
        self.log = log
        self._drain_thread: threading.Thread | None = None
        home = spark_home()
        assert home is not None
        self._process = subprocess.Popen(  # spark-class becomes Java
            [home / "bin" / "spark-class", *command],
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, cwd=log.parent, env=dict(environment),
        )  # fmt: skip

    def wait_for(self, pattern: str) -> str:
        """Return the group of the pattern in the line of the log that has it; go on writing the log."""
        assert self._process.stderr is not None
        with self.log.open("w") as file:
            for line in self._process.stderr:
                file.write(line)
                if found := re.search(pattern, line):
                    break
            else:
                file.flush()
                raise AssertionError(self.log.read_text())
        self._drain_thread = threading.Thread(target=self._drain, daemon=True)
        self._drain_thread.start()
        return found[1]

    def _drain(self) -> None:
        assert self._process.stderr is not None
        with self.log.open("a") as file:
            for line in self._process.stderr:
                file.write(line)

    def kill(self) -> None:
        """Kill the process with SIGKILL."""
        self._process.kill()
        self._process.wait()
        if self._drain_thread is not None:
            self._drain_thread.join()
        if self._process.stderr is not None:
            self._process.stderr.close()


class Cluster:
    """A master and its workers, which go on without each other, and the settings of a driver on them."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.python = bare_python(folder / "python")
        self._daemons: list[Daemon] = []
        given = {name: value for name, value in os.environ.items() if name not in _NOT_THEIRS}
        self._environment = {
            **given,
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_DAEMON_JAVA_OPTS": f"{JAVA} -Dspark.deploy.recoveryMode=FILESYSTEM "
            f"-Dspark.deploy.recoveryDirectory={folder / 'recovery'}",
        }
        self.port = "0"
        self.url = ""
        self.start_master()
        self.workers = [self.start_worker() for _ in range(2)]

    def start_master(self) -> None:
        """Start the master, or start it again where it was."""
        command = ("org.apache.spark.deploy.master.Master", *_HERE, "--port", self.port)
        self.master = self._start("master", *command)
        self.url = self.master.wait_for(r"Starting Spark master at (spark://\S+)")
        self.port = self.url.rpartition(":")[2]

    def start_worker(self) -> Daemon:
        """Start a worker that runs one task at a time."""
        command = ("org.apache.spark.deploy.worker.Worker", *_HERE, "--cores", "1", "--memory", MEMORY)
        work = self._folder / f"work-{len(self._daemons)}"
        worker = self._start("worker", *command, "-d", work, self.url)
        worker.wait_for("(Successfully registered with master)")
        return worker

    def _start(self, role: str, *command: str | Path) -> Daemon:
        daemon = Daemon(self._folder / f"{role}-{len(self._daemons)}.log", self._environment, *command)
        self._daemons.append(daemon)
        return daemon

    def end(self) -> None:
        """Kill all processes; executors end with their worker."""
        for each in self._daemons:
            each.kill()

    def settings(self, *, shipping: bool = True) -> dict[str, str]:
        """Return the settings of Spark for a driver here, ``shipping`` with an archive of trouter for the workers."""
        archive = self._folder / "workers.zip"
        if shipping:
            pack(archive)
        return {
            **(settings_of(archive) if shipping else {}),
            "spark.executor.memory": MEMORY,
            "spark.executor.extraJavaOptions": JAVA,
            "spark.driver.memory": MEMORY,
            "spark.driver.extraJavaOptions": JAVA,
            "spark.driver.host": "127.0.0.1",
            "spark.executor.heartbeatInterval": "60s",
            "spark.network.timeout": "900s",
            "spark.pyspark.python": str(self.python),
            "spark.sql.shuffle.partitions": "2",
            "spark.ui.enabled": "false",
            "spark.local.dir": str(self._folder / "local"),
        }

    def options(self, *, shipping: bool = True) -> list[str]:
        """Return the same as options of `trouter pipeline`, with the master."""
        given = [
            part for name, value in self.settings(shipping=shipping).items() for part in ("--conf", f"{name}={value}")
        ]
        return ["--master", self.url, *given]


@contextmanager
def standalone(folder: Path) -> Iterator[Cluster]:
    """Run a master and two workers."""
    folder.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        cluster = Cluster(folder)
        stack.callback(cluster.end)
        yield cluster
