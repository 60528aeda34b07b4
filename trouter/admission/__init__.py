"""Protection from abuse: lockout, the limit of handshakes, memory; and what waits for the policy."""
