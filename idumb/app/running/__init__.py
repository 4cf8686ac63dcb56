"""Commands that drive a run: execute, quick, resume, stop, decide, accept, drop, dlq, dry run."""
