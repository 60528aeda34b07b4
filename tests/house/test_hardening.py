"""The hardening guide, command by command, as an operator types it in an empty folder."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from tests.house.sources import ROOT
from tests.ports import ports_for
from tests.walks import Shell, steps_in

GUIDE = (ROOT / "docs" / "hardening.md").read_text(encoding="utf-8")
STEPS = steps_in(GUIDE)
#: The ports that the guide names, and their services in its configuration.
PORTS = {"5671": "port: amqps\n", "5672": "port: amqp\n", "5680": "port: 5680\n"}


def test_there_is_a_guide() -> None:
    assert len(STEPS) >= 20
    assert all(block.startswith("$ ") for block in re.findall(r"^```sh\n(.*?)^```", GUIDE, re.MULTILINE | re.DOTALL))


class Guided(Shell):
    """The guide's configuration also names ports, by their services."""

    def start(self, command: str) -> None:
        self.ports = ports_for(PORTS)
        path = self.folder / "trouter.conf"
        text = path.read_text()
        for name, line in PORTS.items():
            assert line in text
            text = text.replace(line, f"port: {self.ports[name]}\n")
        path.write_text(text)
        super().start(command)


def test_the_guide_works_from_top_to_bottom(tmp_path: Path) -> None:
    units = shutil.which("systemd-analyze") is not None
    steps = [step for step in STEPS if units or not step.command.startswith("systemd-analyze")]
    Guided(tmp_path, PORTS, brings=["packaging"]).walk(steps)
