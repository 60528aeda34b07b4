"""The trio room: listeners, peers, timers, signals and shutdown around the sans-IO engine and core."""
