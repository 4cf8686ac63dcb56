"""What git says of a repository, of paths in its working tree and its index, and how index entries are set.

git does not read the configuration of submodules and nested repositories, because it may name programs.
"""

from __future__ import annotations

import contextlib
import functools
import os
import re
import tempfile
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from idumb.domain import errors
from idumb.domain import paths as path_rules
from idumb.domain.proof.ledger import Entry
from idumb.git import discover, git_program, guarded_files, tree_objects
from idumb.git.discover import Repository
from idumb.git.objects import Objects
from idumb.git.tree_objects import SUBMODULE
from idumb.system import clock, private_folders, user_folders

_ON_A_LINE = 200
_PAUSE, _PATIENCE = 0.1, 30.0  # seconds between two looks at a lock, and of waiting for it
_ANNOUNCED = "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"  # the blob id of an intent-to-add entry
_CONFLICT = Entry(0, "")  # of an unmerged path
_OID = re.compile("[0-9a-f]{40}")
_WHY = (
    ("ownership", "git.ownership"),
    ("extension", "git.unsupported-format"),
    ("version", "git.unsupported-format"),
)
"""Words of git, and the code of their refusal."""
_SYMBOLIC = "ref: "
_LINKS = 5  # from one name of a ref to the next

# File in git's folder -> code, message. The first that exists is reported.
_IN_PROGRESS = (
    ("rebase-merge", "git.rebase-in-progress", "a rebase is in progress"),
    ("rebase-apply/applying", "git.am-in-progress", "git am is in progress"),
    ("rebase-apply", "git.rebase-in-progress", "a rebase is in progress"),
    ("MERGE_HEAD", "git.merge-in-progress", "a merge is in progress"),
    ("CHERRY_PICK_HEAD", "git.cherry-pick-in-progress", "a cherry-pick is in progress"),
    ("REVERT_HEAD", "git.revert-in-progress", "a revert is in progress"),
    ("sequencer", "git.sequence-in-progress", "a sequence of cherry-picks or reverts is in progress"),
    ("BISECT_LOG", "git.bisect-in-progress", "a bisect is in progress"),
)


def changed(place: Repository, paths: Sequence[str]) -> tuple[str, ...]:
    """Return the paths with uncommitted changes that one of `paths` covers, sorted."""
    if not paths:
        return ()
    # Our globs differ from git's: match them here, on the status of all paths.
    literal = len(paths) <= _ON_A_LINE and not any(map(path_rules.has_wildcard, paths))
    arguments = ["status", "--porcelain", "-z", "--no-renames", "--untracked-files=all", git_program.NO_SUBMODULES]
    rows = git_program.output(place.root, [*arguments, *(["--", *paths] if literal else [])]).split(b"\0")
    return tuple(sorted(filter(path_rules.cover(paths), {os.fsdecode(row[3:]) for row in rows if row})))


def ignored(place: Repository, paths: Iterable[str]) -> frozenset[str]:
    """Return the paths that git ignores, and in which it tracks nothing."""
    return frozenset(os.fsdecode(path[2:]) for path in _checked(place.root, paths) if path)


def deciding(root: str, paths: Iterable[str], rules: Repository) -> dict[str, tuple[str, str]]:
    """Return each path that a rule covers, with the rule's file, relative within the working tree, and its text.

    `rules` is the repository whose rules outside the tree apply. For a clone, that is the user's: an agent can change
    the rules in the clone's own git folder.
    """
    rows = _checked(root, paths, "--no-index", "--verbose", rules=rules)  # file, line, pattern and path, in turn
    found = zip(rows[::4], rows[2::4], rows[3::4], strict=False)
    return {os.fsdecode(path[2:]): (os.fsdecode(file), os.fsdecode(rule)) for file, rule, path in found}


def _checked(root: str, paths: Iterable[str], *options: str, rules: Repository | None = None) -> list[bytes]:
    names = b"".join(b"./" + os.fsencode(path) + b"\0" for path in paths)
    if not names:
        return []
    arguments = ["check-ignore", *options, "-z", "--stdin"]
    # This command does not support literal paths; `./` keeps a leading `:` from being magic.
    extra = {"GIT_LITERAL_PATHSPECS": "0"}
    if rules is not None and rules.root != root:
        extra |= {"GIT_DIR": rules.git_dir, "GIT_COMMON_DIR": rules.common_dir, "GIT_WORK_TREE": root}
    result = git_program.read(root, arguments, names, extra)
    if result.status not in {0, 1}:
        raise git_program.failure(arguments, result)
    return result.out.split(b"\0")


def repositories(place: Repository, places: Iterable[str]) -> tuple[str, ...]:
    """Return every submodule of the index, and each of the places and their parent folders that is a repository."""
    own = os.path.realpath(place.root)
    above = path_rules.folders_above(f"{path}/" for path in places)
    at = {folder: os.path.join(place.root, folder) for folder in above}
    # A link may lead back to the top.
    found = [name for name, at in at.items() if os.path.lexists(f"{at}/.git") and os.path.realpath(at) != own]
    if not found and not os.path.lexists(os.path.join(place.root, ".gitmodules")):
        return ()
    listed = b"\0" + git_program.read(place.root, ["ls-files", "-s", "-z"]).out  # other checks report a failure
    links = map(os.fsdecode, submodules(listed))
    # A folder with tracked files is no other repository.
    others = (name for name in found if b"\t%b/" % os.fsencode(name) not in listed)
    return tuple(sorted({*links, *others}))


