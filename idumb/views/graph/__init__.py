"""Pictures of a contract's graph."""
