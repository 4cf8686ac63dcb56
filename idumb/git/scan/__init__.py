"""Scans of the working tree, and what git ignores in it."""
