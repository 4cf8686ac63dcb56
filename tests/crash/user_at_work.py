"""T22: a user saves, stages and commits every 50 ms while tasks run, some of which change the same files.

Afterwards, each text that the user saved and did not replace is on disk, in a commit, or in a tree that idumb keeps by
name. The user's commits and staged files are there, and no completed task has a commit with work of the user.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import functools
import hashlib
import json
import os
import random
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from tests.crash import harness
from tests.crash.busy_user import Diary, Save
from tests.crash.programme import LEFT_PROCESS, LOST_BYTES, OTHER, TRACEBACK, CannotRun, Programme, Tally
from tests.support import project as projects
from tests.support import warm
from tests.support.answer import Answer
from tests.support.gitrepo import GitSandbox
from tests.support.project import shell, task

OWN = tuple(f"own-{number}.txt" for number in range(5))
MOMENTS = ("attempt.started", "step.finished", "checkpoint.intended", "task.completed", "")
"""When the user begins to change the file of a task: at this event about it, or never."""
ENDED = frozenset({"task.completed", "task.failed", "task.skipped"})
_ROOT = Path(__file__).parents[2]
_HOOK = "#!/bin/sh\nsleep 0.2\n"
_HALTS = 4  # a task that stops the run more often is skipped
_GIT = re.compile(r"index\.lock|cannot lock ref|another commit was made")
_NAMED = re.compile(r"The saved text is in (.+?); move")


class Scene:
    """A project whose plan has so many tasks; `files` are those of the tasks, every second of which the user changes.

    `events` are those of the runs, `said` is what the commands printed, `ended` are the tasks that ended.
    """

    def __init__(self, folder: Path, tasks: int) -> None:
        self.events: list[dict[str, Any]] = []
        self.ended: Counter[str] = Counter()
        self.said = ""
        self.folder = folder
        self.files = {f"T1-{n:02}": f"{'shared' if n % 2 else 'made'}-{n}.txt" for n in range(1, tasks + 1)}
        self.shared = {id: path for id, path in self.files.items() if path.startswith("shared")}
        works = {id: ("modify", "create", "delete")[n % 3] for n, id in enumerate(self.shared)}
        there = (*OWN, *(path for id, path in self.shared.items() if works[id] != "create"))
        self.project = projects.create(GitSandbox.create(folder / "repo"), files=dict.fromkeys(there, "before\n"))
        self.project.plan([_task(id, path, works.get(id, "create")) for id, path in self.files.items()])
        hook = self.project.repo.git_dir / "hooks" / "pre-commit"
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(_HOOK, encoding="ascii")
        hook.chmod(0o755)

    @functools.cached_property
    def consent(self) -> str:
        return self.project.approval()

    def run(self, *words: str) -> Answer:
        answer = self.project.idumb(*words, "--json")
        self.said += answer.out
        return answer

    def moment(self, at: float) -> str:
        """Return between which events of the runs a time was."""
        times = [(dt.datetime.fromisoformat(event["at"]).timestamp(), event) for event in self.events if "at" in event]
        before = [_named(event) for time, event in times if time <= at]
        after = [_named(event) for time, event in times if time > at]
        return f"after {before[-1] if before else 'nothing'} and before {after[0] if after else 'the end'}"


def _named(event: dict[str, Any]) -> str:
    return f"{event['kind']} {event['task'] or ''}".rstrip()


def _task(id: str, path: str, work: str) -> str:
    command, check = {
        "modify": (f"echo {id} >> {path}", f"grep -q {id} {path}"),
        "create": (f"echo {id} > {path}", f"grep -q {id} {path}"),
        "delete": (f"rm {path}", f"! test -e {path}"),
    }[work]
    return task(id, files=f"{work} `{path}`", check=check, steps=[shell(f"sleep 0.2; {command}")])


class User:
    """The process of `busy_user`; `paths` are files of tasks that it changes now."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self.paths: set[str] = set()
        self._hear()

    def tell(self, order: str, path: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{order} {path}\n")
        self._process.stdin.flush()
        self._hear()
        if order != "commit":
            self.paths ^= {path}

    def end(self) -> Diary:
        return Diary.read(self._process.communicate(timeout=120)[0])

    def _hear(self) -> None:
        assert self._process.stdout is not None
        assert self._process.stdout.readline(), "the user's process has ended"


@contextlib.contextmanager
def working(scene: Scene, seed: int) -> Iterator[User]:
    words = [sys.executable, "-m", "tests.crash.busy_user", str(scene.project.folder), str(seed), *OWN]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=_ROOT) as process:
        try:
            yield User(process)
        finally:
            process.kill()


