"""Shell completion, requested as a shell does."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.cli.programs import TOO_LONG_S, called, installed


@pytest.fixture
def trouter(tmp_path: Path) -> Path:
    return installed(tmp_path, "trouter")


def offered(program: Path, line: str) -> list[str]:
    """Return the completions for the end of ``line``."""
    found = program.with_name("offered")
    found.unlink(missing_ok=True)
    variables = {
        "_ARGCOMPLETE": "1",
        "_ARGCOMPLETE_IFS": "\n",
        "_ARGCOMPLETE_SUPPRESS_SPACE": "1",
        "_ARGCOMPLETE_STDOUT_FILENAME": str(found),
        "_ARGCOMPLETE_COMP_WORDBREAKS": " \t\n",
        "COMP_LINE": line,
        "COMP_POINT": str(len(line.encode())),
        "COMP_TYPE": "9",
    }
    done = called(program, environment=variables)
    assert done.stderr == ""
    return [word.strip() for word in found.read_text().split("\n") if word.strip()]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_there_is_a_script_for_each_shell(trouter: Path, tmp_path: Path, shell: str) -> None:
    done = called(trouter, "completion", shell)
    assert (done.returncode, done.stderr) == (0, "")
    for name in ("trouter", "qdstat", "qdmanage", "qdrouterd"):
        assert name in done.stdout
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not here to read it")
    script = tmp_path / "script"
    script.write_text(done.stdout)
    subprocess.run([shell, "-n", script], check=True, capture_output=True, timeout=TOO_LONG_S)


def test_another_shell_is_refused(trouter: Path) -> None:
    done = called(trouter, "completion", "tcsh")
    assert (done.returncode, done.stdout) == (2, "")
    assert "'tcsh'" in done.stderr


def test_commands_are_offered(trouter: Path) -> None:
    assert offered(trouter, "trouter ma") == ["manage"]
    assert set(offered(trouter, "trouter ")) >= {"run", "check", "stat", "manage", "bench", "completion"}


def test_options_are_offered(trouter: Path) -> None:
    assert offered(trouter, "trouter manage --sasl-m") == ["--sasl-mechanisms"]
    assert offered(trouter, "trouter completion b") == ["bash"]


def test_operations_are_offered(trouter: Path) -> None:
    assert offered(trouter, "trouter manage get-a") == ["get-attributes", "get-annotations"]


def test_types_are_offered(trouter: Path) -> None:
    assert offered(trouter, "trouter manage query --type lis") == ["listener"]
    assert {"router.link", "linkRoute", "connection", "sslProfile"} <= set(
        offered(trouter, "trouter manage query --type ")
    )
    assert offered(trouter, "trouter manage get-operations sslP") == ["sslProfile"]


def test_attributes_and_values_of_a_type_are_offered(trouter: Path) -> None:
    assert offered(trouter, "trouter manage query --type connector saslM") == ["saslMechanisms"]
    assert offered(trouter, "trouter manage create --type listener saslM") == ["saslMechanisms="]
    assert offered(trouter, "trouter manage create type=listener saslM") == ["saslMechanisms="]
    assert offered(trouter, "trouter manage create --type address distribution=b") == ["distribution=balanced"]
    assert offered(trouter, "trouter manage create --type listener requireSsl=") == ["requireSsl=yes", "requireSsl=no"]
    assert offered(trouter, "trouter manage create typ") == ["type="]
    assert offered(trouter, "trouter manage create --type nonsense a") == []


def test_only_changeable_attributes_are_offered_for_an_update(trouter: Path) -> None:
    found = offered(trouter, "trouter manage update --type connection ")
    assert {"adminStatus=", "enableProtocolTrace="} <= set(found)
    assert "container=" not in found


def test_the_older_names_complete_too(tmp_path: Path) -> None:
    assert offered(installed(tmp_path, "qdmanage"), "qdmanage que") == ["query"]
    assert offered(installed(tmp_path, "qdstat"), "qdstat --all-r") == ["--all-routers"]
    assert offered(installed(tmp_path, "qdrouterd"), "qdrouterd --pid") == ["--pidfile"]
