"""Paths written back into the working tree, and patches."""
