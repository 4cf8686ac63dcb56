"""Private working trees outside the repository, in which programs build and checks judge.

`pool` gives a command its checkouts, `places` says where they are. `checkout` brings one to a tree: `tree_files` has
its tracked files, `untracked` all others, `provided` the user's ignored files that it gets (`relocated`: Python
environments), `user_git` the `.git` that programs see. `commits` makes commits there, `copies` a copy for a dry run.
"""
