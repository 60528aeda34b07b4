"""The agent on a router in memory: pages while links come and go, limits, and a slow change that delays no other."""

from __future__ import annotations

import itertools
import uuid

import pytest
import trio
import trio.testing

from tests.management.still import Asker, StillControl, message, sections_of, serve
from trouter.core.exchanges import BindingRule, ExchangeRule
from trouter.logs import book
from trouter.management import agent as agent_module
from trouter.management.agent import MAX_TOGETHER, MAX_UNREAD_BYTES, Agent
from trouter.management.waiting import MAX_WAITING
from trouter.testing.memory import MemoryReceiver, MemoryRouter, SentMessage
from trouter.wire.performatives import Accepted, Released
from trouter.wire.types import Int, ULong


@pytest.mark.parametrize("kind", ["router.link", "router.address"])
async def test_pages_neither_repeat_nor_skip_while_links_come_and_go(nursery: trio.Nursery, kind: str) -> None:
    asker = await serve(nursery)
    other = asker.memory.connect()
    links = [other.receiver(f"a{number:03}") for number in range(100)]
    lasting = set(await asker.page(kind, 0, 0))
    seen: list[str] = []
    for offset in itertools.count(0, 7):
        page = await asker.page(kind, offset, 7)
        seen += page
        if len(page) < 7:
            break
        before = set(await asker.page(kind, 0, 0))
        links.pop(0).detach()
        links.pop(len(links) // 2).detach()
        other.receiver(f"new{offset}")
        lasting &= before & set(await asker.page(kind, 0, 0))
    assert len(seen) == len(set(seen))
    assert lasting <= set(seen)


async def test_two_paging_clients_do_not_disturb_each_other(nursery: trio.Nursery) -> None:
    one = await serve(nursery)
    two = Asker(one.memory, one.control, one.agent)
    [one.client.receiver(f"a{number}") for number in range(20)]
    whole = await one.page("router.link", 0, 0)
    assert await one.page("router.link", 0, 10) == whole[:10]
    assert await two.page("router.link", 0, 5) == whole[:5]
    assert await one.page("router.link", 10, 10) == whole[10:20]
    assert await two.page("router.link", 5, 5) == whole[5:10]
    assert await two.page("router.link", 5, 5) == whole[5:10]


async def test_a_change_that_takes_its_time_holds_up_no_reader(nursery: trio.Nursery) -> None:
    asker = await serve(nursery)
    asker.control.gate = trio.Event()
    asker.send("CREATE", {}, type="dummy", name="slow")
    await trio.testing.wait_all_tasks_blocked()
    assert asker.control.waiting == 1
    assert (await asker.ask("GET-MGMT-NODES"))[0] == 200
    asker.send("CREATE", {}, type="dummy", name="later")
    await trio.testing.wait_all_tasks_blocked()
    assert asker.control.waiting == 1
    asker.control.gate.set()
    await trio.testing.wait_all_tasks_blocked()
    asker.memory.pump()
    assert [asker.next_answer()[2]["name"] for _ in range(2)] == ["slow", "later"]


@pytest.mark.attack
@pytest.mark.parametrize("operation", ["CHECK", "check"])
async def test_a_check_that_takes_its_time_holds_up_no_reader(nursery: trio.Nursery, operation: str) -> None:
    asker = await serve(nursery)
    asker.control.gate = trio.Event()
    asker.send(operation, "router { id: R2 }")
    await trio.testing.wait_all_tasks_blocked()
    assert asker.control.waiting == 1
    assert (await asker.ask("GET-MGMT-NODES"))[0] == 200
    assert (await asker.ask("DELETE", type="dummy", name="absent"))[0] == 404


async def test_requests_that_wait_are_bounded_and_the_rest_is_released(nursery: trio.Nursery) -> None:
    asker = await serve(nursery)
    sent: list[SentMessage] = []
    share = MAX_WAITING // 2
    while len(sent) < share + 10:  # without a wait: the agent does not run in between
        sent.append(asker.send("GET-MGMT-NODES"))
    assert sum(isinstance(each.outcome, Released) for each in sent) == 10
    while not asker.agent.idle:
        asker.memory.pump()
        await trio.lowlevel.checkpoint()
    asker.memory.pump()
    assert len(asker.receiver.received) == share


@pytest.mark.attack
async def test_a_user_with_many_requests_delays_another_one_by_one_of_them(nursery: trio.Nursery) -> None:
    one = await serve(nursery)
    greedy = [one, *(Asker(one.memory, one.control, one.agent) for _ in range(2))]
    other = Asker(one.memory, one.control, one.agent)
    # without a wait: the agent does not run in between
    for asker in greedy:
        one.control.users[asker.client.terms.connection_number] = "greedy"
        for _ in range(100):
            asker.send("GET-MGMT-NODES")
    other.send("GET-MGMT-NODES")
    answered: list[int] = []
    while not other.receiver.received:
        await trio.lowlevel.checkpoint()
        one.memory.pump()
        answered = [len(asker.receiver.received) for asker in greedy]
    assert sum(answered) <= MAX_TOGETHER


@pytest.mark.attack
async def test_ten_users_with_all_they_may_have_waiting_leave_room_for_an_eleventh(nursery: trio.Nursery) -> None:
    one = await serve(nursery)
    greedy = [one, *(Asker(one.memory, one.control, one.agent) for _ in range(9))]
    other = Asker(one.memory, one.control, one.agent)
    accepted = 0
    for asker in greedy:  # without a wait: the agent does not run in between
        while isinstance(asker.send("GET-MGMT-NODES").outcome, Accepted):
            accepted += 1
    late = [other.send("GET-MGMT-NODES") for _ in range(20)]
    assert all(isinstance(each.outcome, Accepted) for each in late)
    while not one.agent.idle:
        await trio.lowlevel.checkpoint()
    one.memory.pump()
    assert [other.next_answer()[0] for _ in late] == [200] * len(late)
    answers = [asker.next_answer() for asker in greedy for _ in asker.receiver.received]
    refused = [text for status, text, _ in answers if status != 200]
    assert refused == ["too many such requests are waiting; try again later"] * (accepted + len(late) - MAX_WAITING)
    assert len(answers) == accepted


@pytest.mark.attack
async def test_behind_a_neighbour_the_requests_for_one_reply_to_delay_those_for_another_by_one(
    nursery: trio.Nursery,
) -> None:
    asker = await serve(nursery)
    asker.control.neighbours.add(asker.client.terms.connection_number)
    other: MemoryReceiver = asker.client.receiver(dynamic=True, credit=10)
    for _ in range(300):  # without a wait: the agent does not run in between
        asker.send("GET-MGMT-NODES")
    asker.send("GET-MGMT-NODES", reply_to=other.address)
    while not other.received:
        await trio.lowlevel.checkpoint()
        asker.memory.pump()
    assert len(asker.receiver.received) <= MAX_TOGETHER


async def test_the_connections_of_a_user_take_turns_and_each_keeps_its_order(nursery: trio.Nursery) -> None:
    one = await serve(nursery)
    other = Asker(one.memory, one.control, one.agent)
    for asker in (one, other):
        one.control.users[asker.client.terms.connection_number] = "both"
    for number in range(50):
        one.send("CREATE", {}, type="dummy", name=f"d{number}")
    other.send("QUERY", {"attributeNames": ["name"]}, entityType="dummy")
    while not one.agent.idle:
        await trio.testing.wait_all_tasks_blocked()
    one.memory.pump()
    assert [one.next_answer()[2]["name"] for _ in range(50)] == [f"d{number}" for number in range(50)]


async def test_answers_that_no_client_takes_are_bounded(nursery: trio.Nursery) -> None:
    asker = await serve(nursery)
    silent: MemoryReceiver = asker.client.receiver(dynamic=True)
    for _ in range(1000):
        asker.send("GET-SCHEMA", reply_to=silent.address)
        await trio.testing.wait_all_tasks_blocked()
    record = asker.memory.core.table.find_entry(silent.address.encode())
    assert record is not None
    queued = [out.message for outgoing in record.forwarder.consumers for out in outgoing.queue]
    held = sum(message.held for message in queued if message is not None)
    assert 0 < held <= MAX_UNREAD_BYTES
    assert (await asker.ask("GET-MGMT-NODES"))[0] == 200


async def test_answers_to_requests_of_one_moment_leave_together(nursery: trio.Nursery) -> None:
    memory, control = MemoryRouter(), StillControl("router { id: R1 }\n")
    waiting: list[bool] = []
    agent = Agent(memory.core, control, book, lambda: memory.now_s, lambda: waiting.append(not agent.idle))
    await nursery.start(agent.run)
    asker = Asker(memory, control, agent)
    await trio.testing.wait_all_tasks_blocked()
    waiting.clear()
    for _ in range(MAX_TOGETHER):
        asker.send("GET-MGMT-NODES")
    asker.send("GET-MGMT-NODES", reply_to="nobody.reads.here")
    await trio.testing.wait_all_tasks_blocked()
    assert waiting == [True, False]  # after each portion, and when none waits any more, with any result of the last one
    asker.memory.pump()
    assert len(asker.receiver.received) == MAX_TOGETHER


async def test_an_answer_to_a_disconnected_client_is_dropped(nursery: trio.Nursery) -> None:
    asker = await serve(nursery)
    asker.control.gate = trio.Event()
    other = Asker(asker.memory, asker.control, asker.agent)
    other.send("CREATE", {}, type="dummy", name="orphan")
    await trio.testing.wait_all_tasks_blocked()
    other.client.drop()
    asker.control.gate.set()
    await trio.testing.wait_all_tasks_blocked()
    assert (await asker.ask("READ", name="orphan"))[0] == 200


@pytest.mark.parametrize("value", ["text", b"\x00\xff", uuid.UUID(int=5), ULong(7), ULong(1 << 63)])
async def test_the_correlation_id_comes_back_with_its_type(nursery: trio.Nursery, value: object) -> None:
    asker = await serve(nursery)
    asker.sender.send(message({"operation": "GET-MGMT-NODES"}, None, asker.reply_to, correlation_id=value))
    asker.memory.pump()
    await trio.testing.wait_all_tasks_blocked()
    asker.memory.pump()
    sections = sections_of(asker.receiver.received[0].payload)
    assert sections[0x70] == [False]
    assert sections[0x73] == [None, None, asker.reply_to, None, None, value]
    assert type(sections[0x73][5]) is type(value)
    assert sections[0x74] == {"statusCode": Int(200), "statusDescription": "OK"}
    assert type(sections[0x74]["statusCode"]) is Int


async def test_a_reply_to_that_is_the_node_itself_makes_no_circle(nursery: trio.Nursery) -> None:
    asker = await serve(nursery)
    asker.send("GET-MGMT-NODES", reply_to="$management")
    await trio.testing.wait_all_tasks_blocked()
    asker.memory.pump()
    assert asker.receiver.received == []
    assert (await asker.ask("GET-MGMT-NODES"))[0] == 200


async def test_other_tasks_have_a_turn_while_rows_are_made(nursery: trio.Nursery) -> None:
    asker = await serve(nursery)
    for number in range(300):
        asker.client.receiver(f"a{number}", pump=False)
    asker.memory.pump()
    turns = 0
    done = trio.Event()

    async def count() -> None:
        nonlocal turns
        while not done.is_set():
            turns += 1
            await trio.lowlevel.checkpoint()

    async with trio.open_nursery() as turning:
        for _ in range(20):
            asker.send("QUERY", {}, entityType="router.link")
        turning.start_soon(count)
        while len(asker.receiver.received) < 20:
            asker.memory.pump()
            await trio.lowlevel.checkpoint()
        done.set()
    assert turns > 20


async def test_the_addresses_of_the_node_end_with_the_agent() -> None:
    async with trio.open_nursery() as nursery:
        asker = await serve(nursery)
        records = asker.memory.core.table.entries
        assert {"M0$management", "L$management", "L$_management_internal"} <= set(records)
        asker.client.drop()
        nursery.cancel_scope.cancel()
    assert not records


async def test_numbers_of_configured_addresses_are_not_used_twice(nursery: trio.Nursery) -> None:
    asker = await serve(nursery)
    kind = "router.config.address"
    made = [(await asker.ask("CREATE", {"prefix": f"p{n}"}, type=kind))[2]["identity"] for n in range(3)]
    assert (await asker.ask("DELETE", type=kind, identity=made[1]))[0] == 204
    again = (await asker.ask("CREATE", {"prefix": "p1"}, type=kind))[2]["identity"]
    links = await asker.page("router.link", 0, 0)
    assert len({*made, again, *links}) == len(made) + 1 + len(links)
    assert await asker.page(kind, 0, 0) == [made[0], made[2], again]


async def test_an_answer_goes_to_an_exchange_only_for_a_client_that_may_send_there(
    monkeypatch: pytest.MonkeyPatch, nursery: trio.Nursery
) -> None:
    asker = await serve(nursery)
    monkeypatch.setattr(asker.control, "may_send", lambda _, address: address != "x")
    others = asker.memory.connect().receiver("hop", credit=10)
    asker.client.receiver("x", credit=10)  # the only receiver there, but for those of the exchange
    asker.send("GET-TYPES", reply_to="x")
    await trio.testing.wait_all_tasks_blocked()
    assert asker.control.refusals == []
    made = asker.memory.core.exchanges.add(ExchangeRule("e", "x"))
    made.bind(BindingRule("#", "hop"))
    asker.send("GET-TYPES", reply_to="x")
    await trio.testing.wait_all_tasks_blocked()
    asker.memory.pump()
    assert [what for _, what in asker.control.refusals] == ["reply-to x"]
    assert others.received == []


async def test_a_fault_of_the_agent_is_logged_by_the_module_error(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, nursery: trio.Nursery
) -> None:
    asker = await serve(nursery)
    with monkeypatch.context() as patch:
        patch.setattr(agent_module, "perform", lambda *_: 1 / 0)
        assert (await asker.ask("GET-TYPES"))[0] == 500
    (record,) = [each for each in caplog.records if each.name == "trouter.ERROR"]
    assert record.levelname == "ERROR"
    assert record.exc_info is not None
    assert record.exc_info[0] is ZeroDivisionError
    assert (await asker.ask("GET-TYPES"))[0] == 200
