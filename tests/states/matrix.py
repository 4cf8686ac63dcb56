"""T8: states of a repository x what can happen in it, with every byte of the user accounted for.

The plan has two tasks. While the second is built, `actor` runs, and its criterion runs `judge` beside it; so a case
says what happens by what it writes into these two files.
"""

from __future__ import annotations

import functools
import os
import random
import shlex
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from tests.crash import programme as programmes
from tests.crash.programme import Programme, Tally
from tests.states import ledgers
from tests.states.ledgers import Record
from tests.states.state import TOUCHED, Scene, bring, copied, template
from tests.states.states import ALL, State
from tests.support import seed as seeds
from tests.support import warm
from tests.support.answer import Answer
from tests.support.gitrepo import Entry, GitSandbox

UNREADABLE = ("git.unsupported-format", "git.ownership")
TELL_PID = "echo stopping; kill -{signal} $(cat {case}/pid); sleep 60\n"


@dataclass(frozen=True, slots=True)
class Case:
    """One state in one copy of the project; `plant` names a fault that is put into idumb on purpose."""

    state: State
    scene: Scene
    consent: str
    plant: str = ""

    def say(self, name: str, text: str) -> None:
        (self.scene.case / name).write_text(text, encoding="ascii")

    def idumb(self, repo: GitSandbox, *arguments: str, crash: str = "") -> Answer:
        given = {"pid": str(self.scene.case / "pid"), "crash": crash, "plant": self.plant}
        place = repo.root / self.state.start
        answer = warm.run(
            place,
            *arguments,
            "--json",
            environment={**self.state.environment, **self.scene.variables},
            hook="tests.states.matrix:begin",
            given=given,
        )
        assert "Traceback" not in answer.out + answer.err, answer
        return answer

    def undo(self, repo: GitSandbox) -> Answer:
        """Undo the newest operation, by the command that the refusal of `undo` names."""
        return self.idumb(repo, *shlex.split(self.idumb(repo, "undo").error["hint"])[1:])

    def execute(self, repo: GitSandbox, *flags: str, crash: str = "") -> Answer:
        return self.idumb(repo, "execute-phase", "1", "--approve", self.consent, *flags, crash=crash)

    def resume(self, repo: GitSandbox, *flags: str) -> Answer:
        return self.idumb(repo, "resume", "1", *flags)


def begin(given: dict[str, Any]) -> None:
    """In the process of a command, before it starts: leave its id, and put in the crash or the fault of the case."""
    Path(given["pid"]).write_text(str(os.getpid()), encoding="ascii")
    from tests.crash.killing import Points
    from tests.states import planted

    planted.put(given["plant"])
    if given["crash"]:
        point = given["crash"].replace("commit", "GitHistory.advance")
        Points({"at": point, "occurrence": 2}).around("idumb.git.history", "GitHistory.advance")


# What happens in a state, given that it is one in which idumb runs.


def _sound(repo: GitSandbox) -> None:
    checked = repo.try_git("fsck", "--no-progress", "--no-dangling")
    assert checked.returncode == 0, checked.stderr.decode(errors="replace")
    kept = {"owner.lock", *(f"{number}.lock" for number in range(9))}  # the latter of checkouts
    locks = [str(path) for path in repo.common_dir.rglob("*.lock") if path.name not in kept]
    assert locks == [], locks


def _ran(before: Record, repo: GitSandbox, answer: Answer) -> Record:
    """The tasks are done; all else is as it was."""
    assert answer.code == 0, answer.out
    assert answer.data["outcome"] == "complete"
    after = ledgers.record(repo)
    ledgers.kept(before, after)
    present = {path: after.user.get(path) for path in TOUCHED}
    assert [path for path, entry in present.items() if entry is None] == ["old.txt"]
    assert b"TWO" in (repo.root / "app.txt").read_bytes()
    pretty = "--format=%(trailers:key=Idumb-Task,valueonly,separator=%x2C)"
    done = repo.git("-c", "trailer.separators=:", "log", pretty).split()
    assert done == ["T1-02", "T1-01"], done
    _sound(repo)
    return after


def run(case: Case, repo: GitSandbox) -> None:
    before = ledgers.record(repo)
    _ran(before, repo, case.execute(repo))


