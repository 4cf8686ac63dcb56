"""Projects of several shapes, each with the commands that complete it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.crash import harness
from tests.support import project as projects
from tests.support.gitrepo import GitSandbox
from tests.support.project import Project, making, shell, task, write

CONSENT = ("--approve", "{consent}")
EXECUTE = ("execute-phase", "1", *CONSENT)
RESUME = ("resume", "1", *CONSENT)
HUMAN = "### {id}: A person says so\n\n- **Kind:** human-verify\n- **Depends on:** {after}\n\n"
HOOK = "#!/bin/sh\nif test -e {flag}; then echo 'not yet' >&2; exit 1; fi\n"


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that a user does: `argv` of idumb that ends with `code`, or an act of their own.

    `{consent}` stands for the hash, `@T1-01` for the question that is open about a task.
    """

    argv: tuple[str, ...] = ()
    code: int = 0
    act: Callable[[Project], None] | None = None


@dataclass(frozen=True, slots=True)
class Shape:
    """`phase` is the phase that `steps` run; `resume` continues it. `asks` is a command that asks for its consent."""

    name: str
    build: Callable[[Path], Project]
    steps: tuple[Step, ...]
    phase: str = "1"
    asks: tuple[str, ...] = ()

    @property
    def resume(self) -> tuple[str, ...]:
        return ("resume", self.phase, *CONSENT)


def _project(place: Path, files: dict[str, str | bytes] | None = None) -> Project:
    """With work of the user: a staged change, a later change, and an untracked file."""
    repo = GitSandbox.create(place)
    mine: dict[str, str | bytes] = {"staged.txt": "one\n", "dirty.txt": "one\n", ".gitignore": "*.log\n"}
    return projects.create(repo, files={**mine, **(files or {})})


def _work(project: Project) -> None:
    harness.work_of_the_user(project.repo)
    project.repo.write("mine.log", "ignored\n")


def _chain(place: Path) -> Project:
    """Four tasks, one retry, one deletion."""
    project = _project(place, {"old.txt": "old\n", "tools/builder.py": harness.BUILDER})
    project.configure(harness.CONFIG)
    project.plan(
        [
            making("T1-01", "sub/a.txt"),
            _retried("T1-02", after="T1-01"),
            harness.removing("T1-03", "T1-02"),
            harness.growing("T1-04", "T1-03"),
        ]
    )
    _work(project)
    return project


def _retried(id: str, after: str) -> str:
    """Its first attempt fails."""
    check, fields = 'test "$(cat list.txt)" = good', "- **Builder:** builder\n"
    return task(id, files="create `list.txt`", check=check, after=after, fields=fields)


def _pair(place: Path) -> Project:
    """Two small tasks: many of them can be run."""
    project = _project(place, {"a.txt": "one\n"})
    project.plan(
        [
            task("T1-01", files="modify `a.txt`", check="true", steps=[write("a.txt", "two\n")]),
            making("T1-02", "sub/b.txt", after="T1-01"),
        ]
    )
    _work(project)
    return project


def _fan(place: Path) -> Project:
    """One root, five that need only it: two make files, one fails for good, one asks, one is tried three times."""
    project = _project(place, {"count.py": harness.BUILDER})
    project.configure(harness.CONFIG.replace("tools/builder.py", "count.py"))
    project.plan(
        [
            making("T1-01", "a.txt"),
            making("T1-02", "b.txt", after="T1-01"),
            _failing("T1-03", "bad.txt"),
            _failing("T1-04", "ask.txt", fields="- **On failure:** ask\n"),
            _retried("T1-05", after="T1-01"),
            making("T1-06", "c.txt", after="T1-01"),
        ]
    )
    _work(project)
    return project


def _failing(id: str, path: str, fields: str = "") -> str:
    steps = [write(path, "bad\n")]
    return task(id, files=f"create `{path}`", check=f"grep -q good {path}", after="T1-01", fields=fields, steps=steps)


def _uncommitted(place: Path) -> Project:
    """Without commits for the user."""
    project = _project(place, {"old.txt": "old\n"})
    project.configure("git: {commit: none}\n")
    project.plan(harness.CHAIN)
    _work(project)
    return project


def _people(place: Path) -> Project:
    """A person confirms in the middle, rolls work back, and has it repeated."""
    project = _project(place)
    project.plan(
        [
            making("T1-01", "a.txt"),
            HUMAN.format(id="T1-02", after="T1-01"),
            task("T1-03", files="modify `a.txt`", check="true", after="T1-02", steps=[shell("echo b >> a.txt")]),
            making("T1-04", "new/b.txt", after="T1-03"),
        ]
    )
    _work(project)
    return project


