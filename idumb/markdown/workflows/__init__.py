"""Workflow definitions, and the plans of their runs: from nodes to tasks, with every finding at its line."""
