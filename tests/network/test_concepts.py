"""The pages about concepts: their examples, chapter by chapter, and their pictures."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
import trio

from manual import pictures
from tests.networks import client_port, network, until_known
from tests.routers import DEADLINE_S, ROOT, RunningRouter
from tests.walks import Shell, steps_in
from trouter.client import Message, connect

PAGES = ("concepts.md", "addresses.md", "outcomes.md", "waypoints.md")
#: The ports on the pages; a command without `-b` asks the first.
PORTS = ("5672", "5673", "55672")
FILE = re.compile(r"Write\s+this\s+to\s+`([\w.]+)`:\n\n```\w*\n(.*?)^```", re.MULTILINE | re.DOTALL)
PICTURE = re.compile(r"!\[([^\]]+)\]\((images/concepts/[\w-]+\.svg)\)")
#: A receiver of a client, other than one for answers of management.
ATTACHED = r"Link attached: dir=out source=\{(?!\(dyn\))"


def chapters() -> Iterator[tuple[str, str, str]]:
    """Yield the page, the heading and the text of each chapter that has commands to run."""
    for page in PAGES:
        for chapter in (ROOT / "docs" / page).read_text(encoding="utf-8").split("\n## ")[1:]:
            if FILE.search(chapter):
                yield page, chapter.partition("\n")[0], chapter


class Terminal(Shell):
    """A shell with job numbers, in which other programs than routers run in the background, too."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, PORTS, brings=())
        self._jobs: list[subprocess.Popen[bytes] | None] = []
        self._environment["TROUTER_BUS"] = self.moved("127.0.0.1:5672")

    def start(self, command: str) -> None:
        """Start a router and wait until it has its neighbour, or another program until it has its receiver."""
        if command.startswith("trouter run "):
            super().start(command)
            self._jobs.append(None)
            self._join()
            return
        router = self._asked(command)
        receivers = len(router.matching(ATTACHED))
        with self._said().open("w") as said:
            job = subprocess.Popen(
                ["bash", "-c", self.moved(command)], cwd=self.folder, env=self._environment, stdout=said, stderr=said
            )
        self._jobs.append(job)
        router.wait_for_line(ATTACHED, receivers + 1)

    def type(self, command: str) -> tuple[int, str]:
        if not command.startswith("wait "):
            return super().type(command)
        for number in re.findall(r"%(\d+)", command):
            self._end(int(number))
        return 0, ""

    def stop(self) -> None:
        """Wait for the programs that end by themselves, and stop the routers."""
        for number, job in enumerate(self._jobs, 1):
            if job is not None:
                self._end(number)
        super().stop()

    def _end(self, number: int) -> None:
        job = self._jobs[number - 1]
        assert job is not None, f"job {number} is a router"
        assert job.wait(DEADLINE_S) == 0, (self.folder / f"job-{number}").read_text()

    def _said(self) -> Path:
        """Return the file for what the next job prints."""
        return self.folder / f"job-{len(self._jobs) + 1}"

    def _join(self) -> None:
        texts = [router.configuration for router in self.running]
        roles = {role for path in texts for role in re.findall(r"role: ([\w-]+)", (self.folder / path).read_text())}
        if len(self.running) > 1:
            for router in self.running if "inter-router" in roles else ():
                router.wait_for_line("paths through the network .* 1 routers can be reached")
            if "route-container" in roles:
                links = len(re.findall(r"(?:autoLink|linkRoute) \{", (self.folder / "router.conf").read_text()))
                self.running[1].wait_for_line(r"(?:Link Route|Auto Link) Activated", links)

    def _asked(self, command: str) -> RunningRouter:
        """Return the router to which a command connects: that of `-b`, else the first."""
        named = re.search(r"-b 127\.0\.0\.1:(\d+)", command)
        port = int(self.ports[named[1] if named else PORTS[0]])
        return next(router for router in self.running if port in router.ports)


@pytest.mark.parametrize("chapter", [pytest.param(text, id=f"{page}: {heading}") for page, heading, text in chapters()])
def test_an_example_works_as_printed(chapter: str, tmp_path: Path) -> None:
    shell = Terminal(tmp_path)
    for name, text in FILE.findall(chapter):
        (tmp_path / name).write_text(shell.moved(text))
    steps = steps_in(chapter)
    assert len(steps) >= 4
    shell.walk(steps)


def test_each_concept_has_an_example() -> None:
    assert len([*chapters()]) >= 9


@pytest.mark.parametrize("name", [*pictures.PICTURES])
def test_a_picture_is_fresh_and_on_a_page(name: str) -> None:
    path = f"images/concepts/{name}.svg"
    text = (ROOT / "docs" / path).read_text(encoding="utf-8")
    assert text == pictures.pages()[path], "make docs writes it"
    texts = [(ROOT / "docs" / page).read_text(encoding="utf-8") for page in PAGES]
    assert [shown for each in texts for _, shown in PICTURE.findall(each)].count(path) == 1
    assert ET.fromstring(text).find("{http://www.w3.org/2000/svg}rect") is not None, "it has a ground of its own"


#: What the pictures show of six messages at once: by distribution, the messages of each receiver.
SHOWN = {
    "balanced": {"ann": ["1", "3", "6"], "ben": ["2", "4"], "cleo": ["5"]},
    "closest": {"ann": ["1", "3", "5"], "ben": ["2", "4", "6"], "cleo": []},
    "multicast": {name: ["1", "2", "3", "4", "5", "6"] for name in ("ann", "ben", "cleo")},
}


@pytest.mark.parametrize("distribution", [*SHOWN])
def test_messages_go_where_the_picture_shows(distribution: str, tmp_path: Path) -> None:
    """Ann and Ben are at the sender's router, Cleo at the next one; none of them settles a message."""
    rule = f"address {{ prefix: x, distribution: {distribution} }}"
    with network(tmp_path, {"North": (), "South": ("North",)}, {"North": rule, "South": rule}) as routers:
        trio.run(six_at_once, routers["North"], routers["South"], SHOWN[distribution])


async def six_at_once(north: RunningRouter, south: RunningRouter, shown: dict[str, list[str]]) -> None:
    urls = [f"amqp://127.0.0.1:{client_port(router)}" for router in (north, south)]
    with trio.fail_after(DEADLINE_S):
        async with (
            connect(urls[0]) as here,
            connect(urls[1]) as there,
            here.open_receiver("x") as ann,
            here.open_receiver("x") as ben,
            there.open_receiver("x") as cleo,
            here.open_sender("x") as sender,
        ):
            await until_known(north, "M0x", 1)
            for number in range(1, 7):
                await sender.submit(Message(str(number)))
            receivers = {"ann": ann, "ben": ben, "cleo": cleo}
            for name, expected in shown.items():
                deliveries = [await receivers[name].receive() for _ in expected]
                assert [each.message.body for each in deliveries] == expected, name