def fail(case: Case, repo: GitSandbox) -> None:
    """The second task fails, is fixed by the user, and retried."""
    before = ledgers.record(repo)
    case.say("judge", "exit 1\n")
    answer = case.execute(repo, "--max-attempts", "1")
    assert answer.code == 1, answer.out
    ledgers.kept(before, ledgers.record(repo))
    case.say("judge", "exit 0\n")
    _ran(before, repo, case.resume(repo, "--retry-failed", "--no-verify"))


def cancel(case: Case, repo: GitSandbox) -> None:
    before = ledgers.record(repo)
    case.say("actor", TELL_PID.format(signal="INT", case=case.scene.case))
    answer = case.execute(repo)
    assert answer.code == 130, answer.out
    ledgers.kept(before, ledgers.record(repo))
    case.say("actor", "exit 0\n")
    _ran(before, repo, case.resume(repo, "--no-verify"))


def crash(case: Case, repo: GitSandbox, place: str) -> None:
    """kill -9 while the builder works, or around the commit."""
    before = ledgers.record(repo)
    if place == "build":
        case.say("actor", TELL_PID.format(signal="KILL", case=case.scene.case))
    answer = case.execute(repo, crash="" if place == "build" else place)
    assert answer.code == -9, answer
    ledgers.kept(before, ledgers.record(repo))
    case.say("actor", "exit 0\n")
    _ran(before, repo, case.resume(repo, "--no-verify"))


def rollback(case: Case, repo: GitSandbox) -> None:
    """Everything is restored, byte by byte, also after git's garbage collection."""
    before = ledgers.record(repo)
    _ran(before, repo, case.execute(repo, "--no-verify"))
    repo.git("-c", "gc.reflogExpire=now", "gc", "--quiet", "--prune=now")
    answer = case.idumb(repo, "rollback", "1", "--to", "start", "--yes")
    assert answer.code == 0, answer.out
    after = ledgers.record(repo)
    ledgers.equal("after a rollback", before.user, after.user)
    ledgers.kept(before, after)
    _sound(repo)


def undo(case: Case, repo: GitSandbox) -> None:
    """Undo of a rollback, and undo of the undo."""
    before = ledgers.record(repo)
    done = _ran(before, repo, case.execute(repo, "--no-verify"))
    answer = case.idumb(repo, "rollback", "1", "--to", "start", "--yes")
    for expected in (before, done, before):
        assert answer.code == 0, answer.out
        ledgers.equal(f"after {answer.object['command']}", expected.user, ledgers.record(repo).user)
        answer = case.undo(repo)
    ledgers.kept(before, ledgers.record(repo))
    _sound(repo)


def late(case: Case, after_run: Record) -> None:
    """The run came before the state and left `left`; whatever rollback answers now, it changes no user file."""
    repo = case.scene.repo
    before = ledgers.record(repo)
    gone = {path for path in TOUCHED if path.startswith("out/") and path not in before.user}  # as at the start
    changed = [
        path for path in TOUCHED if path in gone or _same_to_git(before.user.get(path), after_run.user.get(path))
    ]
    answer = case.idumb(repo, "rollback", "1", "--to", "start", "--yes")
    assert answer.code in {0, 1, 4}, answer
    after = ledgers.record(repo)
    if answer.code == 4:
        assert answer.error["hint"], answer
        ledgers.kept(before, after, (), moves=False)
        return
    ledgers.kept(before, after, tuple(changed))
    for path in changed:
        was, left_mode, now = (record.user.get(path) for record in (before, after_run, after))
        if was and left_mode and now and was.mode != left_mode.mode:
            assert now.mode == was.mode, (path, was, now)
    if answer.code == 0:
        assert case.undo(repo).code == 0
        ledgers.equal("after undo", before.user, ledgers.record(repo).user)


def _same_to_git(one: Entry | None, other: Entry | None) -> bool:
    """Whether they differ at most in a mode that git does not know; such a mode is the user's, and is kept."""
    if one is None or other is None:
        return one is other
    keys = [(entry.type, entry.digest, entry.target, bool(entry.mode & 0o100)) for entry in (one, other)]
    return keys[0] == keys[1]


CRASHES = {"crash": "build", "crash before commit": "before commit", "crash after commit": "after commit"}
ACTIONS: dict[str, Callable[[Case, GitSandbox], object]] = {
    "run": run,
    "fail": fail,
    "cancel": cancel,
    **{name: functools.partial(crash, place=place) for name, place in CRASHES.items()},
    "rollback": rollback,
    "undo": undo,
}
LATE = "late"


