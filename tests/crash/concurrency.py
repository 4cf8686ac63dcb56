"""T6: eight processes with mixed commands on one repository, in one working tree or several.

The checks are invariants over the event log, not expectations about which process wins.
"""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from idumb.domain import outcome
from idumb.domain.runs import replay
from idumb.domain.runs.event import Event
from idumb.domain.runs.run import RunState
from idumb.store import owner_card
from tests.crash import harness
from tests.crash.programme import LEFT_PROCESS, LOST_BYTES, OTHER, TRACEBACK, Programme, Tally
from tests.support import project as projects
from tests.support import warm
from tests.support.answer import Answer
from tests.support.gitrepo import GitSandbox, work_tree
from tests.support.project import Project, making, shell, task
from tests.support.warm import Started

PROCESSES = 8
EACH = 2
# exit codes of the table, and those of a stopped or killed command
CODES = frozenset({0, 1, 4, 5, 130, 143, -9})
DEPENDENCIES: Mapping[str, tuple[str, ...]] = {"T1-01": (), "T1-02": ("T1-01",), "T1-03": ("T1-02",), "T1-04": ()}
NOT_OWNER = frozenset({"lock.held", "lock.elsewhere", "cancel.no-answer"})
OWN = (".idumb", ".planning")

COMMANDS: tuple[tuple[str, ...], ...] = (
    ("execute-phase", "1", "--approve", "CONSENT"),
    ("execute-phase", "1", "--approve", "CONSENT", "--force"),
    ("resume", "1"),
    ("resume", "1", "--retry-failed"),
    ("verify-work", "1"),
    ("stop",),
    ("stop", "--force"),
    ("rollback", "1", "--to", "start", "--yes"),
    ("rollback", "1", "--to", "T1-01", "--yes"),
    ("undo",),
    ("accept", "T1-04", "--why", "good enough"),
    ("skip", "T1-04", "--why", "not now"),
    ("decide", "T1-03.AC-1.1", "yes"),
    ("status",),
    ("next",),
    ("log", "1"),
    ("show", "T1-01"),
    ("decisions",),
    ("audit", "verify"),
)


@dataclass(slots=True)
class CommandRun:
    """One command that ran, and its answer."""

    argv: tuple[str, ...]
    answer: Answer


class Scene:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._numbers = iter(range(1 << 30))
        repo = GitSandbox.create(folder / "template")
        project = projects.create(repo, files={"dirty.txt": "one\n"})
        liked = "  - [ ] it is there — check: `test -s c.txt`\n  - [ ] it is liked — human\n"
        project.plan(
            [
                making("T1-01", "a.txt"),
                task("T1-02", files="create `b.txt`", after="T1-01", steps=[shell("sleep 0.2; echo b > b.txt")]),
                making("T1-03", "c.txt", after="T1-02", criteria=liked),
                task("T1-04", files="create `d.txt`", check="test -s d.txt", steps=[shell("true")]),
            ]
        )
        self.place, self.consent = repo.root, project.approval()

    def copy(self, trees: int) -> list[Project]:
        """Create a repository; with several working trees, the others are linked ones."""
        first = harness.copy(self.place, self._folder / f"copy-{next(self._numbers)}")
        projects = [first]
        for number in range(1, trees):
            linked = first.folder.with_name(f"{first.folder.name}-{number}")
            first.repo.git("worktree", "add", "--quiet", "-b", f"linked-{number}", str(linked))
            projects.append(Project(GitSandbox(linked), linked))
        for project in projects:
            project.repo.write_all({"dirty.txt": "mine\n", "mine.txt": "mine too\n"})
        return projects

    def start(self, project: Project, argv: Sequence[str], *, plant: str = "") -> Started:
        words = harness.undoing(project) if argv == ("undo",) else argv
        filled = [self.consent if word == "CONSENT" else word for word in words]
        hook = "tests.crash.concurrency:plant" if plant else ""
        return warm.start(project.start, *filled, "--json", hook=hook, given=plant)


def plant(fault: str) -> None:
    """Hook: remove the mutual exclusion."""
    assert fault == "everybody owns"
    import os

    from idumb.store import event_log

    def taken(path: str) -> owner_card.OwnerLock:
        return owner_card.OwnerLock(path, os.open(path, os.O_RDWR | os.O_CREAT, 0o600))

    owner_card.take = taken
    event_log._require_fence = lambda *_: None


def mixed(
    scene: Scene, trees: Sequence[Project], chance: random.Random, each: int = EACH, *, plant: str = ""
) -> list[CommandRun]:
    """Run all processes at once; each begins the phase and then runs a few other commands, one after the other."""
    first = [] if plant else [COMMANDS[0]]
    rows = [[*first, *(chance.choice(COMMANDS) for _ in range(each))] for _ in range(PROCESSES)]
    if plant:
        rows = [[COMMANDS[0], COMMANDS[3]] for _ in range(PROCESSES)]
    answers: list[CommandRun] = []
    for turn in range(max(map(len, rows))):
        started = []
        for number, row in enumerate(rows):
            project = trees[number % len(trees)]
            started.append((project, row[turn], scene.start(project, row[turn], plant=plant)))
        answers += [CommandRun(argv, begun.wait()) for project, argv, begun in started]
    return answers


