"""trouter: an AMQP 1.0 message router."""

__version__ = "0.2.0"