def refused(case: Case, repo: GitSandbox, code: str) -> None:
    """One clear line before anything changes."""
    before = ledgers.everything(repo.root)
    answer = case.execute(repo)
    assert answer.code == {"plan": 3, "run": 5}.get(code.partition(".")[0], 4), answer
    assert answer.error["code"] == code, answer.error
    assert "\n" not in answer.error["message"], answer.error
    assert answer.error["hint"], answer.error
    ledgers.equal("files", before, ledgers.everything(repo.root))


def commit_refused(case: Case, repo: GitSandbox, code: str) -> None:
    """Git's message, exit code 1, nothing is delivered, and a second try gives the same result."""
    before = ledgers.record(repo)
    for answer in (case.execute(repo), case.resume(repo)):
        assert answer.code == 1, answer
        assert answer.error["code"] == code, answer.error
        after = ledgers.record(repo)
        ledgers.kept(before, after, ())


def carry_out(case: Case, action: str) -> None:
    after_run = ledgers.record(case.scene.repo) if action == "late" else None
    repo = bring(case.scene, case.state)
    if after_run is not None:
        late(case, after_run)
    elif case.state.ends == "runs":
        ACTIONS[action](case, repo)
    elif case.state.ends.startswith("refused"):
        refused(case, repo, case.state.code)
    else:
        commit_refused(case, repo, case.state.code)


def pairs(size: int | None, seed: int) -> list[tuple[State, str]]:
    """All pairs where there is no size; else so many states, each with one action, which the seed chooses."""
    able = {state.name: [action for action in (*ACTIONS, LATE) if _possible(state, action)] for state in ALL.values()}
    if size is None:
        return [(state, action) for state in ALL.values() for action in able[state.name]]
    chance = random.Random(seed)
    return [(state, chance.choice(able[state.name])) for state in chance.sample(list(ALL.values()), size)]


def _possible(state: State, action: str) -> bool:
    """A state that refuses is the same for all that begins with a run."""
    if state.ends != "runs" and action not in {"run", "late"}:
        return False
    return action != "late" or not (state.elsewhere or state.code in UNREADABLE)


KINDS: dict[str, tuple[str, ...]] = {
    "files of the user, ignored or not": ("F1", "F2", "F3", "F4"),
    "the index": ("F5",),
    "an unfinished command of git": ("F6",),
    "another branch, worktree or repository": ("F7", "F8", "F9", "F10"),
    "repositories inside, and less than everything": ("F11", "F12", "F14"),
    "filters and line endings": ("F13", "F17"),
    "names, links, modes, pipes": ("F16", "F18", "F19", "F20", "F21"),
    "hooks and settings of commits": ("F22", "F23"),
    "formats, damage, locks, another owner": ("F15", "F25", "F41", "F43"),
}
"""Rows by kind: `make test` takes one state of each kind."""


def one_of(kind: str) -> tuple[State, str]:
    """The state of a kind that this commit tries, and the action."""
    states = [state for state in ALL.values() if not {*state.rows}.isdisjoint(KINDS[kind])]
    state = seeds.one_of(states, kind)
    return state, seeds.one_of([action for action in (*ACTIONS, LATE) if _possible(state, action)], f"act on {kind}")


class Bench:
    """The projects that are copied, and what runs in the copies."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._consent = template(folder / "fresh")

    @cached_property
    def _ran(self) -> Path:
        scene = copied(self._folder / "fresh", self._folder / "ran")
        done = Case(State("plain"), scene, self._consent)
        assert done.execute(scene.repo, "--no-verify").code == 0
        return scene.case

    def carry_out(self, state: State, action: str, place: Path) -> None:
        scene = copied(self._ran if action == LATE else self._folder / "fresh", place)
        carry_out(Case(state, scene, self._consent), action)
        shutil.rmtree(place)


def programme_run(size: int | None, seed: int, folder: Path, tally: Tally) -> None:
    bench = Bench(folder)
    for number, (state, action) in enumerate(pairs(size, seed)):
        with tally.case(f"{state.name} ({', '.join(state.rows)}) x {action}", programmes.LOST_BYTES):
            bench.carry_out(state, action, folder / f"case-{number}")
        tally.note(f"{action} cases")
    tally.note("states", len(ALL))


PROGRAMME = Programme(
    "T8",
    "States of repositories, by what happens in them",
    len(ALL),
    None,
    programme_run,
    (programmes.LOST_BYTES, programmes.TRACEBACK),
)
