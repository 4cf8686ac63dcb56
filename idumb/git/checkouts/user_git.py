"""The user's git in a checkout: what of it counts there, as files, and the `.git` that programs see.

How files are checked out and committed depends on more than commits. What that is, is read before programs start.

The `.git` has the user's branch, tags, identity, line endings and filters; no remote, no hook, no other branch. It
reads the objects of the user's repository. idumb writes it again and again, and never runs git with it.

All that idumb takes from it are the messages of the commits that programs made. They can put anything there, such as
links, pipes and endless data. So git does not look: neither the configuration nor alternates count, and a commit that a
program packed is not read.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
import zlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from idumb.domain import paths
from idumb.git import discover, guarded_files, open_repository, path_state
from idumb.git.discover import Worktree
from idumb.git.git_dir import EXCLUDE, PLAIN
from idumb.system import escaping, private_folders

if TYPE_CHECKING:
    import pygit2

    from idumb.git.open_repository import CheckedRepository

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
GIT = ".git"
_FOLDERS = ("objects", "refs", "refs/heads", "refs/tags")
_MOST, _LONGEST = 50, 4000
"""How many messages are read, and how many bytes of each commit and file."""
_OID = re.compile("[0-9a-f]{40}")
_PARENT = re.compile("(?m)^parent ([0-9a-f]{40})$")


class UserGit(NamedTuple):
    """Settings by name, and the bytes of files by their path in a git folder."""

    settings: Mapping[str, str]
    files: Mapping[str, bytes]

    def in_folder(self, folder: str, extra: Mapping[str, str]) -> dict[str, bytes]:
        """Return the files of a git folder at `folder`, with more settings."""
        chosen = {
            **PLAIN,
            "core.attributesfile": os.path.join(folder, _ATTRIBUTES),
            "core.excludesfile": os.path.join(folder, _EXCLUDES),
            **self.settings,
            **extra,
        }
        return {"config": escaping.git_configuration(chosen), **self.files}

    @property
    def optional_filters(self) -> list[str]:
        """Return options of git: if a filter fails, a file has the bytes that the commit holds."""
        names = [name for name in self.settings if name.startswith("filter.") and name.endswith(".required")]
        return [word for name in names for word in ("-c", f"{name}=false")]


def of_fresh_clone(user: Worktree) -> UserGit:
    """Return what the git of a fresh clone knows: the filter of LFS, without which it has no contents, and depth."""
    settings, files = read(user)
    chosen = {name: value for name, value in settings.items() if name.startswith(("filter.lfs.", "lfs."))}
    return UserGit(chosen, {name: data for name, data in files.items() if name == _SHALLOW})


def read(user: Worktree) -> UserGit:
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


class VisibleGit:
    """The user may amend HEAD and collect garbage: the snapshot before each task keeps its commit for that time."""

    def __init__(self, repository: CheckedRepository, settings: UserGit) -> None:
        self._repository = repository
        self._settings = settings
        self._files: Mapping[str, bytes] = {}

    def show(self, top: str, head: str | None, rules: bytes) -> None:
        """Prepare it for the checkout `top`, on top of the commit `head`; `rules` say what git ignores."""
        user = self._repository.worktree
        tags, folders = discover.refs_in(user, "refs/tags/"), open_repository.object_folders(user)
        folder = os.path.join(top, GIT)
        self._files = {
            **self._settings.in_folder(folder, {"core.logallrefupdates": "true"}),
            **ref_files(self._repository, head, tags),
            "objects/info/alternates": b"".join(os.fsencode(folder) + b"\n" for folder in folders),
            EXCLUDE: rules,
        }

    def write(self, opened: int, index: str | None = None) -> None:
        """Write it into the open checkout, in the place of what programs left there; `index` is a file to copy."""
        with contextlib.suppress(FileNotFoundError):
            private_folders.remove_at(GIT, opened)
        os.mkdir(GIT, dir_fd=opened)
        with private_folders.closing(os.open(GIT, private_folders.FOLDER, dir_fd=opened)) as at:
            for folder in sorted(paths.folders_above(self._files).union(_FOLDERS)):
                os.mkdir(folder, dir_fd=at)
            files = dict(self._files)
            if index is not None:
                with open(index, "rb") as stream:
                    files["index"] = stream.read()
            for name, content in files.items():
                with open(
                    os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644, dir_fd=at), "wb"
                ) as target:
                    target.write(content)


def messages(top: int, head: str | None) -> tuple[str, ...]:
    """Return those of HEAD and its first parents above the commit `head`, the oldest first; `top` is the checkout."""
    found, oid = list[str](), _tip(top)
    while oid and oid != head and len(found) < _MOST and (commit := _commit(top, oid)):
        about, _, message = commit.partition("\n\n")
        parent = _PARENT.search(about)
        oid = parent[1] if parent else ""
        found.append(message.strip())
    return tuple(reversed(found))


def _tip(top: int) -> str:
    name = _content(top, "HEAD").decode("utf-8", "surrogateescape").strip()
    value = _content(top, name[5:]).decode("ascii", "replace").strip() if name.startswith("ref: ") else name
    return value if _OID.fullmatch(value) else ""


def _commit(top: int, oid: str) -> str:
    """Return what a commit says; "" if there is no such file."""
    with contextlib.suppress(zlib.error):
        data = zlib.decompressobj().decompress(_content(top, f"objects/{oid[:2]}/{oid[2:]}"), _LONGEST)
        if data.startswith(b"commit "):
            return data.partition(b"\0")[2].decode("utf-8", "replace")
    return ""


def _content(top: int, path: str) -> bytes:
    """Return the beginning of a file of that `.git`; b"" if there is none."""
    parts = [GIT, *path.split("/")]
    with contextlib.suppress(OSError, ValueError):
        if not {"", ".", ".."}.intersection(parts):
            with (
                path_state.parent(top, parts) as folder,
                open(os.open(parts[-1], private_folders.FILE, dir_fd=folder), "rb") as file,
            ):
                return file.read(_LONGEST) if stat.S_ISREG(os.fstat(file.fileno()).st_mode) else b""
    return b""