def submodules(listed: bytes) -> dict[bytes, bytes]:
    """Return the submodules, path to commit, in the output of `git ls-files -s -z` after a first NUL."""
    return {path: oid for oid, path in re.findall(rb"\x00160000 ([0-9a-f]+) 0\t([^\0]*)", listed)}


def path_of(place: Repository) -> str:
    return os.path.join(place.git_dir, "index")


def branch_of(place: Repository) -> str | None:
    """Return the full name of the branch that HEAD is on; None if HEAD is detached."""
    head = discover.target(place, "HEAD") or ""
    return head.removeprefix(_SYMBOLIC) if head.startswith(_SYMBOLIC) else None


def head_of(place: Repository) -> str | None:
    """Return HEAD's commit; None before the first. Refusal `git.head-unreadable`."""
    content: str | None = f"{_SYMBOLIC}HEAD"
    for _ in range(_LINKS):
        if content is None or not content.startswith(_SYMBOLIC):
            break
        content = discover.target(place, content.removeprefix(_SYMBOLIC))
    if content is not None and not _OID.fullmatch(content):
        raise errors.Refusal("git.head-unreadable", f"HEAD cannot be read: it is {content!r}", hint="git fsck")
    return content


def objects_of(place: Repository) -> Objects:
    """Return the objects of a repository. Refusal if idumb cannot read it: see `unsupported`."""
    if problem := _format(place):
        code, message = problem
        raise errors.Refusal(code, message, hint="git status")
    return Objects(place)


def unsupported(place: Repository) -> tuple[str, str] | None:
    """Return (code, message) if neither git nor idumb can ever work here: format, owner or place."""
    return _format(place) or _state_folder_within(place)


def _format(place: Repository) -> tuple[str, str] | None:
    try:
        asked = ["rev-parse", "--is-bare-repository", "--is-inside-work-tree", "--show-prefix"]
        told = git_program.output(place.root, asked).splitlines()
    except errors.Refusal as refusal:
        code = next((code for word, code in _WHY if word in refusal.message), "git.unreadable")
        return code, f"{place.root} cannot be opened: {refusal.message}"
    if told[0] == b"true":
        return "git.bare", f"{place.root} is configured as bare (git config core.bare shows it)"
    settings = guarded_files.settings(place)
    if told[1] != b"true" or any(told[2:]):
        work_tree = os.path.realpath(os.path.join(place.git_dir, settings.get("core.worktree", "")))
        return "git.work-tree-elsewhere", f"core.worktree names {work_tree}, not {place.root}"
    for name, readable in (("extensions.objectformat", "sha1"), ("extensions.refstorage", "files")):
        if (present := settings.get(name, readable)) != readable:
            words = f"{place.root} uses a repository format that idumb cannot read yet: {name} is {present}"
            return "git.unsupported-format", words
    return None


def _state_folder_within(place: Repository) -> tuple[str, str] | None:
    """Return why nothing may run if idumb's own folder is among the user's files: HOME may be a repository."""
    folder = os.path.realpath(user_folders.path())
    if os.path.commonpath((folder, place.root)) != place.root:
        return None
    inside = f"./{os.path.relpath(folder, place.root)}/"  # this command does not support literal paths
    if git_program.read(place.root, ["check-ignore", "-q", inside], extra={"GIT_LITERAL_PATHSPECS": "0"}).status == 0:
        return None
    return "git.holds-state", f"{folder}, idumb's own folder, is in this working tree, and git does not ignore it"


def in_progress(place: Repository) -> tuple[str, str] | None:
    """Return (code, message) of an operation that was begun and not finished."""
    for name, code, words in _IN_PROGRESS:
        if os.path.lexists(os.path.join(place.git_dir, name)):
            return code, f"{words}; finish it first (git status says how)"
    return None


def obstacle(place: Repository) -> tuple[str, str] | None:
    """Return (code, message) of the first state in which nothing may run: of the repository, then of the index.

    Refusal `git.object-missing` or `git.head-unreadable` if HEAD cannot be read.
    """
    return unsupported(place) or in_progress(place) or _index(place)


def _index(place: Repository) -> tuple[str, str] | None:
    lock = f"{path_of(place)}.lock"
    if os.path.lexists(lock):
        return "git.index-locked", f"{lock} exists: another git command is running, or one was killed (git status)"
    objects = Objects(place)
    tree = _head_tree(objects)
    tree_objects.rows(objects, tree)  # git does not name a missing tree as clearly
    try:
        rows = _differing(place, tree)  # the index may be damaged
    except errors.Refusal as refusal:
        return refusal.code, refusal.message
    path = next((path for path, entry in rows.items() if entry == _CONFLICT), None)
    if path is None:
        return None
    return "git.unmerged", f"{path} is unmerged in the index; resolve it first (git status lists all)"


