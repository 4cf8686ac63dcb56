"""Leaf helpers for the implementations: files, the clock, the user's folders, redaction, escaping, processes.

- Files: `atomic_write`, `rooted_files` (below a root, never through a link), `named_files`, `private_folders`,
  `user_folders`, `shipped`.
- Processes: `child_process` runs one (`launcher`, `supervision`, `stalls`), `process_end` ends them, `process_tree`
  shows them, `signals` turns signals into exceptions, `programs` finds and confines programs.
- The rest: `machine`, `clock`, `redaction`, `escaping`, `notices`.
"""
