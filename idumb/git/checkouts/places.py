"""Where the checkouts of a repository are, and how a checkout's folder is recognised again.

Checkouts are in the user's state, outside every git folder: some agents refuse to write below a folder called `.git`,
and compose names its projects after the folder. What idumb knows about them is in the git folder, which no program in a
sandbox can write; of a repository that is read-only, beside them.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
from collections.abc import Iterator

from idumb.domain import errors, paths
from idumb.domain.action import Action
from idumb.git.discover import Worktree
from idumb.system import atomic_write, clock, machine, private_folders, user_folders

REHEARSAL = "rehearsal"
"""The name of a dry run's working tree."""
COPIES = "rehearsals"
"""The folder of the repositories of dry runs, beside the checkouts."""
_SHORT = 16  # of the repository's id: programs create sockets in a checkout, and their paths must be short
_PLACE = re.compile(f"[0-9a-f]{{{_SHORT}}}")
_ASIDE = ".aside-"
_RECORD = "folder"
_OWNER = "repository"
"""The file beside the checkouts with the path of their repository's git folder; its time is that of the last use."""
_KEPT = 30 * 24 * 3600 * 1_000_000_000
"""Nanoseconds for which the checkouts of a deleted repository are kept."""
_OURS = re.compile(r".*-[a-z]+-[0-9a-f]{4}[0-9](\.(aside|moved)-[0-9a-f]{8})?|checkouts|rehearsals|repository")
"""Names beside a checkout: of others, of dry runs, and of `state`."""


class Tampered(errors.Refusal):
    """A program moved or replaced the folder of a checkout, or damaged what git knows about it."""

    def __init__(self, what: str) -> None:
        words = f"A program moved, replaced or damaged the checkout in which it worked: {what}"
        super().__init__("checkout.moved", words, hint=Action("status"), details={"path": what})


def prepare(user: Worktree) -> str:
    """Return the folder of a repository's checkouts, created if missing. Refusal `checkout.unusable`."""
    place = folder_of(user)
    try:
        private_folders.make(place)
        problem = _shared(place) or ("" if os.access(place, os.W_OK) else "it is not writable")
    except OSError as failed:
        problem = f"{failed.strerror} ({failed.filename})"
    if problem:
        raise _unusable(place, problem)
    _require_plain(place)
    for name in os.listdir(place):
        if _ASIDE in name:  # of a killed command, or it could not be removed then
            private_folders.try_to_remove(os.path.join(place, name))
    return place


def note_use(user: Worktree, place: str) -> None:
    """Note whose checkouts a folder has. Remove those of deleted repositories, a while after their last use."""
    atomic_write.write(os.path.join(place, _OWNER), os.fsencode(user.common_dir), durable=False, mode=0o600)
    above = os.path.dirname(place)
    for other in (os.path.join(above, name) for name in os.listdir(above) if _PLACE.fullmatch(name)):
        owner = read(os.path.join(other, _OWNER))
        if not os.path.isabs(owner) or os.path.lexists(owner):
            continue
        used = os.lstat(os.path.join(other, _OWNER)).st_mtime_ns
        if clock.nanoseconds() - used > _KEPT and all(map(_OURS.fullmatch, os.listdir(other))):
            private_folders.try_to_remove(other)


def folder_of(user: Worktree) -> str:
    """Return the folder of a repository's checkouts: outside the working tree and, if possible, below no manifest.

    Those of a dry run are beside its working tree, and are removed with it.
    """
    if user.name == REHEARSAL:
        return os.path.join(os.path.dirname(user.root), "checkouts")
    chosen, is_chosen = user_folders.checkouts()
    if not os.path.isabs(chosen):
        raise _unusable(chosen, "it is not an absolute path")
    beside = () if is_chosen else (f"/var/tmp/idumb-checkouts-{os.geteuid()}",)  # noqa: S108 - private_folders.make
    real = [os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path)) for path in (chosen, *beside)]
    outside = [path for path in real if not paths.is_below(path, user.root)]
    if not outside:
        raise _unusable(chosen, f"it is inside the working tree {user.root}")
    free = (path for path in outside if private_folders.manifest_above(path) is None)
    above = next(free, outside[0])
    return os.path.join(above, user_folders.repository_id(user.common_dir)[:_SHORT])


def own_above(user: Worktree) -> tuple[str, ...]:
    """Return the folder of a repository's checkouts and, unless the user chose it, the one above."""
    place = folder_of(user)
    return (place,) if user_folders.checkouts()[1] else (place, os.path.dirname(place))


def existing(user: Worktree) -> dict[str, str]:
    """Return the checkouts that exist: the path of each to idumb's own git folder for it."""
    names = sorted(os.listdir(state(user))) if os.path.isdir(state(user)) else []
    records = {os.path.join(state(user), name): read(os.path.join(state(user), name, _RECORD)) for name in names}
    return {record.partition("\n")[2]: own for own, record in records.items() if record}


def is_copy_of(common_dir: str, path: str) -> bool:
    """Return whether a path is in a checkout of this repository, wherever that is."""
    return path.startswith(common_dir + os.sep) or user_folders.repository_id(common_dir)[:_SHORT] in path.split("/")


