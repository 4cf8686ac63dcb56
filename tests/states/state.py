"""The state of a user's repository, and the small project that is brought into it."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.support import project as projects
from tests.support.gitrepo import GitSandbox
from tests.support.project import Project, delete, edit, shell, task, write

TOUCHED = ("app.txt", "old.txt", "out/one.txt", "out/two.txt")
"""The paths that the tasks of the plan declare, and nothing else may change."""

FILES: Mapping[str, str | bytes] = {
    ".gitignore": "*.log\nbuild/\n.secret\n",
    "app.txt": "one\ntwo\nthree\n",
    "old.txt": "old\n",
    "docs/kept.txt": "kept\n",
    "docs/deep/kept.txt": "kept too\n",
    "first.txt": "1\n2\n3\n4\n5\n6\n7\n8\n9\n",
    "second.txt": "second\n",
    "third.txt": "third\n",
    "tool.sh": "#!/bin/sh\n",
}


@dataclass(frozen=True, slots=True)
class Scene:
    """The folder of one case. `repo` is in it; `actor` runs while the second task is built, `judge` as its check.

    Both run in checkouts elsewhere, so they find the folder by `variables`.
    """

    case: Path
    repo: GitSandbox

    @property
    def variables(self) -> Mapping[str, str]:
        return {"CASE": str(self.case)}

    @property
    def outside(self) -> Path:
        place = self.case / "outside"
        place.mkdir(exist_ok=True)
        return place

    def other(self, name: str, *arguments: str) -> GitSandbox:
        """Another repository of this case, cloned from this one."""
        self.repo.git("-c", "protocol.file.allow=always", "clone", "--quiet", *arguments, str(self.case / name))
        return identified(GitSandbox(self.case / name))


def identified(repo: GitSandbox) -> GitSandbox:
    repo.git("config", "user.name", "Pat Tester")
    repo.git("config", "user.email", "pat@example.invalid")
    return repo


@dataclass(frozen=True, slots=True)
class State:
    """`make` brings the repository into the state; a sandbox that it returns is where the work is done then.

    `ends` is `runs`, `refused:CODE` (or a question, before anything is touched) or `fails:CODE` (git refuses a commit).
    `elsewhere` says that `make` gives back another sandbox, in which nothing was run.
    """

    name: str
    rows: tuple[str, ...]
    make: Callable[[Scene], GitSandbox | None]
    ends: str = "runs"
    environment: Mapping[str, str] = field(default_factory=dict)
    start: str = "."
    elsewhere: bool = False

    @property
    def code(self) -> str:
        return self.ends.partition(":")[2]


ALL: dict[str, State] = {}


def state(
    *rows: str,
    ends: str = "runs",
    environment: Mapping[str, str] | None = None,
    start: str = ".",
    elsewhere: bool = False,
) -> Callable[[Callable[[Scene], GitSandbox | None]], Callable[[Scene], GitSandbox | None]]:
    """Register a generator under its own name."""

    def register(make: Callable[[Scene], GitSandbox | None]) -> Callable[[Scene], GitSandbox | None]:
        name = make.__name__.replace("_", " ").strip()
        ALL[name] = State(name, rows, make, ends, environment or {}, start, elsewhere)
        return make

    return register


def template(place: Path) -> str:
    """The project at `place`/repo, with a plan of two tasks that is committed; the hash to consent to."""
    project = projects.create(GitSandbox.create(place / "repo"), files=FILES)
    project.repo.git("update-index", "--chmod=+x", "tool.sh")
    (project.folder / "tool.sh").chmod(0o755)
    project.repo.git("commit", "--quiet", "-m", "a tool")
    project.configure("environment: [CASE]\n")
    project.plan(
        [
            task(
                "T1-01",
                files="modify `app.txt`, create `out/one.txt`",
                check="grep -q TWO app.txt && test -s out/one.txt",
                steps=[edit("app.txt", "two", "TWO"), write("out/one.txt", "one\n")],
            ),
            task(
                "T1-02",
                files="delete `old.txt`, create `out/two.txt`",
                check='test -s out/two.txt && sh "$CASE/judge"',
                after="T1-01",
                steps=[delete("old.txt"), write("out/two.txt", "two\n"), shell('sh "$CASE/actor"')],
            ),
        ]
    )
    for name in ("actor", "judge"):
        (place / name).write_text("exit 0\n", encoding="ascii")
    return project.approval()


def copied(template_folder: Path, case: Path) -> Scene:
    shutil.copytree(template_folder, case, symlinks=True)
    return Scene(case, GitSandbox(case / "repo"))


def project(repo: GitSandbox, start: str = ".") -> Project:
    return Project(repo, repo.root / start)
