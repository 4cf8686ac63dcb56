"""What git would store for files of a working tree: its filters and line endings applied."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence

from idumb.domain.proof.ledger import Entry
from idumb.git import git_program, index_file
from idumb.git.discover import Repository


def cleaned(place: Repository, root: str, head: str | None, paths: Sequence[str]) -> dict[str, Entry]:
    """Return what git would store for these files below `root`; a missing file is omitted.

    git decides in a private index, so the user's index stays as it is.
    """
    os.makedirs(place.state_dir, mode=0o700, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=place.state_dir, prefix="index-") as folder:
        variables = {
            "GIT_DIR": place.git_dir,
            "GIT_COMMON_DIR": place.common_dir,
            "GIT_WORK_TREE": root,
            "GIT_INDEX_FILE": os.path.join(folder, "index"),
        }
        # With its old entry in the index, git keeps the line endings of a file that was committed with CRLF.
        git_program.change(root, ["read-tree", head] if head else ["read-tree", "--empty"], variables)
        names = b"".join(os.fsencode(path) + b"\0" for path in paths)
        arguments = ["update-index", "--add", "--remove", "--replace", "-z", "--stdin"]
        git_program.change(root, arguments, variables, names)
        entries = index_file.entries(root, paths, variables)
    return {path: entry for path, entry in entries.items() if entry is not None}
