"""What the meter makes of records: counts by hour and subject, repairs where records are missing, and connections."""
