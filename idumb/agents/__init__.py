"""Agent adapters: one a file. They do the work of a task and know nothing of where it is remembered."""
