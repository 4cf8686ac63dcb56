"""Markdown and YAML in and out, with source spans. Knows nothing of runs and git."""
