"""T7: an owner is stopped at a durable call, its working tree is taken over, and the owner continues.

Its later writes must be refused everywhere: in the log, at refs, on the branch, in the working tree.
"""

from __future__ import annotations

import hashlib
import itertools
import random
import signal
import sqlite3
from pathlib import Path
from typing import Any

from idumb.system import machine, process_end, process_tree
from tests.crash import harness
from tests.crash.kill_points import Scene
from tests.crash.killing import DURABLE
from tests.crash.programme import ENDING, OTHER, TRACEBACK, Programme, Tally
from tests.crash.shapes import SHAPES
from tests.support import warm
from tests.support.answer import Answer
from tests.support.gitrepo import Entry, work_tree
from tests.support.project import Project
from tests.support.warm import Started

AFTER, DURING, HERE = "after", "during", "here"
WAYS = (DURING, HERE, AFTER)
# All before the last look at the right to write; after it are microseconds, in which nobody stops a process by chance.
CALLS = (
    *DURABLE,
    ("idumb.store.connection", "Database.write"),
    ("idumb.git.refs", "move"),
    ("idumb.git.write_back", "_write"),
    ("idumb.git.write_back", "_delete"),
    ("idumb.git.checkouts.checkout", "Checkout.end"),
    ("idumb.system.rooted_files", "ProjectFiles.remove"),
    ("idumb.agents.steps", "StepsAgent.run"),
    ("idumb.gates.checks", "ShellChecks.command"),
    ("idumb.gates.checks", "ShellChecks.end_processes"),
    ("idumb.store.ownership", "FileOwnership.release"),
)


def elsewhere(_: Any) -> None:
    """Hook for the command that takes over: another machine."""
    machine.name = lambda: "elsewhere"


ELSEWHERE = "tests.crash.fencing:elsewhere"


def scene_in(folder: Path) -> Scene:
    scene = Scene(SHAPES[0], folder, {"signal": signal.SIGSTOP, "calls": CALLS})
    scene.prepare()
    return scene


def case(scene: Scene, point: int, way: str, *, plant: str = "") -> None:
    """Run one takeover; an AssertionError names the write that was not refused."""
    project, (step,) = scene.copy(0), scene.shape.steps
    old = scene.start(project, step, {"at": point, "plant": plant or None})
    assert old is not None
    if not stopped(old.pid):
        assert old.wait().code == 0
        return
    try:
        if way == HERE:
            _killed(scene, project, old)
        else:
            _continued(scene, project, old, during=way == DURING, point=scene.points[0][point])
    finally:
        _continue(old)
    tokens_only_grow(project)
    for kind, words in harness.wrong(project, scene.end):
        raise AssertionError(f"{kind}: {words}")
    audit = warm.run(project.start, "audit", "verify", "--json")
    assert audit.code == 0, audit


def _killed(scene: Scene, project: Project, old: Started) -> None:
    """A takeover on the same machine, where the old owner can be proven stopped and be killed."""
    took = warm.run(project.start, "stop", "--force", "--json")
    assert took.code == 0, took
    if took.data["owner"] is None:  # stopped before it owned anything, or after
        _continue(old)
        assert old.wait().code in {0, 4}
    else:
        assert took.data["ended"] == "killed", took
        assert old.wait().code == -signal.SIGKILL
    answer = _gone_on(scene, project)
    assert answer.code == 0, answer


def _continued(scene: Scene, project: Project, old: Started, *, during: bool, point: str) -> None:
    """A takeover from another machine; the owner continues while the new one works, or after it."""
    took = warm.run(project.start, "stop", "--force", "--json", hook=ELSEWHERE)
    assert took.code == 0, took
    owned = took.data["owner"] is not None
    if during:
        _continue(old)
    answer = _gone_on(scene, project)
    if during and not owned:  # it had not begun to own, so one of the two was refused
        return
    assert answer.code == 0, answer
    before = everything(project)
    _continue(old)
    late = old.wait()
    assert "Traceback" not in late.err, late.err
    if owned and not (late.code == 0 and _had_ended(project)):
        assert late.code == 4, (point, late)
        assert late.error["code"] in {"lock.lost", "store.fence"}, late
    after = everything(project)
    changed = [name for name in before if before[name] != after[name]]
    assert not owned or changed == [], f"{point}: an old token wrote {changed}: {_differences(before, after)}"


