"""Git: snapshots, trees, refs, restoring, commits. The only room that knows pygit2 and the git program."""
