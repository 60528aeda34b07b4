"""Any response is answered, and the plugin admits no peer without a ticket."""

from pathlib import Path

import trouter_tickets

from trouter.hooks import RouterFacts
from trouter.testing.fuzz import admits_only_with, hook_target

TICKET = b"4102444800.6632a6313cd235e16f2c03a6799dc5e77c1239c0341f6c4e554c4d137a029069"
KEY_FILE = Path(__file__).with_name("tickets.key")
FACTS = RouterFacts("fuzzed", settings={"keyFile": str(KEY_FILE)})
COVERS = ("trouter_tickets",)
check = hook_target(trouter_tickets, "open_sasl", router=FACTS, mechanism="PLAIN", judge=admits_only_with(TICKET))
