"""What idumb checks itself on bytes that no builder can still change: commands, conditions, symbols, built-in gates."""
