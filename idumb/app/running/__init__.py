"""Commands that drive a run: execute, quick, resume, stop, decide, dry run."""
