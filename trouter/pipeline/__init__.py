"""The data pipeline on Spark: the `amqp` source and sink, tables made of records, and the jobs that ask them.

The router imports nothing of this room.
"""
