"""What the use cases share: services, journal, run context, schedule, results."""
