"""Checks of `idumb doctor` on git: its programs, the repository's format and state, locks, refs, what would publish."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from msgspec import Struct

from idumb.domain import errors, health
from idumb.domain.health import Check, Symptom
from idumb.git import git_program, guarded_files, open_repository, status
from idumb.git.discover import Worktree
from idumb.system import process_tree
from idumb.system.atomic_write import FileBackupStore

OLDEST = (2, 36)  # before it, git ignores `core.fsync`
_REF = re.compile(rb"(?:[0-9a-f]{40}|ref: refs/[^\n]+)\n?")
SET_ASIDE = "set-aside"
_TRUE = ("", "true", "1", "yes", "on")


def program_checks() -> tuple[Check, ...]:
    return (Check("git.program", "the git program is installed and new enough", _program),)


def repository_checks(worktree: Worktree, backups: FileBackupStore, folder: str = "") -> tuple[Check, ...]:
    """`folder` is that of the project."""
    checks = _RepositoryChecks(worktree, backups, folder)
    return (
        Check("git.repository", "idumb can work in the repository", checks.repository),
        Check("git.state", "HEAD can be read, and no merge or similar operation is in progress", checks.state),
        Check("git.refs", "every ref can be read", checks.refs, checks.set_ref_aside),
        Check("git.locks", "no git lock is left over", checks.locks),
        Check("git.identity", "git knows who commits", checks.identity),
        Check("git.hooks", "hooks that run when idumb commits", checks.hooks),
        Check("git.push", "no push publishes snapshots", checks.push),
        Check("git.ignores", "git does not ignore idumb's reports", checks.ignores),
    )


def _program() -> Iterator[Symptom]:
    installed, oldest = version(git_program.version("/")), ".".join(map(str, OLDEST))
    found = f"git {'.'.join(map(str, installed))}"
    if installed < OLDEST:
        yield health.problem(f"{found} is older than {oldest}", means="idumb needs a newer one", fix="install git")
    else:
        yield health.passed(found)


def version(words: str) -> tuple[int, ...]:
    """Return the numbers of the first version in `words`: `2.39.5.windows.1` is (2, 39, 5)."""
    match = re.search(r"\d+(?:\.\d+)+", words)
    return tuple(int(number) for number in match[0].split(".")) if match else (0,)


_CHECKPOINT = ".idumb/brain/execution/1/checkpoint-T1-01.md"


class _RepositoryChecks(Struct, frozen=True):
    worktree: Worktree
    backups: FileBackupStore
    folder: str

    def repository(self) -> Iterator[Symptom]:
        try:
            open_repository.repository(self.worktree)
        except errors.Refusal as refusal:
            yield health.problem(refusal.message, means="no task can run here", fix=refusal.hint or "")
        else:
            yield health.passed(self.worktree.root)

    def state(self) -> Iterator[Symptom]:
        try:
            status.require_usable(self.worktree)
        except errors.Refusal as found:
            if found.code in {"git.object-missing", "git.head-unreadable"}:
                means = "no task starts, and git cannot determine your branch"
                yield health.problem(found.message, means=means, fix="git reflog, and git fsck")
            elif found.code not in {"git.index-locked", "git.unsupported-format", "git.ownership"}:
                yield health.problem(found.message, means=f"no task starts until then [{found.code}]", fix="git status")

    def refs(self) -> Iterator[Symptom]:
        """A power cut leaves empty ref files, and git then fails whenever it lists refs."""
        for path in _below(os.path.join(self.worktree.common_dir, "refs")):
            if path.endswith(".lock") or _REF.fullmatch(guarded_files.content(path)):
                continue
            name = os.path.relpath(path, self.worktree.common_dir)
            ours = name.startswith("refs/idumb/")
            yield health.problem(
                "it is empty or not a ref",
                name,
                means=f"git cannot list refs; {'the log' if ours else 'the reflog of git'} knows its commit",
                fix="" if ours else f"git reflog show {name.removeprefix('refs/heads/')}",
                fixes=ours,
                subject=path,
            )

    def set_ref_aside(self, symptom: Symptom) -> str:
        return f"{symptom.path} was not a ref; the file is in {self.backups.put(SET_ASIDE, symptom.subject)}"

    def locks(self) -> Iterator[Symptom]:
        for path in _locks(self.worktree):
            holder = next((pid for pid in process_tree.every_process() if process_tree.holds(pid, path)), None)
            if holder is not None:
                yield health.warn(f"process {holder} holds it", path, means="another git command is running; wait")
            else:
                yield health.problem(
                    "no visible process has it open",
                    path,
                    means="git and idumb would wait for it forever; a killed git left it",
                    fix="If idumb was killed, its next writing command removes the lock. Otherwise make sure that no"
                    " git runs in this repository, then remove the file",
                )

    def identity(self) -> Iterator[Symptom]:
        names = ("GIT_AUTHOR_IDENT", "GIT_COMMITTER_IDENT")
        results = [git_program.read(self.worktree.root, ["var", name]) for name in names]
        if any(result.status for result in results):
            found = "git knows no name and address for commits"
            fix = "git config user.name NAME; git config user.email ADDRESS"
            yield health.warn(found, means="a run that commits is refused", fix=fix)
            return
        for who in dict.fromkeys(os.fsdecode(result.out).partition(">")[0].strip() + ">" for result in results):
            yield health.passed(who)

    def hooks(self) -> Iterator[Symptom]:
        """Find a folder of hooks that is missing: git then runs none, and says nothing."""
        files = guarded_files.of_repository(self.worktree)
        chosen = files.configuration.effective.get(guarded_files.HOOKS_PATH, "")
        if chosen and not os.path.exists(os.path.join(self.worktree.root, os.path.expanduser(chosen))):
            yield health.warn(
                f"core.hooksPath is {chosen}, which does not exist",
                means="no hook runs, neither when you commit nor when idumb commits for you",
                fix="install the hooks, as with npm install; or git config --unset core.hooksPath",
            )
            return
        hooks = (*files.hooks(), *sorted(files.hooks_in_tree()))
        yield health.passed(", ".join(name.removeprefix(".git/hooks/") for name in hooks) or "none")

    def push(self) -> Iterator[Symptom]:
        for name, value in guarded_files.settings(self.worktree).items():
            is_mirror = name.endswith(".mirror") and value.lower() in _TRUE
            if name.startswith("remote.") and (is_mirror or (name.endswith(".push") and publishes(value))):
                yield health.warn(
                    f"{name} is {value or 'true'}",
                    means="a push publishes snapshots, with every untracked file in them",
                    fix=f"git config --unset {name}  (or push branches by name)",
                )

    def ignores(self) -> Iterator[Symptom]:
        """Find a rule of the user's own that ignores `.idumb/` and so its records too."""
        path = os.path.join(self.folder, _CHECKPOINT)
        arguments = ["check-ignore", "--verbose", "--no-index", "--", path]
        result = git_program.read(self.worktree.root, arguments, extra=git_program.PATTERNS)
        if result.status == 0:
            rule = os.fsdecode(result.out).partition("\t")[0]
            yield health.warn(
                f"checkpoints are ignored by {rule}",
                ".idumb/brain",
                means="a clone will not show what was done here",
                fix="remove that rule, unless you want it",
            )


def publishes(refspec: str) -> bool:
    """Return whether a push refspec includes `refs/idumb/`."""
    source = refspec.removeprefix("+").partition(":")[0]
    return source.startswith("refs/idumb") or source in {"refs/*", "*", "refs/i*"}


def _locks(worktree: Worktree) -> Iterator[str]:
    """Return every lock file of git, except those of other programs in its folder."""
    for top in dict.fromkeys((worktree.git_dir, worktree.common_dir)):
        yield from (os.path.join(top, name) for name in sorted(os.listdir(top)) if name.endswith(".lock"))
    for folder in ("refs", "logs", "objects/info", "objects/pack"):
        yield from (path for path in _below(os.path.join(worktree.common_dir, folder)) if path.endswith(".lock"))


def _below(folder: str) -> Iterator[str]:
    for here, _, names in os.walk(folder):
        yield from (os.path.join(here, name) for name in sorted(names))
