"""`trouter network policy push`: one policy for all routers of a network, or for none."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.management.node import node_of
from tests.networks import client_port, interior, network_with_edge, wait_for_row
from tests.routers import RunningRouter, process, running
from tests.tools.live import Ran, run
from trouter.tools.networks.applying import ChangedRouter, JointChange, Outcome
from trouter.tools.networks.checking import check_files
from trouter.tools.networks.folder import RouterFile
from trouter.tools.networks.policy_folder import read_policy_folder
from trouter.tools.networks.survey import survey
from trouter.tools.node import open_node
from trouter.tools.options import ConnectionOptions

pytestmark = pytest.mark.slow

ENFORCED = "policy { enableVhostPolicy: yes }\n"
#: It lets no other router ask it.
HIDDEN = "policy { enableVhostPolicy: yes, routerManagement: none }\n"
OPEN = (
    "# whoever comes\n"
    "vhost { hostname: $default, allowUnknownUser: yes, groups: { $default: { remoteHosts: *, sources: *, targets: *, "
    "allowDynamicSource: yes, allowAnonymousSender: yes } } }\n"
)
SHOP = '[["vhost", {"hostname": "shop", "aliases": ["store"], "groups": {"staff": {"users": "ann", "sources": "a"}}}]]'
#: Nobody of the group has a host.
EXPECTED = {"vhost": "shop", "user": "ann", "host": "192.0.2.1", "open": False}


@pytest.fixture
def routers(tmp_path: Path) -> Iterator[Mapping[str, RunningRouter]]:
    """Two interior routers, and an edge router at the second one."""
    with network_with_edge(tmp_path) as running_routers:
        yield running_routers


def folder_of(tmp_path: Path, files: Mapping[str, str]) -> Path:
    folder = tmp_path / "shared"
    (folder / "tests").mkdir(parents=True)
    for name, text in files.items():
        (folder / name).write_text(text)
    return folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return folder_of(
        tmp_path,
        {
            "all.conf": f"# of the network\n\n{ENFORCED}\n{OPEN}",
            "shop.json": SHOP,
            "tests/shop.json": json.dumps({"expectations": [EXPECTED]}),
        },
    )


async def push(router: RunningRouter, folder: Path, *words: str) -> Ran:
    server = f"127.0.0.1:{client_port(router)}"
    return await run("network", "policy", "push", str(folder), *words, "-b", server, "--timeout", "60")


def vhosts(router: RunningRouter) -> list[str]:
    with node_of(client_port(router)) as node:
        return sorted(row["hostname"] for row in node.query("vhost"))


def texts(routers: Mapping[str, RunningRouter]) -> dict[str, str]:
    return {name: router.configuration.read_text() for name, router in routers.items()}


async def test_every_router_gets_the_policy_and_keeps_all_else(
    routers: Mapping[str, RunningRouter], folder: Path
) -> None:
    before = texts(routers)
    with node_of(client_port(routers["B"])) as node:
        node.create("router.config.address", {"prefix": "by-hand"}, name="mine")
    asked = await push(routers["A"], folder)
    assert (asked.status, "--yes makes the change" in asked.err) == (1, True)
    dry = await push(routers["A"], folder, "--dry-run")
    assert (dry.status, "3 router(s) would change, nothing was changed" in dry.out) == (0, True), dry.err
    assert texts(routers) == before
    ran = await push(routers["A"], folder, "--yes")
    assert (ran.status, ran.err) == (0, "")
    assert [line for line in ran.lines if line.endswith(": confirmed")] == [
        "B: confirmed", "E: confirmed", "A: confirmed",
    ]  # fmt: skip
    assert ran.lines[-1].startswith("policy ")
    assert ran.lines[-1].endswith(": A, B, E")
    for name, router in routers.items():
        assert vhosts(router) == ["$default", "shop"]
        text = router.configuration.read_text()
        assert text.startswith(before[name].rstrip())
        assert text.endswith("}\n")
        assert f"\n\n{ENFORCED}\n{OPEN}\n# shop.json\nvhost {{\n" in text
    with node_of(client_port(routers["B"])) as node:
        assert [row["prefix"] for row in node.query("router.config.address")] == ["by-hand"]
    again = await push(routers["E"], folder)
    assert (again.status, again.lines[-2]) == (0, "every router has this policy: nothing was changed")


async def test_another_policy_takes_the_place_of_the_first_one(
    routers: Mapping[str, RunningRouter], folder: Path
) -> None:
    assert (await push(routers["A"], folder, "--yes")).status == 0
    first = texts(routers)
    (folder / "shop.json").write_text(SHOP.replace('"shop"', '"market"').replace('"store"', '"bazaar"'))
    (folder / "tests" / "shop.json").unlink()
    ran = await push(routers["A"], folder, "--yes", "--json")
    answer = json.loads(ran.out)
    assert (ran.status, answer["state"], list(answer["policies"].values())) == (0, "applied", [["A", "B", "E"]])
    assert {tuple(vhosts(router)) for router in routers.values()} == {("$default", "market")}
    changed = {name: text.replace('"shop"', '"market"').replace('"store"', '"bazaar"') for name, text in first.items()}
    assert texts(routers) == changed


async def test_a_router_that_cannot_take_the_policy_keeps_all_from_it(tmp_path: Path, folder: Path) -> None:
    own = tmp_path / "own"
    own.mkdir()
    with running(interior("A", {}), tmp_path) as first:
        text = f"{interior('B', {'A': first.ports[1]})}\npolicy {{ policyDir: {own} }}\n"
        with running(text, tmp_path) as second:
            wait_for_row(first, "router.node", lambda row: row["id"] == "B")
            before = texts({"A": first, "B": second})
            folder.joinpath("all.conf").write_text(OPEN)
            folder.joinpath("tests/shop.json").unlink()
            ran = await push(first, folder)
            assert ran.status == 1
            assert ran.err == "trouter network policy push: B cannot make the change: nothing was changed\n"
            assert any(
                "policy.policyDir: its vhosts would stay beside those of the network" in each for each in ran.lines
            )
            assert texts({"A": first, "B": second}) == before
            assert vhosts(first) == []


async def test_an_expectation_that_fails_ends_the_push_before_any_router_is_asked(folder: Path) -> None:
    (folder / "tests" / "shop.json").write_text(json.dumps({"expectations": [{**EXPECTED, "open": True}]}))
    ran = await run("network", "policy", "push", str(folder), "-b", "127.0.0.1:1")
    assert ran.status == 1
    assert f"{folder}/tests/shop.json:1:" in ran.err
    assert "'ann' at 'shop' from 192.0.2.1 may not connect" in ran.err
    assert ran.err.endswith("the policy is not as expected: no router was asked, and nothing was changed\n")


async def test_an_expectation_that_a_router_would_not_meet_keeps_all_from_the_policy(
    routers: Mapping[str, RunningRouter], folder: Path
) -> None:
    before = texts(routers)
    (folder / "all.conf").write_text(OPEN)  # no router enforces vhosts
    ran = await push(routers["A"], folder)
    assert ran.status == 1
    assert "trouter network policy push: E: expectations:1:" in ran.err
    assert "'ann' at 'shop' from 192.0.2.1 may connect" in ran.err
    assert ran.err.endswith("A, B, E cannot make the change: nothing was changed\n")
    assert texts(routers) == before


async def test_routers_whose_policies_still_differ_are_named(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, {"all.conf": OPEN})
    with running(interior("A", {}), tmp_path) as first:
        text = f"{interior('B', {'A': first.ports[1]})}\npolicy {{ maxConnections: 77 }}\n"
        with running(text, tmp_path):
            wait_for_row(first, "router.node", lambda row: row["id"] == "B")
            ran = await push(first, folder)
            assert ran.status == 1
            assert "sections policy that differ (A | B): write one into the folder" in ran.err
            assert {line.rpartition(": ")[2] for line in ran.lines if line.startswith("policy ")} == {"A", "B"}
            shown = await run("network", "status", "-b", f"127.0.0.1:{client_port(first)}", "--timeout", "60")
            assert "the routers have 2 policies: " in shown.out


async def test_a_router_that_does_not_answer_is_refused_or_the_policy_waits_for_it(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, {"all.conf": f"{ENFORCED}{OPEN}"})
    with running(interior("A", {}), tmp_path) as first:
        second = interior("B", {"A": first.ports[1]})
        with running(f"{second}\n{HIDDEN}", tmp_path):
            wait_for_row(first, "router.node", lambda row: row["id"] == "B")
            refused = await push(first, folder, "--yes")
            assert (refused.status, vhosts(first)) == (1, [])
            assert "B would miss the change: nothing was changed (--skip-absent lets it wait for them)" in refused.err
            ran = await push(first, folder, "--yes", "--skip-absent")
            assert (ran.status, vhosts(first)) == (0, ["$default"])
            assert "B is away: the change waits for it; the next run makes it there" in ran.err
        wait_for_row(first, "router.node", lambda row: row["id"] == "B", there=False)
        (waiting,) = (await run("network", "policy", "push", str(folder), "--pending")).lines
        assert waiting.startswith("B: the change waits since ")
        gone = await push(first, folder)
        assert (gone.status, "B: it is not in reach" in gone.err) == (1, True)
        with running(second, tmp_path) as back:
            wait_for_row(first, "router.node", lambda row: row["id"] == "B")
            ran = await push(first, folder, "--yes")
            assert (ran.status, "B: confirmed" in ran.lines, vhosts(back)) == (0, True, ["$default"])
        assert (await run("network", "policy", "push", str(folder), "--pending")).lines == []


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Mapping[str, RunningRouter]]:
    """Two interior routers."""
    with ExitStack() as stack:
        first = stack.enter_context(running(interior("A", {}), tmp_path))
        second = stack.enter_context(running(interior("B", {"A": first.ports[1]}), tmp_path))
        wait_for_row(first, "router.node", lambda row: row["id"] == "B")
        yield {"A": first, "B": second}


@pytest.mark.attack
async def test_a_router_that_had_the_policy_and_gets_another_one_meanwhile_has_it_taken_back_everywhere(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, pair: Mapping[str, RunningRouter], folder: Path
) -> None:
    other = folder_of(tmp_path / "other", {"all.conf": OPEN})
    assert (await push(pair["A"], folder, "--only", "A", "--yes")).status == 0
    before = texts(pair)
    make, others = JointChange.make, [other]

    async def make_later(change: JointChange) -> None:
        if others:
            ran = await push(pair["A"], others.pop(), "--only", "A", "--yes")
            assert ran.status == 0, ran.err
        await make(change)

    monkeypatch.setattr(JointChange, "make", make_later)
    ran = await push(pair["B"], folder, "--yes")
    command = "trouter network policy push: "
    assert ran.status == 1
    assert ran.err == (
        f"{command}A: another user, or another command, has changed it since the check\n"
        f"{command}the change was not made: every other router has what it had before\n"
    )
    assert "B: taken back" in ran.lines
    assert (vhosts(pair["A"]), vhosts(pair["B"])) == (["$default"], [])
    assert texts(pair)["B"] == before["B"]


@pytest.mark.attack
async def test_a_router_that_is_changed_by_hand_before_the_end_is_named_with_the_cure(
    monkeypatch: pytest.MonkeyPatch, pair: Mapping[str, RunningRouter], folder: Path
) -> None:
    confirm = JointChange.confirm

    async def confirm_later(change: JointChange) -> None:
        with node_of(client_port(pair["A"])) as node:
            node.create("vhost", {"hostname": "by-hand"})
        await confirm(change)

    monkeypatch.setattr(JointChange, "confirm", confirm_later)
    ran = await push(pair["B"], folder, "--yes")
    command = "trouter network policy push: "
    assert ran.status == 1
    assert ran.err == (
        f"{command}A: another user, or another command, has changed it since the check\n"
        f"{command}the routers have several policies now: push again\n"
    )


async def test_a_router_that_is_killed_amid_gets_nothing_and_the_others_go_back(tmp_path: Path, folder: Path) -> None:
    policy = read_policy_folder(folder)
    with running(interior("A", {}), tmp_path) as first:
        with process(interior("B", {"A": first.ports[1]}), tmp_path) as second:
            wait_for_row(first, "router.node", lambda row: row["id"] == "B")
            before = texts({"A": first, "B": second})
            options = ConnectionOptions(host="127.0.0.1", port=client_port(first), timeout_s=5)
            async with open_node(options) as node:
                files = [RouterFile(name, folder, policy.text, folder, 0) for name in ("A", "B")]
                checked = await check_files(node, files, await survey(node), part="policy")
                changed = [
                    ChangedRouter(file.id, edge=False, file=file, state=each.outlook.state)
                    for file, each in zip(files, checked, strict=True)
                    if each.outlook is not None
                ]
                change = JointChange(node, "policy-c1", "ann@ops", [changed[:1], changed[1:]], 8, "policy")
                second.process.kill()
                second.wait()
                await change.make()
                assert [each.outcome for each in change.routers] == [Outcome.MADE, Outcome.UNKNOWN]
                assert vhosts(first) == ["$default", "shop"]
                shown = await run("network", "status", "-b", f"127.0.0.1:{client_port(first)}", "--timeout", "60")
                assert "`trouter network policy push FOLDER --resume policy-c1` goes on with it" in shown.out
                while change.routers[0].outcome is not Outcome.BACK:  # on a busy machine its answer may come too late
                    await change.take_back()
        assert texts({"A": first, "B": second}) == before
        assert vhosts(first) == []


@pytest.mark.parametrize(
    ("files", "why"),
    [
        ({}, "there is no vhost in its files *.conf and *.json"),
        ({"a.conf": ENFORCED}, "there is no vhost in its files *.conf and *.json"),
        ({".a.conf": OPEN}, "there is no vhost in its files *.conf and *.json"),
        (
            {"a.conf": f"{OPEN}\nvhost {{ hostname: shop }}\n", "b.json": SHOP},
            "{0}/b.json: vhost.hostname: this host name belongs to a vhost already, at {0}/a.conf:4: 'shop'",
        ),
        (
            {"a.conf": OPEN, "b.conf": f"\n\n{OPEN}"},
            "{0}/b.conf:4: vhost.hostname: this host name belongs to a vhost already, at {0}/a.conf:2: '$default'",
        ),
        (
            {"a.conf": f"{ENFORCED}{OPEN}", "b.conf": "policy { maxConnections: 1 }\n"},
            "{0}/b.conf:1: policy: there is one already, at {0}/a.conf:1",
        ),
        (
            {"a.conf": f"{OPEN}listener {{ port: 1 }}\n"},
            "{0}/a.conf:3:1: listener: only vhosts, and one",
        ),
        ({"a.conf": "vhost { hostnam: a }\n"}, "{0}/a.conf:1:9: vhost.hostnam: unknown attribute"),
        ({"a.json": '[["vhost", {"hostnam": "a"}]]'}, "{0}/a.json:1:13: vhost.hostnam: unknown attribute"),
        ({"a.conf": OPEN, "tests/a.json": "{"}, "{0}/tests/a.json:"),
        ({"a.conf": f"{OPEN}# {'x' * 300_000}\n"}, "has more than 260000 bytes"),
    ],
)
async def test_a_folder_that_is_no_policy_is_refused_with_its_place(
    tmp_path: Path, files: Mapping[str, str], why: str
) -> None:
    folder = folder_of(tmp_path, files)
    ran = await run("network", "policy", "push", str(folder), "-b", "127.0.0.1:1")
    assert ran.status in {1, 2}
    assert why.format(folder) in ran.err
    assert "Connect" not in ran.err


async def test_a_policy_that_names_another_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    folder = folder_of(tmp_path, {"a.conf": f"policy {{ policyDir: {tmp_path / 'empty'} }}\n{OPEN}"})
    ran = await run("network", "policy", "push", str(folder), "-b", "127.0.0.1:1")
    assert (ran.status, "its policy names a policyDir" in ran.err) == (2, True), ran.err


async def test_a_link_out_of_the_folder_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "secret.conf").write_text(OPEN)
    folder = folder_of(tmp_path, {})
    (folder / "a.conf").symlink_to(tmp_path / "secret.conf")
    ran = await run("network", "policy", "push", str(folder), "-b", "127.0.0.1:1")
    assert (ran.status, "outside of" in ran.err) == (2, True)


@pytest.mark.attack
@pytest.mark.parametrize("name", ["a\nvhost { hostname: b }\n.json", "a\x1b[2J.conf"])
async def test_a_name_of_a_file_that_would_become_text_of_the_policy_is_refused(tmp_path: Path, name: str) -> None:
    folder = folder_of(tmp_path, {"all.conf": OPEN, name: SHOP})
    ran = await run("network", "policy", "push", str(folder), "-b", "127.0.0.1:1")
    assert (ran.status, "has control characters: rename the file" in ran.err) == (2, True), ran.err
    assert "\x1b" not in ran.err


async def test_files_with_the_mark_of_an_editor_make_one_policy(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, {"a.conf": f"\ufeff{OPEN}", "b.json": f"\ufeff{SHOP}", "c.conf": f"\ufeff{ENFORCED}"})
    policy = read_policy_folder(folder)
    assert "\ufeff" not in policy.text
    assert policy.configuration.policy.enable_vhost_policy


async def test_what_else_is_in_the_file_of_a_router_is_neither_judged_nor_written_anew(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, {"all.conf": OPEN}).rename(tmp_path / "pol.json")
    text = interior("A", {}).replace("listener {", "# trouter: accept authenticate-peer: in the lab\nlistener {", 1)
    (tmp_path / "real").mkdir()
    (tmp_path / "linked").symlink_to(tmp_path / "real")
    with running(text, tmp_path / "linked") as router:
        before = f"\ufeff{router.configuration.read_text()}\n\n".replace("\n", "\r\n").encode()
        router.configuration.write_bytes(before)
        ran = await push(router, folder)
        assert (ran.status, ran.err) == (0, "")
        assert "remove the comment" not in ran.out
        assert router.configuration.read_bytes() == before + OPEN.replace("\n", "\r\n").encode()
        edited = folder / "all.conf"
        edited.write_text(edited.read_text().replace("# whoever comes", "# who comes"))
        again = await push(router, folder, "--dry-run")
        assert again.lines == ["A: only the text of its file changes", "1 router(s) would change, nothing was changed"]
