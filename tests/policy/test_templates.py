"""The template policies: each loads without a warning, decides as expected, and admits no stranger."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.policy.policies import admit
from trouter.cli.policy import policy_at
from trouter.config import load
from trouter.policy.expectation_file import read_expectations
from trouter.policy.expectations import hold
from trouter.policy.judge import Verdict

pytestmark = pytest.mark.attack

FOLDER = Path(__file__).parents[2] / "policies"
TEMPLATES = sorted(path.stem for path in FOLDER.glob("*.json"))


def test_each_has_its_expectations() -> None:
    assert sorted(path.stem for path in (FOLDER / "tests").glob("*.json")) == TEMPLATES
    assert len(TEMPLATES) >= 6


@pytest.mark.parametrize("name", TEMPLATES)
def test_a_template_meets_its_expectations(name: str) -> None:
    expectations = read_expectations(FOLDER / "tests" / f"{name}.json")
    assert expectations.policy is not None
    assert expectations.policy.resolve() == FOLDER / f"{name}.json"
    outcome = hold(expectations, policy_at(expectations.policy, enforce=expectations.enforce))
    assert outcome.failures == []
    assert outcome.held >= 3


@pytest.mark.parametrize("name", TEMPLATES)
def test_a_template_loads_with_no_warning_except_for_forbidden_links(name: str) -> None:
    allowed = ("has no effect: the policy section", "0 means none, not unlimited")
    warnings = [warning.message for warning in load(FOLDER / f"{name}.json").warnings]
    assert [text for text in warnings if not any(part in text for part in allowed)] == []


@pytest.mark.parametrize("name", TEMPLATES)
def test_a_template_admits_no_unnamed_and_no_unlisted_user(name: str) -> None:
    policy = policy_at(FOLDER / f"{name}.json", enforce=True)
    for vhost in ("stranger.example.net", "", *policy.vhosts):
        assert isinstance(admit(policy, vhost, "", "127.0.0.1", authenticated=False), Verdict)
    if name != "deny-all":
        assert isinstance(admit(policy, "stranger.example.net", "alice", "10.0.0.1", authenticated=True), Verdict)


@pytest.mark.parametrize("name", TEMPLATES)
def test_a_template_limits_connections_and_gives_no_user_everything(name: str) -> None:
    for vhost in load(FOLDER / f"{name}.json").vhosts:
        assert vhost.max_connections < 65535
        for group in vhost.groups.values():
            assert not {"*", "#"} & {*group.sources, *group.targets, *group.source_pattern, *group.target_pattern}
            assert not group.allow_user_id_proxy
            assert "management" in group.written


def test_the_folder_can_be_a_policy_dir() -> None:
    policy = policy_at(FOLDER)
    assert len(policy.vhosts) == len(TEMPLATES)
    assert isinstance(admit(policy, "stranger.example.net", "alice", "10.0.0.1", authenticated=True), Verdict)
