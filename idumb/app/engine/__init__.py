"""Runs the tasks of a run in order, and recovers what a killed run left."""
