"""Processes: start, watch, limit, capture, end."""