def complete(scene: Scene, user: User, seed: int) -> None:
    """Run the phase as its user does: answer, commit what is in the way, resume, and skip what halts too often."""
    chance, halts = random.Random(seed), Counter[str]()
    begin = {id: chance.choice(MOMENTS) for id in scene.shared}
    start(scene, user, begin)
    while open_tasks := [id for id in scene.files if id not in scene.ended]:
        halted = open_tasks[0]
        halts[halted] += 1
        for path in list(user.paths):
            user.tell("end", path)
        if halts[halted] > 1 and halted in scene.shared:
            user.tell("commit", scene.shared[halted])
        if halts[halted] > _HALTS and scene.run("skip", halted, "--why", "it never ends", "--yes").code == 0:
            scene.ended[halted] += 1
        for question in scene.run("decisions").data["decisions"]:
            choices = [choice["id"] for choice in question["choices"] if choice["id"] != "stop"]
            scene.run("decide", question["id"], chance.choice(choices), "--yes")
            scene.consent = scene.project.approval()  # an answer may amend the plan
        assert halts[halted] < 3 * _HALTS, f"{halted} can neither be resumed nor skipped: {scene.said[-2000:]}"
        _execute(scene, user, begin, "resume")


def start(scene: Scene, user: User, begin: dict[str, str]) -> None:
    """Start the run; idumb refuses that while git holds a lock for the user."""
    while not any(event["kind"] == "run.started" for event in scene.events):
        _execute(scene, user, begin, "execute-phase")


def _execute(scene: Scene, user: User, begin: dict[str, str], command: str) -> None:
    pipe = scene.folder / "events"
    os.mkfifo(pipe)
    words = (command, "1", "--approve", scene.consent, "--events")
    process = warm.start(scene.project.start, *words, pipe=pipe)
    with pipe.open(encoding="utf-8") as stream:
        for line in stream:
            event = json.loads(line)
            scene.events.append(event)
            id, kind = str(event["task"]), event["kind"]
            if kind in ENDED:
                scene.ended[id] += 1
            if begin.get(id) == kind:
                user.tell("begin", scene.shared[id])
                del begin[id]
    scene.said += process.wait().err
    pipe.unlink()


def wrong(scene: Scene, diary: Diary) -> Iterator[tuple[str, str]]:
    """Return (kind, words) of everything that is lost, or in a commit of the other."""
    repo = scene.project.repo
    if "Traceback" in scene.said or "idumb has a defect" in scene.said:
        yield TRACEBACK, scene.said
    objects = _kept(repo)
    for save in _lost(scene, diary, objects):
        there = repo.read(save.path) if (repo.root / save.path).exists() else "no file"
        words = f"{save.text.strip()!r}, saved ({save.how}) {scene.moment(save.at)}, is nowhere; now there: {there!r}"
        yield LOST_BYTES, words
    entries = {row.split("\t")[1]: row.split()[1] for row in repo.git("ls-files", "--stage").splitlines()}
    for path, blob in diary.staged.items():
        if entries.get(path) != blob and blob not in objects:
            yield LOST_BYTES, f"{path}: what the user staged, {blob}, is nowhere"
    subjects = set(repo.git("log", "--format=%s").splitlines())
    if gone := [message for message in diary.commits if message not in subjects]:
        yield LOST_BYTES, f"commits of the user that are not on the branch: {gone}"
    yield from _mixed(scene)
    if (repo.git_dir / "index.lock").exists():
        yield OTHER, "index.lock stayed"
    if left := harness.left_behind(scene.project):
        yield LEFT_PROCESS, str(left)


def _lost(scene: Scene, diary: Diary, objects: frozenset[str]) -> list[Save]:
    """Return the saves whose text is nowhere, though the user did not replace it."""
    folder = scene.project.folder
    named = [Path(place) for place in _NAMED.findall(scene.said)]
    below = [place for place in folder.rglob("*.txt*") if ".git" not in place.relative_to(folder).parts]
    texts = {place.read_text(encoding="utf-8") for place in (*named, *below)} | {*diary.replaced}
    return [save for save in diary.saves if save.text not in texts and _blob(save.text) not in objects]


