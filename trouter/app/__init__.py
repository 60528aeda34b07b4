"""The process: its start and its stop, the configuration in force and its changes, what looks after it."""
