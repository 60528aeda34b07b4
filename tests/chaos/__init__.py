"""Networks of real routers under faults, with a ledger of what became of every message."""
