"""Where private copies of a repository lie: in the user's state, outside every git folder.

Some agents refuse to write below a folder called `.git`. No cache folder either, for a copy can hold the only bytes
of an agent's work.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import stat
from collections.abc import Iterator

from idumb.domain.errors import Refusal
from idumb.system.files import user_folders

COPIES = "rehearsals"
_CLONES = "clones"
_SHORT = 16  # of the repository's id: programs in a clone may put sockets there, whose paths are short
_UP = "up"
_OF_RUN = re.compile(r"[0-9a-f]{16}(?:\.taken)?")
_DEPENDENCIES = "node_modules"
_REFUSED = frozenset({errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.EEXIST})


def of(root: str, common_dir: str) -> str:
    """The folder of a repository's clones. Where the user's state lies in the work tree it is in the git folder."""
    wanted, chosen = user_folders.clones()
    if not os.path.isabs(wanted):
        raise Refusal(
            "clones.unusable",
            f"{user_folders.CLONES} is {wanted!r}, which is not an absolute path.",
            hint=f"Set {user_folders.CLONES} to the absolute path of a folder outside the repository",
        )
    if os.path.islink(wanted):
        raise Refusal(
            "clones.unusable",
            f"{wanted}, where private copies of repositories are made, is a symbolic link.",
            hint=f"Set {user_folders.CLONES} to the folder itself: {os.path.realpath(wanted)}",
        )
    place = os.path.join(os.path.realpath(os.path.dirname(wanted)), os.path.basename(wanted))
    if not f"{place}/".startswith(f"{root.rstrip('/')}/"):
        return os.path.join(place, user_folders.repository_id(common_dir)[:_SHORT])
    if chosen:
        raise Refusal(
            "clones.unusable",
            f"{user_folders.CLONES} is {wanted}, which lies in the work tree {root}.",
            hint=f"Set {user_folders.CLONES} to a folder outside the repository",
        )
    return before(common_dir)


def before(common_dir: str) -> str:
    """Where older versions had the clones of a repository."""
    return os.path.join(common_dir, "idumb", _CLONES)


def prepare(folder: str, common_dir: str) -> str:
    """The folder below `folder` in which a copy can be made now, made where it is missing: the user's alone.

    Refusal `clones.unusable` where it cannot be written, `git.clone-gone` where something else is in its place.
    """
    require_plain(folder)
    deepest = os.path.join(folder, *[_UP] * (len(_dependencies(folder, common_dir)) - 1))
    probe = os.path.join(deepest, f".probe-{os.getpid()}")
    try:
        user_folders.make_private(deepest)
        os.mkdir(probe, 0o700)
        os.rmdir(probe)
    except OSError as problem:
        if problem.errno not in _REFUSED:
            raise
        raise Refusal(
            "clones.unusable",
            f"Private copies of the repository are made in {folder}, and that cannot be written:"
            f" {problem.strerror} ({problem.filename}).",
            hint=f"Set {user_folders.CLONES} to a folder that you can write, outside the repository, then try again",
            details={"path": folder},
        ) from problem
    _require_private(folder)
    _link_dependencies(folder, common_dir)
    return deepest


def require_plain(folder: str) -> None:
    """It is a folder of idumb's own, or not there: what is removed and made in it is no file of others."""
    if os.path.realpath(folder) != folder or (os.path.lexists(folder) and not os.path.isdir(folder)):
        raise Refusal(
            "git.clone-gone",
            f"{folder} is no folder of idumb's own any more: something else was put in its place.",
            hint="Look at what the builder did, and move that away; idumb resume then begins the task again",
        )


def _require_private(folder: str) -> None:
    """Nobody else may have made it, or can put something into it."""
    found, above = os.lstat(folder), os.lstat(os.path.dirname(folder))
    shared = above.st_mode & 0o022 and not above.st_mode & stat.S_ISVTX
    if found.st_uid != os.geteuid() or found.st_mode & 0o022 or shared:
        raise Refusal(
            "clones.unusable",
            f"Private copies of the repository are made in {folder}, and other users can write there.",
            hint=f"Make it yours alone (chmod 700), or set {user_folders.CLONES} to a folder that is",
            details={"path": folder},
        )


def _link_dependencies(folder: str, common_dir: str) -> None:
    """Let programs in the copies below `folder` find what Node found above the git folder, nearest first.

    Node looks for `node_modules` in each folder above a file. Where there are several, each has a level of its own.
    """
    found = _dependencies(folder, common_dir)
    at = os.path.join(folder, *[_UP] * (len(found) - 1))
    for target in found:
        link = os.path.join(at, _DEPENDENCIES)
        with contextlib.suppress(OSError):
            if not os.path.islink(link) or os.readlink(link) != target:
                fresh = f"{link}.{os.getpid()}"
                os.symlink(target, fresh)
                os.rename(fresh, link)
        at = os.path.dirname(at)


def _dependencies(folder: str, common_dir: str) -> list[str]:
    """The folders above the git folder, but for those above the clones too, where Node finds them anyway."""
    found, at = list[str](), before(common_dir)
    while at != os.path.dirname(at) and not f"{folder}/".startswith(f"{at}/"):
        if os.path.isdir(os.path.join(at, _DEPENDENCIES)):
            found.append(os.path.join(at, _DEPENDENCIES))
        at = os.path.dirname(at)
    return found


def levels(folder: str) -> Iterator[str]:
    """The folders in which copies can be, of those that are there."""
    while os.path.isdir(folder) and not os.path.islink(folder):
        yield folder
        folder = os.path.join(folder, _UP)


def clones(root: str, common_dir: str) -> list[str]:
    """Every clone of the repository that is there, also where older versions made them."""
    places = dict.fromkeys((of(root, common_dir), before(common_dir)))
    return [
        os.path.join(at, name)
        for place in places
        for at in levels(place)
        for name in sorted(os.listdir(at))
        if _OF_RUN.fullmatch(name)
    ]


def tidy(folder: str) -> None:
    """Remove the folder of a repository's clones once nothing is in it but what was made for them."""
    for at in reversed([*levels(folder)]):
        with contextlib.suppress(OSError):
            link = os.path.join(at, _DEPENDENCIES)
            if os.listdir(at) == [_DEPENDENCIES] and os.path.islink(link):
                os.unlink(link)
            os.rmdir(at)
    if not user_folders.clones()[1]:  # a folder that the user chose stays
        with contextlib.suppress(OSError):
            os.rmdir(os.path.dirname(folder))


def is_clone_of(common_dir: str, path: str) -> bool:
    """Whether a path is in a clone of this repository, wherever `IDUMB_CLONES` had it made."""
    return is_copy_of(common_dir, path) and COPIES not in path.split("/")


def is_copy_of(common_dir: str, path: str) -> bool:
    """The same of every private copy, those of dry runs among them."""
    return path.startswith(common_dir + os.sep) or user_folders.repository_id(common_dir)[:_SHORT] in path.split("/")
