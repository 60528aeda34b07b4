"""The meter's computations on records: counts by hour and subject, repairs for missing records, connections."""
