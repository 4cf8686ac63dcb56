"""A project, an executor that is killed at a chosen point, and the assertions about what follows."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from idumb.domain.errors import StoreError
from idumb.domain.runs import replay, transitions
from idumb.domain.runs.event import Event
from idumb.domain.runs.run import RunState
from idumb.store.connection import Database
from idumb.store.event_log import SqliteEventLog
from idumb.system.clock import SystemClock
from tests.crash.programme import LEFT_PROCESS, LOST_BYTES, LOST_CHECKPOINT, OTHER, REPEATED_TASK
from tests.crash.rollback_user import is_own
from tests.support import warm
from tests.support.answer import Answer
from tests.support.ended import running
from tests.support.gitrepo import Entry, GitSandbox, work_tree
from tests.support.project import Project, delete, making, shell, task

KILLED = -9

# The first attempt fails its check. Every attempt appends, so that a repeated one is visible.
BUILDER = """\
import os, sys
told = "IDUMB_FEEDBACK_FILE" in os.environ
with open("list.txt", "w" if told else "a") as file:
    file.write("good\\n" if told else "bad\\n")
"""
CONFIG = "bindings:\n  builder:\n    adapter: command\n    argv: [python3, tools/builder.py]\n"


def removing(id: str, after: str) -> str:
    return task(id, files="delete `old.txt`", check="! test -e old.txt", after=after, steps=[delete("old.txt")])


def growing(id: str, after: str) -> str:
    """An edit by a command that nobody may repeat."""
    check, steps = 'test "$(wc -l < sub/a.txt)" -eq 2', [shell("echo more >> sub/a.txt")]
    return task(id, files="modify `sub/a.txt`", check=check, after=after, steps=steps)


CHAIN = (making("T1-01", "sub/a.txt"), removing("T1-02", "T1-01"), growing("T1-03", "T1-02"))


@dataclass(frozen=True, slots=True)
class Bytes:
    """The final state of the project and of the user's own files."""

    files: dict[str, Entry]
    committed: dict[str, tuple[str, str]]
    staged: str
    status: list[str]


@dataclass(frozen=True, slots=True)
class Ending:
    """The end of an undisturbed run: its bytes, the completed tasks, and the committed tasks in order."""

    bytes: Bytes
    done: frozenset[str]
    committed: tuple[str, ...]


def work_of_the_user(repo: GitSandbox) -> None:
    """A staged change, a later change, a change that is not staged, and an untracked file."""
    repo.write("staged.txt", "two\n")
    repo.git("add", "staged.txt")
    repo.write_all({"staged.txt": "three\n", "dirty.txt": "two\n", "mine.txt": "never committed\n"})


def copy(place: Path, to: Path) -> Project:
    to.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run(["cp", "-a", place, to], check=True)  # a third of the time of shutil.copytree
    return Project(GitSandbox(to), to)


ARM = "tests.crash.killing:arm"


def run(project: Project, *arguments: str, **given: Any) -> Answer:
    """Run one command line with `--json`; `given` says where to kill it, with the keys of `killing.arm`."""
    return warm.run(project.start, *arguments, "--json", hook=ARM, given=given)


def go_on(say: Callable[[str], Answer]) -> Answer:
    """Say `resume` as a user does, or `execute-phase` again if the run had not started."""
    answer = say("resume")
    return say("execute-phase") if answer.code == 4 and answer.error["code"] == "run.none" else answer


def present(project: Project) -> Bytes:
    repo = project.repo
    return Bytes(
        files={path: entry for path, entry in work_tree(repo.root).items() if not is_own(path)},
        committed={path: blob for path, blob in repo.tree().items() if not is_own(path)},
        staged=repo.git("diff", "--cached", "--full-index", "--", ".", ":!.idumb", ":!.planning"),
        status=[line for line in repo.status() if not is_own(line[3:])],
    )


def ending(project: Project) -> Ending:
    return Ending(present(project), completed(events(project)), tuple(project.trailers("Idumb-Task")))


def wrong(
    project: Project, undisturbed: Ending, kept: Sequence[Mapping[str, Any]] = (), *, ended: bool = False
) -> Iterator[tuple[str, str]]:
    """Return (kind, message) of every violation; `kept` are the events that the log had acknowledged before.

    `ended`: the disturbed command had recorded its end, so no other one had anything to recover. The next command that
    writes removes its temporary files in idumb's own folder.
    """
    log = events(project)
    yield from lost(project, kept)
    yield from repeated(log)
    yield from illegal(log)
    committed = tuple(project.trailers("Idumb-Task"))
    if committed != undisturbed.committed:
        yield REPEATED_TASK, f"commits of {committed}, not of {undisturbed.committed}"
    if (done := completed(log)) != undisturbed.done:
        yield LOST_CHECKPOINT, f"done are {sorted(done)}, not {sorted(undisturbed.done)}"
    yield from bytes_that_differ(undisturbed.bytes, present(project))
    if project.repo.refs("refs/heads/").keys() != {"refs/heads/main"}:
        yield OTHER, f"branches: {sorted(project.repo.refs('refs/heads/'))}"
    if still := left_behind(project):
        yield LEFT_PROCESS, str(still)
    everything = (*project.folder.rglob("*"), *project.repo.clones.glob("*"))
    private = project.repo.common_dir / "idumb"
    spared = private.glob(".*.tmp") if ended else ()
    if rest := [str(path) for path in {*everything}.difference(spared) if _is_rest(path)]:
        yield OTHER, f"left lying: {rest}"


