"""A project, an executor that dies at a chosen point, what must hold afterwards."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from idumb.store.event_log import SqliteEventLog
from idumb.system.clock import SystemClock
from tests.support import project as projects
from tests.support.gitrepo import Entry, GitSandbox, work_tree
from tests.support.project import Answer, Project, delete, making, shell, task

KILLING = Path(__file__).with_name("killing.py")
KILLED = -9

# The first try forgets what the check wants; every try appends, so that one made twice shows.
BUILDER = """\
import os, sys
told = "IDUMB_FEEDBACK_FILE" in os.environ
with open("list.txt", "w" if told else "a") as file:
    file.write("good\\n" if told else "bad\\n")
"""
CONFIG = "bindings:\n  builder:\n    adapter: command\n    argv: [python3, tools/builder.py]\n"


@dataclass(frozen=True, slots=True)
class Bytes:
    """What a run leaves of the project and of the user's own."""

    files: dict[str, Entry]
    committed: dict[str, tuple[str, str]]
    staged: str
    status: list[str]


def template(place: Path) -> tuple[Path, str]:
    """A project with a plan of four tasks, one retry, one deletion, and work of the user's; the hash to consent to."""
    repo = GitSandbox.create(place)
    files = {"old.txt": "old\n", "staged.txt": "one\n", "dirty.txt": "one\n", "tools/builder.py": BUILDER}
    project = projects.create(repo, files=files)
    project.configure(CONFIG)
    project.plan(
        [
            making("T1-01", "sub/a.txt", "made\n"),
            task(
                "T1-02",
                files="create `list.txt`",
                check='test "$(cat list.txt)" = good',
                after="T1-01",
                fields="- **Builder:** builder\n",
            ),
            task(
                "T1-03", files="delete `old.txt`", check="! test -e old.txt", after="T1-02", steps=[delete("old.txt")]
            ),
            task(
                "T1-04",
                files="modify `sub/a.txt`",
                check='test "$(wc -l < sub/a.txt)" -eq 2',
                after="T1-03",
                steps=[shell("echo more >> sub/a.txt")],
            ),
        ]
    )
    repo.write("staged.txt", "two\n")
    repo.git("add", "staged.txt")
    repo.write("staged.txt", "three\n")
    repo.write("dirty.txt", "two\n")
    repo.write("mine.txt", "never committed\n")
    return place, project.approval()


def copy(place: Path, to: Path) -> Project:
    shutil.copytree(place, to, symlinks=True)
    return Project(GitSandbox(to), to)


def run(project: Project, *arguments: str, at: int | None = None, count: Path | None = None, plant: str = "") -> Answer:
    """One command line, killed at a point if one is chosen; with `--json`."""
    choice = {"at": at, "count": str(count) if count else None, "plant": plant or None}
    argv = [sys.executable, str(KILLING), json.dumps(choice), *arguments, "--json"]
    done = subprocess.run(
        argv,
        cwd=project.start,
        env={**os.environ, "PYTHONPATH": str(KILLING.parents[2])},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    return Answer(done.returncode, done.stdout, done.stderr)


def go_on(project: Project, consent: str, *, at: int | None = None, plant: str = "") -> Answer:
    """`resume` as a user would; or `execute-phase` again where the run had not begun."""
    answer = run(project, "resume", "1", "--approve", consent, at=at, plant=plant)
    if answer.code == 4 and answer.error["code"] == "run.none":
        answer = run(project, "execute-phase", "1", "--approve", consent, at=at, plant=plant)
    return answer


def points(project: Project, consent: str, tmp_path: Path) -> list[str]:
    """Names of all points of an undisturbed run, which is made here."""
    count = tmp_path / "points"
    answer = run(project, "execute-phase", "1", "--approve", consent, count=count)
    assert answer.code == 0, answer
    return count.read_text(encoding="utf-8").splitlines()


def present(project: Project) -> Bytes:
    def own(path: str) -> bool:
        return path.split("/", 1)[0] in (".idumb", ".planning")

    repo = project.repo
    return Bytes(
        files={path: entry for path, entry in work_tree(repo.root).items() if not own(path)},
        committed={path: blob for path, blob in repo.tree().items() if not own(path)},
        staged=repo.git("diff", "--cached", "--", ".", ":!.idumb", ":!.planning"),
        status=[line for line in repo.status() if not own(line[3:])],
    )


def check(project: Project, undisturbed: Bytes) -> None:
    """What must hold after a run that was killed and resumed; an AssertionError says what does not."""
    assert present(project) == undisturbed
    assert project.trailers("Idumb-Task") == ["T1-01", "T1-02", "T1-03", "T1-04"]
    assert project.repo.refs("refs/heads/").keys() == {"refs/heads/main"}
    log = SqliteEventLog(str(project.repo.common_dir), "main", SystemClock())
    verdict = log.verify()
    assert verdict.broken_at is None, verdict
    done: set[str] = set()
    for event in log.events():
        assert not (event.kind == "attempt.started" and event.task in done), f"{event.task} was run again"
        if event.kind == "task.completed":
            assert event.task not in done, f"{event.task} was completed twice"
            done.add(str(event.task))
    assert done == {"T1-01", "T1-02", "T1-03", "T1-04"}
    assert left_behind(project) == []
    assert [path for path in project.folder.rglob("*") if _is_rest(path.name)] == []


def _is_rest(name: str) -> bool:
    """A temporary file or a lock; the lock file of ownership stays for good."""
    return name.startswith(".idumb-") or (name.endswith(".lock") and name != "owner.lock")


def left_behind(project: Project) -> list[str]:
    """Programs that still stand in the project's folder (Linux; elsewhere nothing can be told)."""
    found = []
    for pid in _processes():
        try:
            if os.readlink(f"/proc/{pid}/cwd") == str(project.folder.resolve()):
                found.append(Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode())
        except OSError:
            continue
    return found


def _processes() -> Sequence[str]:
    return [name for name in os.listdir("/proc") if name.isdigit()] if os.path.isdir("/proc") else []
