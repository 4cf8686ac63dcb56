"""Refs below `refs/idumb/`, and a look at the user's."""