def bytes_that_differ(expected: Bytes, actual: Bytes) -> Iterator[tuple[str, str]]:
    if actual == expected:
        return
    for name in ("files", "committed"):
        one, other = getattr(expected, name), getattr(actual, name)
        if paths := sorted(path for path in one.keys() | other.keys() if one.get(path) != other.get(path)):
            kind = LOST_BYTES if name == "files" else OTHER
            yield kind, f"{name}: " + ", ".join(f"{p}: {one.get(p)} -> {other.get(p)}" for p in paths)
    if (expected.staged, expected.status) != (actual.staged, actual.status):
        yield LOST_BYTES, f"index: {expected.status} -> {actual.status}\n{expected.staged}\n->\n{actual.staged}"


def events(project: Project) -> list[Event]:
    """Return the whole log from the repository alone, after verifying its chain."""
    state_home = os.environ.get("XDG_STATE_HOME")
    os.environ["XDG_STATE_HOME"] = "/nonexistent"
    log = SqliteEventLog(Database(str(project.repo.common_dir)), "main", SystemClock())
    try:
        verdict = log.verify()
        assert verdict.broken_at is None, verdict
        return list(log.events())
    except StoreError as problem:
        message = f"the log cannot be read: {problem}"
        raise AssertionError(message) from problem
    finally:
        log.database.close()  # an open file would keep its file system from being unmounted
        if state_home is not None:
            os.environ["XDG_STATE_HOME"] = state_home


def undoing(project: Project) -> tuple[str, ...]:
    """Return the words that undo the newest operation, read from the log."""
    done = [e for e in events(project) if e.kind in ("rollback.completed", "undo.completed", "task.completed")]
    newest = [str(event.payload.get("operation", event.operation)) for event in done[-1:]]
    return ("undo", "--yes", "--operation", *(newest or ["none"]))


def completed(log: Iterable[Event]) -> frozenset[str]:
    """Return the tasks that are completed or accepted, and not rolled back since."""
    done: set[str] = set()
    for event in log:
        if event.kind in ("task.completed", "task.accepted"):
            done.add(str(event.task))
        elif event.kind == "rollback.completed":
            done -= set(event.payload["tasks"])
        elif event.kind == "undo.completed":
            done |= set(event.payload["tasks"])
    return frozenset(done)


def repeated(log: Iterable[Event]) -> Iterator[tuple[str, str]]:
    """Return the tasks that started or completed again without a rollback."""
    done: set[str] = set()
    for event in log:
        task = str(event.task)
        if event.kind in ("attempt.started", "task.completed") and task in done:
            yield REPEATED_TASK, f"{event.kind} of {task} at {event.seq}, though it was done"
        if event.kind in ("task.completed", "task.accepted"):
            done.add(task)
        elif event.kind == "rollback.completed":
            done -= set(event.payload["tasks"])
        elif event.kind == "undo.completed":
            done |= set(event.payload["tasks"])


def illegal(log: Iterable[Event]) -> Iterator[tuple[str, str]]:
    """Return the events that may not follow in the state of their run."""
    states: dict[str, RunState] = {}
    for event in log:
        if event.run is not None:
            state = states.setdefault(event.run, RunState())
            if why := transitions.fault(state, event):
                yield OTHER, f"event {event.seq}, {event.kind}: {why}"
            replay.apply(state, event)


def acknowledged(project: Project) -> list[dict[str, Any]]:
    """Return the events of the log in the form of `killing.acknowledge`."""
    return [{"seq": e.seq, "hash": e.hash, "kind": e.kind, "task": e.task, **_checkpoint(e)} for e in events(project)]


def _checkpoint(event: Event) -> dict[str, Any]:
    return dict(event.payload) if event.kind == "checkpoint.recorded" else {}


def lost(project: Project, kept: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, str]]:
    """Return acknowledged events that are gone or changed, and checkpoints without their ref, snapshot or commit."""
    if not kept:
        return
    try:
        hashes = {event.seq: event.hash for event in events(project)}
    except AssertionError as problem:
        yield LOST_CHECKPOINT, str(problem)
        return
    if gone := [row for row in kept if hashes.get(row["seq"]) != row["hash"]]:
        yield LOST_CHECKPOINT, f"acknowledged and gone: {[(row['seq'], row['kind'], row['task']) for row in gone]}"
    try:
        refs = project.repo.kept("refs/idumb/")
        history = set(project.repo.git("rev-list", "HEAD").split())
    except AssertionError as problem:  # a ref is there, and what it leads to is not
        yield LOST_CHECKPOINT, str(problem)
        return
    for row in kept:
        if "snapshot" not in row:
            continue
        if refs.get(row["ref"]) != row["snapshot"]:
            yield LOST_CHECKPOINT, f"{row['ref']} is {refs.get(row['ref'])}, not {row['snapshot']}"
        if row["commit"] is not None and row["commit"] not in history:
            yield LOST_CHECKPOINT, f"the commit of {row['task']} is not on the branch"


def _is_rest(path: Path) -> bool:
    """Return temporary files, locks, and what is beside checkouts.

    The ownership lock files stay permanently. A `tmp_obj_*` stays while any git works on the machine: git collects it.
    """
    name = path.name
    if (
        (
            path.parents[1].name == "idumb-checkouts"
            and not re.search(r"^repository$|-[a-z]+-[0-9a-f]{5}(\.moved-[0-9a-f]{8})?$", name)
        )
        or name.startswith(".idumb-")
        or name.endswith(".tmp")
    ):
        return True
    return name.endswith(".lock") and "idumb" not in path.parts[-4:-1]


def left_behind(project: Project) -> list[str]:
    """Return programs that still run in the project's folder."""
    place = str(project.folder.resolve())
    return [line.replace(b"\0", b" ").decode() for _, line, folder in running() if folder == place]
