"""Find the repository around a folder by looking at files alone: no process, no pygit2, no `GIT_*` variable.

`idumb status` imports this module, so it imports nothing that costs start-up time.
"""

from __future__ import annotations

import contextlib
import os

from idumb.domain import errors
from idumb.domain.runs import project_key

TYPE_CHECKING = False  # `typing` is slow to import, and `idumb status` imports this module; type checkers know the name
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MAIN = "main"
OWN_REFS = "refs/idumb/"
_HINT = "run idumb in a folder of a git repository, or make one with: git init"


class Worktree:
    """A working tree of a repository, by absolute real paths. `name` is `main`, or git's name of a linked worktree.

    `git_dir` holds HEAD and index of this working tree; `common_dir` holds what all working trees share. `guard` is
    called before each effect on refs, branch and files; it raises if this process may no longer write. A plain class,
    because `idumb status` creates one, and typing or dataclasses would cost it more than everything else.
    """

    __slots__ = ("common_dir", "git_dir", "guard", "name", "root")
    guard: Callable[[], None]

    def __init__(self, root: str, git_dir: str, common_dir: str, name: str) -> None:
        self.root = root
        self.git_dir = git_dir
        self.common_dir = common_dir
        self.name = name
        self.guard = lambda: None  # without an owner there is nothing to lose

    @property
    def objects(self) -> str:
        """Return the folder of the repository's objects."""
        return os.path.join(self.common_dir, "objects")

    @property
    def state_dir(self) -> str:
        """Return the folder of this working tree's own idumb files."""
        return os.path.join(self.common_dir, "idumb", "worktrees", self.name)


def find(start: str = ".") -> Worktree:
    """Return the working tree that contains `start`.

    Raises Refusal `git.not-a-repository`, `git.bare`, `git.inside-git-folder`, `git.broken-link` or
    `git.unusable-path`.
    """
    here = os.path.realpath(start)
    while True:
        if os.path.lexists(os.path.join(here, ".git")):
            return at(here)
        if _is_git_dir(here, here):
            if os.path.basename(here) == ".git":
                words, hint = "is git's own folder, not a working tree", f"cd {os.path.dirname(here)}"
                raise errors.Refusal("git.inside-git-folder", f"{here} {words}", hint=hint)
            words = "is a bare repository: it has no working tree to run tasks in"
            raise errors.Refusal("git.bare", f"{here} {words}", hint="git worktree list")
        above = os.path.dirname(here)
        if above == here:
            words = f"{_shown(os.path.realpath(start))} is not in a git repository"
            raise errors.Refusal("git.not-a-repository", words, hint=_HINT)
        here = above


class Project:
    """A folder with plans and settings of its own, and the names of its state in the repository.

    `folder` is relative to the top of the working tree, and "" at the top. `key` names the state of the project in
    this working tree: runs, refs, reports. At the top it is the working tree's own name.
    """

    __slots__ = ("folder", "key", "worktree")

    def __init__(self, worktree: Worktree, folder: str = "") -> None:
        self.worktree = worktree
        self.folder = folder
        self.key = project_key.of_project(worktree.name, folder)

    @property
    def root(self) -> str:
        """Return the absolute path of the project's folder."""
        return os.path.join(self.worktree.root, self.folder) if self.folder else self.worktree.root

    @property
    def state_dir(self) -> str:
        """Return the folder of the project's own idumb files in this working tree."""
        return os.path.join(self.worktree.common_dir, "idumb", "worktrees", self.key)


CONFIGURATION, PLANS = ".idumb/config.yaml", ".planning"


def find_project(start: str, worktree: Worktree) -> Project:
    """Return the project of the folder `start`: of those that are set up, the outermost.

    If none is set up, that is the outermost folder with plans, and without any, the top. Outermost, so that a folder
    of examples with plans never hides the project around it.
    """
    folders = list(_between(start, worktree.root))
    for name in (CONFIGURATION, PLANS):
        for folder in folders:
            if os.path.lexists(os.path.join(worktree.root, folder, name)):
                return Project(worktree, folder)
    return Project(worktree)


def unused_project(start: str, project: Project) -> str | None:
    """Return the outermost folder below the project's, at or above `start`, with plans or settings of its own.

    They are not used. The path is relative to the top of the repository; None if there is no such folder.
    """
    for folder in _between(start, project.worktree.root):
        if len(folder) > len(project.folder) and any(
            os.path.lexists(os.path.join(project.worktree.root, folder, name))
            for name in (CONFIGURATION, ".planning/phases")
        ):
            return folder
    return None


