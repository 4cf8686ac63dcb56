"""Plans, step plans and workflows: from nodes to tasks, with every finding at its line."""
