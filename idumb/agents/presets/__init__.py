"""Command-line agents that idumb knows: how to start each one without a terminal and how to read its report."""
