"""One connection from its first octet to its last, accepted or dialled, and what accepts and dials."""
