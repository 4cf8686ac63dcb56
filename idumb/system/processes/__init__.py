"""Starts, watches, limits, captures and ends processes."""
