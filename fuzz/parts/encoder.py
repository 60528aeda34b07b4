"""Valid inputs for the targets, made with trouter's encoder: `python -m fuzz.parts.encoder` writes them as seeds.

One fixed number seeds the generator, so each run writes the same seeds; their names begin with `encoded-`.
"""

from __future__ import annotations

import hashlib
import json
import random
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final
from uuid import UUID

from tests.script import encode as frame_of
from trouter.client import Message
from trouter.mesh import messages
from trouter.wire import types
from trouter.wire.annotations import compose_annotations
from trouter.wire.codec import encode
from trouter.wire.framing import AMQP_HEADER, SASL_HEADER
from trouter.wire.message import Header, Properties
from trouter.wire.performatives import (
    Accepted,
    Attach,
    Begin,
    Close,
    Detach,
    Disposition,
    End,
    Error,
    Flow,
    Modified,
    Open,
    Performative,
    Received,
    Rejected,
    Released,
    SaslInit,
    SaslResponse,
    Source,
    Target,
    Transfer,
    encode_performative,
)
from trouter.wire.types import Array, Described, Symbol, ULong

SEEDS: Final = Path(__file__).resolve().parents[1] / "seeds"
RNG_SEED: Final = 17
NUMBERS: Final = (0, 1, 2, 5, 127, 128, 255, 256, 65535, 65536, 0x7FFFFFFF, 0xFFFFFFFE, 0xFFFFFFFF)
ADDRESSES: Final = ("own", "multicast/a", "closest.b", "fall", "$management", "a" * 300, "", "_topo/0/R2/x", "news/#")
WORDS: Final = ("", "a", "alice", "x-opt-qd.", "é" * 3, "amqp:accepted:list", "\0", "0/R1", "b" * 256)

Rng = random.Random


def scalar(rng: Rng) -> Any:
    number = rng.choice(NUMBERS)
    return rng.choice(
        (
            None,
            rng.random() < 0.5,
            types.UByte(number & 0xFF),
            types.UShort(number & 0xFFFF),
            types.UInt(number),
            types.ULong(number << rng.choice((0, 32))),
            types.Byte((number & 0xFF) - 128),
            types.Short((number & 0xFFFF) - 32768),
            types.Int(number - 2**31),
            number * rng.choice((1, -1)),
            types.Timestamp(number),
            types.Float(number / 4),
            number / 8,
            types.Char(rng.choice("aé\U0010ffff\0")),
            types.Decimal32(rng.randbytes(4)),
            types.Decimal64(rng.randbytes(8)),
            types.Decimal128(rng.randbytes(16)),
            UUID(bytes=rng.randbytes(16)),
            rng.randbytes(rng.choice((0, 1, 255, 256))),
            rng.choice(WORDS),
            Symbol(rng.choice(("", "a", "x-opt-y", "s" * 256))),
        )
    )


def value(rng: Rng, depth: int = 3) -> Any:
    kind = rng.randrange(7) if depth else 9
    if kind == 0:
        return [value(rng, depth - 1) for _ in range(rng.randrange(5))]
    if kind == 1:
        return {rng.choice(WORDS): value(rng, depth - 1) for _ in range(rng.randrange(4))}
    if kind == 2:
        return Described(rng.choice((ULong(0x77), Symbol("d:e"), ULong(2**40))), value(rng, depth - 1))
    if kind == 3:
        of, items = rng.choice(
            (
                ("uint", [types.UInt(each) for each in NUMBERS[: rng.randrange(9)]]),
                ("symbol", [Symbol("a"), Symbol("b" * rng.choice((1, 300)))]),
                ("string", [rng.choice(WORDS) for _ in range(3)]),
                ("boolean", [True, False]),
                ("list", [[1], []]),
                ("null", [None] * 3),
            )
        )
        return Array(of, items)
    return scalar(rng)


def state(rng: Rng) -> Any:
    return rng.choice(
        (
            None,
            Accepted(),
            Released(),
            Rejected(Error("a:b", "c")),
            Rejected(),
            Modified(True),
            Modified(undeliverable_here=True, message_annotations={Symbol("k"): 1}),
            Received(types.UInt(1), types.ULong(2)),
        )
    )


def begin(first: int, window: int) -> Begin:
    return Begin(next_outgoing_id=first, incoming_window=window, outgoing_window=window)


