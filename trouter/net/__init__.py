"""What every connection uses: sockets, the poller, the hub, timers, and parts that run until they are replaced."""
