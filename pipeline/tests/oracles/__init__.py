"""The expected output of each job, in plain Python with all data in memory: slow, obvious, written from the rules."""
