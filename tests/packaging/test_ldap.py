"""The page about LDAP, typed on a copy of this machine with Debian's slapd, nslcd and pam_ldap."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from tests.packaging.other_machine import needs_other_machine, typed_with

PACKAGES: Final = "slapd nslcd libpam-ldapd"
WALK: Final = "packaging/slapd.sh && exec python3 packaging/walk.py docs/ldap.md"

pytestmark = [pytest.mark.long, needs_other_machine]


def test_users_of_a_directory_log_in_by_its_password_and_its_group() -> None:
    assert typed_with(PACKAGES, WALK).count("good") == 9
    assert not Path("/etc/pam.d/trouter").exists()  # this machine is as it was
