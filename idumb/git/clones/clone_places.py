"""Where private copies of a repository are: in the user's state, outside every git folder.

Some agents refuse to write below a folder called `.git`. A cache folder is unsuitable, because a copy can hold the only
bytes of an agent's work.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator

from idumb import lazy_pattern
from idumb.domain.errors import Refusal
from idumb.system.files import private_folders, user_folders

COPIES = "rehearsals"
_CLONES = "clones"
_SHORT = 16  # of the repository's id: programs in a clone may create sockets there, whose paths must be short
_UP = "up"
_PROBE = ".probe"
_OF_RUN = lazy_pattern.compile(r"[0-9a-f]{16}(?:\.taken)?")
_DEPENDENCIES = "node_modules"
_REFUSED = frozenset({errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.EEXIST})


def clones_folder(root: str, common_dir: str) -> str:
    """Return the folder of a repository's clones.

    If the user's state is inside the working tree, it is in the git folder.
    """
    folder, chosen = user_folders.clones()
    if not os.path.isabs(folder):
        raise Refusal(
            "clones.unusable",
            f"{user_folders.CLONES} is {folder!r}, which is not an absolute path.",
            hint=f"Set {user_folders.CLONES} to the absolute path of a folder outside the repository",
        )
    if os.path.islink(folder):
        raise Refusal(
            "clones.unusable",
            f"{folder}, where private copies of repositories are created, is a symbolic link.",
            hint=f"Set {user_folders.CLONES} to the folder itself: {os.path.realpath(folder)}",
        )
    place = os.path.join(os.path.realpath(os.path.dirname(folder)), os.path.basename(folder))
    if not f"{place}/".startswith(f"{root.rstrip('/')}/"):
        return os.path.join(place, user_folders.repository_id(common_dir)[:_SHORT])
    if chosen:
        raise Refusal(
            "clones.unusable",
            f"{user_folders.CLONES} is {folder}, which is inside the working tree {root}.",
            hint=f"Set {user_folders.CLONES} to a folder outside the repository",
        )
    return _inner_clones_folder(common_dir)


def _inner_clones_folder(common_dir: str) -> str:
    """Return the place in the git folder, for a state folder inside the working tree."""
    return os.path.join(common_dir, "idumb", _CLONES)


def prepare(folder: str, common_dir: str) -> str:
    """Return the folder below `folder` for a new copy, created if missing and private to the user.

    Refusal `clones.unusable` if it is not writable, `git.clone-gone` if something else is in its place.
    """
    require_plain(folder)
    deepest = os.path.join(folder, *[_UP] * (len(_dependencies(folder, common_dir)) - 1))
    probe = os.path.join(deepest, _PROBE)
    try:
        private_folders.make(deepest)
        with contextlib.suppress(FileExistsError):  # of a killed command, or of another one
            os.mkdir(probe, 0o700)
        with contextlib.suppress(FileNotFoundError):
            os.rmdir(probe)
    except OSError as problem:
        if problem.errno not in _REFUSED:
            raise
        raise Refusal(
            "clones.unusable",
            f"Private copies of the repository are created in {folder}, which is not writable:"
            f" {problem.strerror} ({problem.filename}).",
            hint=f"Set {user_folders.CLONES} to a folder that you can write to, outside the repository,"
            " then run the command again",
            details={"path": folder},
        ) from problem
    _require_private(folder)
    _link_dependencies(folder, common_dir)
    return deepest


def require_plain(folder: str) -> None:
    """Require idumb's own folder or nothing, so that no other file is removed or overwritten."""
    if os.path.realpath(folder) != folder or (os.path.lexists(folder) and not os.path.isdir(folder)):
        raise Refusal(
            "git.clone-gone",
            f"{folder} is no longer idumb's own folder: something else is in its place.",
            hint="See what the builder did and move it away; then idumb resume restarts the task",
        )


def _require_private(folder: str) -> None:
    """Require that no other user created it or can write into it."""
    own, above = os.lstat(folder), os.lstat(os.path.dirname(folder))
    shared = above.st_mode & 0o022 and not above.st_mode & stat.S_ISVTX
    if own.st_uid != os.geteuid() or own.st_mode & 0o022 or shared:
        raise Refusal(
            "clones.unusable",
            f"Private copies of the repository are created in {folder}, and other users can write there.",
            hint=f"Make it private (chmod 700), or set {user_folders.CLONES} to a folder that is",
            details={"path": folder},
        )


def _link_dependencies(folder: str, common_dir: str) -> None:
    """Let programs in the copies below `folder` find what Node would find above the git folder, nearest first.

    Node looks for `node_modules` in each folder above a file. If there are several, each gets its own level.
    """
    targets = _dependencies(folder, common_dir)
    at = os.path.join(folder, *[_UP] * (len(targets) - 1))
    for target in targets:
        link = os.path.join(at, _DEPENDENCIES)
        with contextlib.suppress(OSError):
            if not os.path.islink(link) or os.readlink(link) != target:
                fresh = f"{link}.{os.getpid()}"
                os.symlink(target, fresh)
                os.rename(fresh, link)
        at = os.path.dirname(at)


def _dependencies(folder: str, common_dir: str) -> list[str]:
    """Return the folders above the git folder, except those above the clones too, where Node finds them anyway."""
    targets, at = list[str](), _inner_clones_folder(common_dir)
    while at != os.path.dirname(at) and not f"{folder}/".startswith(f"{at}/"):
        if os.path.isdir(os.path.join(at, _DEPENDENCIES)):
            targets.append(os.path.join(at, _DEPENDENCIES))
        at = os.path.dirname(at)
    return targets


def levels(folder: str) -> Iterator[str]:
    """Return the existing folders that can hold copies."""
    while os.path.isdir(folder) and not os.path.islink(folder):
        yield folder
        folder = os.path.join(folder, _UP)


def clones(root: str, common_dir: str) -> list[str]:
    """Return every clone of the repository."""
    return [
        os.path.join(at, name)
        for at in levels(clones_folder(root, common_dir))
        for name in sorted(os.listdir(at))
        if _OF_RUN.fullmatch(name)
    ]


def tidy(folder: str) -> None:
    """Remove the folder of a repository's clones once it holds only what was made for them."""
    for at in reversed([*levels(folder)]):
        with contextlib.suppress(OSError):
            os.rmdir(os.path.join(at, _PROBE))
        with contextlib.suppress(OSError):
            link = os.path.join(at, _DEPENDENCIES)
            if os.listdir(at) == [_DEPENDENCIES] and os.path.islink(link):
                os.unlink(link)
            os.rmdir(at)
    if not user_folders.clones()[1]:  # a folder that the user chose stays
        with contextlib.suppress(OSError):
            os.rmdir(os.path.dirname(folder))


def is_clone_of(common_dir: str, path: str) -> bool:
    """Return whether a path is in a clone of this repository, wherever `IDUMB_CLONES` put it."""
    return is_copy_of(common_dir, path) and COPIES not in path.split("/")


def is_copy_of(common_dir: str, path: str) -> bool:
    """Return whether a path is in any private copy, including those of dry runs."""
    return path.startswith(common_dir + os.sep) or user_folders.repository_id(common_dir)[:_SHORT] in path.split("/")
