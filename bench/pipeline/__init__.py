"""The pipeline's bench: what receiving, storing, reading and landing take, beside the same in python-qpid-proton."""