def flow(next_incoming: int | None, **fields: Any) -> Flow:
    return Flow(
        next_incoming_id=next_incoming, incoming_window=2048, next_outgoing_id=0, outgoing_window=2048, **fields
    )


def performative(rng: Rng) -> Performative:
    number, small = rng.choice(NUMBERS), rng.randrange(4)
    name, address = rng.choice(("a", "b", "no", "0", "1")), rng.choice(ADDRESSES)
    tag = rng.choice((None, b"", b"t", b"2", bytes(32)))
    made: Performative = rng.choice(
        (
            begin(0, rng.choice((1, 8, 2048))),
            Begin(
                remote_channel=small,
                next_outgoing_id=number,
                incoming_window=small,
                outgoing_window=number,
                handle_max=small,
            ),
            Attach(name, small, False, source=Source("s"), target=Target(address), initial_delivery_count=number),
            Attach(name, small, True, source=Source(address, capabilities=("qd.waypoint",)), target=Target("t")),
            Attach(name, small, True, source=Source(None, dynamic=True), target=Target()),
            flow(0, handle=small, delivery_count=number, link_credit=small + 1, drain=rng.random() < 0.3),
            flow(None),
            flow(number, handle=small, delivery_count=0, available=number, link_credit=100, echo=True),
            flow(0, properties={Symbol("p"): 1}),
            Transfer(small, number, tag, types.UInt(0), rng.random() < 0.5, rng.random() < 0.3),
            Transfer(small, more=rng.random() < 0.5, aborted=rng.random() < 0.3),
            Transfer(small, number, tag, types.UInt(0), state=state(rng), resume=rng.random() < 0.2, batchable=True),
            Disposition(rng.random() < 0.7, number, rng.choice((None, number)), rng.random() < 0.7, state(rng)),
            Detach(small, rng.random() < 0.5, rng.choice((None, Error("a:b", "c")))),
            End(rng.choice((None, Error("a:b")))),
            Close(),
        )
    )
    return made


def message(rng: Rng) -> bytes:
    properties = Properties(
        message_id=rng.choice((None, "id", types.ULong(7), b"x", UUID(int=1))),
        user_id=rng.choice((None, b"alice")),
        to=rng.choice((None, *ADDRESSES)),
        subject=rng.choice((None, "s", "a.b.c")),
        correlation_id=rng.choice((None, "c")),
    )
    body: Any = rng.choice((b"", b"body", bytes(300), "text", {"k": value(rng, 1)}, value(rng), None))
    return Message(
        body,
        properties=properties if rng.random() < 0.7 else Properties(),
        header=Header(durable=rng.random() < 0.5, priority=types.UByte(rng.randrange(10))),
        application_properties={"k": scalar(rng)} if rng.random() < 0.5 else {},
        message_annotations={Symbol("x-opt-a"): scalar(rng)} if rng.random() < 0.4 else {},
        delivery_annotations={Symbol("x-opt-d"): 1} if rng.random() < 0.2 else {},
        footer={Symbol("f"): 1} if rng.random() < 0.1 else {},
    ).encode()


def section_of(rng: Rng) -> bytes:
    count = rng.randrange(4)
    pairs = [
        encode(Symbol(rng.choice(("x-opt-a", "x-opt-qd.class", f"k{each}")))) + encode(value(rng, 1))
        for each in range(count)
    ]
    trace = tuple(f"0/R{each}" for each in range(rng.choice((0, 1, 3, 63))))
    to = rng.choice((None, *ADDRESSES))
    made = compose_annotations(
        b"".join(pairs), count, rng.choice((0, 1, 7, 200)), rng.random() < 0.3, to, rng.choice((None, "0/R1")), trace
    )
    return made or b"\0\x53\x72\xc1\1\0"


