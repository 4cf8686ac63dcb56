"""Git: snapshots, trees, refs, restoring, commits. The only room that knows pygit2 and the git program.

To read it in the order in which a run uses it:

1. `discover` finds the working tree (`Worktree`) by its files alone, `open_repository` opens its repository with
   libgit2, `git_program` starts git.
2. `scanner` stores all files as a tree, in a git folder of idumb's own (`git_dir`); `snapshot` keeps that tree under a
   name, and reads it back from disk; `refs` has the names.
3. `trees` is what the engine calls: scan, snapshot, compare, overlay, restore. It reads with `tree_objects` and writes
   with `write_back`, which looks at each path first (`path_state`).
4. `history` is the other half: HEAD, uncommitted files (`status`), commits, and moving the branch (`refs.advance`).
5. `guarded_files` knows which files decide what git runs, `stale_locks` removes what a killed git leaves.

Builders and checks work in `checkouts`.
"""
