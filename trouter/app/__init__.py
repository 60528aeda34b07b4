"""The process: start and stop, the configuration in force and its changes, supervision."""
