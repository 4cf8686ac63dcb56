"""Every command in its busiest state, run in copies, and the assertions after a fault in it."""

from __future__ import annotations

import functools
import itertools
import os
import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

from tests.crash import harness
from tests.crash.harness import Bytes
from tests.crash.programme import LEFT_PROCESS, LOST_BYTES, LOST_CHECKPOINT, OTHER, Wrong
from tests.support import project as projects
from tests.support.answer import Answer
from tests.support.gitrepo import Entry, GitSandbox, work_tree
from tests.support.project import Project
from tests.support.warm import Warm

CODES = (0, 1, 2, 3, 4, 5)
MINE = ("dirty.txt", "mine.txt", "staged.txt")
# If a lock could not be removed, the message names it and the user removes it.
_LOCK = re.compile(r"/[^' ]*\.lock")


def require(holds: object, words: str, kind: str = OTHER) -> None:
    if not holds:
        raise Wrong(kind, words)


@dataclass(frozen=True, slots=True)
class Scene:
    """A state of a project and a command in it.

    `finish` is the command that the user runs after the fault is removed. `consent` is "" if no consent is needed.
    """

    name: str
    template: Path
    argv: tuple[str, ...]
    consent: str
    finish: Callable[[Stage, Project, Scene], Answer]
    undisturbed: Bytes = field(default_factory=lambda: Bytes({}, {}, "", []))

    @property
    def has_log(self) -> bool:
        return self.argv[0] != "init"


class Stage:
    """The folder of the cases, and a process that forks for each of them. Use it as a context manager."""

    def __init__(self, folder: Path, *, preload: str = "", environment: Mapping[str, str] | None = None) -> None:
        self.folder = folder
        self._environment = dict(environment or {})
        self._warm = Warm(folder / "warm", preload=preload, environment=self._environment)
        self._numbers = iter(range(1 << 30))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._warm.__exit__(kind, error, trace)

    def copy(self, template: Path, place: Path | None = None) -> Project:
        """A copy of a project in a folder of its own, with a home beside it."""
        case = (place or self.folder) / f"case-{next(self._numbers)}"
        (case / "home").mkdir(parents=True)
        return harness.copy(template, case / "repo")

    def prepared(self, scene: Scene, place: Path | None = None) -> Project:
        project = self.copy(scene.template, place)
        if (
            scene.argv[0] == "verify-work"
        ):  # this command takes no consent, and the template's consent is for another folder
            require(self.run(project, "approve", "1", "--hash", scene.consent).code == 0, "no consent")
        return project

    def run(self, project: Project, *argv: str, hook: str = "", given: Any = None) -> Answer:
        home = str(project.folder.parent / "home")
        own = {**self._environment, "HOME": home, "XDG_STATE_HOME": f"{home}/state"}
        return self._warm.run(project.start, *argv, "--json", environment=own, hook=hook, given=given)


class Setting(NamedTuple):
    """How a scene is made: the commands `before` its own, in a project whose tasks end in a commit, or not.

    Without tasks, idumb is not set up. Without `argv`, the newest operation is undone.
    """

    argv: tuple[str, ...]
    finish: Callable[[Stage, Project, Scene], Answer]
    before: tuple[tuple[str, ...], ...] = ()
    commit: str = "task"


def all_of(stage: Stage, names: Sequence[str] | None = None) -> dict[str, Scene]:
    """Return the named scenes, each with the final state of its undisturbed command."""
    numbers = itertools.count()

    @functools.cache
    def template(commit: str, before: tuple[tuple[str, ...], ...]) -> tuple[Project, str]:
        place = stage.folder / "templates" / str(next(numbers))
        if not before:
            return _project(place, commit=commit) if commit else (_without_idumb(place), "")
        earlier, consent = template(commit, before[:-1])
        project, killed = harness.copy(earlier.folder, place), before[-1] == KILLED
        answer = harness.run(project, *_filled(EXECUTE if killed else before[-1], consent), at=26 if killed else None)
        assert answer.code == (harness.KILLED if killed else 0), answer
        return project, consent

    def scene(name: str) -> Scene:
        setting = SCENES[name]
        project, consent = template(setting.commit, setting.before)
        argv = _filled(setting.argv, consent) or harness.undoing(project)
        return _undisturbed(stage, Scene(name, project.folder, argv, consent, setting.finish))

    return {name: scene(name) for name in names or NAMES}


