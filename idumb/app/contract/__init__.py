"""Plans read into a contract: its lock, its versions, the environment it runs in."""
