"""`trouter health`: its answers and exit statuses, of real routers and of servers that are none."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import pytest
import trio

from tests.management.node import node_of
from tests.routers import StartRouter, start_router
from tests.tools.live import Ran, run

__all__ = ["start_router"]

ROUTER = """
router { id: R }
listener { name: own, host: 127.0.0.1, port: 0, saslMechanisms: ANONYMOUS, drains: no }
listener { name: web, host: 127.0.0.1, port: 0, http: yes }
"""
UNSERVED = """
listener { name: lost, host: 127.0.0.1, port: 0, sslProfile: broken }
sslProfile { name: broken, certFile: /no }
"""


def health(*words: str) -> Ran:
    async def go() -> Ran:
        return await run("health", *words)

    return trio.run(go)


@pytest.mark.parametrize(
    ("words", "page"),
    [([], "healthz"), (["--ready"], "readyz"), (["--live"], "livez")],
    ids=["health", "ready", "live"],
)
def test_a_good_router_is_well(start_router: StartRouter, words: list[str], page: str) -> None:
    router = start_router(ROUTER)
    bus = f"127.0.0.1:{router.port}"
    web = router.wait_for_line(r"Listening for HTTP on (127\.0\.0\.1:\d+)")[1]
    by_http = health("--http", f"http://{web}", *words)
    assert (by_http.status, by_http.out) == (0, f"OK: http://{web}/{page} (status 200)\n")
    if "--live" not in words:
        by_amqp = health("-b", bus, *words)
        assert (by_amqp.status, by_amqp.out) == (0, f"OK: amqp://{bus}\n")


def test_a_router_that_drains_or_lacks_a_part_is_not_ready_and_says_why(start_router: StartRouter) -> None:
    router = start_router(ROUTER + UNSERVED)
    web = router.wait_for_line(r"Listening for HTTP on (127\.0\.0\.1:\d+)")[1]
    with node_of(router.port) as node:
        node.ask("DRAIN", over=0)
        for where in (["-b", f"127.0.0.1:{router.port}"], ["--http", f"http://{web}"]):
            ran = health(*where, "--ready", "--json")
            answer = json.loads(ran.out)
            assert (ran.status, answer["healthy"], answer["answered"]) == (1, False, True)
            assert answer["reasons"][0].startswith("draining")
            assert "sslProfile cannot be used" in answer["reasons"][1]
            assert health(*where).status == 0


def test_a_router_out_of_reach_gives_2() -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        where = f"127.0.0.1:{closed.getsockname()[1]}"
        by_amqp = health("-b", where)
        assert (by_amqp.status, by_amqp.out.splitlines()[0]) == (2, f"NO ANSWER: amqp://{where}")
        assert "refused" in by_amqp.out.lower()
        by_http = health("--http", f"http://{where}")
        assert (by_http.status, by_http.out.splitlines()[0]) == (2, f"NO ANSWER: http://{where}/healthz")


@pytest.mark.parametrize("http", [False, True])
def test_one_that_does_not_answer_gives_2_in_time(http: bool) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        where = f"127.0.0.1:{silent.getsockname()[1]}"
        ran = health("--timeout", "0.2", *(["--http", f"http://{where}"] if http else ["-b", where]))
    assert ran.status == 2
    assert ran.out.startswith("NO ANSWER: ")


@pytest.mark.parametrize(
    "words",
    [["--live"], ["--http", "127.0.0.1:1"], ["--http", "ftp://x"], ["--http", "http://x:99999"], ["--ready", "--live"]],
)
def test_a_wrong_command_line_gives_2(words: list[str]) -> None:
    ran = health(*words)
    assert (ran.status, ran.out) == (2, "")
    assert "health" in ran.err


def test_an_unreadable_trust_file_gives_2(tmp_path: Path) -> None:
    ran = health("-b", "amqps://127.0.0.1:1", "--ssl-trustfile", str(tmp_path / "none.pem"))
    assert ran.status == 2
    assert "none.pem" in ran.out + ran.err
