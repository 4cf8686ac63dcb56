"""Private copies of a repository, where builders and dry runs work."""
