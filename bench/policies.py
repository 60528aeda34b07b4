"""The cost of a large policy: loading and compiling it, a decision at open, and one at attach.

`python -m bench.policies` measures this alone, and prints one JSON object. Times are CPU times of this process.
"""

from __future__ import annotations

import json
import random
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import cycle, islice
from pathlib import Path
from typing import Any, Final

from trouter.config import GroupSettings, PolicyEntity, VhostEntity, load
from trouter.config.hosts import HostRange
from trouter.policy.compiled import Policy
from trouter.policy.judge import judge_open
from trouter.policy.requests import OpenRequest

VHOSTS: Final = 10_000
USERS_OF_A_VHOST: Final = 10
#: Entries of each kind in the one group that is measured at attach.
ENTRIES: Final = 10_000
OPENS: Final = 20_000
ATTACHES: Final = 50_000
#: A policy for the load generator, which logs in without a name.
HELD: Final = """
policy { enableVhostPolicy: yes }
vhost {
    hostname: $default
    allowUnknownUser: yes
    groups: { $default: { remoteHosts: 127.0.0.1, sources: "a, b*, bench*", targets: "a, b*, bench*" } }
}
"""


def vhosts() -> Iterator[list[Any]]:
    """Yield vhosts with two groups each, in the JSON form."""
    for number in range(VHOSTS):
        users = [f"user-{number}-{each}" for each in range(USERS_OF_A_VHOST)]
        groups = {
            "admin": {
                "users": users[:2],
                "remoteHosts": "10.0.0.0/8, ::1",
                "sources": f"v{number}/*, news*, ${{user}}.*",
                "targets": f"v{number}/*, ${{user}}.in",
            },
            "users": {
                "users": ", ".join(users[2:]),
                "remoteHosts": "*",
                "sourcePattern": f"v{number}/*/#, ${{user}}/#",
                "targets": f"v{number}/in",
            },
        }
        yield ["vhost", {"hostname": f"v{number}.example.com", "aliases": f"v{number}.example.org", "groups": groups}]


def cpu_us(calls: list[Callable[[], object]]) -> float:
    """Return the mean CPU microseconds of some calls."""
    began_ns = time.process_time_ns()
    for call in calls:
        call()
    return (time.process_time_ns() - began_ns) / 1e3 / len(calls)


def loading(folder: Path) -> tuple[Policy, float]:
    """Return a policy of very many vhosts, and the seconds to load and compile it."""
    path = folder / "router.json"
    path.write_text(json.dumps([["policy", {"enableVhostPolicy": True}], *vhosts()], indent=1))
    began_ns = time.process_time_ns()
    configuration = load(path)
    policy = Policy.compile(configuration.policy, configuration.vhosts)
    return policy, (time.process_time_ns() - began_ns) / 1e9


def opening(policy: Policy, rng: random.Random) -> float:
    """Return the microseconds of a decision at open."""
    calls: list[Callable[[], object]] = []
    for _ in range(OPENS):
        number, which = rng.randrange(VHOSTS), rng.randrange(USERS_OF_A_VHOST)
        name = f"V{number}.example.{rng.choice(('com', 'org'))}:5672"
        user, host = f"user-{number}-{which}", f"10.{number % 250}.0.{which}"
        request = OpenRequest(hostname=name, user=user, remote_host=host, authenticated=True)
        calls.append(lambda request=request: judge_open(policy, request))  # type: ignore[misc]
    assert all(call() for call in calls[:100])
    return cpu_us(calls)


def large_group() -> GroupSettings:
    """Return a group with very many entries of every kind."""
    kinds = cycle(("exact/{}", "prefix/{}/*", "mine-{}-${{user}}", "${{user}}/{}*"))
    names = tuple(kind.format(number) for number, kind in enumerate(islice(kinds, ENTRIES)))
    tokens = cycle(("a/{}/*", "b/{}/#", "#/z/{}", "${{user}}/{}/#"))
    patterns = tuple(kind.format(number) for number, kind in enumerate(islice(tokens, ENTRIES)))
    return GroupSettings(users=("*",), remote_hosts=(HostRange(),), sources=names, target_pattern=patterns)


def attaching(rng: random.Random) -> dict[str, float]:
    """Return the microseconds of decisions at attach among very many entries, by the kind of question."""
    vhost = VhostEntity(hostname="v", groups={"g": large_group()})
    policy = Policy.compile(PolicyEntity(enable_vhost_policy=True), [vhost])
    request = OpenRequest(hostname="v", user="alice", remote_host="10.0.0.1", authenticated=True)
    admission = judge_open(policy, request).admission
    assert admission is not None
    asked = {
        "sources": (admission.may_receive, ("exact/{}", "prefix/{}/x", "mine-{}-alice", "alice/{}/x")),
        "targetPattern": (admission.may_send, ("a/{}/x", "b/{}/x/y", "q/z/{}", "alice/{}/x")),
        "what is denied": (admission.may_receive, ("none/{}", "mine-{}-bob", "bob/{}", "prefix/{}")),
    }
    found = {}
    for what, (ask, forms) in asked.items():
        addresses = [rng.choice(forms).format(rng.randrange(ENTRIES)) for _ in range(ATTACHES)]
        found[what] = cpu_us([lambda ask=ask, address=address: ask(address) for address in addresses])  # type: ignore[misc]
    return found


def main() -> None:
    rng = random.Random(20261121)
    with tempfile.TemporaryDirectory(prefix="trouter-bench-") as folder:
        policy, load_s = loading(Path(folder))
    print(json.dumps({"load_s": load_s, "open_us": opening(policy, rng), "attach_us": attaching(rng)}))


if __name__ == "__main__":
    main()
