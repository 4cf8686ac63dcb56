"""Checks of `idumb doctor` on git: its programs, the repository's format and state, locks, refs, what would publish."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import stat
from collections.abc import Iterator

from idumb import lazy_pattern
from idumb.domain import errors, health
from idumb.domain.health import Check, Symptom
from idumb.git import git_program, guarded_files, open_repository
from idumb.git.discover import Repository
from idumb.lazy_dataclass import dataclass
from idumb.system.files.backup_store import FileBackupStore

OLDEST = (2, 31)
# First release of each line with the fixes for CVE-2025-48384 (submodule paths with a carriage return) and
# CVE-2024-32002 (links in submodules); later lines have both.
FIXED = ((2, 43, 7), (2, 44, 4), (2, 45, 4), (2, 46, 4), (2, 47, 3), (2, 48, 2), (2, 49, 1), (2, 50, 1))
# CVE-2024-24575 and CVE-2024-24577: a crafted revision or path could hang or overwrite memory.
FIXED_LIBRARY = ((1, 6, 5), (1, 7, 2))
_REF = lazy_pattern.compile(rb"(?:[0-9a-f]{40}|ref: refs/[^\n]+)\n?")
_RUN_BY_GIT = lazy_pattern.compile(
    r"filter\..*\.(clean|smudge|process)|diff\.external|diff\..*\.(command|textconv)|merge\..*\.driver"
    r"|gpg\.(.*\.)?program|core\.(fsmonitor|sshcommand|editor|pager)|credential\.(.*\.)?helper"
)
SET_ASIDE = "set-aside"


def program_checks() -> tuple[Check, ...]:
    return (
        Check("git.program", "the git program is installed and has its security fixes", _program),
        Check("git.library", "libgit2 has its security fixes", _library),
    )


def repository_checks(place: Repository, backups: FileBackupStore, folder: str = "") -> tuple[Check, ...]:
    """`folder` is that of the project."""
    checks = _RepositoryChecks(place, backups, folder)
    return (
        Check("git.repository", "idumb can work in the repository", checks.repository),
        Check("git.format", "idumb can read the repository's format", checks.format),
        Check("git.state", "no merge or similar operation is in progress", checks.state),
        Check("git.head", "HEAD names an existing commit", checks.head),
        Check("git.refs", "every ref can be read", checks.refs, checks.set_ref_aside),
        Check("git.locks", "no git lock is left over", checks.locks),
        Check("git.identity", "git knows who commits", checks.identity),
        Check("git.hooks", "hooks that run when idumb commits", checks.hooks),
        Check("git.programs", "git runs no program of the working tree", checks.programs),
        Check("git.push", "no push publishes snapshots", checks.push),
        Check("git.nested", "the repository is not inside another one", checks.nested),
        Check("git.ignores", "git does not ignore idumb's reports", checks.ignores),
        Check("git.objects", "no unfinished objects are left", checks.objects),
    )


def _program() -> Iterator[Symptom]:
    words = git_program.output("/", ["version"]).decode("ascii", "replace")
    installed = version(words)
    if installed < OLDEST:
        yield health.problem(
            f"git {dotted(installed)} is older than {dotted(OLDEST)}",
            means="idumb needs a newer one",
            mend="install git",
        )
    elif not has_fix(installed, FIXED):
        yield health.warn(
            f"git {dotted(installed)} may lack the fixes for CVE-2025-48384 and CVE-2024-32002",
            means="idumb never fetches submodules, but your own git could; distributions may have fixed it",
            mend="install the newest git of your distribution",
        )
    else:
        yield health.passed(f"git {dotted(installed)}")


def _library() -> Iterator[Symptom]:
    import pygit2

    installed = version(pygit2.LIBGIT2_VERSION)
    if not has_fix(installed, FIXED_LIBRARY):
        yield health.warn(
            f"libgit2 {dotted(installed)} lacks the fixes for CVE-2024-24575 and CVE-2024-24577",
            means="a crafted repository could hang it or do harm",
            mend="install a newer pygit2",
        )
    else:
        yield health.passed(f"libgit2 {dotted(installed)}")


def version(words: str) -> tuple[int, ...]:
    """Return the numbers of the first version in `words`: `git version 2.39.5 (Apple Git-154)` is (2, 39, 5)."""
    match = re.search(r"\d+(?:\.\d+)+", words)
    return tuple(int(number) for number in match[0].split(".")) if match else (0,)


def has_fix(installed: tuple[int, ...], fixed: tuple[tuple[int, ...], ...]) -> bool:
    """Return whether a version is at or after the fix of its own release line; later lines have it."""
    line = next((fix for fix in fixed if fix[:2] == installed[:2]), None)
    return installed >= line if line is not None else installed > fixed[-1]


def dotted(numbers: tuple[int, ...]) -> str:
    return ".".join(map(str, numbers))


_CHECKPOINT = ".idumb/brain/execution/1/checkpoint-T1-01.md"


@dataclass(frozen=True, slots=True)
class _RepositoryChecks:
    place: Repository
    backups: FileBackupStore
    folder: str

    def repository(self) -> Iterator[Symptom]:
        try:
            open_repository.repository(self.place)
        except errors.Refusal as refusal:
            yield health.problem(refusal.message, means="no task can run here", mend=refusal.hint or "")
        else:
            yield health.passed(self.place.root)

    def format(self) -> Iterator[Symptom]:
        """Read the configuration alone, so that the check also works for repositories that libgit2 does not open."""
        settings = self._settings()
        supported = {"extensions.objectformat": "sha1", "extensions.refstorage": "files"}
        for name, value in supported.items():
            if settings.get(name, value).lower() != value:
                yield health.problem(
                    f"{name} is {settings[name]}",
                    means="idumb cannot read such a repository yet",
                    mend=f"git config {name}  (it cannot be changed in place: clone into a new repository)",
                )
        if "extensions.partialclone" in settings or any(name.endswith(".promisor") for name in settings):
            yield health.warn(
                "it is a partial clone",
                means="absent objects count as missing, because idumb never fetches",
                mend="git fetch --refetch  (completes it if no filter is configured)",
            )
        if os.path.exists(os.path.join(self.place.common_dir, "shallow")):
            yield health.warn("it is a shallow clone", means="the older history is missing")

    def _settings(self) -> dict[str, str]:
        """Return the repository's own configuration as git reads it; names in lower case, the last value counts."""
        # By file name, because git refuses everything else in a repository whose format it does not know.
        path = os.path.join(self.place.common_dir, "config")
        listed = git_program.read("/", ["config", "--file", path, "--no-includes", "--null", "--list"]).out
        rows = (os.fsdecode(row).partition("\n") for row in listed.split(b"\0") if row)
        return {name.lower(): value for name, _, value in rows}

    def state(self) -> Iterator[Symptom]:
        obstacle = open_repository.obstacle(self.place)
        if obstacle is not None and obstacle[0] not in {"git.index-locked", "git.unsupported-format", "git.ownership"}:
            yield health.problem(obstacle[1], means=f"no task starts until then [{obstacle[0]}]", mend="git status")

    def head(self) -> Iterator[Symptom]:
        result = git_program.read(self.place.root, ["rev-parse", "--verify", "--quiet", "HEAD^{commit}"])
        if result.status == 0:
            yield health.passed(f"HEAD is {result.out.decode('ascii', 'replace').strip()[:12]}")
            return
        name = git_program.read(self.place.root, ["symbolic-ref", "--quiet", "HEAD"])
        branch = os.fsdecode(name.out.strip())
        path = os.path.join(self.place.common_dir, branch)
        if name.status == 0 and not os.path.lexists(path):
            yield health.passed(f"{branch.removeprefix('refs/heads/')} has no commit yet")
            return
        yield health.problem(
            "HEAD names a commit that does not exist",
            path if name.status == 0 else os.path.join(self.place.git_dir, "HEAD"),
            means="git cannot determine your branch",
            mend="git reflog, and git fsck",
        )

    def refs(self) -> Iterator[Symptom]:
        """A power cut leaves empty ref files, and git then fails whenever it lists refs."""
        for path in _loose_refs(self.place):
            if _readable(path):
                continue
            name = os.path.relpath(path, self.place.common_dir)
            ours = name.startswith("refs/idumb/")
            yield health.problem(
                "it is empty or not a ref",
                name,
                means="git cannot list refs; "
                + ("the log knows its commit" if ours else "git's reflog knows its commit"),
                mend="" if ours else f"git reflog show {name.removeprefix('refs/heads/')}",
                fixes=ours,
                subject=path,
            )

    def set_ref_aside(self, symptom: Symptom) -> str:
        return f"{symptom.path} was not a ref; the file is in {self.backups.put(SET_ASIDE, symptom.subject)}"

    def locks(self) -> Iterator[Symptom]:
        for path in _locks(self.place):
            age = _age(path)
            holder = _holder(path)
            if holder is not None:
                yield health.warn(f"process {holder} holds it", path, means="another git command is running; wait")
            else:
                yield health.problem(
                    f"it is {age} old and no visible process has it open",
                    path,
                    means="git and idumb would wait for it forever; a killed git left it",
                    mend="If idumb was killed, its next writing command removes the lock. Otherwise make sure that no"
                    " git runs in this repository, then remove the file",
                )

    def identity(self) -> Iterator[Symptom]:
        for variable in ("GIT_AUTHOR_IDENT", "GIT_COMMITTER_IDENT"):
            result = git_program.read(self.place.root, ["var", variable])
            if result.status != 0:
                yield health.warn(
                    "git knows no name and address for commits",
                    means="a run that commits is refused",
                    mend="git config user.name NAME; git config user.email ADDRESS",
                )
                return
            yield health.passed(os.fsdecode(result.out).partition(">")[0].strip() + ">")

    def hooks(self) -> Iterator[Symptom]:
        files = guarded_files.of_repository(self.place)
        hooks = [name.removeprefix(".git/hooks/") for name in files.hooks()]
        folders = {
            (value, file)
            for file, rows in files.settings.items()
            for key, value in rows
            if key == guarded_files.HOOKS_PATH
        }
        for folder, file in sorted(folders):
            yield health.warn(
                f"core.hooksPath is {folder}",
                file,
                means="hooks of that folder run when idumb commits for you",
                mend="set git.hooks to false in .idumb/config.yaml to skip them",
            )
        yield health.passed(", ".join(hooks) or "none")

    def programs(self) -> Iterator[Symptom]:
        files = guarded_files.of_repository(self.place)
        files.hooks()
        rows = sorted((key, value, file) for file, settings in files.settings.items() for key, value in settings)
        for key, value, file in rows:
            program = self._program_in_tree(value) if _RUN_BY_GIT.fullmatch(key) else None
            if program is not None:
                yield health.warn(
                    f"{key} runs {program}",
                    file,
                    means="idumb does not guard that file: an agent that changes it decides what git runs",
                    mend=f"move {program} out of the working tree",
                )

    def _program_in_tree(self, command: str) -> str | None:
        """Return the file of the working tree that a command of git's configuration names, if there is one."""
        try:
            words = shlex.split(command)
        except ValueError:
            words = command.split()
        top = self.place.root + os.sep
        places = (os.path.normpath(os.path.join(top, os.path.expanduser(word))) for word in words)
        return next((place[len(top) :] for place in places if place.startswith(top) and os.path.isfile(place)), None)

    def push(self) -> Iterator[Symptom]:
        for name, value in self._settings().items():
            mirrors = (
                name.startswith("remote.") and name.endswith(".mirror") and value.lower() in {"", "true", "1", "yes"}
            )
            wide = name.startswith("remote.") and name.endswith(".push") and publishes(value)
            if mirrors or wide:
                yield health.warn(
                    f"{name} is {value or 'true'}",
                    means="a push publishes snapshots, with every untracked file in them",
                    mend=f"git config --unset {name}  (or push branches by name)",
                )

    def nested(self) -> Iterator[Symptom]:
        above = _repository_above(self.place.root)
        if above is not None:
            yield health.warn(f"it is inside the working tree of {above}", means="idumb works in the inner one")
        if self.place.git_dir != self.place.common_dir:
            yield health.passed(f"a linked work tree, {self.place.worktree_id}")

    def ignores(self) -> Iterator[Symptom]:
        """Find a rule of the user's own that ignores `.idumb/` and so its records too."""
        path = f"{self.folder}/{_CHECKPOINT}" if self.folder else _CHECKPOINT
        # This command does not support literal paths; the given path has no special characters.
        literal = {"GIT_LITERAL_PATHSPECS": "0"}
        result = git_program.read(
            self.place.root, ["check-ignore", "--verbose", "--no-index", "--", path], extra=literal
        )
        if result.status == 0:
            rule = os.fsdecode(result.out).partition("\t")[0]
            yield health.warn(
                f"checkpoints are ignored by {rule}",
                ".idumb/brain",
                means="a clone will not show what was done here",
                mend="remove that rule, unless you want it",
            )

    def objects(self) -> Iterator[Symptom]:
        unfinished = list(_half_objects(self.place))
        if unfinished:
            size = sum(length for _, length in unfinished)
            yield health.warn(
                f"{len(unfinished)} unfinished objects, {size / (1 << 20):.1f} MiB",
                os.path.dirname(unfinished[0][0]),
                means="a killed git or idumb left them; nothing needs them",
                mend="git gc  (removes them once they are old enough)",
            )