def _refused(place: Path) -> Project:
    """A hook of the user refuses the tasks' commits until it is changed."""
    project = _project(place)
    project.plan([making("T1-01", "a.txt"), making("T1-02", "b.txt", after="T1-01")])
    _work(project)
    hook = project.repo.git_dir / "hooks" / "pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(HOOK.format(flag='"$(dirname "$0")/../not-yet"'), encoding="ascii")
    hook.chmod(0o755)
    (project.repo.git_dir / "not-yet").touch()
    return project


def _allow(project: Project) -> None:
    (project.folder / ".git" / "not-yet").unlink(missing_ok=True)


def _driven(place: Path) -> Project:
    """Two tasks that are built from an editor: one makes a file, one changes it."""
    project = _project(place)
    project.plan(
        [
            task("T1-01", files="create `sub/a.txt`", check="test -s sub/a.txt"),
            task("T1-02", files="modify `sub/a.txt`", check="grep -q more sub/a.txt", after="T1-01"),
        ],
        head="builder: editor\n",
    )
    _work(project)
    return project


def _make(project: Project) -> None:
    project.repo.write("sub/a.txt", "made\n")


def _change(project: Project) -> None:
    project.repo.write("sub/a.txt", "made\nmore\n")


BRANCH = """
### more: Add more

```yaml step
kind: script
run: echo "$WORD" >> a.txt; echo $((1 + 1))
takes: {WORD: make.word}
files: {modify: [a.txt]}
outputs: {lines: integer}
```

### less: Remove it

```yaml step
kind: script
run: rm a.txt
files: {delete: [a.txt]}
```

### last: Use the number

```yaml step
kind: script
run: echo "$LINES" > sub.txt
takes: {LINES: more.lines}
files: {create: [sub.txt]}
```
"""
"""The two ways on from a condition `is-more`, and a step after both."""
WORKFLOW = """---
type: workflow
name: w
version: 1.0.0
description: Every kind of step, but no agent.
inputs: {word: text}
---

## All

### make: Make it

```yaml step
kind: script
run: echo "$INPUT_WORD" > a.txt
files: {create: [a.txt]}
outputs: {word: {type: text, file: a.txt}}
handoff_to: ["human", "workflow:w", nobody]
```

### ask: Ask a person

```yaml step
kind: human
options: {more: add more, less: leave it}
```

### is-more: More?

```yaml step
kind: condition
if: steps.ask.choice == 'more' and steps.make.word != ''
then: [more]
else: [less]
```

"""
WORKFLOW += BRANCH


def _workflow(place: Path) -> Project:
    """A workflow: its plan is written when a run of it has consent."""
    project = _project(place)
    project.repo.write(".idumb/workflows/w.md", WORKFLOW)
    project.repo.git("add", ".idumb")
    project.repo.git("commit", "-qm", "a workflow")
    _work(project)
    return project


START = ("workflow", "run", "w", "--input", "word=good", *CONSENT)
PAIR = Shape("two small tasks", _pair, (Step(EXECUTE),))
SHAPES = (
    Shape("a chain with a retry", _chain, (Step(EXECUTE),)),
    Shape(
        "a fan with failures",
        _fan,
        (Step(EXECUTE, code=5), Step(("decide", "@T1-04", "skip")), Step(RESUME, code=1)),
    ),
    Shape("a run that commits nothing", _uncommitted, (Step(EXECUTE),)),
    Shape(
        "people and a rollback",
        _people,
        (
            Step(EXECUTE, code=5),
            Step(("decide", "@T1-02", "yes")),
            Step(RESUME),
            Step(("rollback", "1", "--to", "T1-02", "--yes")),
            Step(RESUME),
        ),
    ),
    Shape("a hook that refuses", _refused, (Step(EXECUTE, code=1), Step(act=_allow), Step(RESUME))),
    Shape(
        "work in an editor",
        _driven,
        (
            Step(("start", "T1-01", *CONSENT)),
            Step(act=_make),
            Step(("submit", "T1-01", *CONSENT)),
            Step(("start", "T1-02", *CONSENT)),
            Step(act=_change),
            Step(("submit", "T1-02", *CONSENT)),
        ),
    ),
    Shape(
        "a workflow with a branch",
        _workflow,
        (
            Step(START, code=5),
            Step(("decide", "@TW1-02", "more")),
            Step(("resume", "W1", *CONSENT)),
            Step(("rollback", "W1", "--to", "TW1-01", "--yes")),
            Step(("resume", "W1", *CONSENT), code=5),
            Step(("decide", "@TW1-02", "less")),
            Step(("resume", "W1", *CONSENT)),
        ),
        phase="W1",
        asks=START[:5],
    ),
)
