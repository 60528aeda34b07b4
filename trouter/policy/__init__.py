"""The policy and its vhosts (security.md 4): compiled once, used for each open and attach.

Sans-IO: no sockets, no clock, no look-up of host names. The other rooms call `Policy`; everything it returns is
immutable, so a connection keeps the rules that it was opened with until it gets others.
"""