def _gone_on(scene: Scene, project: Project) -> Answer:
    answer = scene.go_on(project, scene.shape.steps[0], hook=ELSEWHERE)
    assert answer is not None
    return answer


def _had_ended(project: Project) -> bool:
    """Return whether the first owner had recorded its own end, so that it had nothing more to write."""
    log = harness.events(project)
    first = next(e.operation for e in log if e.kind == "operation.started")
    return any(e.kind == "operation.finished" and e.operation == first for e in log)


def _continue(old: Started) -> None:
    process_end.signal_process(old.pid, process_tree.process_started(old.pid), signal.SIGCONT)


def stopped(pid: int) -> bool:
    """Wait until the process is stopped; false when it ended without."""
    started = process_tree.process_started(pid)
    while not process_end.wait_for_end(pid, started, 0.005):
        if process_tree.process_is_stopped(pid):
            return True
    return False


def everything(project: Project) -> dict[str, Any]:
    """Everything that an old token could write: events, tokens, refs, index, HEAD, working tree with idumb's files."""
    repo = project.repo
    database = sqlite3.connect(f"file:{repo.common_dir}/idumb/store.db?mode=ro", uri=True)
    try:
        head = database.execute("SELECT COUNT(*), MAX(hash), MAX(seq) FROM events").fetchone()
        owners = database.execute("SELECT worktree, fence, command FROM owners").fetchall()
    finally:
        database.close()
    files: dict[str, Entry] = work_tree(repo.root)
    return {
        "events": head,
        "owners": owners,
        "refs": {
            name: oid
            for name, oid in (repo.refs() | repo.kept()).items()
            if not name.endswith("/scan") and "/done/" not in name
        },
        "index": hashlib.sha256((repo.git_dir / "index").read_bytes()).hexdigest(),
        "head": repo.head(),
        "files": files,
    }


def _differences(before: dict[str, Any], after: dict[str, Any]) -> str:
    differences = []
    for name in ("refs", "files"):
        one, other = before[name], after[name]
        differences += [f"{name} {key}" for key in one.keys() | other.keys() if one.get(key) != other.get(key)]
    return ", ".join(differences)[:500]


def tokens_only_grow(project: Project) -> None:
    """I4: in the log, no token appears after a later one."""
    tokens = [event.fence for event in harness.events(project)]
    assert tokens == sorted(tokens), f"an old token wrote: {tokens}"


def sample(points: int, size: int, chance: random.Random) -> list[tuple[int, str]]:
    """Random points, each taken over in the next way."""
    return list(zip(chance.sample(range(points), size), itertools.cycle(WAYS), strict=False))


def run(size: int | None, seed: int, folder: Path, tally: Tally) -> None:
    chance = random.Random(seed)
    scene = scene_in(folder)
    tally.note("points", len(scene.points[0]) if tally.part == 0 else 0)
    every = [(point, way) for way in WAYS for point in range(len(scene.points[0]))]
    for point, way in tally.share(every if size is None else sample(len(scene.points[0]), size, chance)):
        with tally.case(f"stopped {scene.points[0][point]} (point {point}), taken over {way}", OTHER):
            case(scene, point, way)
        tally.note(f"taken over {way}")


# On a push, another test takes over after the owner.
PROGRAMME = Programme(
    "T7", "an owner stopped, taken over, and continued", 10, None, run, (*ENDING, TRACEBACK), divides=True, push=1
)
