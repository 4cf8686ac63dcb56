"""Use cases and the engine. Knows services by type, never click, git, databases, processes, files or the clock."""