def conversation(rng: Rng, *, sasl: bool = False) -> bytes:
    """Return a random stream of a connection: a session, some links and frames."""
    pieces: list[bytes] = []
    if sasl:
        pieces += [SASL_HEADER, frame_of(SaslInit(rng.choice(("ANONYMOUS", "PLAIN", "X")), b"\0alice\0secret"))]
        pieces += [frame_of(SaslResponse(b"r"))] * rng.randrange(3)
    pieces += [AMQP_HEADER, frame_of(Open("peer", max_frame_size=rng.choice((512, 4096, 0xFFFFFFFF))))]
    pieces.append(frame_of(begin(rng.choice(NUMBERS), 100)))
    pieces.append(frame_of(Attach("a", 0, False, source=Source(), target=Target(rng.choice(ADDRESSES)))))
    pieces.append(frame_of(Attach("b", 1, True, source=Source(rng.choice(ADDRESSES)), target=Target())))
    pieces.append(frame_of(flow(0, handle=1, delivery_count=0, link_credit=10)))
    for each in range(rng.randrange(1, 12)):
        if rng.random() < 0.3:
            sent = Transfer(0, types.UInt(each), each.to_bytes(2, "big"), types.UInt(0), rng.random() < 0.5)
            pieces.append(frame_of(sent, 0, message(rng)))
        else:
            pieces.append(frame_of(performative(rng), rng.choice((0, 0, 0, 1, 2))))
    return b"".join(pieces)


def router_message(rng: Rng) -> bytes:
    router = rng.choice(("R2", "R3", "é", "R" * 300))
    number = rng.choice(NUMBERS)
    made: tuple[messages.Message, str] = rng.choice(
        (
            (messages.Hello(router, number, ("R1",) * rng.randrange(3)), messages.HELLO_TO),
            (messages.RouterAdvertisement(router, number, number, number), messages.ALL_ROUTERS_TO),
            (messages.LinkStateRequest(router), messages.router_address("R1")),
            (messages.LinkStateUpdate(router, number, 1, {"R1": 1, "R4": 7}), messages.router_address("R1")),
            (messages.MobileAddressRequest(router, number), messages.mobile_address("R1")),
            (messages.MobileAddressUpdate(router, number, ("M0a", "Cb"), hints=(0, 1)), messages.ALL_ADDRESSES_TO),
            (messages.MobileAddressUpdate(router, 2, None, ("M0c",), ("M0a",)), messages.ALL_ADDRESSES_TO),
        )
    )
    return messages.compose(*made)


def router_talk(rng: Rng) -> bytes:
    rows = [router_message(rng) for _ in range(rng.randrange(1, 8))]
    return b"".join(bytes((rng.randrange(15),)) + len(row).to_bytes(2, "big") + row for row in rows)


def request(rng: Rng) -> bytes:
    kind = rng.choice(("address", "listener", "router.link", "log", "router", "vhost", "connector", "policy", "none"))
    operation = rng.choice(
        ("QUERY", "CREATE", "READ", "UPDATE", "DELETE", "GET-TYPES", "GET-SCHEMA", "GET-LOG", "GET-OPERATIONS", "X")
    )
    properties = {"operation": operation, "type": kind, "name": rng.choice(("self", "x", "log/DEFAULT", "R1"))}
    properties |= {"entityType": kind} if rng.random() < 0.5 else {}
    properties |= {rng.choice(("offset", "count", "limit")): value(rng, 0)} if rng.random() < 0.3 else {}
    body = rng.choice(
        (
            {},
            None,
            {"attributeNames": ["name", "identity"]},
            {"prefix": "a", "distribution": "multicast"},
            {"enable": "debug+"},
            {"host": "127.0.0.1", "port": "0"},
            value(rng, 2),
        )
    )
    sections = ((0x73, [None, None, None, None, "REPLY-TO", scalar(rng)]), (0x74, properties), (0x77, body))
    return b"".join(encode(Described(ULong(code), content)) for code, content in sections)


def token(rng: Rng) -> bytes:
    def part(content: object) -> bytes:
        return urlsafe_b64encode(json.dumps(content).encode()).rstrip(b"=")

    header = {"alg": rng.choice(("EdDSA", "EdDSA", "RS256", "none", "HS256")), "typ": "JWT", "kid": "one"}
    claims: dict[str, Any] = {
        "iss": rng.choice(("https://issuer.example", "x")),
        "aud": rng.choice(("trouter", ["a", "trouter"], [])),
        "sub": rng.choice(("alice", "", 7, "a\0b", "x" * 300)),
        "exp": rng.choice((4e9, 1, "4e9", -1, 1e400, None)),
        "tenant": rng.choice(("t", None, [])),
        "scope": rng.choice(("amqp:send:a amqp:recv:b", ["amqp:send:a"], "amqp:send:", 7, None)),
    }
    return b".".join((part(header), part(claims), rng.choice((b"0", b"", b"AAAA"))))


