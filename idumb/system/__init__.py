"""Leaf helpers for the implementations: files, the clock, the user's folders, redaction, escaping, processes."""
