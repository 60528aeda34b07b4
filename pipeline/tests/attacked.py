"""A day of logins at a company, with attacks hidden in it: seeded, and all in one router's records.

The noise is the kind that sets off alarms without an attack: people mistype, many behind one address of an office; they
forget a password and come back after lunch; services reconnect, and after a rotation of passwords retry with the old
one until they are deployed again; a retired client tries for ever; monitors connect and never log in.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

from pipeline.tests.generate import DAY, HOUR, MINUTE, SECOND, START
from trouter.records import PolicyDecision, Record, SaslOutcomeRecord

Case = tuple[str, str | None, str | None]


def login(
    t: int, user: str | None, host: str, *, ok: bool = False, reason: str = "bad-credentials"
) -> SaslOutcomeRecord:
    """Return the record of a login that succeeded or failed."""
    return SaslOutcomeRecord(
        t=t,
        conn=1,
        user=user,
        host=host,
        mech="PLAIN",
        ok=ok,
        code=0 if ok else 1,
        reason="ok" if ok else reason,
        delay_us=0,
        plugin="sasl_plain",
    )


def denial(t: int, user: str, host: str, *, repeat: int = 1, addr: str = "queue/a") -> PolicyDecision:
    """Return the record of an attach that the policy of one vhost denied."""
    return PolicyDecision(
        t=t,
        conn=1,
        vhost="tenant-1",
        user=user,
        host=host,
        op="attach",
        allow=False,
        rule="tenant-1:staff:sources",
        reason="source",
        repeat=repeat,
        addr=addr,
    )


def noisy_day(seed: int, *, rotation: bool = False, begin: int = START) -> list[Record]:
    """Return some 25,000 logins and denials of 24 hours: 240 people in three offices, 60 services, monitors."""
    chance = random.Random(seed)
    records: list[Record] = []
    for office, people in enumerate((120, 80, 40)):
        for person in range(people):
            for _ in range(chance.randrange(2, 6)):
                records += _sitting(chance, f"person-{office}-{person}", f"198.51.100.{office}", _working_hour(chance))
    for service in range(60):
        user, hosts = f"service-{service}", [f"203.0.113.{service}.{n}" for n in range(chance.randrange(1, 7))]
        for host in hosts:
            t = chance.randrange(HOUR)
            while t < DAY:
                records.append(login(t, user, host, ok=True))
                t += chance.randrange(5 * MINUTE, 2 * HOUR)
            if rotation and service % 5 == 0:
                records += _old_password(chance, user, host, 12 * HOUR + chance.randrange(MINUTE))
            if service % 10 == 1:  # each time it reconnects it asks for an address that it may not use
                records += [denial(t, user, host) for t in range(chance.randrange(HOUR), DAY, 5 * MINUTE)]
    records += [login(t, "monitor", f"192.0.2.{n}", ok=True) for n in (1, 2) for t in range(n, DAY, MINUTE)]
    records += [login(t, None, "192.0.2.3", reason="timeout") for t in range(7, DAY, 10 * SECOND)]
    records += [login(t, "retired", "192.0.2.9") for t in range(11, DAY, 5 * MINUTE)]
    for record in records:
        record.t += begin
    return sorted((record for record in records if record.t < begin + DAY), key=lambda record: record.t)


def _working_hour(chance: random.Random) -> int:
    """Return a time in microseconds of the day; most are around nine, or after lunch."""
    peak = chance.choice((9, 9, 13))
    return max(0, int(chance.gauss(peak * HOUR, HOUR)))


def _sitting(chance: random.Random, user: str, host: str, t: int) -> Iterator[Record]:
    """Yield the logins of one person: at once, after mistyping, or after a longer pause."""
    if chance.random() < 0.06:
        for _ in range(chance.choice((1, 1, 1, 2, 2, 3, 5))):
            yield login(t, user, host)
            t += chance.randrange(4 * SECOND, 25 * SECOND)
        if chance.random() < 0.1:
            t += chance.randrange(10 * MINUTE, HOUR)
    yield login(t, user, host, ok=True)


def _old_password(chance: random.Random, user: str, host: str, t: int) -> Iterator[Record]:
    """Yield the logins of a service with an old password, at growing intervals, until it has the new one."""
    deployed, pause = t + int(chance.expovariate(1 / (3 * MINUTE))), SECOND
    while t < deployed:
        yield login(t, user, host)
        t += pause
        pause = min(2 * pause, 30 * SECOND)
    yield login(t, user, host, ok=True)


def attacks(seed: int, begin: int = START) -> tuple[list[Record], set[Case]]:
    """Return attacks of every kind, some just below a limit, and the alerts that must be raised for them."""
    chance = random.Random(seed)
    records: list[Record] = []
    cases: set[Case] = set()

    def tries(start: int, count: int, within: int, users: list[str], hosts: list[str]) -> list[Record]:
        times = [start, start + within, *(start + chance.randrange(within) for _ in range(count - 2))]
        return [login(t, users[n % len(users)], hosts[n % len(hosts)]) for n, t in enumerate(sorted(times))]

    def some_time(margin: int = HOUR) -> int:
        return begin + chance.randrange(DAY - margin)

    for n, count in enumerate((19, 20, 21, 60, 200)):
        user, host = f"brute-{n}", f"attacker-{n}"
        records += tries(some_time(), count, 9 * MINUTE, [user], [host])
        if count >= 20:
            cases.add(("brute-force", user, host))
    for n, count in enumerate((14, 15, 16, 40)):
        users = [f"sprayed-{n}-{each}" for each in range(count)]
        records += tries(some_time(), count, 9 * MINUTE, users, [f"sprayer-{n}"])
        if count >= 15:
            cases.add(("spray", None, f"sprayer-{n}"))
    for n, (count, hosts) in enumerate(((20, 9), (19, 19), (20, 10), (60, 30))):
        user = f"popular-{n}"
        records += tries(some_time(), count, 9 * MINUTE, [user], [f"bot-{n}-{each}" for each in range(hosts)])
        if count >= 20 and hosts >= 10:
            cases.add(("distributed", user, None))
    for n, count in enumerate((49, 50)):
        records += tries(some_time(), count, 9 * MINUTE, [f"few-{n}-{each}" for each in range(10)], [f"hammer-{n}"])
        cases.add(("low-and-slow-host", None, f"hammer-{n}"))  # because no login from there ever succeeded
        if count >= 50:
            cases.add(("brute-force-host", None, f"hammer-{n}"))
    for n, count in enumerate((23, 24, 30)):
        start = begin + chance.randrange(11 * HOUR)
        user, host = f"patient-{n}", f"slow-{n}"
        records += [login(start + each * 25 * MINUTE + chance.randrange(MINUTE), user, host) for each in range(count)]
        many = [login(start + each * 25 * MINUTE, f"{user}-{each % 5}", f"{host}-host") for each in range(count)]
        records += many
        if count >= 24:
            cases |= {("low-and-slow", user, host), ("low-and-slow-host", None, f"{host}-host")}
    for n, count in enumerate((4, 9, 10, 15)):
        user, host, start = f"guessed-{n}", f"guesser-{n}", some_time()
        records += [
            *tries(start, count, 9 * MINUTE, [user], [host]),
            login(start + 9 * MINUTE + 1, user, host, ok=True),
        ]
        if count >= 10:
            cases.add(("success-after", user, host))
    for n, count in enumerate((99, 100, 300)):
        user, host, start = f"denied-{n}", f"prober-{n}", some_time()
        records += [denial(start + each * SECOND, user, host, addr=f"queue/{each}") for each in range(count)]
        if count >= 100:
            cases.add(("denial-burst", user, host))
    return sorted(records, key=lambda record: record.t), cases
