"""The digest of a policy, by which the routers of a network show whether they have the same one."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from typing import Final

from trouter.config.entities import PolicyEntity, VhostEntity
from trouter.config.rows import row

#: Hexadecimal digits of a digest: enough to compare policies, short enough to read aloud.
DIGITS: Final = 16
#: Attributes of `policy` that may differ between routers with the same policy, because they name places on a machine.
_OF_THE_MACHINE: Final = frozenset({"policyDir", "policyFolder"})


def digest_of_policy(policy: PolicyEntity, vhosts: Iterable[VhostEntity]) -> str:
    """Return the digest of what is written in ``policy`` and its vhosts, whatever their order."""
    settings = {name: value for name, value in row(policy).items() if name not in _OF_THE_MACHINE}
    spaces = {vhost.hostname: row(vhost) for vhost in vhosts}
    written = json.dumps([settings, spaces], sort_keys=True, default=str)
    return hashlib.sha256(written.encode()).hexdigest()[:DIGITS]