def _between(start: str, root: str) -> Iterator[str]:
    """Yield the folders from the top of a working tree down to `start`, relative to the top."""
    yield ""
    here, inside = os.path.realpath(start), root.rstrip("/") + "/"
    if not here.startswith(inside):
        return
    folder = ""
    for name in here[len(inside) :].split("/"):
        folder = f"{folder}/{name}" if folder else name
        yield folder


def refs_in(worktree: Worktree, folder: str) -> dict[str, str]:
    """Return the refs in a folder such as `refs/tags/`, loose and packed, with their content. Raises OSError.

    libgit2 would read them one by one, and some repositories have thousands.
    """
    loose: dict[str, str] = {}
    common_dir = worktree.common_dir
    top = os.path.join(common_dir, folder)
    # Loose refs first: one that git packs meanwhile is then seen in at least one place.
    for here, _, names in os.walk(top):
        for name in names:
            with contextlib.suppress(FileNotFoundError), open(f"{here}/{name}", "rb") as stream:
                if not name.endswith(".lock"):
                    ref = os.path.relpath(f"{here}/{name}", common_dir)
                    loose[ref] = os.fsdecode(stream.read().strip().removeprefix(b"ref: "))
    packed, wanted = dict[str, str](), os.fsencode(folder)
    with contextlib.suppress(FileNotFoundError), open(os.path.join(common_dir, "packed-refs"), "rb") as stream:
        for line in stream:
            target, _, ref_name = line.rstrip(b"\n").partition(b" ")
            if ref_name.startswith(wanted):
                packed[os.fsdecode(ref_name)] = target.decode("ascii")
    return packed | loose


def at(root: str) -> Worktree:
    """Return the working tree whose top is `root`, which has a `.git` folder or file."""
    git_dir = os.path.realpath(_target(os.path.join(root, ".git")))
    try:
        with open(os.path.join(git_dir, "commondir"), "rb") as stream:
            common_dir = os.path.realpath(os.path.join(git_dir, os.fsdecode(stream.read(8192).rstrip(b"\r\n"))))
    except FileNotFoundError:
        common_dir = git_dir
    if not _is_git_dir(git_dir, common_dir):
        raise errors.Refusal("git.not-a-repository", f"{git_dir} is no git folder: no HEAD or objects", hint=_HINT)
    for folder in (root, git_dir, common_dir):
        if (odd := _shown(folder)) != folder:  # no list of object folders and no text in the log can hold it
            words = "has a folder name with a line break, or with bytes that are not UTF-8: idumb cannot work there"
            hint = "rename that folder, or move the repository to another one"
            raise errors.Refusal("git.unusable-path", f"{odd} {words}", hint=hint)
    name = MAIN if git_dir == common_dir else os.path.basename(git_dir)
    # A linked worktree may be called `main` too.
    return Worktree(root, git_dir, common_dir, f"{MAIN}-linked" if name == MAIN and git_dir != common_dir else name)


def _shown(path: str) -> str:
    text = os.fsencode(path).decode("utf-8", "backslashreplace")
    return text.replace("\n", "\\n").replace("\r", "\\r")


def _target(dot_git: str) -> str:
    """Return the git folder that `.git` is, or to which this file leads."""
    if os.path.isdir(dot_git):
        return dot_git
    first = b""
    with contextlib.suppress(OSError):
        if os.path.isfile(dot_git):  # a pipe would block
            with open(dot_git, "rb") as stream:
                first = stream.read(8192)
    target = os.path.join(os.path.dirname(dot_git), os.fsdecode(first.removeprefix(b"gitdir:").strip(b" \r\n")))
    if not first.startswith(b"gitdir:") or not os.path.isdir(target):
        hint = "git worktree repair repairs links of working trees; git submodule status shows those of submodules"
        raise errors.Refusal("git.broken-link", f"{dot_git} does not lead to a git folder", hint=hint)
    return target


def _is_git_dir(folder: str, shared: str) -> bool:
    has_head = os.path.lexists(os.path.join(folder, "HEAD"))
    return has_head and all(os.path.isdir(os.path.join(shared, name)) for name in ("objects", "refs"))
