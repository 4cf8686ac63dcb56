"""Ignored files of the user's working tree that a checkout has too: `node_modules`, a virtual environment, data.

They are copied, never linked: a program that empties a linked folder empties the user's. A link that leads into the
user's working tree leads into the checkout there; one that leads out of it is not followed.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import itertools
import os
import shutil
import stat
from collections.abc import Collection, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import IO

from idumb.domain import wording
from idumb.domain.errors import Refusal
from idumb.domain.paths import folders_above, is_below
from idumb.git import disk, git_program, guarded_files
from idumb.git.checkouts import relocated, untracked
from idumb.git.checkouts.relocated import Environments
from idumb.git.checkouts.untracked import Facts, Manifest
from idumb.git.discover import Worktree
from idumb.system import atomic_write, clock, private_folders

_INCLUDE = ".worktreeinclude"
_ASIDE, _RECORD, _RULES = "aside", "provided.json", "provided.rules"
_PYTHON = "PYTHONPATH"
_PATTERN = frozenset("*?[!#\\")
_IGNORED = ("ls-files", "-z", "--others", "--ignored", "--directory")

_PERMISSIONS = 0o777
_COPIED = frozenset({stat.S_IFREG, stat.S_IFDIR, stat.S_IFLNK})
_GONE = frozenset({errno.ENOENT, errno.ENOTDIR, errno.EACCES, errno.EPERM, errno.ELOOP, errno.EINVAL, errno.ENXIO})
"""What the system says of a file that was removed or replaced by something else, or that the user may not read."""

Originals = Mapping[str, os.stat_result]
"""By path, folders before their content."""


class Provided:
    """`rules` are patterns of git-ignore; `limit` is in bytes; `state` is a folder of idumb's outside the checkout.

    The patterns in `.worktreeinclude` count too. The record is read here, once: make this object before programs run
    that could write to it. `search_path` is that of the programs which run in the checkout; by default the user's PATH.
    Paths that `needed` names must be there.
    `variables` are those of the user that programs see: none of them leads into his working tree, see `variables`.
    After `bring`, `copied` are the topmost paths that were not there before, with their bytes.
    """

    def __init__(
        self,
        user: Worktree,
        rules: Sequence[str],
        limit: int,
        state: str,
        search_path: str | None = None,
        needed: Sequence[str] = (),
        variables: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self._user = user.root
        self._needed = tuple(rule for rule in needed if _PATTERN.isdisjoint(rule))
        self._rules = (*rules, *_included(user.root))
        self._limit = limit
        self._state = state
        self._variables = {} if is_below(os.path.expanduser("~"), user.root) else variables
        self._search_path = git_program.environment(user.root)["PATH"] if search_path is None else search_path
        self._record = os.path.join(state, _RECORD)
        self._manifest = untracked.load(self._record)
        self.copied: Mapping[str, int] = {}

    @functools.cached_property
    def _sites(self) -> tuple[str, ...]:
        return relocated.sites(self._search_path)

    def variables(self, root: str) -> Mapping[str, str]:
        """Return the variables by which programs find what the checkout has instead of what the user has."""
        moved = {name: self._led_to(value, root) for name, value in self._variables.items()}
        changed = {name: value for name, value in moved.items() if value != self._variables[name]}
        folders = relocated.python_path(self._user, root, self._sites, self._manifest.paths)
        if folders:
            changed[_PYTHON] = os.pathsep.join((*folders, *filter(None, [moved.get(_PYTHON)])))
        return changed

    def bring(self, root: str, tracked: Collection[str]) -> tuple[str, ...]:
        """Make the checkout have what is provided, as it is now, and nothing else below it; return the topmost paths.

        `tracked` are the paths of the tree that the checkout shows; a folder that has one is not provided. Refusal
        `checkout.leads-back`; before anything is copied, `checkout.missing`, `checkout.too-large` or `system.full`.
        """
        before = self._manifest
        folders = folders_above(tracked) if self._rules or before.paths else frozenset[str]()
        paths = self._paths(tracked, folders)
        self._require_copied(paths, tracked)
        originals = self._originals(paths)
        present = untracked.present(root, paths)
        outdated = self._outdated(originals, present)
        self._require_room(outdated, paths, originals)
        self.copied = {p: size for p, size in _sizes(outdated, paths, originals).items() if p not in before.paths}
        replaced = {path for path in outdated if path in present and not _is_folder(originals[path], present[path])}
        former = set(before.paths).difference(paths, tracked, folders)
        for path in (*former, *(present.keys() - originals.keys()), *replaced):
            untracked.remove(root, path)
        stamped = {path: facts for path, facts in before.originals.items() if path in originals}
        if outdated:
            stamped |= self._copy(root, outdated, originals, paths)
            present = untracked.present(root, paths)
        copies = {path: present[path] for path in originals if path in present}
        self._manifest = Manifest(paths, copies, stamped)
        if self._manifest != before:
            self._manifest.save(self._record)
        return paths

    def _led_to(self, value: str, root: str) -> str:
        """Return a variable with the paths of the checkout; a link that leads out, such as a profile of Nix, stays."""
        parts = value.split(os.pathsep)
        stay = {
            part for part in parts if is_below(part, self._user) and not is_below(os.path.realpath(part), self._user)
        }
        moved = (os.fsdecode(relocated.relocate(os.fsencode(part), self._user, root, "")) for part in parts)
        return os.pathsep.join(old if old in stay else new for old, new in zip(parts, moved, strict=True))

    def _require_copied(self, paths: Iterable[str], tracked: Iterable[str]) -> None:
        """Refuse once if a path that the configuration names is not copied: programs would fail without it."""
        needed, self._needed = self._needed, ()
        there = [f"/{path}/" for path in (*paths, *tracked)] if needed else []
        lacking = [rule for rule in needed if not any(f"/{rule.strip('/')}/" in path for path in there)]
        if lacking:
            raise Refusal(
                "checkout.missing",
                f"checkout.provide names what cannot be copied: {wording.listed(map(self._why_not, lacking))}",
                hint="Put it there, or let checkout.prepare do that; what may be missing belongs in .worktreeinclude",
                details={"paths": lacking},
            )

    def _why_not(self, rule: str) -> str:
        """Return a path with the reason why it is not copied."""
        path = rule.strip("/")
        if not os.path.lexists(os.path.join(self._user, path)):
            return f"{rule} (not in your working tree)"
        return f"{rule} (a link that leads out)" if leads_out(self._user, path) else f"{rule} (git does not ignore it)"

    def _paths(self, tracked: Collection[str], folders: Collection[str]) -> tuple[str, ...]:
        """Return the topmost paths that git ignores and the rules name; what is in the tree has precedence."""
        if not self._rules:
            return ()
        private_folders.make(self._state)
        rules = os.path.join(self._state, _RULES)
        atomic_write.write(rules, os.fsencode("".join(f"{rule}\n" for rule in self._rules)), durable=False, mode=0o600)
        named = self._listed(f"--exclude-from={rules}")
        ignored = self._listed("--exclude-standard") if named else set()
        both = [path for path in named if path in ignored or any(above in ignored for above in folders_above((path,)))]
        both += [path for path in ignored if any(above in named for above in folders_above((path,)))]
        outside = (path for path in sorted({*both}) if path not in folders)
        free = (path for path in outside if not any(each in tracked for each in (path, *folders_above((path,)))))
        return tuple(path for path in free if not leads_out(self._user, path))

    def _listed(self, rules: str) -> set[str]:
        """Return the untracked paths that match rules: a folder that matches, not its content."""
        output = git_program.output(self._user, [*_IGNORED, rules])
        names = {os.fsdecode(name).rstrip("/") for name in output.split(b"\0") if name}
        # git also lists a folder that does not match itself, if all its content does.
        return names.difference(above for name in names for above in folders_above((name,)))

    def _originals(self, paths: Iterable[str]) -> dict[str, os.stat_result]:
        """Return what is to be copied. Pipes and sockets are not, nor is bytecode that holds paths of the user."""
        rows = (row for path in paths for row in untracked.walk(self._user, path))
        originals = {path: status for path, status in rows if stat.S_IFMT(status.st_mode) in _COPIED}
        environments = Environments(self._user, originals)
        return {path: status for path, status in originals.items() if not environments.is_bytecode(path)}

    def _outdated(self, originals: Originals, present: Mapping[str, Facts]) -> list[str]:
        """Return what is not there, or no longer what was copied, or no longer what the user has."""
        record = self._manifest

        def is_right(path: str, status: os.stat_result) -> bool:
            if stat.S_ISDIR(status.st_mode):
                return present.get(path) == (status.st_mode | stat.S_IRWXU,)
            is_same = record.originals.get(path) == untracked.stamp(status)
            return is_same and path in present and present[path] == record.copies.get(path)

        return [path for path, status in originals.items() if not is_right(path, status)]

    def _require_room(self, outdated: Sequence[str], paths: Sequence[str], originals: Originals) -> None:
        total = sum(status.st_size for status in originals.values() if not stat.S_ISDIR(status.st_mode))
        if total > self._limit:
            sizes = _sizes(originals, paths, originals)
            largest = sorted(sizes, key=lambda path: -sizes[path])
            raise Refusal(
                "checkout.too-large",
                f"Copies of what checkout.provide names need {_gigabytes(total)}, more than checkout.limit"
                f" ({_gigabytes(self._limit)}): "
                + wording.listed(f"{path} {_gigabytes(sizes[path])}" for path in largest),
                hint="Install them by checkout.prepare, or set a higher checkout.limit, in .idumb/config.yaml",
                details={"bytes": total, "limit": self._limit, "paths": largest},
            )
        disk.require_room((originals[path].st_size for path in outdated), self._state)

    def _copy(self, root: str, names: Sequence[str], originals: Originals, paths: Iterable[str]) -> dict[str, Facts]:
        """Copy these originals; return the stamps by which a later change of one shows.

        A folder that is not there yet is copied aside, and comes into the checkout as a whole.
        """
        aside, settled = os.path.join(self._state, _ASIDE), clock.nanoseconds() - clock.TICK
        copier = Copier(self._user, root, originals)
        private_folders.remove_tree(aside)
        private_folders.make(aside)
        tops = frozenset(paths)
        for top, group in itertools.groupby(names, lambda name: _top_of(name, tops)):
            is_new = stat.S_ISDIR(originals[top].st_mode) and not os.path.lexists(os.path.join(root, top))
            copier.copy(aside if is_new else root, group)
            if is_new:
                with untracked.opened(root, os.path.dirname(top)) as folder:
                    os.rename(os.path.join(aside, top), os.path.basename(top), dst_dir_fd=folder)
        private_folders.remove_tree(aside)
        return {name: untracked.stamp(originals[name]) for name in names if originals[name].st_ctime_ns < settled}


def _included(root: str) -> tuple[str, ...]:
    """Return the patterns of the file in which other tools look for them too; none if it cannot be read."""
    lines = os.fsdecode(guarded_files.content(os.path.join(root, _INCLUDE))).splitlines()
    return tuple(line for line in lines if line.strip() and not line.startswith("#"))


def _sizes(names: Iterable[str], paths: Collection[str], originals: Originals) -> dict[str, int]:
    """Return the bytes of files and links by the topmost path."""
    sizes, tops = dict[str, int](), frozenset(paths)
    for name in names:
        if not stat.S_ISDIR(originals[name].st_mode):
            top = _top_of(name, tops)
            sizes[top] = sizes.get(top, 0) + originals[name].st_size
    return sizes


def _top_of(name: str, tops: Collection[str]) -> str:
    return next(path for path in (name, *folders_above((name,))) if path in tops)


def _is_folder(original: os.stat_result, facts: Facts) -> bool:
    """Return whether both are a folder, and what is in the second one is known."""
    return stat.S_ISDIR(original.st_mode) and len(facts) == 1 and untracked.can_be_listed(facts[0])


def _gigabytes(size: int) -> str:
    return f"{size / (1 << 30):.2f} GiB"


def link_text(user: str, path: str) -> str:
    """Return where the copy of a link leads: if the user's leads into the working tree, to the same path there.

    The text is then relative. A link that leads out keeps its target, as an absolute path.
    """
    place = os.path.join(user, path)
    folder, text = os.path.dirname(place), os.readlink(place)
    target = os.path.normpath(os.path.join(folder, text))
    if not is_below(target, user) and is_below(real := os.path.realpath(place), user):
        target = real
    return os.path.relpath(target, folder) if is_below(target, user) else target


def leads_out(user: str, path: str) -> bool:
    return os.path.islink(os.path.join(user, path)) and os.path.isabs(link_text(user, path))


class Copier:
    """Copies paths of the working tree `user` for the checkout `root`, whose environments are to lead there.

    `originals` is all that the checkout gets.
    """

    def __init__(self, user: str, root: str, originals: Mapping[str, os.stat_result]) -> None:
        self._user = user
        self._root = root
        self._originals = originals
        self._environments = Environments(user, originals)

    def copy(self, base: str, paths: Iterable[str]) -> None:
        """Make these paths below the folder `base`, in place of what is there; folders come before their content.

        A file that vanished or was replaced, or that the user may not read, is left out.
        """
        for folder, group in itertools.groupby(paths, os.path.dirname):
            with untracked.opened(base, folder) as descriptor:
                for path in group:
                    mode = self._originals[path].st_mode
                    if stat.S_ISDIR(mode):
                        with untracked.opened(base, path) as own:
                            os.fchmod(own, stat.S_IMODE(mode) | stat.S_IRWXU)
                    else:
                        self._place(base, path, descriptor, is_link=stat.S_ISLNK(mode))

    def _place(self, base: str, path: str, folder: int, *, is_link: bool) -> None:
        try:
            if is_link:
                os.symlink(self._link_text(path), os.path.basename(path), dir_fd=folder)
            else:
                self._copy_file(path, folder)
        except OSError as problem:
            if problem.errno not in _GONE:
                raise
            untracked.remove(base, path)

    def _link_text(self, path: str) -> str:
        """Refusal `checkout.leads-back` for a program of an environment that the checkout does not get."""
        text = link_text(self._user, path)
        target = os.path.normpath(os.path.join(os.path.dirname(path), text))
        if not os.path.isabs(text) and target not in self._originals and self._environments.is_startup(path):
            relocated.refuse(os.path.join(self._user, path))
        return text

    def _copy_file(self, path: str, folder: int) -> None:
        place = os.path.join(self._user, path)
        with open(os.open(place, private_folders.FILE), "rb") as original:
            status = os.fstat(original.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise FileNotFoundError(errno.ENOENT, "no longer a file", place)
            with open(os.open(os.path.basename(path), private_folders.NEW, 0o600, dir_fd=folder), "wb") as copy:
                is_changed = False
                is_startup = self._environments.is_startup(path)
                is_read = status.st_size <= relocated.LARGEST or place.endswith(relocated.YARN)
                if is_read and (is_startup or os.path.dirname(path) not in self._originals):
                    content = original.read()
                    is_text = is_startup or b"\0" not in content
                    moved = relocated.relocate(content, self._user, self._root, place) if is_text else content
                    copy.write(moved)
                    is_changed = moved != content
                else:
                    _copy_bytes(original, copy, status.st_size)
                copy.flush()
                os.fchmod(copy.fileno(), stat.S_IMODE(status.st_mode) & _PERMISSIONS)
                if not is_changed:  # Python could take bytecode of the original for that of the copy
                    os.utime(copy.fileno(), ns=(status.st_atime_ns, status.st_mtime_ns))


def _copy_bytes(original: IO[bytes], copy: IO[bytes], size: int) -> None:
    """Copy a file; both then share their blocks until one of them changes, if the file system can do that."""
    left = size
    with contextlib.suppress(OSError, AttributeError):  # not between all file systems, and only Linux has it
        while left > 0 and (count := os.copy_file_range(original.fileno(), copy.fileno(), left)):
            left -= count
    if left > 0:
        shutil.copyfileobj(original, copy, 1 << 20)
