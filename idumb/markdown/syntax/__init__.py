"""Markdown, YAML and JSON as nodes with places."""
