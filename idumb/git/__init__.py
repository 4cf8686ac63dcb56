"""Git: snapshots, trees, refs, restoring, commits. The only room that knows the git program."""
