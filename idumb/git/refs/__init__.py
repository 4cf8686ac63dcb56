"""Refs below `refs/idumb/`, and a reader of the user's refs."""
