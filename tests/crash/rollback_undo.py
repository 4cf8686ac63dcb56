"""T9: rollback and undo of random plans, to random targets, with random actions of the user in between.

A model of files predicts the result of each command. It knows no trees, refs or events. For each path it holds three
values: the present content, the content after the tasks, and the content before them. A case is one command with all
its checks.
"""

from __future__ import annotations

import random
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.crash import harness, rollback_user
from tests.crash.programme import LOST_BYTES, TRACEBACK, Programme, Tally
from tests.crash.rollback_user import Files
from tests.support.answer import Answer
from tests.support.gitrepo import GitSandbox
from tests.support.project import Project, delete, shell, task, write

ON_A_COPY = 8
LAST_KILL = 96  # some commands have fewer steps, and are then not killed
NAMES = ("a.txt", "b/c.txt", "b/d/e.txt", "f g.txt", "é.txt", "h.log", "k.sh", "b/link")
FIRST: Mapping[str, str] = {
    "a.txt": "a first\n", "b/c.txt": "c first\n", ".gitignore": "*.log\n", "u1.txt": "one\n", "u2.txt": "two\n",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Template:
    """A project with a completed phase. `after[n]` is the model's state after the first `n` tasks."""

    project: Project
    policy: str
    after: tuple[Files, ...]

    def touched(self, begin: int, end: int) -> set[str]:
        return {p for n in range(begin, end) for p in _differ(self.after[n], self.after[n + 1])}

    def before_tasks(self, path: str, begin: int, end: int) -> Any:
        """Return the content before the first of these tasks that changed the path."""
        first = next(n for n in range(begin, end) if path in _differ(self.after[n], self.after[n + 1]))
        return self.after[first].get(path)

    def after_tasks(self, path: str, begin: int, end: int) -> Any:
        last = next(n for n in range(end - 1, begin - 1, -1) if path in _differ(self.after[n], self.after[n + 1]))
        return self.after[last + 1].get(path)


def _differ(one: Files, other: Files) -> set[str]:
    return {path for path in {*one, *other} if one.get(path) != other.get(path)}


@dataclass(slots=True)
class Restore:
    """The result of the newest command, which is also what `undo` must restore. Positions count tasks."""

    before: dict[str, Any]
    after: dict[str, Any]
    position_before: int
    position_after: int


@dataclass(slots=True)
class ProjectCopy:
    """A copy of a template. `present` models all files except idumb's own.

    `position` is the number of completed tasks.
    """

    template: Template
    project: Project
    present: Files
    position: int
    last: Restore | None = None
    log: list[str] = field(default_factory=list)


def create_template(place: Path, seed: int) -> Template:
    """Create a project with a random plan of steps and run it. In some projects the last task fails."""
    chance = random.Random(seed)
    policy = "none" if seed % 3 == 2 else "task"
    repo = GitSandbox.create(place)
    repo.commit_with(FIRST, "first")
    project = Project(repo, place)
    assert project.quick("init").code == 0
    project.configure(f"git:\n  commit: {policy}\nrun:\n  max_attempts: 1\n")
    files = rollback_user.look(place)
    after, tasks = [files], []
    for number in range(1, 6):
        fails = number == 5 and seed % 2 == 1
        built, text = _task(chance, number, files, fails=fails)
        files = files if fails else built  # failed work stays out of the user's tree
        after.append(files)
        tasks.append(text)
    project.plan(tasks)
    consent = project.quick("check-plan", "1", "--json").data["consent_hash"]
    answer = project.quick("execute-phase", "1", "--approve", consent, "--json")
    assert answer.code in (0, 1), answer
    assert rollback_user.look(place) == files, "the plan did not leave what the model says"
    return Template(project, policy, tuple(after))


def _task(chance: random.Random, number: int, files: Files, *, fails: bool) -> tuple[Files, str]:
    """Return a task that changes one to three files, and its result."""
    files_after, steps, claims = dict(files), [], []
    for name in chance.sample(NAMES, chance.randrange(1, 4)):
        if name in files_after and chance.random() < 0.3:
            steps.append(delete(name))
            claims.append(f"delete `{name}`")
            del files_after[name]
            continue
        claims.append(f"{'modify' if name in files_after else 'create'} `{name}`")
        if name == "b/link":
            target = f"target-{number}"
            steps.append(shell(f"mkdir -p b && ln -sfn {target} b/link"))
            files_after[name] = ("link", target)
            continue
        content = f"{name} by task {number}\n" * chance.randrange(1, 3)
        steps.append(write(name, content))
        program = name == "k.sh"
        if program:
            steps.append(shell("chmod 755 k.sh"))
        files_after[name] = ("file", program, content.encode())
    check = "false" if fails else "true"
    after = "none" if number == 1 else f"T1-{number - 1:02}"
    return files_after, task(f"T1-{number:02}", files=", ".join(claims), check=check, after=after, steps=steps)


def copy(template: Template, to: Path) -> ProjectCopy:
    shutil.copytree(template.project.folder, to, symlinks=True)
    return ProjectCopy(template, Project(GitSandbox(to), to), dict(template.after[-1]), len(template.after) - 1)


class Case:
    """One command in one copy, with its expected result."""

    def __init__(self, copied: ProjectCopy, chance: random.Random, tally: Tally, plant: str = "") -> None:
        self.copied, self.chance, self.tally, self.plant = copied, chance, tally, plant

    def make(self, name: str) -> None:
        """Let the user act, run rollback or undo, check; after a conflict resolve it and run the command again."""
        copied = self.copied
        for _ in range(self.chance.randrange(3)):
            copied.log.append(rollback_user.act(self.chance, copied.project, copied.present, NAMES))
        command, goal, position = self._choose()
        copied.log.append(" ".join(command[:4]))
        with self.tally.case(f"{name}: {'; '.join(copied.log)}", LOST_BYTES):
            if self._refused_elsewhere(command):
                return
            plain, odd = self._conflicts(goal)
            staged = self._staged_alone(goal)
            if plain or odd or staged:
                self._put_back(self._conflict(command, plain | staged, odd))
                rollback_user.clear(copied.project, copied.present, goal)
                for path in staged:
                    copied.project.repo.git("reset", "--quiet", "--", path)
            self._carry_out(command, goal, position)

    def _choose(self) -> tuple[list[str], Restore, int]:
        """Return a command, its effect on each path, and the position after it."""
        copied, template = self.copied, self.copied.template
        if copied.last is not None and (copied.position == 0 or self.chance.random() < 0.55):
            done = copied.last
            back = Restore(done.after, done.before, done.position_after, done.position_before)
            return [*harness.undoing(copied.project)], back, done.position_before
        to = self.chance.randrange(copied.position)
        paths = template.touched(to, copied.position)
        goal = Restore(
            {p: template.after_tasks(p, to, copied.position) for p in paths},
            {p: template.before_tasks(p, to, copied.position) for p in paths},
            copied.position,
            to,
        )
        where = f"T1-{to:02}" if to else "start"
        return ["rollback", "1", "--to", where, "--yes"], goal, to

    def _conflicts(self, restore: Restore) -> tuple[set[str], set[str]]:
        """Return the changed paths and the paths replaced by something else. Either kind refuses the command."""
        present = self.copied.present
        plain = {p for p in restore.before if present.get(p) not in (restore.before[p], restore.after[p])}
        gone = {p for p in restore.after if restore.after[p] is None}
        odd = set()
        for path in (p for p in restore.after if restore.after[p] is not None):
            above = {"/".join(path.split("/")[:n]) for n in range(1, path.count("/") + 1)}
            below = {p for p in present if p.startswith(path + "/")}
            if (above & present.keys()) - gone or below - gone:
                odd.add(path)
        return plain, odd

    def _staged_alone(self, restore: Restore) -> set[str]:
        """Return paths whose staged bytes exist only in the index; a commit drops them."""
        repo = self.copied.project.repo
        if self.copied.template.policy != "task":
            return set()
        head, paths = repo.tree("HEAD"), set[str]()
        for path, row in _staged(repo).items():
            entries = (self.copied.present.get(path), restore.before.get(path), restore.after.get(path))
            restorable = [rollback_user.as_git(entry) for entry in entries if entry is not None]
            if path in restore.before and tuple(row.split()[:2]) not in [*restorable, head.get(path)]:
                paths.add(path)
        return paths

    def _refused_elsewhere(self, command: Sequence[str]) -> bool:
        """Sometimes switch to another branch and assert that the command changes nothing there."""
        if self.chance.random() > 0.06:
            return False
        repo = self.copied.project.repo
        branch = f"other-{len(self.copied.log)}"
        repo.git("switch", "--quiet", "--create", branch)
        answer = self._say(command)
        assert answer.code == 4, answer
        assert answer.error["code"] == "git.other-branch", answer
        self._same(self.copied.present)
        repo.git("switch", "--quiet", "main")
        repo.git("branch", "--quiet", "-D", branch)
        self.tally.note("refused on another branch")
        return True

    def _say(self, command: Sequence[str], kill: int | None = None) -> Answer:
        answer = harness.run(self.copied.project, *command, at=kill, fine=True, plant=self.plant or None)
        for text in (answer.out, answer.err):
            assert "Traceback" not in text, text
            assert "idumb has a defect" not in text, text
        return answer

    def _conflict(self, command: Sequence[str], plain: set[str], odd: set[str]) -> Sequence[Mapping[str, str]]:
        """Assert that the command is refused and changes nothing; return its ways to resolve each conflict."""
        answer = self._say(command)
        assert answer.code == 4, f"a conflict in {plain | odd} was not seen: {answer}"
        assert answer.error["code"] == "rollback.conflict", answer
        details = answer.error["details"]
        if plain:
            assert set(details["paths"]) == plain, (details["paths"], plain)
        self._same(self.copied.present)
        self._kept(details["kept"], details["paths"])
        self.tally.note("conflicts named")
        files: Sequence[Mapping[str, str]] = details["files"]
        return files

    def _put_back(self, files: Sequence[Mapping[str, str]]) -> None:
        """Run the printed commands, which also unstage a change. They do not replace a folder."""
        folder = self.copied.project.folder
        for file in files:
            if not (folder / file["path"]).is_dir():
                subprocess.run(["sh", "-c", file["put_back"]], cwd=folder, check=True)

    def _carry_out(self, command: Sequence[str], restore: Restore, position: int) -> None:
        copied, repo = self.copied, self.copied.project.repo
        was = {p: copied.present.get(p) for p in restore.before}
        head, staged = repo.head(), _staged(repo)
        answer = self._answer_despite_kills(command)
        assert answer.code == 0, answer
        for path, entry in restore.after.items():
            copied.present.pop(path, None)
            if entry is not None:
                copied.present[path] = entry
        self._same(copied.present)
        self._git(head, staged, set(restore.before))
        copied.last = Restore(was, dict(restore.after), copied.position, position)
        copied.position = position
        self.tally.note(command[0])

    def _answer_despite_kills(self, command: Sequence[str]) -> Answer:
        """Return the command's answer. Sometimes kill it first, up to three times.

        A command that was killed after its success was recorded is complete. Running it again would be another one.
        """
        for _ in range(3):
            if self.chance.random() > 0.2:
                break
            kill, ended = self.chance.randrange(LAST_KILL), self._ended()
            answer = self._say(command, kill=kill)
            if answer.code != harness.KILLED:
                return answer
            self.tally.note("killed")
            self.copied.log.append(f"killed by {kill}")
            if self._ended() > ended:
                self.tally.note("killed after the end")
                return Answer(0, "", "")
        answer = self._say(command)
        if answer.code == 0 and answer.data["paths"]:
            self._kept(answer.data["kept"], ())
        return answer

    def _ended(self) -> int:
        """Return the number of the newest event that records the end of a command, 0 if the command failed."""
        log = self.copied.project.quick("log", "--kind", "operation.finished", "--limit", "1", "--json")
        return max((int(e["seq"]) for e in log.data["events"] if e["payload"]["error"] is None), default=0)

    def _same(self, files: Files) -> None:
        present = rollback_user.look(self.copied.project.folder)
        wrong = {p: (files.get(p), present.get(p)) for p in _differ(files, present)}
        assert not wrong, f"wanted, found: {wrong}; at the end: {self.copied.log[-4:]}"
        rests = [p.name for p in self.copied.project.folder.rglob(".idumb-*")]
        assert not rests, rests

    def _kept(self, ref: str, paths: Sequence[str]) -> None:
        """Assert that the printed ref contains the described state."""
        tree = self.copied.project.repo.tree(f"{ref}:worktree")
        for path in paths:
            entry = self.copied.present.get(path)
            assert (entry is not None) == (path in tree), f"{path} is not kept in {ref}"
            if entry is not None:
                mode, oid = tree[path]
                assert (mode, oid) == rollback_user.as_git(entry), f"{ref} holds another {path}"

    def _git(self, head: str, staged: dict[str, str], paths: set[str]) -> None:
        """Assert that the branch moved forward by at most the affected paths, and that no other staging changed."""
        repo = self.copied.project.repo
        now = repo.head()
        if head != now:
            assert repo.try_git("merge-base", "--is-ancestor", head, now).returncode == 0
            names = repo.git("diff", "--name-only", "--no-renames", "-z", head, now).split("\0")
            strange = {n for n in names if n and not rollback_user.is_own(n)} - paths
            assert not strange, f"committed as well: {strange}"
        assert self.copied.template.policy == "task" or head == now
        after = _staged(repo)
        strange = {p for p in {*staged, *after} if staged.get(p) != after.get(p)} - paths
        assert not strange, f"staged otherwise: {strange}"


def _staged(repo: GitSandbox) -> dict[str, str]:
    rows = (row.split("\t", 1) for row in repo.git("ls-files", "-s", "-z").split("\0") if row)
    return {path: meta for meta, path in rows if not rollback_user.is_own(path)}


def run(size: int | None, seed: int, folder: Path, tally: Tally, plant: str = "") -> None:
    chance = random.Random(seed)
    case_count = size or PROGRAMME.sample
    templates = [
        create_template(folder / f"template-{n}", seed * 1000 + n) for n in range(min(12, 1 + case_count // 30))
    ]
    number = 0
    while tally.cases < case_count:
        place = folder / f"copy-{number}"
        copied = copy(chance.choice(templates), place)
        failed = len(tally.failures)
        for _ in range(min(ON_A_COPY, case_count - tally.cases)):
            Case(copied, chance, tally, plant).make(f"seed {seed}, copy {number}")
            if len(tally.failures) > failed:
                break
        else:
            shutil.rmtree(place)
        number += 1


LEAST = {"rollback": 6, "undo": 6, "conflicts named": 6, "killed": 6}
PROGRAMME = Programme(
    "T9", "rollback and undo after a user's changes", 60, 2000, run, (LOST_BYTES, TRACEBACK), push=5, least=LEAST
)
