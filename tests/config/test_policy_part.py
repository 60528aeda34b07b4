"""The policy as a part of the text of a configuration: what takes its place, and what stays as it is written."""

from __future__ import annotations

import pytest

from trouter.config.policy_part import with_policy

OLD = "# of old\nvhost { hostname: old } # the end\n"
NEW = "# of the network\nvhost {\n    hostname: new\n}\n"
FILES = [
    "",
    "router { id: A }",
    "router { id: A }\n",
    "router { id: A }\n\n\n\n",
    "router { id: A }\n   ",
    "router { id: A }\n\n   \n  ",
    "# as it was\n\trouter { id: A }  \n\n",
    "\n\n",
    "  ",
]


@pytest.mark.parametrize("mark", ["", "\ufeff"], ids=["plain", "mark"])
@pytest.mark.parametrize("newline", ["\n", "\r\n"], ids=["LF", "CRLF"])
@pytest.mark.parametrize("file", FILES)
def test_all_else_in_a_file_stays_byte_for_byte_and_once_is_enough(file: str, newline: str, mark: str) -> None:
    before = mark + file.replace("\n", newline)
    once = with_policy(before, NEW, "p")
    assert once.startswith(before)
    assert once.endswith((f"\n{NEW}" if file.strip() else NEW).replace("\n", newline if newline in before else "\n"))
    assert with_policy(once, NEW, "p") == once
    assert with_policy(with_policy(before, OLD, "p"), NEW, "p") == once


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r\r\n"], ids=["LF", "CRLF", "CRCRLF"])
def test_a_former_policy_is_cut_out_where_it_stands(newline: str) -> None:
    first, last = (text.replace("\n", newline) for text in ("router { id: A }\n\n", "listener { port: 1 }\n"))
    before = first + f"{OLD}\n".replace("\n", newline) + last
    once = with_policy(before, NEW, "p")
    assert once.startswith(first + last)
    assert ("old" in once, once.count("hostname: new")) == (False, 1)
    assert with_policy(once, NEW.replace("\n", newline), "p") == once


def test_a_policy_whose_name_ends_as_that_of_a_json_file_has_the_conf_form() -> None:
    assert with_policy("", NEW, "pol.json") == NEW
