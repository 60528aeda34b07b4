"""The pipeline's bench: what it takes to receive, store, read and land messages, beside the same in python-qpid-proton."""
