"""The parts that every connection uses: sockets, poller, hub, timers, and configured parts that can be replaced."""