def publishes(refspec: str) -> bool:
    """Return whether a push refspec includes `refs/idumb/`."""
    source = refspec.removeprefix("+").partition(":")[0]
    return source.startswith("refs/idumb") or source in {"refs/*", "*", "refs/i*"}


def _loose_refs(place: Repository) -> Iterator[str]:
    for here, _, names in os.walk(os.path.join(place.common_dir, "refs")):
        yield from (os.path.join(here, name) for name in sorted(names) if not name.endswith(".lock"))


def _readable(path: str) -> bool:
    try:
        with open(path, "rb") as stream:
            return _REF.fullmatch(stream.read(4096)) is not None
    except OSError:
        return False


def _locks(place: Repository) -> Iterator[str]:
    """Return every lock file of git, except those of other programs in its folder."""
    own = os.path.join(place.common_dir, "idumb")
    tops = dict.fromkeys((place.git_dir, place.common_dir))
    for top in tops:
        for name in sorted(os.listdir(top)):
            if name.endswith(".lock"):
                yield os.path.join(top, name)
    for below in ("refs", "logs", "objects/info", "objects/pack"):
        for here, _, names in os.walk(os.path.join(place.common_dir, below)):
            if not here.startswith(own):
                yield from (os.path.join(here, name) for name in sorted(names) if name.endswith(".lock"))


