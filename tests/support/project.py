"""Small real projects with plans, driven by the `idumb` program as a user drives it."""

from __future__ import annotations

import contextlib
import functools
import gc
import io
import json
import os
import shlex
import signal
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from tests.support import schemas, warm
from tests.support.answer import Answer
from tests.support.gitrepo import QUICK_COMMIT, ByteLedger, GitSandbox, user_configured_git

IDUMB = (sys.executable, "-m", "idumb")
COLD = "TESTS_START_THE_PROGRAM"
_AT_START = ("PYTHON", "LD_", "LC_", "LANG")


def _sound(answer: Answer) -> Answer:
    for text in (answer.out, answer.err):
        assert "Traceback" not in text, text
        assert "\x1b" not in text, text
        assert "idumb has a defect" not in text, text
    return answer


class Running:
    """A command that runs beside the test, seen by the events that come through a pipe."""

    def __init__(self, command: warm.Started, pipe: TextIO) -> None:
        self._command = command
        self._pipe = pipe
        self.pid = command.pid
        self.seen: list[dict[str, Any]] = []

    def wait_for(self, kind: str, task: str | None = None) -> dict[str, Any]:
        """The next event of this kind; an AssertionError when the command ends before it."""
        for line in self._pipe:
            self.seen.append(json.loads(line))
            if self.seen[-1]["kind"] == kind and task in {None, self.seen[-1]["task"]}:
                return self.seen[-1]
        code = self.end()
        message = f"it ended with {code} before {kind}: {[e['kind'] for e in self.seen]} {self.err}"
        raise AssertionError(message)

    def end(self) -> int:
        """Read to the end and give the exit code."""
        self.seen += [json.loads(line) for line in self._pipe]
        answer = self._command.wait()
        self.err = answer.err
        return answer.code


