"""Failed tasks: debug bundle, diagnosis, dead letters."""
