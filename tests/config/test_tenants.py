"""`tenantFrom`: the source of users' tenants, and the files that the router refuses as source."""

from __future__ import annotations

from pathlib import Path

import pytest

from trouter.config.schema import BadValue
from trouter.config.tenants import TenantSource, tenant_source

FORMS = {"claim": TenantSource(), "uid:o": TenantSource(part="o"), "uid:u": TenantSource(part="u")}
BAD_FORMS = (
    "",
    "claims",
    "claim:",
    "claim:x",
    "uid",
    "uid:",
    "uid:oo",
    "uid:1",
    "uid:n",
    "file:",
    "file",
    "map:x",
    "file:/none",
)
BAD_FILES: dict[str, tuple[str, str]] = {
    "no JSON": ("{", "not JSON"),
    "too deep": ("[" * 100_000, "not JSON"),
    "a list": ("[]", "not one JSON object"),
    "a number": ('{"ann": 5}', "the tenants of 'ann' are not texts"),
    "a map": ('{"ann": {}}', "not texts"),
    "nothing": ('{"ann": ""}', "must be named"),
    "a slash": ('{"ann": ["a", "b/c"]}', "a slash"),
    "a control character": ('{"ann": "a\\u0000"}', "control characters"),
    "too long": ('{"ann": "' + "a" * 256 + '"}', "255 bytes"),
    "a user twice": ('{"ann": "a", "ann": "b"}', "the user 'ann' appears twice in this file"),
}


@pytest.mark.parametrize(("text", "source"), FORMS.items())
def test_the_forms(text: str, source: TenantSource) -> None:
    assert tenant_source(text) == source


@pytest.mark.parametrize("text", BAD_FORMS)
def test_other_forms_are_refused(text: str) -> None:
    with pytest.raises(BadValue) as caught:
        tenant_source(text)
    assert caught.value.suggestion


@pytest.mark.parametrize(("content", "message"), BAD_FILES.values(), ids=BAD_FILES)
def test_an_ambiguous_or_invalid_file_is_refused(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "tenants.json"
    path.write_text(content)
    with pytest.raises(BadValue, match=message):
        tenant_source(f"file:{path}")


def test_a_file_with_other_content_is_another_source(tmp_path: Path) -> None:
    """A reload therefore sees that the file has changed."""
    path = tmp_path / "tenants.json"
    path.write_text('{"ann": "a", "bob": ["a", "b"], "carol": []}')
    before = tenant_source(f"file:{path}")
    assert before.users is not None
    assert {user: sorted(names) for user, names in before.users.items()} == {
        "ann": ["a"],
        "bob": ["a", "b"],
        "carol": [],
    }
    assert tenant_source(f"file:{path}") == before
    path.write_text('{"ann": "b"}')
    assert tenant_source(f"file:{path}") != before
