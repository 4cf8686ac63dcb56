"""A plan as data: tasks, graph, steps, policy, shell commands."""
