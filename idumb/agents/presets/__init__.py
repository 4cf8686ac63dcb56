"""Command-line agents that idumb knows: how each is asked without a terminal, and how its report is read."""
