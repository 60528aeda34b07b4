"""`trouter network check`, and a folder that a stranger has made: no file of who checks it is read or sent."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.house.sources import ROOT
from tests.routers import DEADLINE_S
from trouter.tools.failures import UsageError
from trouter.tools.networks.folder import MAX_TEXT_BYTES, read_folder

pytestmark = pytest.mark.attack


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "network" / "routers").mkdir(parents=True)
    (tmp_path / "secret").write_text("the key of who checks")
    return tmp_path / "network"


@pytest.mark.parametrize("name", ["routers/A.conf", "common.conf"])
def test_a_link_that_leads_out_of_the_folder_is_not_followed(folder: Path, name: str) -> None:
    (folder / "routers/A.conf").write_text("router { id: A }")
    (folder / name).unlink(missing_ok=True)
    (folder / name).symlink_to("../" * (1 + name.count("/")) + "secret")
    with pytest.raises(UsageError, match=rf"{name} is a link to .*/secret, outside of .*: copy the file into"):
        read_folder(folder)


def test_a_link_within_the_folder_is_followed(folder: Path) -> None:
    (folder / "edge").write_text("router { id: A }")
    (folder / "routers/A.conf").symlink_to("../edge")
    assert [file.text for file in read_folder(folder)] == ["router { id: A }"]


def test_a_file_without_end_is_not_read_to_its_end(folder: Path) -> None:
    with (folder / "routers/A.conf").open("wb") as file:
        os.ftruncate(file.fileno(), 1 << 40)
    with pytest.raises(UsageError, match=f"A.conf has more than {MAX_TEXT_BYTES} bytes"):
        read_folder(folder)


#: Reads the folder of a network, and prints what its files contradict.
READ = """
import sys
from pathlib import Path
from trouter.tools.networks.folder import contradictions, read_folder
print(*contradictions(read_folder(Path(sys.argv[1]))))
"""


def test_a_pipe_among_the_policies_is_not_waited_for(folder: Path) -> None:
    os.mkfifo(folder / "routers/pipe.json")
    (folder / "routers/A.conf").write_text(f"policy {{ policyDir: {folder / 'routers'} }}\n")
    command = [sys.executable, "-c", READ, str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=DEADLINE_S, check=True)
    assert "its router has no id" in done.stdout
