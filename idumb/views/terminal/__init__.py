"""A run on a terminal: progress, event lines, questions."""
