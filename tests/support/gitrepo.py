"""Real git repositories for tests: built in a few calls, compared byte by byte."""

from __future__ import annotations

import functools
import hashlib
import os
import re
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Entry:
    """One path of a working tree. `digest` is of a file's bytes, `target` of a link; a folder has neither."""

    type: str  # file | link | folder | other
    mode: int
    digest: str = ""
    target: str = ""


@dataclass(frozen=True, slots=True)
class ByteLedger:
    """Everything that idumb could harm: the working tree with untracked and ignored files, and git's own data.

    `index` is the SHA-256 of the index file ("" if there is none), `refs` omits those under `refs/idumb/`, `config` is
    the text of the repository's configuration.
    """

    entries: Mapping[str, Entry]
    index: str
    refs: Mapping[str, str]
    head: str
    config: str

    def changed_paths(self, other: ByteLedger) -> list[str]:
        """Paths that differ, are new, or are gone in `other`, sorted."""
        paths = self.entries.keys() | other.entries.keys()
        return sorted(path for path in paths if self.entries.get(path) != other.entries.get(path))


# Without the two processes that see after each commit whether there is enough to pack.
QUICK_COMMIT = ("-c", "maintenance.auto=false", "commit")


@dataclass(frozen=True, slots=True)
class GitSandbox:
    """A repository in a temporary folder. Git's own program does all the work; `idumb` is not involved.

    Git creates the first repository of a kind, and the others are byte for byte copies of it.
    """

    root: Path
    environment: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def create(cls, root: Path, *, branch: str = "main", options: tuple[str, ...] = ()) -> GitSandbox:
        """Make a repository without commits and without sample hooks, with an identity in its own configuration."""
        root.mkdir(parents=True, exist_ok=True)
        sandbox = cls(root)
        if options or user_configured_git() or os.path.lexists(root / ".git"):
            sandbox._initialize(branch, options)
            return sandbox
        folders, files = _new_git_dir(branch)
        for folder in folders:
            (root / folder).mkdir()
        for path, content in files:
            (root / path).write_bytes(content)
        return sandbox

    def _initialize(self, branch: str, options: tuple[str, ...] = ()) -> None:
        self.git("init", "--quiet", "--template=", f"--initial-branch={branch}", *options)
        self.git("config", "user.name", "Pat Tester")
        self.git("config", "user.email", "pat@example.invalid")

    @property
    def git_dir(self) -> Path:
        """Where HEAD and index are: of this worktree alone."""
        if self._is_plain:
            return (self.root / ".git").resolve()
        return (self.root / self.git("rev-parse", "--git-dir")).resolve()

    @property
    def _is_plain(self) -> bool:
        """True if `.git` is a folder with all that git keeps: git's program need not say where that is."""
        place = self.root / ".git"
        return not self.environment and (place / "HEAD").is_file() and not (place / "commondir").exists()

    @property
    def clones(self) -> Path:
        """Where idumb makes checkouts of it."""
        from idumb.system import user_folders

        return Path(user_folders.checkouts()[0], user_folders.repository_id(str(self.common_dir))[:16])

    @property
    def common_dir(self) -> Path:
        """Where objects, refs and configuration are: of all worktrees together."""
        if self._is_plain:
            return (self.root / ".git").resolve()
        return (self.root / self.git("rev-parse", "--git-common-dir")).resolve()

    def git(self, *arguments: str, given: bytes | None = None) -> str:
        """Run git in the working tree and return its output without the last newline; assert that it succeeds."""
        result = self.try_git(*arguments, given=given)
        if result.returncode != 0:
            message = f"git {' '.join(arguments)} exits {result.returncode}: {result.stderr.decode(errors='replace')}"
            raise AssertionError(message)
        return result.stdout.decode("utf-8", "surrogateescape").removesuffix("\n")

    def try_git(self, *arguments: str, given: bytes | None = None) -> subprocess.CompletedProcess[bytes]:
        """Run git like `git`, for a command whose failure is under test."""
        return subprocess.run(
            ["git", *arguments],
            cwd=self.root,
            env={**os.environ, "LC_ALL": "C", **self.environment},
            input=given if given is not None else b"",
            capture_output=True,
            check=False,
            timeout=60,
        )

    def write(self, path: str, content: str | bytes = "", *, mode: int | None = None) -> Path:
        """Write one file, with the folders above it."""
        place = self.root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content.encode() if isinstance(content, str) else content)
        if mode is not None:
            place.chmod(mode)
        return place

    def write_all(self, files: Mapping[str, str | bytes]) -> None:
        for path, content in files.items():
            self.write(path, content)

    def change(self, files: Mapping[str, str | bytes | None]) -> None:
        """Write these files, and remove those that are None."""
        for path, content in files.items():
            if content is None:
                self.remove(path)
            else:
                self.write(path, content)

    def link(self, path: str, target: str) -> Path:
        place = self.root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.symlink_to(target)
        return place

    def remove(self, path: str) -> None:
        place = self.root / path
        if place.is_dir() and not place.is_symlink():
            shutil.rmtree(place)
        else:
            place.unlink()

    def read(self, path: str) -> str:
        return (self.root / path).read_bytes().decode()

    def commit(self, message: str = "work", *paths: str) -> str:
        """Commit `paths`, or all that is not ignored, and give the commit's id."""
        self.git("add", "--all", "--", *(paths or (".",)))
        self.git(*QUICK_COMMIT, "--quiet", "--allow-empty", "-m", message)
        return self.head()

    def commit_with(self, files: Mapping[str, str | bytes], message: str = "work", *paths: str) -> str:
        """Write these files, then commit as `commit` does."""
        self.write_all(files)
        return self.commit(message, *paths)

    def add_submodule(
        self, path: str, files: Mapping[str, str | bytes] | None = None, source: GitSandbox | None = None
    ) -> GitSandbox:
        """Add a submodule of `source`, or of a new repository with these files; return that repository."""
        if source is None:
            source = GitSandbox.create(self.root.with_name(f"from-{path.replace('/', '-')}"))
            source.commit_with(files or {"f": "1"})
        self.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(source.root), path)
        return source

    def head(self) -> str:
        """The commit of HEAD; "" before the first one."""
        return self._loose_head() or self.try_git("rev-parse", "--verify", "--quiet", "HEAD").stdout.decode().strip()

    def _loose_head(self) -> str:
        """Read HEAD and its branch where both are plain files, which costs no program; else ""."""
        if not self._is_plain:
            return ""
        head = (self.root / ".git/HEAD").read_text(encoding="utf-8").strip()
        branch = self.root / ".git" / head.removeprefix("ref: ")
        found = branch.read_text(encoding="utf-8").strip() if branch.is_file() else head
        return found if re.fullmatch("[0-9a-f]{40}", found) else ""

    def object_file(self, oid: str) -> Path:
        """Return the file of an object that is in no pack, and let it be changed."""
        place = self.common_dir / "objects" / oid[:2] / oid[2:]
        if place.exists():
            place.chmod(0o600)
        return place

    def tree(self, revision: str = "HEAD") -> dict[str, tuple[str, str]]:
        """Path to (mode, object id) of all files in a commit or tree."""
        listing = self.git("ls-tree", "-r", "-z", revision)
        rows = (row.split("\t", 1) for row in listing.split("\0") if row)
        return {path: (meta.split()[0], meta.split()[2]) for meta, path in rows}

    def refs(self, prefix: str = "refs/") -> dict[str, str]:
        rows = self.git("for-each-ref", "--format=%(refname) %(objectname)", prefix).splitlines()
        return dict(row.split(" ", 1) for row in rows)

    def kept(self, prefix: str = "refs/idumb/") -> dict[str, str]:
        """Return what idumb keeps by name: its refs, and the rows of the trees of finished runs."""
        found = self.refs("refs/idumb/")
        for ref in [ref for ref in found if re.fullmatch("refs/idumb/worktrees/[^/]+/done/[^/]+", ref)]:
            for row in filter(None, self.git("ls-tree", "-z", found.pop(ref)).split("\0")):
                about, name = row.split("\t", 1)
                found.setdefault(f"{ref.replace('/done/', '/runs/')}/{name.replace(':', '/')}", about.split()[2])
        return {name: oid for name, oid in found.items() if name.startswith(prefix)}

    def status(self) -> list[str]:
        """The lines of `git status --porcelain`, untracked files one by one."""
        return self.git("status", "--porcelain", "--untracked-files=all").splitlines()

    def ledger(self) -> ByteLedger:
        """Record every byte that belongs to the user, without asking git to refresh its index."""
        git_dir = self.git_dir
        index = git_dir / "index"
        return ByteLedger(
            entries=work_tree(self.root),
            index=_digest(index) if index.exists() else "",
            refs={name: oid for name, oid in self.refs().items() if not name.startswith("refs/idumb/")},
            head=(git_dir / "HEAD").read_text(encoding="utf-8"),
            config=(self.common_dir / "config").read_text(encoding="utf-8"),
        )


