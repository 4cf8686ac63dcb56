"""A plan as data: tasks, graph, steps, shell commands."""
