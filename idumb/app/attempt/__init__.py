"""One attempt at one task: pipeline, entry, build, judge, record."""