def text_of(rng: Rng) -> bytes:
    """Return the text of a random configuration with a few sections."""
    sections = (
        "router { id: A\n mode: interior\n }",
        "listener { host: 0.0.0.0, port: 0, role: inter-router }",
        "listener { port: amqp; saslMechanisms: PLAIN ANONYMOUS; maxSessions: 7 }",
        "connector { name: c\n host: h.example\n port: 5672\n role: route-container\n saslPassword: pass:x }",
        "sslProfile { name: s\n certFile: /c.pem\n privateKeyFile: /k.pem }",
        "address { pattern: news/#\n distribution: multicast }",
        "address { prefix: q\n waypoint: yes }",
        "linkRoute { prefix: q\n connection: c\n direction: in }",
        "autoLink { address: q\n connection: c\n direction: out }",
        "vhost { hostname: v\n allowUnknownUser: yes\n groups: { $default: { remoteHosts: *\n sources: a, b* } } }",
        "log { module: DEFAULT\n enable: info+ }",
        "policy { enableVhostPolicy: yes\n maxConnections: 9 }",
        "exchange { name: e\n address: e }\nbinding { exchangeName: e\n bindingKey: a.#\n nextHop: h }",
    )
    return "\n".join(rng.sample(sections, rng.randrange(1, 6))).encode()


def headed(head: bytes, make: Callable[[Rng], bytes]) -> Callable[[Rng], bytes]:
    return lambda rng: head + make(rng)


def described(rng: Rng) -> bytes:
    return encode_performative(performative(rng))


#: Per target: its name, the count of seeds, and the function that makes one.
MAKERS: Final[tuple[tuple[str, int, Callable[[Rng], bytes]], ...]] = (
    ("codec", 70, lambda rng: encode(value(rng))),
    ("values", 70, lambda rng: encode(value(rng))),
    ("performatives", 60, described),
    ("transfers", 60, headed(b"\0", described)),
    ("annotations", 40, section_of),
    ("rewriting", 40, lambda rng: bytes((rng.randrange(256),)) + section_of(rng)),
    ("message", 60, message),
    ("decoding", 50, message),
    ("sections", 50, lambda rng: bytes((rng.randrange(4),)) + message(rng)),
    ("order", 50, lambda rng: bytes((rng.randrange(256),)) + message(rng)),
    ("engine", 60, lambda rng: bytes((1 | rng.choice((0, 8)), rng.choice((0, 1, 50)))) + conversation(rng)),
    ("twins", 60, lambda rng: bytes((1 | rng.choice((0, 8)), rng.choice((0, 1, 50)))) + conversation(rng)),
    ("framing", 40, lambda rng: bytes((rng.randrange(256),)) + conversation(rng, sasl=rng.random() < 0.5)),
    ("trace", 30, lambda rng: bytes((rng.randrange(256),)) + conversation(rng, sasl=rng.random() < 0.5)),
    ("sasl", 30, lambda rng: bytes((rng.randrange(2), rng.randrange(256))) + conversation(rng, sasl=True)),
    ("routing", 60, lambda rng: bytes((rng.choice((0, 2, 4, 8)),)) + conversation(rng)),
    ("line", 60, lambda rng: rng.randbytes(rng.choice((5, 20, 60)))),
    ("windows", 24, lambda rng: rng.randbytes(rng.choice((40, 80, 160)))),
    ("routers", 40, router_message),
    ("routers", 40, router_talk),
    ("management", 60, request),
    ("tokens", 50, token),
    ("configuration", 40, text_of),
)


def seeds() -> Iterator[tuple[str, bytes]]:
    """Yield pairs of a target's name and an input for it."""
    for target, count, make in MAKERS:
        rng = random.Random(f"{RNG_SEED} {target}")
        for _ in range(count):
            yield target, make(rng)


def write(target: str, data: bytes, kind: str) -> None:
    """Store an input as a seed; its file name derives from its bytes."""
    (SEEDS / target).mkdir(parents=True, exist_ok=True)
    (SEEDS / target / f"{kind}-{hashlib.sha256(data).hexdigest()[:12]}").write_bytes(data)


if __name__ == "__main__":
    for name, octets in seeds():
        write(name, octets, "encoded")
