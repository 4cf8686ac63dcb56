"""Executes a plan made of a history on a clone, with the real command line, and reads what came out of it."""

from __future__ import annotations

import os
import shlex
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from idumb.domain import errors
from tests.history import commits, plan_from_history
from tests.support import warm

PLAN = ".planning/phases/1/01-PLAN.md"


@dataclass(frozen=True, slots=True)
class Rerun:
    """`original` has the history from `base` to `tip`; `root` is a clone at `base`, with the plan."""

    original: Path
    root: Path
    base: str
    tip: str
    stretch: tuple[commits.Commit, ...] = field(default=())

    @classmethod
    def prepare(cls, original: Path, root: Path, base: str, tip: str) -> Rerun:
        commits.git(original, "clone", "--quiet", "--no-checkout", "--no-tags", "--shared", str(original), str(root))
        commits.git(root, "checkout", "--quiet", "-B", "again", base)
        commits.git(root, "config", "user.name", "Pat Tester")
        commits.git(root, "config", "user.email", "pat@example.invalid")
        text = plan_from_history.plan(original, base, tip)
        place = root / PLAN
        place.parent.mkdir(parents=True, exist_ok=True)
        for other in place.parent.glob("*-PLAN.md"):
            other.unlink()
        place.write_bytes(text.encode("utf-8"))
        return cls(original, root, base, tip, tuple(commits.between(original, base, tip)))

    def idumb(self, *arguments: str, expect: int = 0) -> dict[str, Any]:
        """The answer of one command; an exit code other than the expected one is an AssertionError."""
        answer = warm.run(self.root, *arguments, "--json")
        assert answer.code == expect, (
            f"idumb {arguments}: exit {answer.code}\n{answer.out[:4000]}\n{answer.err[-4000:]}"
        )
        return answer.object

    def undo(self) -> None:
        """Undo the newest operation, by the command that the refusal of `undo` names."""
        unconfirmed = self.idumb("undo", expect=errors.EXIT_REFUSED)
        self.idumb(*shlex.split(unconfirmed["error"]["hint"])[1:])

    def execute(self) -> None:
        self.idumb("init")
        approved = self.idumb("check-plan", "1")["data"]["consent_hash"]
        self.idumb("execute-phase", "1", "--approve", approved, "--no-verify")
        wrong = self.wrong_tasks()
        assert wrong == [], wrong
        assert self.stands_at(self.tip)

    def go_back_and_forth(self, middle: int) -> None:
        """To the commit at `middle`, on again, and back over both; then to the start and to the end."""
        self.idumb("rollback", "1", "--to", self.task(middle), "--yes")
        assert self.stands_at(self.stretch[middle - 1].oid)
        self.idumb("resume", "1", "--no-verify")
        assert self.stands_at(self.tip)
        assert self.wrong_tasks() == []
        for there in (self.stretch[middle - 1].oid, self.tip):
            self.undo()
            assert self.stands_at(there)
        self.idumb("rollback", "1", "--to", "start", "--yes")
        assert self.stands_at(self.base)
        self.idumb("resume", "1", "--no-verify")
        assert self.stands_at(self.tip)

    def task(self, number: int) -> str:
        """Return the id of the task for the commit at `number`, from 1."""
        return f"T1-{number:02}"

    def commits_by_task(self) -> dict[str, str]:
        """Task id to the newest commit on the branch that carries its trailer."""
        shown = "--format=%H %(trailers:key=Idumb-Task,valueonly,separator=%x20)"
        rows = commits.git(self.root, "log", "--reverse", shown, f"{self.base}..HEAD").decode().splitlines()
        return {parts[1]: parts[0] for row in rows if len(parts := row.split()) == 2}

    def wrong_tasks(self) -> list[str]:
        """Tasks whose commit has another tree than the commit of the history."""
        commits_of_tasks = self.commits_by_task()
        wrong = []
        for number, commit in enumerate(self.stretch, 1):
            task = self.task(number)
            mine = (
                commits.tree_aside_own(self.root, commits_of_tasks[task]) if task in commits_of_tasks else "no commit"
            )
            if mine != commits.tree_aside_own(self.original, commit.oid):
                wrong.append(f"{task}: {commit.subject}: {_difference(self, commits_of_tasks.get(task), commit.oid)}")
        return wrong

    def stands_at(self, commit: str) -> bool:
        """Return whether branch and working tree have that commit's files, except idumb's own folders."""
        same = commits.tree_aside_own(self.root, "HEAD") == commits.tree_aside_own(self.original, commit)
        return same and not self.dirty()

    def dirty(self) -> list[str]:
        out = commits.git(self.root, "status", "--porcelain", "-z", "--no-renames", "--untracked-files=all")
        rows = [os.fsdecode(row) for row in out.split(b"\0") if row]
        return [row for row in rows if not row[3:].startswith((".planning/", ".idumb/"))]


def _difference(rerun: Rerun, mine: str | None, theirs: str) -> str:
    if mine is None:
        return "not committed"
    out = commits.git(rerun.root, "diff-tree", "-r", "--name-status", theirs, mine).decode("utf-8", "replace")
    return out[:1000]