def staged(objects: Objects) -> dict[str, Entry | None]:
    """Return the index entries that differ from HEAD; None for a path that only HEAD has. Conflicts are left out.

    An announced path (`git add --intent-to-add`) has no bytes to lose.
    """
    found = _differing(objects.place, _head_tree(objects))
    return {path: entry for path, entry in found.items() if entry != _CONFLICT}


def _head_tree(objects: Objects) -> str:
    return tree_objects.tree_of(objects, head_of(objects.place))


def _differing(place: Repository, tree: str) -> Mapping[str, Entry | None]:
    """Return the index entries that differ from a tree, as `staged` does, and conflicts."""
    return _asked(place.root, tree, guarded_files.stat_key(path_of(place)))


@functools.lru_cache(maxsize=4)
def _asked(root: str, tree: str, _index: tuple[int, ...] | None) -> Mapping[str, Entry | None]:
    """Ask git once for each state of the index."""
    arguments = ["diff-index", "--cached", "--raw", "--no-renames", "--no-abbrev", "-z", tree]
    found: dict[str, Entry | None] = {}
    for letter, path, _, entry in tree_objects.raw_rows(git_program.output(root, arguments)):
        if letter == "U":
            found[path] = _CONFLICT
        elif letter != "A" or entry is None or entry.oid != _ANNOUNCED:
            found[path] = entry
    return found


def staged_tree(objects: Objects) -> str:
    """Return the tree that a commit of the index would have; "" if that is HEAD's, or the index or HEAD cannot be read.

    The index refers to the blobs, but once they are unstaged, nothing keeps them.
    """
    try:
        rows = staged(objects).items()
        if rows:
            objects.forget()
        is_kept = {path: row for path, row in rows if row is None or row.mode == SUBMODULE or row.oid in objects}
        return tree_objects.put(objects, _head_tree(objects), is_kept) if is_kept else ""
    except errors.Refusal:
        return ""


def follow(objects: Objects, before: str, after: str, own: Collection[str] = ()) -> tuple[str, ...]:
    """Give the index the entries of the tree `after` where it still has those of `before`, and for the paths `own`.

    Return the paths. Refusal `git.failed` if git could not.
    """
    changes = tree_objects.changes(objects, before, after)
    other = _differing(objects.place, before) if changes else {}
    stale = [c.path for c in changes if c.path not in other or (c.path in own and other[c.path] != c.new)]
    set_to(objects, after, stale)
    return tuple(stale)


def set_to(objects: Objects, tree: str, paths: Sequence[str]) -> None:
    """Give the index the entries of a tree for these paths. A lock that another git holds is waited for.

    Refusal `git.failed` if git could not.
    """
    if not paths:
        return
    rows = []
    for path in sorted(paths):
        entry = tree_objects.entry(objects, tree, path)
        about = "0 " + "0" * 40 if entry is None else f"{entry.mode:o} {entry.oid}"
        rows.append(about.encode("ascii") + b"\t" + os.fsencode(path) + b"\0")
    place, time = objects.place, clock.SystemClock()
    end = time.monotonic() + _PATIENCE
    while True:
        place.guard()
        result = git_program.write(place.root, arguments := ["update-index", "-z", "--index-info"], b"".join(rows))
        if result.status == 0:
            return
        if b"index.lock" not in result.err or time.monotonic() >= end:
            raise git_program.failure(arguments, result)
        time.pause(_PAUSE)


@contextlib.contextmanager
def private(place: Repository) -> Iterator[dict[str, str]]:
    """Give git an index of its own, which does not exist yet, by a variable."""
    private_folders.make(place.state_dir, root=place.common_dir)
    with tempfile.TemporaryDirectory(dir=place.state_dir, prefix="index-") as folder:
        yield {"GIT_INDEX_FILE": os.path.join(folder, "index")}


def cleaned(place: Repository, root: str, head: str | None, paths: Sequence[str]) -> dict[str, Entry]:
    """Return what git would store for these files below `root`, after filters and line endings; no missing file.

    git decides in a private index, so the user's index stays as it is.
    """
    with private(place) as index:
        variables = {"GIT_DIR": place.git_dir, "GIT_COMMON_DIR": place.common_dir, "GIT_WORK_TREE": root, **index}
        # With its old entry in the index, git keeps the line endings of a file that was committed with CRLF.
        git_program.change(root, ["read-tree", head or "--empty"], variables)
        names = b"".join(os.fsencode(path) + b"\0" for path in paths)
        arguments = ["update-index", "--add", "--remove", "--replace", "-z", "--stdin"]
        git_program.change(root, arguments, variables, names)
        listed = ["ls-files", "--stage", "-z", "--", *(paths if len(paths) <= _ON_A_LINE else ())]
        rows = (row.partition(b"\t") for row in git_program.output(root, listed, extra=variables).split(b"\0") if row)
        found = {os.fsdecode(name): about.decode("ascii").split(" ") for about, _, name in rows}
    return {path: Entry(int(found[path][0], 8), found[path][1]) for path in paths if path in found}
