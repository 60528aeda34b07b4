"""Any text as a policy file is a policy or a list of problems; a policy gives the same verdict for the same question.

Each problem names the file. If the file loads, the target asks each vhost about users and addresses taken from the
file: a user who has not authenticated gets no address that the same user would not get with proof, and empty
permissions grant no address.

Allowed: ConfigurationError with at least one problem, because most texts are no policy.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Final

from trouter.config import Configuration, ConfigurationError, PolicyEntity, load
from trouter.hooks import Permissions
from trouter.policy.compiled import Policy
from trouter.policy.explain import Question, explain
from trouter.policy.judge import judge_open
from trouter.policy.requests import OpenRequest
from trouter.testing.fuzz import mutation

MUTATOR = mutation.text
COVERS = (
    "trouter.policy.judge",
    "trouter.policy.compiled",
    "trouter.policy.patterns",
    "trouter.policy.explain",
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
    request = OpenRequest(hostname=hostname, user=user, remote_host=host, authenticated=True)
    opened, unproven_open = judge_open(policy, request), judge_open(policy, replace(request, authenticated=False))
    assert opened.rule == unproven_open.rule
    upper = judge_open(policy, replace(request, hostname=hostname.upper()))
    assert opened._replace(text="") == upper._replace(text="") or not hostname.isascii()
    proven, unproven = opened.admission, unproven_open.admission
    if proven is None or unproven is None:
        assert (opened.allowed, unproven_open.allowed) == (False, False)
        return
    nothing = judge_open(policy, replace(request, permissions=Permissions())).admission
    assert nothing is not None
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
