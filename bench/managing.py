"""The cost of managing a router: its start, long listings under load, scrapes with many connections.

Times are those of an operator, by the wall clock and including the client. `python -m bench.managing PORT SECONDS` is
the operator: it lists all links once a second, and prints the time of each listing and the count of links.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, Final

import trio

from trouter.load.led import Led
from trouter.load.plan import Load
from trouter.tools.node import open_node
from trouter.tools.options import ConnectionOptions

from .measure import pair
from .servers import Router, ServerError, free_port

LINKS: Final = 10_000
#: Minimum seconds of a listing measurement, for several listings under load.
LISTING_S: Final = 4.0
_PATIENCE_S: Final = 60.0


def start_s(folder: Path, python: str = sys.executable) -> float:
    """Return the seconds from the call of the program in the environment of ``python`` until it is operational."""
    folder.mkdir(parents=True)
    configuration = folder / "router.conf"
    configuration.write_text("router { id: Bench }\nlistener { host: 127.0.0.1, port: 0 }\n")
    began_s = time.perf_counter()
    command = [python, "-P", "-m", "trouter", "run", "-c", str(configuration)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as router:
        assert router.stderr is not None
        for line in router.stderr:
            if "Operational" in line:
                took_s = time.perf_counter() - began_s
                break
        else:
            raise ServerError("the router did not start")
        router.terminate()
        router.stderr.read()
    return took_s


def interpreter_s() -> float:
    """Return the seconds in which the interpreter starts and ends with nothing to do."""
    began_s = time.perf_counter()
    subprocess.run([sys.executable, "-c", "pass"], check=True)
    return time.perf_counter() - began_s


@contextmanager
def listed(router: Router) -> Iterator[None]:
    """Attach links to list: receivers, each on an address of its own."""
    with Led("hold", Load(port=router.port, address="listed", addresses=LINKS, connections=10)) as held:
        held.ready()
        yield
        held.send_go()


def half_load(router: Router, load: Load) -> Load:
    """Return a load of half as many messages a second as the router and the generators manage here."""
    most = max(pair(router, load).per_second for _ in range(3))
    return replace(load, rate=int(most / 2), seconds=LISTING_S)


def loaded(router: Router, load: Load, *, listing: bool) -> tuple[float, list[float]]:
    """Return messages a second under ``load``, with or without listings, and the seconds of each listing."""
    with Led("receive", replace(load, count=0, seconds=0.0)) as receiver, Led("send", load) as sender:
        receiver.ready()
        receiver.send_go()
        sender.ready()
        sender.send_go()
        times = listings(router.port, load.seconds) if listing else []
        sent = sender.report(load.seconds + _PATIENCE_S)
        receiver.send_go()
        receiver.report(_PATIENCE_S)
    return sent.messages_per_second, times


def listings(port: int, seconds: float) -> list[float]:
    """Return the figures of the operator, a process of its own."""
    command = [sys.executable, "-m", "bench.managing", str(port), str(seconds)]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, timeout=seconds + _PATIENCE_S)
    answer: dict[str, Any] = json.loads(done.stdout)
    if answer["links"] < LINKS:
        raise ServerError(f"only {answer['links']} of {LINKS} links were listed")
    return list(answer["seconds"])


def scrape_s(port: int) -> float:
    """Return the seconds of one request for the metrics, a second after the last one."""
    time.sleep(1.0)
    connection = HTTPConnection("127.0.0.1", port, timeout=_PATIENCE_S)
    began_s = time.perf_counter()
    connection.request("GET", "/metrics")
    answer = connection.getresponse()
    text = answer.read()
    took_s = time.perf_counter() - began_s
    connection.close()
    if answer.status != 200 or b"qdr_connections_total" not in text:
        raise ServerError(f"no metrics: status {answer.status}")
    return took_s


class WatchedRouter(Router):
    """A router that serves its metrics."""

    def __init__(self, folder: Path) -> None:
        self.metrics_port = free_port()
        super().__init__(
            folder, more=f"listener {{ host: 127.0.0.1, port: {self.metrics_port}, http: yes, websockets: no }}\n"
        )


async def list_links(port: int, seconds: float) -> dict[str, Any]:
    """List all links for some seconds."""
    times: list[float] = []
    async with open_node(ConnectionOptions(host="127.0.0.1", port=port, timeout_s=_PATIENCE_S)) as node:
        end_s = time.perf_counter() + seconds - 1.0
        while not times or time.perf_counter() < end_s:
            began_s = time.perf_counter()
            table = await node.query("org.apache.qpid.dispatch.router.link")
            times.append(time.perf_counter() - began_s)
            await trio.sleep(max(0.0, 1.0 - times[-1]))
    return {"links": len(table.rows), "seconds": times}


if __name__ == "__main__":
    print(json.dumps(trio.run(list_links, int(sys.argv[1]), float(sys.argv[2]))))
