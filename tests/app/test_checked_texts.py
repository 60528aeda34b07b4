"""The operation CHECK and the files of this machine: a text that management sends opens none that it may not name."""

from __future__ import annotations

from pathlib import Path

import pytest

from trouter.app.checking import check_text
from trouter.config import load
from trouter.config.problems import Severity

pytestmark = pytest.mark.attack

SECURE = "router { secureDefaults: yes }\n"
WITHHELD = "management may name only files below the secretDir of the router"


@pytest.fixture
def private(tmp_path: Path) -> Path:
    """A folder of another program, with a file that is no policy."""
    folder = tmp_path / "private"
    folder.mkdir()
    (folder / "tokens.json").write_text("of-another-program")
    return folder


@pytest.mark.parametrize(
    "section",
    [
        "policy {{ policyDir: {} }}",
        "sslProfile {{ name: s, certFile: {}/tokens.json }}",
        "sslProfile {{ name: s, certDb: {}/tokens.json }}",
        "connector {{ name: c, host: 127.0.0.1, port: 1, saslPassword: file:{}/tokens.json }}",
        "listener {{ port: 0, tenantFrom: file:{}/tokens.json }}",
    ],
)
def test_a_text_that_names_files_of_others_is_no_configuration_and_shows_nothing_of_them(
    private: Path, section: str
) -> None:
    report = check_text(load(Path("R.conf"), SECURE), SECURE + section.format(private), "new.conf")
    assert report.plan is None
    (finding,) = report.findings
    assert (str(finding.place).startswith("new.conf:2"), finding.severity) == (True, Severity.PROBLEM)
    assert finding.message.endswith(WITHHELD)
    assert "of-another-program" not in str(finding)


def test_the_json_form_of_a_text_is_judged_too(private: Path) -> None:
    text = f'[["policy", {{"policyDir": "{private}"}}]]'
    report = check_text(load(Path("R.conf"), SECURE), text, "new.json")
    assert [finding.message.endswith(WITHHELD) for finding in report.findings] == [True]


def test_files_that_the_configuration_names_and_those_of_secret_dir_are_read(private: Path) -> None:
    (private / "tokens.json").write_text('[["vhost", {"hostname": "h"}]]')
    named = SECURE + f"policy {{ policyDir: {private} }}\n"
    below = f"router {{ secureDefaults: yes, secretDir: {private.parent} }}\n"
    for present in (named, below):
        report = check_text(load(Path("R.conf"), present), named, "new.conf")
        assert report.plan is not None
