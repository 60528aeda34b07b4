"""The policy and its vhosts (security.md 4): compiled once, used at open and at attach.

Sans-IO: no sockets, no clock, no host names looked up. `Policy` is what the rest of the router asks; everything it
hands out is immutable, so a connection keeps the rules it was opened with until it is given others.
"""