def _age(path: str) -> str:
    from idumb.system import clock

    seconds = max(0.0, clock.nanoseconds() / 1e9 - os.lstat(path).st_mtime)
    units = ((86400.0, "days"), (3600.0, "hours"), (60.0, "minutes"))
    return next(
        (f"{seconds / size:.0f} {name}" for size, name in units if seconds >= 2 * size), f"{seconds:.0f} seconds"
    )


def _holder(path: str) -> int | None:
    """Return a process that has the file open; None if there is none, or the system does not show it."""
    status = os.lstat(path)
    try:
        pids = [name for name in os.listdir("/proc") if name.isdecimal()]
    except OSError:
        return None
    for pid in pids:
        if any((file.st_dev, file.st_ino) == (status.st_dev, status.st_ino) for file in _open_files(pid)):
            return int(pid)
    return None


def _open_files(pid: str) -> Iterator[os.stat_result]:
    with contextlib.suppress(OSError):
        for name in os.listdir(f"/proc/{pid}/fd"):
            with contextlib.suppress(OSError):
                yield os.stat(f"/proc/{pid}/fd/{name}")


def _repository_above(root: str) -> str | None:
    folder = os.path.dirname(root)
    while True:
        if os.path.lexists(os.path.join(folder, ".git")):
            return folder
        above = os.path.dirname(folder)
        if above == folder:
            return None
        folder = above


def _half_objects(place: Repository) -> Iterator[tuple[str, int]]:
    """Return temporary objects of git and libgit2 that are at least an hour old: younger ones may be in use."""
    from idumb.system import clock

    now = clock.nanoseconds() / 1e9
    for here, _, names in os.walk(os.path.join(place.common_dir, "objects")):
        for name in names:
            if name.startswith(("tmp_obj_", "tmp_pack_", "tmp_idx_", "tmp_object_git2_")):
                path = os.path.join(here, name)
                try:
                    status = os.lstat(path)
                except OSError:
                    continue
                if stat.S_ISREG(status.st_mode) and now - status.st_mtime >= 3600:
                    yield path, status.st_size