@dataclass(frozen=True, slots=True)
class Project:
    """A repository with idumb set up in it. `start` is the folder in which commands are started."""

    repo: GitSandbox
    start: Path

    @property
    def folder(self) -> Path:
        return self.repo.root

    def idumb(self, *arguments: str, given: str | None = None, environment: Mapping[str, str] | None = None) -> Answer:
        """Run a command with no terminal and check what holds for every answer: no traceback, no control codes.

        It is a process of its own, forked from one that has imported everything, unless COLD is set in the
        environment of the tests or the command's environment says how Python starts.
        """
        if not os.environ.get(COLD) and not any(name.startswith(_AT_START) for name in environment or ()):
            ended = warm.run(self.start, *arguments, environment=environment, typed=given or "")
            return _sound(ended)
        done = subprocess.run(
            [*IDUMB, *arguments],
            cwd=self.start,
            env={**os.environ, **(environment or {})},
            input=given or "",
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        return _sound(Answer(done.returncode, done.stdout, done.stderr))

    def quick(self, *arguments: str) -> Answer:
        """The same command line in this process, which takes half of the time, unless COLD is set."""
        if os.environ.get(COLD):
            return self.idumb(*arguments)
        from idumb.cli import main

        out, err = io.StringIO(), io.StringIO()
        handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
        with contextlib.chdir(self.start), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                code = main.run(arguments)
            finally:
                gc.enable()
                for number, handler in handlers.items():
                    signal.signal(number, handler)
        answer = _sound(Answer(code, out.getvalue(), err.getvalue()))
        if "--json" in arguments:
            schemas.check(arguments, answer.object)
        return answer

    def json(self, *arguments: str) -> Answer:
        """`quick` with `--json`."""
        answer = self.quick(*arguments, "--json")
        assert answer.object["command"] == arguments[0]
        return answer

    @contextlib.contextmanager
    def beside(self, *arguments: str, terminal: str = "", pipe: Path | None = None) -> Iterator[warm.Started]:
        """A command that runs beside the test, and has ended when the block ends; the process is no child of the test.

        The terminal of that name controls it, so that it gets SIGHUP when the other side of the terminal is closed.
        """
        command = warm.start(self.start, *arguments, terminal=terminal, pipe=pipe)
        try:
            yield command
        finally:
            if command.answer is None:
                os.kill(command.pid, signal.SIGKILL)
                command.wait()

    @contextlib.contextmanager
    def running(self, *arguments: str) -> Iterator[Running]:
        """The same with `--events`."""
        with tempfile.TemporaryDirectory(prefix="idumb-tests-") as folder:
            pipe = Path(folder, "events")
            os.mkfifo(pipe)
            with self.beside(*arguments, "--events", pipe=pipe) as command, pipe.open(encoding="utf-8") as stream:
                yield Running(command, stream)

    def undoing(self) -> tuple[str, ...]:
        """Return the words that undo the newest operation without a question; `undo` names them when it refuses."""
        error = self.json("undo").error
        unconfirmed = error["code"] == "rollback.not-confirmed"
        return tuple(shlex.split(error["hint"])[1:]) if unconfirmed else ("undo", "--yes")

    def approval(self, phase: str = "1") -> str:
        checked = self.quick("check-plan", phase, "--json")
        assert checked.code == 0, checked.out
        return str(checked.data["consent_hash"])

    def contract_hash(self, phase: str = "1") -> str:
        return str(self.quick("check-plan", phase, "--json").data["contract_hash"])

    def approving(self, phase: str = "1") -> tuple[str, ...]:
        """Return the words that approve a phase as it is, and answer the open questions of a strict one with yes."""
        data = self.quick("check-plan", phase, "--json").data
        questions = ",".join(str(one["id"]) for one in data.get("open_questions", ()))
        answers = ("--answer", f"{questions}=yes") if questions and data["mode"] == "strict" else ()
        return ("approve", phase, *answers, "--hash", str(data["contract_hash"]))

    def execute(self, *flags: str, phase: str = "1", command: str = "execute-phase") -> Answer:
        """Run a phase under consent to just this contract, in this process: nothing may kill idumb."""
        return self.json(command, phase, "--approve", self.approval(phase), *flags)

    def resume(self, *flags: str, phase: str = "1") -> Answer:
        return self.json("resume", phase, *flags)

    def plan(
        self, tasks: Iterable[str], *, phase: str = "1", name: str = "01", folder: str | None = None, head: str = "",
        tail: str = "", commit: bool = True,
    ) -> Path:  # fmt: skip
        """Write a plan of these tasks, and commit it with all of idumb's files."""
        text = plan_text(tasks, phase=phase, name=name, head=head, tail=tail)
        place = self.folder / ".planning" / "phases" / (folder or phase) / f"{name}-PLAN.md"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, encoding="utf-8")
        if commit:
            self.commit_own()
        return place

    def configure(self, text: str) -> None:
        (self.folder / ".idumb" / "config.yaml").write_text(text, encoding="utf-8")
        self.commit_own()

    def built_by(self, script: str, more: str = "") -> None:
        """Let an agent that runs a shell script build what has no steps; `more` are other settings."""
        agent = f"{{adapter: command, argv: [sh, -c, {json.dumps(script)}]}}"
        self.configure(f"builder: agent\n{more}bindings:\n  agent: {agent}\n")

    def clone(self, place: Path) -> Project:
        """A colleague's clone."""
        self.repo.git("clone", "--quiet", str(self.folder), str(place))
        repo = GitSandbox(place)
        repo.git("config", "user.name", "Colleague")
        repo.git("config", "user.email", "colleague@example.invalid")
        return Project(repo, place)

    def commit_own(self) -> None:
        """Commit the files that idumb and the planner wrote, and nothing else."""
        own = [name for name in (".idumb", ".planning") if (self.folder / name).exists()]
        self.repo.git("add", "--", *own)
        self.repo.git(*QUICK_COMMIT, "--quiet", "--allow-empty", "-m", "plan", "--", *own)

    def read(self, path: str) -> str:
        return (self.folder / path).read_bytes().decode()

    def exists(self, path: str) -> bool:
        return os.path.lexists(self.folder / path)

    def statuses(self, phase: str = "1") -> dict[str, str]:
        """Task to status, as `graph` shows them."""
        status_of = self.quick("graph", phase, "--json").data["status"]
        return {str(task): str(status) for task, status in status_of.items()}

    def trailers(self, name: str) -> list[str]:
        """The values of a trailer over all commits of HEAD, oldest first."""
        pretty = f"--format=%(trailers:key={name},valueonly,separator=%x2C)"
        return [line for line in self.repo.git("log", "--reverse", pretty).splitlines() if line]

    def subjects(self) -> list[str]:
        return self.repo.git("log", "--reverse", "--format=%s").splitlines()

    def events(self, *filters: str) -> list[dict[str, Any]]:
        rows = self.quick("log", *filters, "--limit", "100000", "--json").data["events"]
        return [dict(event) for event in rows]


def plan_text(tasks: Iterable[str], *, phase: str = "1", name: str = "01", head: str = "", tail: str = "") -> str:
    return (
        f'---\ntype: plan\nphase: "{phase}"\nplan: "{name}"\ntitle: A plan of tests\ngoal: Files are there\n{head}---\n'
        f"\n# Phase {phase}\n\n## Tasks\n\n" + "\n".join(tasks) + f"\n{tail}"
    )