def check(trees: Sequence[Project], runs: Sequence[CommandRun]) -> Iterator[tuple[str, str]]:
    """Return (kind, message) of every violated invariant."""
    for one in runs:
        yield from _answered(one)
    events = harness.events(trees[0])
    places = _places(trees[0])
    yield from _one_owner_at_a_time(events, places)
    yield from _in_order(events)
    yield from _recorded_commits(trees, events)
    yield from _no_trace_of_the_refused(events, runs)
    for project in trees:
        yield from _untouched(project)


def _answered(one: CommandRun) -> Iterator[tuple[str, str]]:
    words, answer = " ".join(one.argv), one.answer
    if "Traceback" in answer.err or "Traceback" in answer.out or answer.code == 70:
        yield TRACEBACK, f"{words}: {answer.out}{answer.err}"
    elif "is locked" in answer.out or "store.busy" in answer.out:
        yield OTHER, f"{words}: shows a locked database: {answer.out}"
    elif answer.code not in CODES and not (answer.code == 3 and one.argv[0] in {"decide", "rollback"}):
        yield OTHER, f"{words}: exit {answer.code}: {answer.out}{answer.err}"
    elif answer.code in {1, 4, 5} and not (answer.error["code"] and answer.error["hint"]):
        yield OTHER, f"{words}: no next step: {answer.out}"


def _places(project: Project) -> dict[str, str]:
    """Return a mapping from run to working tree."""
    database = sqlite3.connect(f"file:{project.repo.common_dir}/idumb/store.db?mode=ro", uri=True)
    try:
        return dict(database.execute("SELECT id, worktree FROM runs").fetchall())
    finally:
        database.close()


