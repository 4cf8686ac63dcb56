"""Commands that drive a run: execute, quick, resume, pause, cancel, decide, dry run."""
