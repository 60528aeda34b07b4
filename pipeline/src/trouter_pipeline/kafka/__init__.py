"""Messages of spools to a topic of Kafka, each once and in the order of its source, by `confluent-kafka`.

Nothing here imports Spark. Each record has the spool and the sequence of its message in its headers. A writer that
starts reads the end of its partitions, and goes on behind what is there; so what is sent exactly once is proved by the
topic itself, whatever state a killed writer has left.
"""
