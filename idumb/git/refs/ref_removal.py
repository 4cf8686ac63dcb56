"""All refs below `refs/idumb/` together: bundle them, and delete them in one git transaction.

Uses the git program alone, so that idumb can also be removed from repositories that libgit2 does not open.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from idumb.domain import errors
from idumb.git import git_program
from idumb.git.discover import Repository
from idumb.git.objects import durable_files

PREFIX = "refs/idumb/"


class GitKeptRefs:
    """Implements the port `KeptRefs` for all working trees of a repository, which share their refs."""

    def __init__(self, place: Repository) -> None:
        self._place = place

    def list(self) -> Mapping[str, str]:
        listed = git_program.output(self._place.root, ["for-each-ref", "--format=%(objectname) %(refname)", PREFIX])
        rows = (os.fsdecode(line).partition(" ") for line in listed.splitlines())
        return {name: oid for oid, _, name in rows}

    def bundle(self, path: str) -> int:
        """Write every ref with its objects into a file that git can read, forced to disk. Return the number of refs."""
        result = git_program.write(self._place.root, ["bundle", "create", "--quiet", path, f"--glob={PREFIX}*"])
        if result.status != 0:
            raise errors.Refusal(
                "backup.incomplete",
                f"git could not bundle the refs, so nothing was removed: {result.words}",
                hint="idumb doctor lists the broken refs; --no-backup continues without a backup",
            )
        os.chmod(path, 0o600)
        git_program.output(self._place.root, ["bundle", "verify", path])
        durable_files.force([path, os.path.dirname(path)])
        return len(git_program.output(self._place.root, ["bundle", "list-heads", path]).splitlines())

    def delete(self, expected: Mapping[str, str]) -> None:
        """Delete all refs or none. Refusal `git.ref-moved` if one of them has changed."""
        lines = b"".join(b"delete %s\0%s\0" % (os.fsencode(ref), oid.encode()) for ref, oid in expected.items())
        result = git_program.write(self._place.root, ["update-ref", "-z", "--stdin"], lines)
        if result.status != 0:
            raise errors.Refusal("git.ref-moved", f"git deletes no refs: {result.words}", hint="git for-each-ref")
        refs = os.path.join(self._place.common_dir, "refs")
        durable_files.force([refs, self._place.common_dir])