def _kept(repo: GitSandbox) -> frozenset[str]:
    """Return every object that a ref or a name of idumb's leads to, and that git can read."""
    names = repo.git("rev-list", "--objects", "--all", *repo.kept().values()).splitlines()
    listed = "".join(f"{name.split()[0]}\n" for name in names)
    found = repo.git("cat-file", "--batch-check", given=listed.encode("ascii")).splitlines()
    return frozenset(row.split()[0] for row in found if not row.endswith("missing"))


def _blob(text: str) -> str:
    data = text.encode()
    return hashlib.sha1(b"blob %d\0%b" % (len(data), data), usedforsecurity=False).hexdigest()


class Commit(NamedTuple):
    """`task` is "" if idumb did not make it; `of_user`: the file of the task has a text of the user instead."""

    id: str
    subject: str
    task: str
    attempt: str
    paths: tuple[str, ...]
    of_user: bool


def _commits(scene: Scene) -> Iterator[Commit]:
    repo = scene.project.repo
    trailers = "".join(f"%x1f%(trailers:key=Idumb-{name},valueonly,separator=)" for name in ("Task", "Attempt"))
    for row in repo.git("log", "--name-only", f"--format=%x1e%H%x1f%s{trailers}%x1f").split("\x1e")[1:]:
        id, subject, task, attempt, names = row.split("\x1f")
        shown = repo.try_git("show", f"{id}:{scene.files[task]}") if task in scene.files else None
        of_user = shown is not None and shown.returncode == 0 and task not in shown.stdout.decode()
        yield Commit(id, subject, task, attempt, tuple(names.split()), of_user)


def _mixed(scene: Scene) -> Iterator[tuple[str, str]]:
    """A task's commit has its own file, and a commit of the user only files that the user saves."""
    completed = {(e["task"], str(e["attempt"])) for e in scene.events if e["kind"] == "task.completed"}
    for commit in _commits(scene):
        if commit.task and commit.paths not in ((), (scene.files[commit.task],)):
            yield OTHER, f"the commit of {commit.task}, {commit.id}, has {commit.paths}"
        if commit.of_user and (commit.task, commit.attempt) in completed:
            yield OTHER, f"{commit.task} is completed, and its commit, {commit.id}, has a text of the user"
        if commit.subject.startswith("user ") and not {*commit.paths} <= {*OWN, *scene.shared.values()}:
            yield OTHER, f"a commit of the user, {commit.id}, has {commit.paths}"


def run(size: int | None, seed: int, folder: Path, tally: Tally) -> None:
    """`size` is the number of tasks."""
    if sys.platform != "linux":
        raise CannotRun("the user exchanges files as Linux does")
    scene = Scene(folder, size or 0)
    tally.cases += len(scene.files)
    with working(scene, seed) as user:
        complete(scene, user, seed)
        diary = user.end()
    for kind, words in wrong(scene, diary):
        tally.fail(kind, f"{size} tasks, seed {seed}", words)
    _note(scene, diary, tally)


def _note(scene: Scene, diary: Diary, tally: Tally) -> None:
    kinds = Counter(event["kind"] for event in scene.events)
    tally.note("tasks completed", kinds["task.completed"])
    tally.note("runs halted", kinds["run.halted"])
    reasons = [event["payload"]["reason"] for event in scene.events if event["kind"] == "run.halted"]
    tally.note("runs halted by git commands of the user", sum(bool(_GIT.search(reason)) for reason in reasons))
    tally.note("commits of a failed task with a text of the user", sum(commit.of_user for commit in _commits(scene)))
    tally.note("texts saved", len(diary.saves))
    tally.note("texts saved in files of tasks", sum(save.path in scene.shared.values() for save in diary.saves))
    tally.note("commits of the user", len(diary.commits))
    tally.note("git commands of the user that a lock refused", sum("index.lock" in words for words in diary.refusals))


PROGRAMME = Programme(
    "T22",
    "a user who saves, stages and commits beside a run",
    sample=5,
    release=50,
    run=run,
    measures=(LOST_BYTES, TRACEBACK, LEFT_PROCESS),
    push=1,
    least={"texts saved": 40, "texts saved in files of tasks": 1},
)