def _filled(argv: tuple[str, ...], consent: str) -> tuple[str, ...]:
    return tuple(consent if word == _CONSENT else word for word in argv)


def _project(folder: Path, *, commit: str) -> tuple[Project, str]:
    repo = GitSandbox.create(folder)
    project = projects.create(repo, files={"old.txt": "old\n", "staged.txt": "one\n", "dirty.txt": "one\n"})
    project.configure(f"git:\n  commit: {commit}\n")
    project.plan(harness.CHAIN)
    harness.work_of_the_user(repo)
    return project, project.approval()


def _without_idumb(folder: Path) -> Project:
    repo = GitSandbox.create(folder)
    repo.commit_with({"README.md": "# A project\n", "dirty.txt": "one\n"}, "first")
    repo.write_all({"dirty.txt": "two\n", "mine.txt": "never committed\n"})
    return Project(repo, folder)


def _undisturbed(stage: Stage, scene: Scene) -> Scene:
    project = stage.prepared(scene)
    answer = stage.run(project, *scene.argv)
    assert answer.code == 0, (scene.name, answer)
    present = harness.present(project)
    shutil.rmtree(project.folder.parent)
    return Scene(scene.name, scene.template, scene.argv, scene.consent, scene.finish, present)


def go_on(stage: Stage, project: Project, scene: Scene) -> Answer:
    """Retry failed tasks, because the fault may have hit one of their commands."""

    def say(command: str) -> Answer:
        flags = ("--retry-failed",) if command == "resume" else ()
        return stage.run(project, command, "1", *flags, "--approve", scene.consent)

    return harness.go_on(say)


def again(stage: Stage, project: Project, scene: Scene) -> Answer:
    return stage.run(project, *scene.argv)


def roll_back_again(stage: Stage, project: Project, scene: Scene) -> Answer:
    """Run nothing if the work was complete and only its report failed."""
    done = _last(project) == "rollback.completed"
    return Answer(0, "", "") if done else again(stage, project, scene)


_CONSENT = "{consent}"
EXECUTE = ("execute-phase", "1", "--approve", _CONSENT)
KILLED = ("execute-phase", "killed")
ROLLBACK = ("rollback", "1", "--to", "T1-01", "--yes")
SCENES = {
    "execute-phase": Setting(EXECUTE, go_on),
    "execute-phase without commits": Setting(EXECUTE, go_on, commit="none"),
    "resume": Setting(("resume", "1", "--approve", _CONSENT), go_on, (KILLED,)),
    "rollback": Setting(ROLLBACK, roll_back_again, (EXECUTE,)),
    "undo": Setting((), again, (EXECUTE, ROLLBACK)),
    "verify-work": Setting(("verify-work", "1"), again, (EXECUTE,)),
    "check-plan": Setting(("check-plan", "1"), again, (EXECUTE,)),
    "status": Setting(("status",), again, (EXECUTE,)),
    "init": Setting(("init",), again, commit=""),
}
NAMES = tuple(SCENES)


def _last(project: Project) -> str:
    ended = [e.kind for e in harness.events(project) if e.kind.startswith(("rollback.", "undo."))]
    return ended[-1] if ended else ""


