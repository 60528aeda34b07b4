"""The pages about concepts: their examples, chapter by chapter, and their pictures."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
import trio

from manual import pictures
from tests.networks import client_port, network, until_known
from tests.routers import DEADLINE_S, ROOT, RunningRouter
from tests.terminal import Terminal, files_of
from tests.walks import steps_in
from trouter.client import Message, connect

PAGES = ("concepts.md", "addresses.md", "outcomes.md", "waypoints.md")
#: The ports on the pages; a command without `-b` asks the first.
PORTS = ("5672", "5673", "5674", "55672")
PICTURE = re.compile(r"!\[([^\]]+)\]\((images/concepts/[\w-]+\.svg)\)")


def chapters() -> Iterator[tuple[str, str, str]]:
    """Yield the page, the heading and the text of each chapter that has commands to run."""
    for page in PAGES:
        for chapter in (ROOT / "docs" / page).read_text(encoding="utf-8").split("\n## ")[1:]:
            if files_of(chapter):
                yield page, chapter.partition("\n")[0], chapter


@pytest.mark.parametrize("chapter", [pytest.param(text, id=f"{page}: {heading}") for page, heading, text in chapters()])
def test_an_example_works_as_printed(chapter: str, tmp_path: Path) -> None:
    steps = steps_in(chapter)
    assert len(steps) >= 4
    Terminal(tmp_path, PORTS, chapter).walk(steps)


def test_each_concept_has_an_example() -> None:
    assert len([*chapters()]) >= 10


@pytest.mark.parametrize("name", [*pictures.PICTURES])
def test_a_picture_is_fresh_and_on_a_page(name: str) -> None:
    path = f"images/concepts/{name}.svg"
    text = (ROOT / "docs" / path).read_text(encoding="utf-8")
    assert text == pictures.pages()[path], "make docs writes it"
    texts = [(ROOT / "docs" / page).read_text(encoding="utf-8") for page in (*PAGES, "edge.md")]
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
