"""Differences as text, and patches applied to a tree."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence

from idumb.git import git_program
from idumb.git.discover import Repository
from idumb.system.files import private_folders

_PLAIN = ("-r", "--no-ext-diff", "--no-textconv", "--no-color", "--no-renames", "--full-index")

Counts = Mapping[str, tuple[int | None, int | None]]
"""Return path to lines added and removed; None for binary files."""


def diff(place: Repository, old: str, new: str, paths: Sequence[str] = ()) -> str:
    """Return a unified diff with `a/` and `b/`; bytes that are not UTF-8 are surrogate escapes."""
    options = [*_PLAIN, "-p", "--binary", "--src-prefix=a/", "--dst-prefix=b/"]
    return _between(place, [*options, old, new, "--", *paths]).decode("utf-8", "surrogateescape")


def line_counts(place: Repository, old: str, new: str) -> Counts:
    out = _between(place, [*_PLAIN, "--numstat", "-z", old, new])
    counts: dict[str, tuple[int | None, int | None]] = {}
    for row in out.split(b"\0"):
        added, _, rest = row.partition(b"\t")
        removed, _, path = rest.partition(b"\t")
        if path:
            counts[os.fsdecode(path)] = (_number(added), _number(removed))
    return counts


def _between(place: Repository, arguments: Sequence[str]) -> bytes:
    # In the working tree, git would read the present .gitattributes: a task that writes one would decide how its own
    # change is counted.
    extra = {"GIT_DIR": place.git_dir}
    return git_program.output(place.root, ["diff-tree", *arguments], extra=extra, cwd=place.git_dir)


def _number(text: bytes) -> int | None:
    return None if text == b"-" else int(text)


def applied(place: Repository, tree: str, text: str, below: str = "") -> str | git_program.Result:
    """Return `tree` with the patch applied in a private index; git's result if it refuses the patch.

    The paths of the patch start in the folder `below`.
    """
    private_folders.make_below(place.common_dir, place.state_dir)
    with tempfile.TemporaryDirectory(prefix="patch-", dir=place.state_dir) as folder:
        extra = {"GIT_INDEX_FILE": os.path.join(folder, "index")}
        patch = text.encode("utf-8", "surrogateescape")
        where = [f"--directory={below}"] if below else []
        steps = ((["read-tree", tree], b""), (["apply", "--cached", "--whitespace=nowarn", *where, "-"], patch))
        for arguments, data in steps:
            result = git_program.write(place.root, arguments, data, extra=extra)
            if result.status != 0:
                return result
        return git_program.write(place.root, ["write-tree"], extra=extra).out.decode("ascii").strip()
