"""The projects of a repository, in whatever folder."""

from __future__ import annotations

import os
from collections.abc import Mapping

from idumb.domain.runs import project_key
from idumb.git import discover, git_program
from idumb.git.discover import Repository


def with_state(repository: Repository) -> tuple[str, ...]:
    """Return the folders of the projects that idumb has state of, in any working tree; "" for the top."""
    try:
        names = os.listdir(os.path.join(repository.common_dir, "idumb", "worktrees"))
    except FileNotFoundError:
        return ()
    return tuple(sorted({project_key.place(name)[1] for name in names}))


def below(repository: Repository, folder: str) -> Mapping[str, bool]:
    """Return the projects below a folder, from the top, and whether idumb has state of them.

    Those are folders with a configuration that git does not ignore, and those with state.
    """
    states = with_state(repository)
    prefix = f"{folder}/" if folder else ""
    pattern = f":(glob){prefix}**/{discover.CONFIGURATION}"
    arguments = ["ls-files", "--cached", "--others", "--exclude-standard", "-z", "--", pattern]
    listed = git_program.read(repository.root, arguments, extra={"GIT_LITERAL_PATHSPECS": "0"})
    files = (os.fsdecode(path) for path in listed.out.split(b"\0") if path)
    found = {*(path.removesuffix(f"/{discover.CONFIGURATION}") for path in files), *states}
    present = (each for each in found if os.path.isdir(os.path.join(repository.root, each)))
    inner = sorted(each for each in present if each.startswith(prefix) and each not in ("", folder))
    return {each: each in states for each in inner}
