"""The operations APPLY, CONFIRM-CHANGE, REVERT-CHANGE and GET-CHANGE of a router, also of one that is killed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.management.node import NODE, Node, node_of
from tests.routers import RunningRouter, StartRouter, needs_workers, process, running, stopped_cleanly

ROUTER = "router { id: R }\nlistener { name: front, host: 127.0.0.1, port: 0, saslMechanisms: ANONYMOUS }\n"
MORE = f"{ROUTER}address {{ prefix: news, distribution: multicast }}\n"


@contextmanager
def asking(router: RunningRouter) -> Iterator[Node]:
    with node_of(router.port) as node:
        yield node


def outlook(node: Node, text: str) -> dict[str, Any]:
    """Return what a router says of a text as a change."""
    answer: dict[str, Any] = node.node("CHECK", text, file="R.conf")["apply"]
    return answer


def apply(node: Node, text: str, change: str = "c1", state: str = "", **more: str) -> Any:
    return node.ask("APPLY", text, **NODE, change=change, state=state or outlook(node, text)["state"], **more)


def made(node: Node, text: str = MORE, change: str = "c1") -> dict[str, Any]:
    answer = apply(node, text, change, by="ann@ops", routers="R,S")
    assert answer.status == 200, answer.description
    body: dict[str, Any] = answer.body
    return body


def prefixes(node: Node) -> list[str]:
    return [row["prefix"] for row in node.query("router.config.address")]


def test_a_change_is_in_force_and_in_the_file_and_stays_open_until_it_is_confirmed(start_router: StartRouter) -> None:
    router = start_router(ROUTER)
    with asking(router) as node:
        assert node.node("GET-CHANGE") == {}
        assert made(node)["created"] == ["address/0"]
        assert prefixes(node) == ["news"]
        assert router.configuration.read_text() == MORE
        assert router.configuration.with_name(f"{router.configuration.name}.before").read_text() == ROUTER
        change = node.node("GET-CHANGE")
        assert (change["id"], change["by"], change["host"], change["routers"], change["state"]) == (
            "c1", "ann@ops", "127.0.0.1", ["R", "S"], "made",
        )  # fmt: skip
        assert node.node("CONFIRM-CHANGE", change="c1")["state"] == "made"
        assert node.node("GET-CHANGE") == {}
        assert node.refused("CONFIRM-CHANGE", **NODE, change="c1") == (404, "no change c1 is open here")
        assert node.node("RELOAD")["created"] == []


def test_a_change_that_is_taken_back_leaves_what_was_there_also_what_management_had_created(
    start_router: StartRouter,
) -> None:
    router = start_router(ROUTER)
    with asking(router) as node:
        node.create("router.config.address", {"prefix": "by-hand"}, name="mine")
        assert len(made(node)["deleted"]) == 1
        assert prefixes(node) == ["news"]
        assert node.node("REVERT-CHANGE", change="c1")["state"] == "made"
        assert prefixes(node) == ["by-hand"]
        assert router.configuration.read_text() == ROUTER
        assert node.node("GET-CHANGE") == {}


def test_a_change_that_was_taken_back_is_not_made_by_a_late_order(start_router: StartRouter) -> None:
    with asking(start_router(ROUTER)) as node:
        assert node.refused("REVERT-CHANGE", **NODE, change="c1")[0] == 404
        late = apply(node, MORE)
        assert (late.status, late.description) == (409, "the change c1 was taken back here: begin another one")
        assert prefixes(node) == []


def test_a_router_that_was_changed_since_the_check_refuses(start_router: StartRouter) -> None:
    router = start_router(ROUTER)
    with asking(router) as node:
        state = outlook(node, MORE)["state"]
        node.create("router.config.address", {"prefix": "by-hand"}, name="mine")
        answer = apply(node, MORE, state=state)
        assert answer.status == 409
        assert answer.description == "the router, or its file, was changed since the check: check again"
        state = outlook(node, MORE)["state"]
        router.configuration.write_text(f"# by hand\n{ROUTER}")
        assert apply(node, MORE, state=state).status == 409
        assert prefixes(node) == ["by-hand"]
        assert router.configuration.read_text() == f"# by hand\n{ROUTER}"
        assert node.node("GET-CHANGE") == {}


def test_another_change_waits_for_the_end_of_the_open_one_and_the_same_one_is_made_once(
    start_router: StartRouter,
) -> None:
    with asking(start_router(ROUTER)) as node:
        made(node)
        assert outlook(node, ROUTER) == {
            "state": outlook(node, ROUTER)["state"],
            "same": False,
            "open": "c1",
            "refusals": ["the change c1 by ann@ops is open here"],
            "part": "",
        }
        other = apply(node, ROUTER, "c2")
        assert (other.status, other.description) == (409, "the change c1 by ann@ops is open here: end it first")
        assert made(node)["created"] == []
        assert apply(node, ROUTER).status == 409
        assert prefixes(node) == ["news"]


@pytest.mark.parametrize(
    ("text", "status", "description"),
    [
        (f"{ROUTER}listener {{ prot: 1 }}\n", 400, "listener.prot: unknown attribute"),
        ("\n", 400, "the text is empty"),
        (ROUTER.replace("id: R", "id: R, plugins: evil"), 403, "router.plugins: management may not change it"),
        (ROUTER.replace("id: R", "id: R, secretDir: /"), 403, "router.secretDir: management may not change it"),
        (ROUTER.replace("id: R", "id: R, usersFile: /etc/x"), 403, "router.usersFile: management may not change it"),
        (
            f"{ROUTER}listener {{ host: 127.0.0.1, port: 1, http: yes, httpRootDir: / }}\n",
            400,
            "httpRootDir: management may choose only folders",
        ),
        (f"{ROUTER}log {{ module: AGENT, outputFile: /dev/tty }}\n", 403, "log.outputFile: "),
        (f"{ROUTER}listener {{ host: 192.0.2.1, port: 1 }}\n", 400, "192.0.2.1"),
    ],
)
def test_a_text_that_cannot_be_served_or_goes_beyond_management_changes_nothing(
    start_router: StartRouter, text: str, status: int, description: str
) -> None:
    router = start_router(ROUTER)
    with asking(router) as node:
        state = outlook(node, MORE)["state"]
        answer = apply(node, text, state=state)
        assert (answer.status, description in answer.description) == (status, True), answer.description
        assert node.node("GET-CHANGE") == {}
        assert router.configuration.read_text() == ROUTER
        assert outlook(node, MORE)["state"] == state


def test_a_check_says_why_a_change_would_be_refused(start_router: StartRouter) -> None:
    with asking(start_router(ROUTER)) as node:
        (why,) = outlook(node, ROUTER.replace("id: R", "id: R, plugins: evil"))["refusals"]
        assert "router.plugins: management may not change it" in why
        assert outlook(node, ROUTER)["same"]


def test_a_step_without_an_id_or_with_a_wrong_one_is_refused(start_router: StartRouter) -> None:
    with asking(start_router(ROUTER)) as node:
        for wrong in ("", "../x", "a" * 65):
            assert node.refused("REVERT-CHANGE", **NODE, change=wrong)[0] == 400
        assert node.refused("APPLY", {"a": 1}, **NODE, change="c1", state="s") == (
            400,
            "APPLY needs a configuration, as a string, in the body, not map",
        )


def test_a_router_with_the_json_form_or_without_a_file_takes_no_changes(tmp_path: Path) -> None:
    text = '[["router", {"id": "R"}], ["listener", {"host": "127.0.0.1", "port": 0, "saslMechanisms": "ANONYMOUS"}]]'
    with running(text, tmp_path, ".json") as router, asking(router) as node:
        (why,) = outlook(node, ROUTER)["refusals"]
        assert "is in the JSON form" in why
        assert apply(node, ROUTER, state="s").status == 403


def test_no_secret_of_a_change_is_in_the_log_or_in_an_answer(start_router: StartRouter) -> None:
    router = start_router(f"{ROUTER}log {{ module: DEFAULT, enable: trace+ }}\n")
    text = (
        f"{ROUTER}log {{ module: DEFAULT, enable: trace+ }}\nconnector {{ name: c, host: 127.0.0.1, port: 1, "
        "saslUsername: u, saslPassword: pass:hunter2 }\n"
    )
    with asking(router) as node:
        answer = made(node, text)
        shown = f"{answer}{node.node('GET-CHANGE')}{node.query('connector')}"
        assert apply(node, text.replace("name: c", "nam: c"), "c2", "s").status == 409
        node.node("REVERT-CHANGE", change="c1")
    assert "hunter2" not in shown
    assert "hunter2" not in router.text()


def test_a_killed_router_starts_with_the_change_and_can_still_take_it_back(tmp_path: Path) -> None:
    with process(ROUTER, tmp_path) as router:
        router.wait_for_line("Operational")
        with asking(router) as node:
            made(node)
        router.process.kill()
        path = router.configuration
    again = tmp_path / "again"
    again.mkdir()
    with running(path.read_text(), again) as restarted:
        for ending in (".before", ".change"):
            (tmp_path / f"{path.name}{ending}").rename(again / f"{restarted.configuration.name}{ending}")
        with asking(restarted) as node:
            assert prefixes(node) == ["news"]
            assert node.node("GET-CHANGE")["state"] == "made"
            node.node("REVERT-CHANGE", change="c1")
            assert prefixes(node) == []
            assert restarted.configuration.read_text() == ROUTER


def test_a_file_that_was_edited_since_is_not_taken_back_and_can_be_kept(start_router: StartRouter) -> None:
    router = start_router(ROUTER)
    with asking(router) as node:
        made(node)
        router.configuration.write_text(f"{MORE}# by hand\n")
        status, why = node.refused("REVERT-CHANGE", **NODE, change="c1")
        assert (status, "was edited since the change c1" in why) == (409, True)
        assert node.node("GET-CHANGE")["state"] == "edited"
        node.node("CONFIRM-CHANGE", change="c1")
        assert router.configuration.read_text() == f"{MORE}# by hand\n"


def test_the_file_keeps_its_rights_and_a_link_to_it_stays_one(tmp_path: Path) -> None:
    real = tmp_path / "real.conf"
    real.write_text(ROUTER)
    real.chmod(0o640)
    with running(ROUTER, tmp_path) as router, asking(router) as node:
        router.configuration.unlink()
        router.configuration.symlink_to(real)
        made(node)
        assert router.configuration.is_symlink()
        assert (real.read_text(), real.stat().st_mode & 0o777) == (MORE, 0o640)


SECURE = (
    "router { id: R, secureDefaults: yes }\n"
    "listener { host: 127.0.0.1, port: 0, authenticatePeer: no, saslMechanisms: ANONYMOUS }\n"
    "vhost { hostname: $default, allowUnknownUser: yes, groups: { $default: { remoteHosts: *, sources: *, targets: *, "
    "allowDynamicSource: yes, management: admin } } }\n"
)


def test_with_secure_defaults_a_change_may_come_from_this_machine_and_keeps_them(start_router: StartRouter) -> None:
    with asking(start_router(SECURE)) as node:
        assert made(node, f"{SECURE}address {{ prefix: news }}\n")["created"] == ["address/0"]
        node.node("CONFIRM-CHANGE", change="c1")
        loose = f"{SECURE}address {{ prefix: news }}\n".replace("secureDefaults: yes", "secureDefaults: no")
        (why,) = outlook(node, loose)["refusals"]
        assert "router.secureDefaults: management may not change it" in why


LEVELS = (
    "router {{ id: R }}\nlistener {{ host: 127.0.0.1, port: 0, saslMechanisms: ANONYMOUS }}\n"
    "policy {{ enableVhostPolicy: yes }}\n"
    "vhost {{ hostname: $default, allowUnknownUser: yes, groups: {{ $default: {{ remoteHosts: *, sources: *, "
    "targets: *, allowDynamicSource: yes, management: {} }} }} }}\n"
)


@pytest.mark.parametrize(
    ("level", "asks", "changes"), [("none", 403, 403), ("read", 200, 403), ("operate", 200, 403), ("admin", 200, 200)]
)
def test_the_level_read_has_a_text_checked_and_only_admin_changes_anything(
    start_router: StartRouter, level: str, asks: int, changes: int
) -> None:
    text = LEVELS.format(level)
    router = start_router(text)
    with asking(router) as node:
        checked = node.ask("CHECK", f"{text}address {{ prefix: a }}\n", **NODE, file="R.conf")
        assert checked.status == asks
        assert node.ask("GET-CHANGE", **NODE).status == asks
        if asks == 200:
            assert checked.body["plan"]["created"] == ["address/0"]
            may_not = [] if changes == 200 else ["a change needs the management level admin"]
            assert checked.body["apply"]["refusals"] == may_not
        same = node.ask("CHECK", text, **NODE, file="R.conf")
        assert (same.status == 200 and same.body["apply"]["same"]) == (level == "admin")
        state = checked.body["apply"]["state"] if changes == 200 else "s"
        assert apply(node, f"{text}address {{ prefix: a }}\n", state=state).status == changes
        for step in ("REVERT-CHANGE", "CONFIRM-CHANGE"):
            assert node.ask(step, **NODE, change="c0").status == (404 if changes == 200 else 403)
    assert ("prefix: a" in router.configuration.read_text()) == (changes == 200)


VHOST = "# of the shop\nvhost { hostname: shop }\n"
GOES = "# of the old one\nvhost { hostname: old }   # it goes\n\n"
COMMENTED = f"# for all\n{ROUTER}\n{GOES}# stays\naddress {{ prefix: here }}\n"


def test_the_policy_is_changed_alone_and_all_else_stays_as_it_is_and_as_it_is_written(
    start_router: StartRouter,
) -> None:
    router = start_router(COMMENTED)
    edited = f"{COMMENTED}address {{ prefix: for-the-next-reload }}\n"
    router.configuration.write_text(edited)
    with asking(router) as node:
        node.create("router.config.address", {"prefix": "by-hand"}, name="mine")
        report = node.node("CHECK", VHOST, part="policy")
        assert [finding["entity"] for finding in report["findings"]] == ["vhost/shop"]  # that it is not enforced
        changes = [report["plan"][part] for part in ("created", "updated", "deleted")]
        assert changes == [["vhost/shop"], [], ["vhost/old"]]
        answer = apply(node, VHOST, state=report["apply"]["state"], part="policy")
        assert answer.status == 200, answer.description
        assert [row["hostname"] for row in node.query("vhost")] == ["shop"]
        assert prefixes(node) == ["here", "by-hand"]
        kept = edited.replace(GOES, "")
        assert router.configuration.read_text() == f"{kept}\n{VHOST}"
        node.node("REVERT-CHANGE", change="c1")
        assert [row["hostname"] for row in node.query("vhost")] == ["old"]
        assert prefixes(node) == ["here", "by-hand"]
        assert router.configuration.read_text() == edited


@pytest.mark.parametrize(
    ("text", "part", "why"),
    [
        ("router { id: X }\n", "policy", "only vhosts, and one section policy, are the policy of a network"),
        ("policy { maxConnections: 1 }\n", "policy", "there is no vhost in it"),
        ("vhost { hostnam: a }\n", "policy", "vhost.hostnam: unknown attribute"),
        (f"policy {{ policyDir: /tmp }}\n{VHOST}", "policy", "its vhosts would stay beside those of the network"),
        (VHOST, "listeners", "the property 'part' must be 'policy', not listeners"),
    ],
)
def test_what_is_no_policy_is_refused_and_changes_nothing(
    start_router: StartRouter, text: str, part: str, why: str
) -> None:
    router = start_router(ROUTER)
    with asking(router) as node:
        state = outlook(node, MORE)["state"]
        answer = apply(node, text, state=state, part=part)
        assert (answer.status, why in answer.description) == (400, True), answer.description
        assert node.node("GET-CHANGE") == {}
        checked = node.ask("CHECK", text, **NODE, part=part)
        if checked.status == 200:
            assert checked.body["plan"] is None
            assert any(why.partition(": ")[2] or why in str(finding) for finding in checked.body["findings"])
    assert router.configuration.read_text() == ROUTER


def test_a_router_holds_a_policy_to_expectations_by_its_own_configuration(start_router: StartRouter) -> None:
    table = '{"expectations": [{"vhost": "shop", "user": "ann", "host": "192.0.2.1", "open": false}]}'
    with asking(start_router(ROUTER)) as node:
        (why,) = node.node("CHECK", VHOST, part="policy", expectations=table)["apply"]["refusals"]
        assert "'ann' at 'shop' from 192.0.2.1 may connect" in why
        enforced = f"policy {{ enableVhostPolicy: yes }}\n{VHOST}"
        assert node.node("CHECK", enforced, part="policy", expectations=table)["apply"]["refusals"] == []
        assert node.node("CHECK", VHOST, part="policy", expectations="{")["plan"] is None


def test_only_admin_has_a_policy_checked(start_router: StartRouter) -> None:
    with asking(start_router(LEVELS.format("operate"))) as node:
        assert node.ask("CHECK", VHOST, **NODE, part="policy").status == 403


WORKERS = "router {\n    id: A\n    mode: interior\n    workers: 2\n}\n"
LISTENER = "listener {\n    host: 127.0.0.1\n    port: 0\n    saslMechanisms: ANONYMOUS\n}\n"


@needs_workers
def test_the_first_worker_makes_a_change_for_all_whichever_is_asked(tmp_path: Path) -> None:
    with process(WORKERS + LISTENER, tmp_path) as router:
        router.wait_for_line(r"MAIN \(notice\) 2 workers serve")
        router.wait_for_line(r"router A.2 is a neighbour")
        text = f"{WORKERS}{LISTENER}address {{ prefix: news }}\n"
        with stopped_cleanly(router):
            for change in ("c1", "c2"):  # the connections come to the workers in turn
                with asking(router) as node:
                    made(node, text, change)
                    assert prefixes(node) == ["news"]
                    assert node.node("GET-CHANGE")["state"] == "made"
                    node.node("REVERT-CHANGE", change=change)
                    assert prefixes(node) == []