def task(
    id: str,
    *,
    files: str | None = None,
    check: str = "",
    after: str = "none",
    steps: Iterable[Mapping[str, Any]] = (),
    fields: str = "",
    criteria: str = "",
) -> str:
    """A task with steps; `fields` are more lines of its field list, `criteria` replace its one criterion.

    Without `check`, that one always holds, although its text does not show it.
    """
    boxes = criteria or f"  - [ ] it holds — check: `{check or f'test -d . # {id}'}`\n"
    declared = f"- **Files:** {files}\n" if files is not None else ""
    lines = "\n".join(f"- {json.dumps(step)}" for step in steps)
    fence = f"\n```yaml steps\n{lines}\n```\n" if lines else ""
    return f"### {id}: Task {id}\n\n- **Depends on:** {after}\n{declared}- **Acceptance:**\n{boxes}{fields}{fence}\n"


def write(path: str, content: str, **more: Any) -> dict[str, Any]:
    return {"tool": "write_file", "intent": f"write {path}", "arguments": {"path": path, "content": content}, **more}


def edit(path: str, find: str, replace: str) -> dict[str, Any]:
    arguments = {"path": path, "find": find, "replace": replace}
    return {"tool": "edit_file", "intent": f"edit {path}", "arguments": arguments}


def delete(path: str) -> dict[str, Any]:
    return {"tool": "delete_file", "intent": f"delete {path}", "arguments": {"path": path}}


def shell(command: str) -> dict[str, Any]:
    return {"tool": "run", "intent": "run a command", "arguments": {"command": command}}


def making(id: str, path: str, content: str = "made\n", after: str = "none", **more: Any) -> str:
    """Return a task that creates one file and checks that it exists."""
    steps = more.pop("steps", (write(path, content),))
    return task(id, files=f"create `{path}`", check=f"test -s {path}", after=after, steps=steps, **more)


def create(repo: GitSandbox, *, files: Mapping[str, str | bytes] | None = None, commit: bool = True) -> Project:
    """A project with idumb set up in it; with two commits unless `commit` is false.

    In a repository as `GitSandbox.create` makes it, the files of an equal project are written again: `init` stores
    neither a path nor anything outside the repository.
    """
    if files is None:
        files = {"README.md": "# A project\n", ".gitignore": "*.log\n"}
    if not commit or os.environ.get(COLD) or not _is_new(repo):
        return _set_up(repo, files, commit=commit)
    for path, mode, content in _files_of_new(tuple(files.items())):
        repo.write(path, content, mode=mode)
    repo.git("update-index", "--refresh")  # it holds inodes and times of the files that were copied
    return Project(repo, repo.root)


def _set_up(repo: GitSandbox, files: Mapping[str, str | bytes], *, commit: bool) -> Project:
    repo.write_all(files)
    project = Project(repo, repo.root)
    if commit:
        repo.commit("first")
    assert project.quick("init").code == 0
    if commit:
        project.commit_own()
    return project


def _is_new(repo: GitSandbox) -> bool:
    """True if nothing but `GitSandbox.create` happened to the repository, and the user has not configured git."""
    if repo.environment or user_configured_git():
        return False
    return _contents(repo.root) == _contents_of_new()


@functools.cache
def _contents_of_new() -> list[tuple[str, int, bytes]]:
    with tempfile.TemporaryDirectory(prefix="idumb-tests-") as folder:
        return _contents(GitSandbox.create(Path(folder, "repo")).root)


@functools.cache
def _files_of_new(files: tuple[tuple[str, str | bytes], ...]) -> list[tuple[str, int, bytes]]:
    with tempfile.TemporaryDirectory(prefix="idumb-tests-") as folder:
        project = _set_up(GitSandbox.create(Path(folder, "repo")), dict(files), commit=True)
        return _contents(project.folder)


def _contents(root: Path) -> list[tuple[str, int, bytes]]:
    """(path, permissions, bytes) of every file, `.git` included; of a link, the bytes are its target's name."""
    contents = []
    for folder, folders, files in os.walk(root):
        places = [Path(folder, name) for name in (*files, *folders)]
        contents += [(str(p.relative_to(root)), *_content(p)) for p in places if p.is_symlink() or not p.is_dir()]
    return sorted(contents)


def _content(place: Path) -> tuple[int, bytes]:
    if place.is_symlink():
        return 0, os.fsencode(place.readlink())
    return stat.S_IMODE(place.stat().st_mode), place.read_bytes()


def user_bytes(before: ByteLedger, after: ByteLedger) -> list[str]:
    """Return the user's paths that differ, without idumb's own files."""
    return [path for path in before.changed_paths(after) if path.split("/")[0] not in (".idumb", ".planning")]


def failing_task(id: str, path: str, after: str = "none", **more: str) -> str:
    """Return a task whose check always fails."""
    return task(id, files=f"create `{path}`", check="false", after=after, steps=[write(path, "x\n")], **more)
