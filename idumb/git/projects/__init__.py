"""The projects in folders of a repository: which there are, and their paths."""
