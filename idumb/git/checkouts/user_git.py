"""What the user's git knows outside commits and decides how files are checked out and committed, as files."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from idumb.git import guarded_files, open_repository, own_folder
from idumb.git.discover import Repository
from idumb.git.own_folder import EXCLUDE

if TYPE_CHECKING:
    import pygit2

_SECTIONS = ("filter.", "lfs.", "user.", "author.", "committer.")
_CORE = frozenset(
    f"core.{name}"
    for name in (
        "autocrlf", "eol", "filemode", "symlinks", "ignorecase", "precomposeunicode", "checkroundtripencoding",
        "sparsecheckout", "sparsecheckoutcone", "protectntfs", "protecthfs",
    )
)  # fmt: skip
_ATTRIBUTES, _EXCLUDES = "info/user-attributes", "info/user-excludes"
_SHALLOW = "shallow"
_OID = re.compile("[0-9a-f]{40}")


class UserGit(NamedTuple):
    """Settings by name, and the bytes of files by their path in a git folder."""

    settings: Mapping[str, str]
    files: Mapping[str, bytes]

    def in_folder(self, folder: str, extra: Mapping[str, str]) -> dict[str, bytes]:
        """Return the files of a git folder at `folder`, with more settings."""
        chosen = {
            "core.repositoryformatversion": "0",
            "core.bare": "false",
            "core.attributesfile": os.path.join(folder, _ATTRIBUTES),
            "core.excludesfile": os.path.join(folder, _EXCLUDES),
            **self.settings,
            **extra,
        }
        return {"config": own_folder.configuration(chosen), **self.files}

    @property
    def optional_filters(self) -> list[str]:
        """Return options of git: if a filter fails, a file has the bytes that the commit holds."""
        names = [name for name in self.settings if name.startswith("filter.") and name.endswith(".required")]
        return [word for name in names for word in ("-c", f"{name}=false")]


def of_stranger(user: Repository) -> UserGit:
    """Return what the git of a fresh clone knows: the filter of LFS, without which it has no contents, and depth."""
    settings, files = read(user)
    chosen = {name: value for name, value in settings.items() if name.startswith(("filter.lfs.", "lfs."))}
    return UserGit(chosen, {name: data for name, data in files.items() if name == _SHALLOW})


def read(user: Repository) -> UserGit:
    """Read it, before the first program starts: programs can change it later."""
    known = guarded_files.of_repository(user).configuration
    settings = {name: value for name, value in known.effective.items() if name.startswith(_SECTIONS) or name in _CORE}
    settings["lfs.storage"] = os.path.join(user.common_dir, os.path.expanduser(settings.get("lfs.storage", "lfs")))
    settings["lfs.fetchexclude"] = "*"  # a file that is not in the local store is not downloaded
    places = {
        _ATTRIBUTES: known.attributes[-1],
        "info/attributes": os.path.join(user.common_dir, "info", "attributes"),
        "info/sparse-checkout": os.path.join(user.git_dir, "info", "sparse-checkout"),
        _SHALLOW: os.path.join(user.common_dir, "shallow"),
    }
    contents = {name: guarded_files.content(path) for name, path in places.items()}
    contents[EXCLUDE] = guarded_files.rules(os.path.join(user.common_dir, EXCLUDE))
    contents[_EXCLUDES] = guarded_files.user_rules(known)
    return UserGit(settings, {name: data for name, data in contents.items() if data})


def ref_files(repository: pygit2.Repository, head: str | None, refs: Mapping[str, str]) -> dict[str, bytes]:
    """Return the files of a git folder with these refs, and with HEAD on the user's branch at the commit `head`."""
    branch = open_repository.branch_of(repository) or ("" if head else "refs/heads/main")
    listed = {**refs, **({branch: head} if branch and head else {})}
    rows = (f"{oid} {name}\n" for name, oid in sorted(listed.items()) if _OID.fullmatch(oid))
    return {
        "HEAD": os.fsencode(f"ref: {branch}\n" if branch else f"{head}\n"),
        "packed-refs": os.fsencode("".join(("# pack-refs with: sorted \n", *rows))),
    }
