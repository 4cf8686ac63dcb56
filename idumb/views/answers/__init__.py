"""What each command prints: one renderer a command."""