def _one_owner_at_a_time(events: Sequence[Event], places: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """I4: in one working tree, operations are sequential, each has its own token, and tokens increase."""
    of_operation = {e.operation: places[e.run] for e in events if e.run is not None and e.run in places}
    ended: dict[str, set[str]] = {}
    last: dict[str, Event] = {}
    for event in events:
        place = of_operation.get(event.operation)
        if place is None:
            continue
        before = last.get(place)
        if before is not None and before.operation != event.operation:
            ended.setdefault(place, set()).add(before.operation)
            if event.fence <= before.fence:
                yield OTHER, f"token {event.fence} at {event.seq} after {before.fence} in {place}"
        if event.operation in ended.get(place, ()):
            yield OTHER, f"operations overlap in {place}: {event.operation} goes on at {event.seq}"
        last[place] = event


def _in_order(events: Sequence[Event]) -> Iterator[tuple[str, str]]:
    """I3: a task runs only after its dependencies are completed, and never while it is completed itself."""
    states: dict[str, RunState] = {}
    for event in events:
        if event.run is None:
            continue
        state = states.setdefault(event.run, RunState())
        if event.kind == "attempt.started":
            task_id = str(event.task)
            if state.tasks[task_id].status in outcome.DONE:
                yield OTHER, f"{task_id} runs at {event.seq} though it is {state.tasks[task_id].status}"
            for needed in DEPENDENCIES[task_id]:
                if state.tasks[needed].status not in outcome.DONE:
                    yield OTHER, f"{task_id} runs at {event.seq} while {needed} is {state.tasks[needed].status}"
        replay.apply(state, event)


_TRAILERS = ("Idumb-Run", "Idumb-Task", "Idumb-Attempt")
_FORMAT = "%H" + "".join(f"%x1f%(trailers:key={name},valueonly)" for name in _TRAILERS) + "%x1e"


def _recorded_commits(trees: Sequence[Project], events: Sequence[Event]) -> Iterator[tuple[str, str]]:
    """I1, I6: a checkpoint's commit is on a branch with its trailers; each commit was announced before."""
    commits: dict[str, tuple[str, str, str]] = {}
    for project in trees:
        for row in project.repo.git("log", f"--format={_FORMAT}").split("\x1e"):
            fields = [field.strip() for field in row.split("\x1f")]
            if len(fields) == 4 and fields[2] and fields[3]:
                commits[fields[0]] = (fields[1], fields[2], fields[3])
    announced = {(str(e.run), str(e.task), str(e.attempt)) for e in events if e.kind == "checkpoint.intended"}
    for commit, named in commits.items():
        if named not in announced:
            yield OTHER, f"commit {commit} of {named} was never announced"
    if len(set(commits.values())) != len(commits):
        yield OTHER, f"an attempt was committed twice: {sorted(commits.values())}"
    for event in events:
        if event.kind == "checkpoint.recorded" and event.payload["commit"] is not None:
            identity = (str(event.run), str(event.task), str(event.attempt))
            if commits.get(event.payload["commit"]) != identity:
                yield OTHER, f"the commit of {identity} is not on a branch: {event.payload['commit']}"


def _no_trace_of_the_refused(events: Sequence[Event], runs: Sequence[CommandRun]) -> Iterator[tuple[str, str]]:
    """Assert that a command that reported another owner wrote nothing."""
    for name in {one.argv[0] for one in runs}:
        owned = sum(1 for t in runs if t.argv[0] == name and not _refused(t.answer))
        begun = {e.operation for e in events if e.kind == "operation.started" and e.payload["command"] == name}
        if len(begun) > owned:
            yield OTHER, f"{len(begun)} operations of {name}, though only {owned} were not refused"


def _refused(answer: Answer) -> bool:
    return answer.code == 4 and answer.error["code"] in NOT_OWNER


def _finds_no_checkout(answer: Answer) -> bool:
    return answer.code == 4 and answer.error["code"] == "checkout.busy"


def _untouched(project: Project) -> Iterator[tuple[str, str]]:
    """I5: the user's files stay, and no file or process is left over."""
    files = {path: entry for path, entry in work_tree(project.folder).items() if path.split("/")[0] not in OWN}
    extra = files.keys() - {"a.txt", "b.txt", "c.txt", "d.txt", "dirty.txt", "mine.txt"}
    if extra:
        yield LOST_BYTES, f"left lying: {sorted(extra)}"
    if (project.read("dirty.txt"), project.read("mine.txt")) != ("mine\n", "mine too\n"):
        yield LOST_BYTES, "the user's files changed"
    if still := harness.left_behind(project):
        yield LEFT_PROCESS, str(still)
    locks = [p.name for p in project.repo.git_dir.glob("*.lock")]
    if locks:
        yield OTHER, f"git's locks stayed: {locks}"


def come_to_rest(scene: Scene, trees: Sequence[Project]) -> Iterator[tuple[str, str]]:
    """I7: afterwards the run can be completed, there is no owner, and a second resume does nothing."""
    for project in trees:
        held = warm.run(project.start, "stop", "--json")
        if held.code != 0 or held.data["owner"] is not None:
            yield OTHER, f"somebody still owns {project.start}: {held.out}"
        for _ in range(2):
            answer = scene.start(project, ("resume", "1", "--approve", "CONSENT")).wait()
            yield from _answered(CommandRun(("resume", "1"), answer))
            tried = sum(1 for e in harness.events(project) if e.kind == "attempt.started")
        again = scene.start(project, ("resume", "1", "--approve", "CONSENT")).wait()
        yield from _answered(CommandRun(("resume", "1"), again))
        if sum(1 for e in harness.events(project) if e.kind == "attempt.started") != tried:
            yield OTHER, f"resume in {project.start} never comes to rest"


def together(scene: Scene, count: int) -> Iterator[tuple[str, str]]:
    """F10: so many working trees, so many executors at once: each runs the whole phase in its own run."""
    trees = scene.copy(count)
    runs = mixed_runs(scene, trees)
    yield from check(trees, runs)
    # More runs than pairs of checkouts: those that find none are refused, and write nothing.
    wrong = [one.answer for one in runs if one.answer.code != 5 and not _finds_no_checkout(one.answer)]
    if wrong:
        yield OTHER, f"a work tree of its own was no protection: {wrong[0].out}{wrong[0].err}"
    if len(_places(trees[0])) != count:
        yield OTHER, f"runs: {_places(trees[0])}"


def mixed_runs(scene: Scene, trees: Sequence[Project]) -> list[CommandRun]:
    started = [(project, scene.start(project, (*COMMANDS[0],))) for project in trees]
    return [CommandRun(COMMANDS[0], begun.wait()) for project, begun in started]


def run(size: int | None, seed: int, folder: Path, tally: Tally) -> None:
    scene = Scene(folder)
    most, each = (PROCESSES, EACH) if size != PROGRAMME.push else (PROCESSES // 2, 1)
    for number in range(size or 0):
        chance = random.Random(f"{seed} {number}")
        turn = (number + seed) % 5
        count = 1 if turn < 3 else most if turn == 4 else chance.choice((2, 3, 4))
        name = f"round {number} of seed {seed}, {count} work trees"
        tally.cases += 1
        if turn == 4:
            problems, runs = list(together(scene, count)), []
            tally.note("commands", count)
        else:
            trees = scene.copy(count)
            runs = mixed(scene, trees, chance, each)
            problems = [*check(trees, runs), *come_to_rest(scene, trees)]
        for kind, words in problems:
            tally.fail(kind, name, words)
        _count(tally, runs)


def _count(tally: Tally, runs: Sequence[CommandRun]) -> None:
    tally.note("commands", len(runs))
    for one in runs:
        ending = "killed" if one.answer.code == -9 else f"exit {one.answer.code}"
        tally.note(f"commands with {ending}")
        if _refused(one.answer):
            tally.note("refused because somebody else owned the work tree")


PROGRAMME = Programme(
    "T6", "eight processes, mixed commands, history checked", 5, 600, run, (LOST_BYTES, TRACEBACK, LEFT_PROCESS), push=1
)
