"""What a source file says in one language or another, without running it."""
