"""Use cases and the engine. Knows ports, never click, git, databases, processes, files or the clock."""