def is_checkout_of(common_dir: str, path: str) -> bool:
    """Return whether a path is in a checkout, and not in one of a dry run."""
    return is_copy_of(common_dir, path) and COPIES not in path.split("/")


class Pair:
    """The checkouts below `place` that one command uses, one for each use. `number` is that of the pair."""

    def __init__(self, user: Worktree, place: str, number: int, lock: int) -> None:
        self._user = user
        self.place = place
        self._lock = lock
        self.number = number

    def folder(self, use: str) -> Folder:
        """Return the folder of the checkout for this use."""
        git_dir = os.path.join(state(self._user), f"{use}-{self.number}")
        private_folders.make(git_dir, root=self._user.common_dir)
        number = f"{user_folders.repository_id(self._user.common_dir)[:4]}{self.number}"
        path = os.path.join(self.place, f"{_name(self._user)}-{use}-{number}")
        return Folder(path, git_dir)

    def close(self) -> None:
        """Let other commands use them. The folders stay."""
        os.close(self._lock)


class Folder:
    """The folder of a checkout, and idumb's own git folder for it.

    A program can move the folder and put a link there, so its inode is recorded in the git folder.
    """

    def __init__(self, path: str, git_dir: str) -> None:
        self.path = path
        self.git_dir = git_dir
        self._record = os.path.join(git_dir, _RECORD)
        self._known = read(self._record)

    def require(self) -> str:
        """Return its path. Raises Tampered unless it is the folder that idumb made, since the system was started.

        Its files are never forced to disk, so a power cut may have truncated them.
        """
        above = os.path.dirname(self.path)
        if not self._known or self._known != self._present() or os.path.realpath(above) != above:
            raise Tampered(self.path)
        return self.path

    @property
    def is_known(self) -> bool:
        """Return whether idumb ever made it."""
        return bool(self._known)

    def accept(self) -> None:
        """Take the folder as it is, which `is_same`, although the system was started since."""
        self._known = self._present()

    @property
    def is_same(self) -> bool:
        """Return whether it is the folder that idumb made, at whatever time."""
        return bool(self._known) and self._known.split(" ")[0] == self._present().split(" ")[0]

    def clear_beside(self) -> None:
        """Remove what programs put beside it, where tools that search upward, or a path with `../`, would find it."""
        above = os.path.dirname(self.path)
        for name in os.listdir(above):
            if not _OURS.fullmatch(name):
                private_folders.try_to_remove(os.path.join(above, name))

    def make(self) -> None:
        """Make it an empty folder. What a program put in its place is moved aside: it may be the user's."""
        _require_plain(os.path.dirname(self.path))
        if os.path.lexists(self.path):
            is_same, aside = self.is_same, f"{self.path}{_ASIDE if self.is_same else '.moved-'}{os.urandom(4).hex()}"
            os.rename(self.path, aside)
            if is_same:
                private_folders.try_to_remove(aside)
        private_folders.make(self.path)
        self._known = self._present()
        with open(self._record, "w", encoding="utf-8") as stream:
            stream.write(self._known)

    @contextlib.contextmanager
    def opened(self) -> Iterator[int]:
        """Give a descriptor of the folder. Raises Tampered if another one is there."""
        with private_folders.closing(os.open(self.path, private_folders.FOLDER)) as descriptor:
            if not self._known.startswith(f"{os.fstat(descriptor).st_ino} "):
                raise Tampered(self.path)
            yield descriptor

    def _present(self) -> str:
        try:
            status = os.lstat(self.path)
        except OSError:
            return ""
        kind = "" if stat.S_ISDIR(status.st_mode) else "no-folder-"
        return f"{kind}{status.st_ino} {machine.boot_id() or ''}\n{self.path}"


def state(user: Worktree) -> str:
    """Return the folder of idumb's own git folders for checkouts: with the user's, if that can be written."""
    own = os.path.join(user.common_dir, "idumb")
    return os.path.join(own if os.access(user.common_dir, os.W_OK) else folder_of(user), "checkouts")


def _name(user: Worktree) -> str:
    """Return the repository's name, which is the same in each of its working trees."""
    folder = os.path.dirname(user.common_dir) if user.common_dir.endswith("/.git") else user.common_dir
    return re.sub(r"[^a-z0-9]+", "-", os.path.basename(folder).lower())[:20].strip("-") or "repository"


def _shared(place: str) -> str:
    """Return why another user could write there."""
    own, above = os.lstat(place), os.lstat(os.path.dirname(place))
    is_open = above.st_mode & 0o022 and not above.st_mode & stat.S_ISVTX
    return "other users can write there" if own.st_uid != os.geteuid() or own.st_mode & 0o022 or is_open else ""


def _require_plain(place: str) -> None:
    if os.path.realpath(place) != place or (os.path.lexists(place) and not os.path.isdir(place)):
        raise _unusable(place, "something else is in its place")


def _unusable(place: str, why: str) -> errors.Refusal:
    return errors.Refusal(
        "checkout.unusable",
        f"Programs work in {place}, which cannot be used: {why}.",
        hint=f"Set {user_folders.CHECKOUTS} to the absolute path of a private folder outside the repository",
        details={"path": place},
    )


def read(path: str) -> str:
    from idumb.git import guarded_files  # `idumb status` imports this module

    return os.fsdecode(guarded_files.content(path))
