"""Any text as a policy file is a policy or a list of problems; a policy gives the same verdict for the same question.

Each problem names the file. If the file loads, the target asks each vhost about users and addresses taken from the
file: a user who has not authenticated gets no address that the same user would not get with proof, and empty
permissions grant no address.

Allowed: ConfigurationError with at least one problem, because most texts are no policy.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from trouter.config import Configuration, ConfigurationError, PolicyEntity, load
from trouter.hooks import Permissions
from trouter.security.explain import Question, explain
from trouter.security.policy import Admission, Policy
from trouter.testing.fuzz import mutation

MUTATOR = mutation.text
COVERS = (
    "trouter.security.policy",
    "trouter.security.patterns",
    "trouter.security.explain",
    "trouter.config.json_form",
)

FILE: Final = Path("fuzzed.json")
#: Maximum count of vhosts and of words of a file that the target asks about.
MOST: Final = 20
HOSTS: Final = ("10.0.0.1", "::1", "")


def words(text: str) -> list[str]:
    """Return words of the file that serve as names of users and addresses."""
    found = dict.fromkeys(re.findall(r"[^\s\",\[\]{}]+", text))
    return ["", "*", "a/b", *found][:MOST]


def check(data: bytes) -> None:
    text = data.decode("utf-8", "replace")
    try:
        configuration = load(FILE, text)
    except ConfigurationError as error:
        problems = error.problems
    else:
        decide(configuration, words(text))
        return
    assert problems
    assert all(problem.place.file == str(FILE) for problem in problems)
    assert all(str(problem).isprintable() for problem in problems)


def decide(configuration: Configuration, asked: list[str]) -> None:
    named = {vhost.hostname for vhost in configuration.vhosts}
    policy = Policy.compile(PolicyEntity(enable_vhost_policy=True), configuration.vhosts)
    assert set(policy.vhosts) == named
    assert Policy.compile(policy.entity, configuration.vhosts, previous=policy).vhosts == policy.vhosts
    for hostname in [*named, "other"][:MOST]:
        for user in asked:
            for host in HOSTS:
                ask(policy, hostname, user, host, asked)


def ask(policy: Policy, hostname: str, user: str, host: str, addresses: list[str]) -> None:
    proven = policy.admit(hostname, user, host, authenticated=True)
    unproven = policy.admit(hostname, user, host, authenticated=False)
    assert proven.rule == unproven.rule
    assert proven == policy.admit(hostname.upper(), user, host, authenticated=True) or not hostname.isascii()
    if not isinstance(proven, Admission) or not isinstance(unproven, Admission):
        return
    nothing = policy.admit(hostname, user, host, authenticated=True, permissions=Permissions())
    assert isinstance(nothing, Admission)
    for address in addresses:
        verdicts = (proven.may_receive(address), proven.may_send(address))
        assert verdicts == (proven.may_receive(address), proven.may_send(address))
        # An authenticated user gets at least what the same user gets without proof, unless only the authenticated one
        # has a name.
        if proven.user_text == unproven.user_text or not unproven.user_text:
            assert proven.may_receive(address).allowed >= unproven.may_receive(address).allowed
        if not nothing.sources.label.endswith("Pattern"):
            assert not nothing.may_receive(address)
        if not address:
            assert not any(verdicts)
    told = explain(policy, Question(vhost=hostname, user=user, host=host, source=addresses[-1]))
    assert told.as_text().replace("\n", "").isprintable()
