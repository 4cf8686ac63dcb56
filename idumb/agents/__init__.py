"""Agent adapters, one per file. They do the work of a task and do not know where it is stored."""