@dataclass(slots=True)
class Trial:
    """Run one case: record the user's bytes, compare the acknowledged events, and assert both end states."""

    scene: Scene
    project: Project
    before: dict[str, Entry]
    kept: list[dict[str, Any]] = field(default_factory=list)

    @classmethod
    def begin(cls, scene: Scene, project: Project) -> Trial:
        return cls(scene, project, work_tree(project.folder))

    def judge_answer(self, answer: Answer, saw: str) -> None:
        """Assert a known exit code, no traceback, and one message that states the problem and the next step."""
        sound(answer, saw)
        require(answer.code in CODES, f"exit {answer.code} {saw}")
        if answer.code == 0:
            return
        error, data = answer.object["error"], answer.object["data"]
        require(error and error["message"], f"no message {saw}")
        # Git's own words may take several lines.
        require("\n" not in error["message"] or error["code"].startswith("git."), f"more than one line {saw}")
        require(error["hint"] or data.get("next"), f"no next step {saw}")

    def judge_fault(self, answer: Answer, saw: str) -> None:
        """Assert the state right after the fault.

        Nothing is falsely reported as complete, and the user's files are unchanged.
        """
        if answer.code == 0:
            difference = list(harness.bytes_that_differ(self.scene.undisturbed, harness.present(self.project)))
            require(not difference, f"it says that it is done: {difference} {saw}")
        after = work_tree(self.project.folder)
        for path in MINE:
            require(after.get(path) == self.before.get(path), f"{path} changed {saw}", LOST_BYTES)
        if self.scene.has_log:
            self.kept = harness.acknowledged(self.project)
            self._judge_log(saw)

    def judge_end(self, saw: str, *, leftovers: bool = True) -> None:
        """Assert that the command, run again without the fault, reaches the state of an undisturbed run.

        Without `leftovers`, temporary files and locks may stay.
        """
        difference = list(harness.bytes_that_differ(self.scene.undisturbed, harness.present(self.project)))
        require(not difference, f"another end: {difference} {saw}", LOST_BYTES)
        if self.scene.has_log:
            self._judge_log(saw)
            for kind, words in harness.repeated(harness.events(self.project)):
                raise Wrong(kind, f"{words} {saw}")
        remaining = harness.left_behind(self.project)
        require(not remaining, f"left: {remaining} {saw}", LEFT_PROCESS)
        case = self.project.folder.parent
        below = (Path(folder, name) for folder, folders, files in os.walk(case) for name in folders + files)
        rest = [str(path.relative_to(case)) for path in below if is_rest(path.name)]
        require(not leftovers or not rest, f"leftover files {rest} {saw}")

    def _judge_log(self, saw: str) -> None:
        # A checkpoint that an undo of the whole run gave up keeps its ref, so all refs are searched.
        for kind, words in harness.lost(self.project, self.kept):
            raise Wrong(kind, f"{words} {saw}")
        snapshots = {row["snapshot"]: row["task"] for row in self.kept if "snapshot" in row}
        asked = "".join(f"{oid}\n" for oid in snapshots).encode("ascii")
        found = self.project.repo.git("cat-file", "--batch-check", given=asked).splitlines()
        for line, task_id in zip(found, snapshots.values(), strict=True):
            require(" tree " in line, f"checkpoint of {task_id} is gone {saw}", LOST_CHECKPOINT)

    def finish(self, stage: Stage, saw: str, *, may_leave_locks: bool = False) -> None:
        """Assert that the user's commands after the fault succeed."""
        answer = self.scene.finish(stage, self.project, self.scene)
        while may_leave_locks and answer.code != 0 and (locks := set(_LOCK.findall(answer.out))):
            for name in locks:
                os.unlink(name)
            answer = self.scene.finish(stage, self.project, self.scene)
        sound(answer, saw)
        require(answer.code == 0, f"it does not go on: {answer} after {saw}")

    def close(self) -> None:
        shutil.rmtree(self.project.folder.parent)


def sound(answer: Answer, saw: str) -> None:
    for text in (answer.out, answer.err):
        require("Traceback" not in text and "idumb has a defect" not in text, f"{text} {saw}")


def is_rest(name: str) -> bool:
    """Return temporary files and locks; git collects its own `tmp_obj_*`.

    The lock files of the owner and of checkouts stay permanently.
    """
    lock = name.endswith(".lock") and name != "owner.lock" and not name.removesuffix(".lock").isdecimal()
    return name.startswith(".idumb-") or lock or name.endswith(".tmp")
