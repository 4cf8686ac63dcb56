"""Signals at chosen points of a run: after one it stops at a safe point, after two it exits at once."""

from __future__ import annotations

import os
import select
import signal
from pathlib import Path
from typing import Any

from tests.crash import harness
from tests.crash.killing import DURABLE, Points
from tests.support.answer import Answer
from tests.support.project import Project
from tests.support.warm import Warm

NUMBERS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_LONGER_THAN_ONE_PRESS = 0.3


class Signals(Points):
    """Send the process a signal at its point, and a second one a moment later if `twice` is set."""

    def __init__(self, choice: dict[str, Any]) -> None:
        super().__init__(choice)
        self._number = choice.get("number", signal.SIGTERM)
        self._twice = choice.get("twice", False)

    def here(self, name: str) -> None:
        if self._count is not None:
            with open(self._count, "a", encoding="utf-8") as file:
                file.write(name + "\n")
        self._passed += 1
        if self._passed - 1 != self._at:
            return
        if self._twice:
            _pause_then_again(self._number)
        os.kill(os.getpid(), self._number)


def _pause_then_again(number: int) -> None:
    """Send the second signal from a separate process, because the first one may stop this process."""
    parent = os.getpid()
    if os.fork() == 0:
        os.chdir("/")
        select.select([], [], [], _LONGER_THAN_ONE_PRESS)
        if os.getppid() == parent:
            os.kill(parent, number)
        os._exit(0)


def interrupt(choice: dict[str, Any]) -> None:
    """Hook: `at`, `count` as in `killing`; `number` is the signal."""
    points = Signals(choice)
    for module, name in DURABLE:
        points.around(module, name)


class Scene:
    def __init__(self, warm: Warm, folder: Path) -> None:
        self._warm = warm
        self._folder = folder
        self._numbers = iter(range(1 << 30))
        self._place, self._consent = harness.template(folder / "template")
        whole, count = self._copy(), folder / "points"
        done = self._run(whole, "execute-phase", {"count": str(count)})
        assert done.code == 0, done
        self.names = count.read_text(encoding="utf-8").splitlines()
        self._undisturbed = harness.ending(whole)

    def case(self, point: int, number: int, *, twice: bool = False) -> int:
        """Interrupt, check the answer, resume, and check the end. Return the exit code of the interrupted run."""
        project = self._copy()
        answer = self._run(project, "execute-phase", {"at": point, "number": number, "twice": twice})
        assert answer.code in {0, 128 + number}, answer
        assert "Traceback" not in answer.err, answer.err
        if answer.code:
            assert answer.error["code"] == "run.interrupted", answer
        assert harness.left_behind(project) == []
        self._finish(project)
        for kind, words in harness.wrong(project, self._undisturbed):
            raise AssertionError(f"{kind}: {words}")
        return answer.code

    def _finish(self, project: Project) -> None:
        answer = self._run(project, "resume", {})
        if answer.code == 4 and answer.error["code"] == "run.none":
            answer = self._run(project, "execute-phase", {})
        assert answer.code == 0, answer

    def _copy(self) -> Project:
        return harness.copy(self._place, self._folder / f"copy-{next(self._numbers)}")

    def _run(self, project: Project, command: str, choice: dict[str, Any]) -> Answer:
        argv = (command, "1", "--approve", self._consent, "--json")
        return self._warm.run(project.start, *argv, hook="tests.crash.interrupting:interrupt", given=choice)