def user_configured_git() -> bool:
    """True if the user's configuration of git has content, which a repository as git creates it may depend on."""
    places = (("GIT_CONFIG_GLOBAL", ""), ("HOME", ".gitconfig"), ("XDG_CONFIG_HOME", "git/config"))
    configured = [os.path.join(os.environ.get(name, "/"), below).rstrip("/") for name, below in places]
    return any(os.path.isfile(path) and os.path.getsize(path) for path in configured)


@functools.cache
def _new_git_dir(branch: str) -> tuple[list[Path], list[tuple[Path, bytes]]]:
    """Return the folders, parents first, and the files of a repository that git has just created."""
    with tempfile.TemporaryDirectory(prefix="idumb-tests-") as folder:
        GitSandbox(Path(folder))._initialize(branch)
        places = sorted(Path(folder).rglob("*"))
        files = [(place.relative_to(folder), place.read_bytes()) for place in places if place.is_file()]
        return [place.relative_to(folder) for place in places if place.is_dir()], files


def work_tree(root: Path) -> dict[str, Entry]:
    """Every path below `root` except `.git`, relative, with `/`; links are not followed."""
    entries: dict[str, Entry] = {}
    for folder, folders, files in os.walk(root):
        if Path(folder) == root and ".git" in folders:
            folders.remove(".git")
        for name in (*folders, *files):
            place = Path(folder, name)
            entries[place.relative_to(root).as_posix()] = _entry(place)
    entries.pop(".git", None)  # a linked worktree has a file of that name
    return entries


def _entry(place: Path) -> Entry:
    status = place.lstat()
    mode = stat.S_IMODE(status.st_mode)
    if stat.S_ISLNK(status.st_mode):
        return Entry("link", 0, target=str(place.readlink()))
    if stat.S_ISDIR(status.st_mode):
        return Entry("folder", mode)
    if stat.S_ISREG(status.st_mode):
        return Entry("file", mode, digest=_digest(place))
    return Entry("other", mode)


_READ = 1 << 30


def _digest(place: Path) -> str:
    """Of the bytes; a file of more than a gigabyte is not read, and whoever writes into it changes its time."""
    status = place.stat()
    if status.st_size > _READ:
        return f"{status.st_size} {status.st_mtime_ns}"
    return hashlib.sha256(place.read_bytes()).hexdigest()
