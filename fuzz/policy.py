"""Any octets, taken for a policy file, are a policy or a list of what is wrong; a policy decides twice alike, and soon.

Whatever is wrong has a place in the file. Of what loads, each vhost is asked about users and addresses taken from the
file itself: nobody without a name has the addresses of somebody, and a grant to nobody opens nothing.

Allowed: ConfigurationError, with at least one problem; it is how the loader says that a file is no policy.
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
#: Of what is in a file, as much as this is asked about.
MOST: Final = 20
HOSTS: Final = ("10.0.0.1", "::1", "")


def words(text: str) -> list[str]:
    """Pieces of the file, to be names of users and addresses."""
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
        # A user has with proof what he has without it, unless only the proven user has a name of his own.
        if proven.user_text == unproven.user_text or not unproven.user_text:
            assert proven.may_receive(address).allowed >= unproven.may_receive(address).allowed
        if not nothing.sources.label.endswith("Pattern"):
            assert not nothing.may_receive(address)
        if not address:
            assert not any(verdicts)
    told = explain(policy, Question(vhost=hostname, user=user, host=host, source=addresses[-1]))
    assert told.as_text().replace("\n", "").isprintable()
