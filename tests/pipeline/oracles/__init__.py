"""What each job should say, in plain Python with everything in memory: slow, obvious, and written from the rules."""
