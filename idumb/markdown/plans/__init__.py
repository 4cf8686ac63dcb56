"""Plans: from nodes to tasks, with every finding at its line."""
