"""The table of addresses by lookup key, and the rules for their treatment (routing.md 1.3, 5)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from weakref import WeakKeyDictionary

from .addresses import (
    EDGE,
    FALLBACK_PHASE,
    LOCAL,
    MOBILE,
    ROUTER,
    TEMPORARY_KEY,
    TEMPORARY_NAMES,
    UPLINK_KEY,
    Address,
    parse_address,
    phase_named,
)
from .entry import AddressEntry
from .listeners import EventListeners
from .marks import Marks
from .network import Network
from .patterns import PatternTree, prefix_pattern
from .sections import SectionCounts
from .spaces import Spaces
from .tenants import Tenant, Tenants

if TYPE_CHECKING:
    from .past import PastAddresses

UNAVAILABLE: Final = "unavailable"
#: Services of the router under a tenant's own address; a service is given the sender's tenant.
TENANT_SERVICES: Final = frozenset({"$management"})
#: The key of the same services for a tenant that is not confined, at their common address.
SERVICES_FOR_ALL: Final = {"L$management": "L$_management_internal"}
#: Slashes in the id of another router up to which addresses find it: more would slow each lookup.
MAX_SLASHES: Final = 64
#: Spellings of an address that are cached for its entry, and the longest one, in bytes.
_SPELLINGS: Final = 4
_REMEMBERED_BYTES: Final = 256

#: Returns whether links to an address, in a tenant's space, are routed to a container as a whole.
Claim = Callable[[str, str], bool]


@dataclass(frozen=True, slots=True)
class AddressRule:
    """The treatment of matching addresses; ``pattern`` is a pattern, or a prefix if ``is_prefix``."""

    pattern: str
    is_prefix: bool = False
    distribution: str = "balanced"
    ingress_phase: int = 0
    egress_phase: int = 0
    priority: int = -1
    enable_fallback: bool = False
    name: str = ""
    #: What /metrics calls the addresses that match; empty if it does not count them.
    counted_as: str = ""

    @property
    def tree_pattern(self) -> str:
        """Pattern for the tree; PatternError if a prefix has no token."""
        return prefix_pattern(self.pattern) if self.is_prefix else self.pattern


def names_router(address: Address) -> bool:
    """Return whether an address names an interior or edge router, this one or another."""
    return address.letter in (ROUTER, EDGE, LOCAL) and address.text.startswith(("_topo/", "_edge/"))


def is_made_elsewhere(address: Address) -> bool:
    """Return whether another router made the address, for a client that waits for answers."""
    elsewhere = address.letter in (ROUTER, EDGE) or address.key == UPLINK_KEY
    return elsewhere and address.rest.startswith(TEMPORARY_NAMES)


def answer_of(tenant: Tenant, address: Address) -> str:
    """Return such an address for the way there: with the tenant's space, so that it is no other tenant's (R-5e)."""
    return f"{address.text.removesuffix(address.rest)}{tenant.space}/{address.rest}"


class AddressTable:
    """The address entries by key. The area is always 0."""

    def __init__(self, router_id: str, mode: str = "standalone", default_distribution: str = "balanced") -> None:
        self.router_id = router_id
        self.mode = mode
        self.default_rule = AddressRule("#", distribution=default_distribution)
        self._rules: PatternTree[AddressRule] = PatternTree()
        self.entries: dict[str, AddressEntry] = {}
        #: The most slashes in the id of another router.
        self._slashes = 0
        #: A cache from addresses of anonymous messages to entries: a few for each entry, removed with it.
        self.known: dict[bytes, AddressEntry] = {}
        #: The same for messages from neighbours, in the first phase.
        self.known_first: dict[bytes, AddressEntry] = {}
        #: The same for each tenant, while the tenant is remembered.
        self._known_of: WeakKeyDictionary[Tenant, dict[bytes, AddressEntry]] = WeakKeyDictionary()
        self.tenants = Tenants(self._forget_spellings_of)
        #: Tenants may not use the addresses that all tenants share (secureDefaults).
        self.tenants_confined = True
        #: The counts of addresses whose sections want them.
        self.counts = SectionCounts()
        self._counts_any = False
        #: The entries in each tenant's space.
        self.spaces = Spaces(self.entries)
        self._claims: list[Claim] = []
        #: Mobile addresses that auto links name, with the number of these.
        self.named: dict[str, int] = {}
        self.network = Network(self)
        #: Whose the dynamic addresses of tenants are that other workers made; None for a router of one process.
        self.marks: Marks | None = None
        #: The counts of addresses that other workers may still use; None for a router of one process.
        self.past: PastAddresses | None = None
        #: Called with each mobile address that gained or lost a user.
        self.user_listeners: EventListeners[AddressEntry] = EventListeners()
        #: Called with the new address of each router whose id has slashes.
        self.id_listeners: EventListeners[AddressEntry] = EventListeners()

    def add_claim(self, claim: Claim) -> None:
        """Let ``claim`` say from now on which addresses it takes out of the table."""
        self._claims.append(claim)

    # --- rules

    def count_by_rules(self, rules: Iterable[AddressRule]) -> None:
        """Count the addresses, also those that exist, that best match one of ``rules`` which are to be counted."""
        wanted = {rule.counted_as for rule in rules if rule.counted_as}
        if not (wanted or self._counts_any):
            return
        self._counts_any = bool(wanted)
        matched = {
            key: self._rules.match(entry.text)
            for key, entry in self.entries.items()
            if key.startswith(MOBILE) and wanted
        }
        sections = {key: rule.counted_as for key, rule in matched.items() if rule is not None and rule.counted_as}
        self.counts.replace_sections(sections, wanted)

    def add_rule(self, rule: AddressRule) -> None:
        """Configure a pattern; DuplicatePatternError, PatternError. Existing entries keep their treatment."""
        self._rules.insert(rule.tree_pattern, rule)
        self.forget_spellings()

    def remove_rule(self, rule: AddressRule) -> None:
        """Remove a pattern; KeyError if it is not there. Existing entries keep their treatment."""
        self._rules.remove(rule.tree_pattern)
        self.forget_spellings()

    def forget_spellings(self) -> None:
        """Clear the caches of addresses, which may have changed with the rules."""
        for known in (self.known, self.known_first, *self._known_of.values()):
            _forget_spellings(known)

    def _forget_spellings_of(self, tenant: Tenant) -> None:
        """Clear the cache of a tenant without connections."""
        _forget_spellings(self.known_to(tenant))

    def known_to(self, tenant: Tenant | None) -> dict[bytes, AddressEntry]:
        """Return the cache of addresses of ``tenant``'s messages; None for that of all other clients.

        It is the same dictionary while the tenant is remembered.
        """
        if tenant is None:
            return self.known
        known = self._known_of.get(tenant)
        if known is None:
            known = self._known_of[tenant] = {}
        return known

    def rule_for(self, address: Address) -> AddressRule:
        """Return the rule that best matches ``address``, else the default distribution."""
        return self._rules.match(address.text) or self.default_rule

    def parse(self, text: str, phase: str = "0", tenant: Tenant | None = None) -> Address:
        """Return ``text`` classified for this router, and for ``tenant`` if it is a tenant's."""
        space = "" if tenant is None else tenant.space
        address = parse_address(text, router_id=self.router_id, mode=self.mode, phase=phase, tenant=space)
        if self._slashes and names_router(address):
            return self._with_whole_id(address)
        if tenant is not None and address.letter == MOBILE and address.rest in TENANT_SERVICES:
            return Address(LOCAL, LOCAL + address.rest, address.rest, address.rest)
        if tenant is not None and address.key in SERVICES_FOR_ALL:
            return address._replace(key=SERVICES_FOR_ALL[address.key])
        return address

    def _with_whole_id(self, address: Address) -> Address:
        """Return an address with the longest id of another router that it begins with: ids may have slashes."""
        found, rest = address, address.rest
        letter = EDGE if address.text.startswith("_edge/") else ROUTER
        key = address.key if address.letter == letter else letter + self.router_id
        for _ in range(self._slashes):
            part, slash, rest = rest.partition("/")
            if not slash:
                break
            key = f"{key}/{part}"
            if key in self.entries:
                found = Address(letter, key, address.text, rest)
        return found

    def is_served(self, address: Address) -> bool:
        """Return whether the router itself consumes the messages for ``address``."""
        entry = self.entries.get(address.key)
        return entry is not None and len(entry.forwarder.subscriptions) > 0

    def is_open_to(self, tenant: Tenant, address: Address) -> bool:
        """Return whether the tenant may send to its ``address``: without underscore, dynamic, or of its service.

        Tenants that are not confined may also use the others, except dynamic addresses of other tenants. Another router
        checks the tenant of a dynamic address that it made, by ``answer_of``; of another worker's, the name says it.
        """
        written = address.rest if address.letter == MOBILE else address.text
        if not written.startswith("_"):
            return True
        marks = self.marks
        if is_made_elsewhere(address):
            return marks is None or not marks.is_of_worker(address) or marks.is_of(address.rest, tenant.space)
        if not (self.tenants_confined or address.key.startswith(TEMPORARY_KEY)):
            return True
        entry = self.entries.get(address.key)
        if entry is not None and entry.space == tenant.space:
            return True
        return marks is not None and address.letter == MOBILE and marks.is_of(address.rest, tenant.space)

    def obtain_entry(
        self,
        text: str,
        outgoing: bool,
        phase: str | None = None,
        treatment: str | None = None,
        tenant: Tenant | None = None,
    ) -> AddressEntry | None:
        """Return the entry for a terminus with address ``text``, created if necessary; None if it is unavailable.

        A receiver (``outgoing``) takes from the rule's egress phase, a sender puts into its ingress phase; ``phase``
        overrides both. ``treatment`` overrides the configured distribution.
        """
        address = self.parse(text, tenant=tenant)
        rule = self.rule_for(address)
        distribution = treatment or rule.distribution
        if phase is None:
            phase = str(rule.egress_phase if outgoing else rule.ingress_phase)
        if distribution == UNAVAILABLE:
            if self._is_refused(address, rule, phase):
                return None
            distribution = "balanced"
        entry = self._obtain_named(address, address.key_in_phase(phase), distribution, rule.priority)
        if rule.enable_fallback and address.letter == MOBILE and phase != FALLBACK_PHASE:
            self._pair_fallback(address, entry)
        return entry

    def obtain_edge(self, edge_id: str) -> AddressEntry:
        """Return the entry of all addresses at an edge router."""
        address = Address(EDGE, EDGE + edge_id, f"_edge/{edge_id}", edge_id)
        return self._obtain_named(address, address.key, "balanced", -1)

    def give_to_tenant(self, entry: AddressEntry, tenant: Tenant | None) -> None:
        """Give a dynamic address to ``tenant``; None for a client without a tenant."""
        self.spaces.remove(entry)
        entry.space = "" if tenant is None else tenant.space
        self.spaces.add(entry)

    def obtain_uplink(self) -> AddressEntry:
        """Return the entry of everything for routers elsewhere, on an edge router."""
        return self._obtain_named(Address(LOCAL, UPLINK_KEY, UPLINK_KEY, UPLINK_KEY), UPLINK_KEY, "closest", -1)

    def _obtain_named(self, address: Address, key: str, distribution: str, priority: int) -> AddressEntry:
        entry = self.entries.get(key)
        if entry is None:
            entry = self.entries[key] = AddressEntry(key, address.text, distribution, priority, self)
            self.spaces.add(entry)
            if self._counts_any and key.startswith(MOBILE):
                counted_as = self.rule_for(address).counted_as
                if counted_as:
                    self.counts.add_address(key, counted_as)
            if address.letter in (ROUTER, EDGE) and "/" in key:
                self._slashes = max(self._slashes, min(key.count("/"), MAX_SLASHES))
                self.forget_spellings()
                self.id_listeners.notify(entry)
        return entry

    def obtain_remote(self, key: str, treatment: str | None) -> AddressEntry:
        """Return the entry of an address that another router listens on, by its ``key``.

        The configuration decides its treatment, then ``treatment``, then the default (inter-router.md 4.8).
        """
        text = key[2:] if key.startswith(MOBILE) else key[1:]
        address = Address(key[0], key, text, text)
        rule = self._rules.match(text) if key.startswith(MOBILE) else None
        if rule is not None and rule.distribution != UNAVAILABLE:
            treatment = rule.distribution
        elif treatment is None:
            default = self.default_rule.distribution
            treatment = "balanced" if default == UNAVAILABLE else default
        entry = self._obtain_named(address, key, treatment, -1 if rule is None else rule.priority)
        if rule is not None and rule.enable_fallback and key[1] != FALLBACK_PHASE:
            self._pair_fallback(address, entry)
        return entry

    def release_remote(self, key: str) -> None:
        """Remove the address with this key if it has no user left."""
        entry = self.entries.get(key)
        if entry is not None:
            self.release_entry(entry)

    def advertise(self, key: str, hint: int) -> None:
        """See ``AddressListener``."""
        self.network.advertise(key, hint)

    def withdraw(self, key: str) -> None:
        """See ``AddressListener``."""
        self.network.withdraw(key)

    def users_changed(self, entry: AddressEntry) -> None:
        """See ``AddressListener``."""
        self.user_listeners.notify(entry)

    def _pair_fallback(self, address: Address, entry: AddressEntry) -> None:
        if entry.fallback is None:
            fallback = self._obtain_named(address, address.key_in_phase(FALLBACK_PHASE), "balanced", -1)
            entry.fallback = fallback
            fallback.fallback_of = entry

    def find_entry(self, text: bytes, phase: int = -1, tenant: Tenant | None = None) -> AddressEntry | None:
        """Return the entry for messages of ``tenant`` with the address ``text`` (its bytes); None if there is none.

        ``phase`` is its number in annotations, -1 for a client's message, which enters in the configured phase. The
        result is cached in ``known_to(tenant)`` or ``known_first``; look there first.
        """
        address = self._address_of(text, tenant)
        if tenant is not None and not self.is_open_to(tenant, address):
            return None
        space = "" if tenant is None else tenant.space
        if address.letter == MOBILE and self._is_claimed(address.text, space) and not self.is_served(address):
            return None
        known = self.known_first if phase == 0 and tenant is None else self.known_to(tenant)
        rule = self.rule_for(address)
        letter = str(rule.ingress_phase) if phase < 0 else phase_named(phase)
        entry = self.entries.get(address.key_in_phase(letter))
        if entry is None and address.letter == LOCAL and tenant is None:
            entry = self._answer_entry(address.rest)
        if entry is None and rule.enable_fallback:
            return self.entries.get(address.key_in_phase(FALLBACK_PHASE))  # only the fallback has users
        if (
            entry is not None
            and phase <= 0
            and (phase < 0 or tenant is None)
            and len(text) <= _REMEMBERED_BYTES
            and len(entry.known_as) < _SPELLINGS
            and text not in known
        ):
            known[text] = entry
            if not entry.known_as:
                entry.known_as = []
            entry.known_as.append((known, text))
        return entry

    def _is_claimed(self, text: str, space: str) -> bool:
        return any(claim(text, space) for claim in self._claims)

    def _answer_entry(self, rest: str) -> AddressEntry | None:
        """Return the entry of a tenant's dynamic address, as ``answer_of`` names it on other routers."""
        space, _, name = rest.partition("/")
        entry = self.entries.get(LOCAL + name) if name.startswith(TEMPORARY_NAMES) else None
        return entry if entry is not None and entry.space == space else None

    def is_unavailable(self, text: bytes, tenant: Tenant | None = None) -> bool:
        """Return whether the configuration makes ``text`` unavailable to senders."""
        return self.is_refused(self._address_of(text, tenant))

    def is_refused(self, address: Address) -> bool:
        """Return what ``is_unavailable`` does, for a parsed address."""
        rule = self.rule_for(address)
        return self._is_refused(address, rule, str(rule.ingress_phase))

    def _is_refused(self, address: Address, rule: AddressRule, phase: str) -> bool:
        """Return whether ``rule``, which ``address`` matches, makes it unavailable.

        Only mobile addresses that the router does not serve itself can be unavailable; by the default rule only those
        without users and auto links.
        """
        if rule.distribution != UNAVAILABLE or address.letter != MOBILE or self.is_served(address):
            return False
        if rule is not self.default_rule:
            return True
        return address.key_in_phase(phase) not in self.entries and address.text not in self.named

    def add_name(self, text: str) -> None:
        """Note that an auto link names the address ``text``."""
        named = self.parse(text).text
        self.named[named] = self.named.get(named, 0) + 1

    def remove_name(self, text: str) -> None:
        """Undo one call of ``add_name``; KeyError without one."""
        named = self.parse(text).text
        self.named[named] -= 1
        if not self.named[named]:
            del self.named[named]

    def is_closed(self, text: bytes, tenant: Tenant) -> bool:
        """Return whether ``tenant`` may not send to ``text``; a dynamic address, which may be gone, is open."""
        address = self._address_of(text, tenant)
        return not (self.is_open_to(tenant, address) or address.rest.startswith(TEMPORARY_NAMES))

    def _address_of(self, text: bytes, tenant: Tenant | None) -> Address:
        return self.parse(text.decode("utf-8", "replace"), tenant=tenant)

    def release_entry(self, entry: AddressEntry) -> None:
        """Remove ``entry`` if it has no user left, and its fallback with it."""
        if not entry.is_unused() or self.entries.get(entry.key) is not entry:
            return
        del self.entries[entry.key]
        if self._counts_any:
            self.counts.leave_address(entry)
        self.spaces.remove(entry)
        if self.past is not None:
            self.past.add_entry(entry)
        entry.gone = True
        self.network.drop_forwarder(entry.forwarder)
        for known, text in entry.known_as:
            known.pop(text, None)
        fallback = entry.fallback
        if fallback is not None:
            entry.fallback = None
            self.release_entry(fallback)


def _forget_spellings(known: dict[bytes, AddressEntry]) -> None:
    """Clear a cache of spellings, and the references of its entries to it."""
    for entry in set(known.values()):
        entry.known_as = [(where, text) for where, text in entry.known_as if where is not known]
    known.clear()
