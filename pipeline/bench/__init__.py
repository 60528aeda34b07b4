"""The pipeline's bench: receiving, storing, reading and landing, beside the same in python-qpid-proton."""
