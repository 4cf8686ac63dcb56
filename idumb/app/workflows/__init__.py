"""Workflows: their definitions, the start of a run, and the state of runs."""
