"""TLS below AMQP and HTTP: profiles and their files, channels over memory buffers, revocation."""
