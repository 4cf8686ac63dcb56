"""T11: every file that idumb keeps is flipped, truncated, emptied, removed, outdated or filled with garbage.

There are two halves. Bytes of the database and of the recorded newest number are damaged one at a time and read in this
process, many times. Whole files are damaged in a project that stopped in the middle of a phase, and the commands
continue from there.
"""

from __future__ import annotations

import itertools
import os
import random
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from idumb.domain.errors import IdumbError
from idumb.domain.runs.event import Event
from idumb.store import doctor_checks
from idumb.store.connection import Database
from idumb.store.event_log import SqliteEventLog
from idumb.system.clock import SystemClock
from tests.crash import harness
from tests.crash.programme import TRACEBACK, Programme, Tally
from tests.support import project as projects
from tests.support import warm
from tests.support.answer import Answer
from tests.support.gitrepo import GitSandbox
from tests.support.project import Project, shell, task

TASKS = ("T1-01", "T1-02", "T1-03")
REFUSED = (3, 4)
MARKS = b"<<<<<<< HEAD\nours\n=======\ntheirs\n>>>>>>> other\n"
# Of the cases of a sample, this part damages single bytes; the rest are whole command lines and take longer.
_BYTES = 0.88

Damage = Callable[[Path, random.Random], object]


def _flipped(path: Path, chosen: random.Random) -> None:
    data = bytearray(path.read_bytes())
    if data:
        data[chosen.randrange(len(data))] ^= 1 << chosen.randrange(8)
    path.write_bytes(data)


def _marked(path: Path, chosen: random.Random) -> None:
    data = path.read_bytes()
    at = chosen.randrange(len(data) + 1)
    path.write_bytes(data[:at] + MARKS + data[at:])


DAMAGES: Mapping[str, Damage] = {
    "removed": lambda path, _: path.unlink(),
    "emptied": lambda path, _: os.truncate(path, 0),
    "cut": lambda path, chosen: os.truncate(path, chosen.randrange(max(1, path.stat().st_size))),
    "flipped": _flipped,
    "filled with conflict markers": _marked,
    "filled with garbage": lambda path, chosen: path.write_bytes(chosen.randbytes(max(100, path.stat().st_size))),
}


@dataclass(frozen=True, slots=True)
class Truth:
    """The state before any damage."""

    phases: Any
    events: list[dict[str, Any]]


BEGUN = "after SqliteEventLog.append attempt.started"


class Scene:
    """A project whose phase stopped after its second task: `stopped` by a failure, or `killed` in the third task.

    Damage and commands happen in place, because consent and the backups of the log know the repository by its inode.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.state = Path(os.environ["XDG_STATE_HOME"]) / "idumb"
        self.repo = folder / "repo"
        self.gates = [folder / f"gate-{task}" for task in TASKS]
        self.truth: dict[str, Truth] = {}
        self.approval = self._prepare()

    @property
    def common(self) -> Path:
        return self.repo / ".git"

    def run(self, *arguments: str, hook: str = "", given: Any = None) -> Answer:
        answer = warm.run(self.repo, *arguments, "--json", hook=hook, given=given)
        for text in (answer.out, answer.err):
            assert "Traceback" not in text, text
            assert "idumb has a defect" not in text, text
        return answer

    def go_on(self) -> Answer:
        return self.run("resume", "1", "--retry-failed", "--approve", self.approval)

    def reset(self, name: str) -> None:
        """Restore everything; the git folder itself stays, and so does its inode."""
        kept = self.folder / f"kept-{name}"
        _replace(kept / "repo" / ".git", self.common, but="")
        _replace(kept / "repo", self.repo, but=".git")
        _replace(kept / "state", self.state, but="")
        _close(self.gates[2])

    def files(self, name: str) -> list[tuple[str, Path]]:
        """Return (name for a person, path) of every file that idumb keeps."""
        kept = self.folder / f"kept-{name}"
        pairs = []
        for shown, real in (("repo", self.repo), ("state", self.state)):
            for place in sorted((kept / shown).rglob("*")):
                path = place.relative_to(kept / shown)
                if place.is_file() and _is_ours(shown, path):
                    pairs.append((f"{shown}/{path}", real / path))
        return pairs

    def older(self, path: Path) -> Path:
        """The same file as it was after the first task."""
        for shown, real in (("repo", self.repo), ("state", self.state)):
            if path.is_relative_to(real):
                return self.folder / "kept-older" / shown / path.relative_to(real)
        raise AssertionError(path)

    def _prepare(self) -> str:
        project = projects.create(GitSandbox.create(self.repo), files={"mine.txt": "mine\n"})
        names = zip(TASKS, ("none", *TASKS), strict=False)
        project.plan(
            [
                task(
                    name,
                    files=f"create `{name}.txt`",
                    check=f"test -e '{self.folder}/gate-{name}' && test \"$(wc -l < {name}.txt)\" -eq 1",
                    after=after,
                    steps=[shell(f"echo made >> {name}.txt")],
                )
                for name, after in names
            ]
        )
        (self.repo / "mine.txt").write_text("changed and never committed\n", encoding="utf-8")
        consent_to = project.approval()
        first = "execute-phase", "1", "--approve", consent_to, "--max-attempts", "1"
        _open(self.gates[0])
        assert self.run(*first).code == 1
        self._keep("older")
        _open(self.gates[1])
        self.approval = consent_to
        assert self.run("resume", "1", "--retry-failed", "--max-attempts", "1").code == 1
        self._remember("stopped")
        died = self.run("resume", "1", "--retry-failed", hook=harness.ARM, given={"at": BEGUN})
        assert died.code == harness.KILLED, died
        self._remember("killed")
        return consent_to

    def _remember(self, name: str) -> None:
        status = self.run("status")
        self._keep(name)
        self.truth[name] = Truth(status.data["phases"], self.run("log", "1", "--limit", "1000").data["events"])

    def _keep(self, name: str) -> None:
        kept = self.folder / f"kept-{name}"
        shutil.copytree(self.repo, kept / "repo", symlinks=True)
        shutil.copytree(self.state, kept / "state", symlinks=True)


def _is_ours(shown: str, path: Path) -> bool:
    if shown == "state":
        return path.parts[0] in ("consent", "log")
    return path.parts[:2] == (".git", "idumb") or (path.parts[0] == ".idumb" and len(path.parts) > 1)


def _open(gate: Path) -> None:
    gate.touch()


def _close(gate: Path) -> None:
    gate.unlink(missing_ok=True)


def _replace(kept: Path, place: Path, *, but: str) -> None:
    """Restore the content of a folder."""
    for old in place.iterdir() if place.exists() else ():
        if old.name != but:
            shutil.rmtree(old) if old.is_dir() and not old.is_symlink() else old.unlink()
    place.mkdir(exist_ok=True)
    for new in kept.iterdir():
        if new.name != but:
            to = place / new.name
            shutil.copytree(new, to, symlinks=True) if new.is_dir() else shutil.copy2(new, to, follow_symlinks=False)


# Whole files, whole commands


@dataclass(frozen=True, slots=True)
class Case:
    """`paths` are damaged in one way in a project in the state `standing`."""

    standing: str
    paths: tuple[tuple[str, Path], ...]
    damage: str

    @property
    def name(self) -> str:
        return f"{self.standing}: {', '.join(name for name, _ in self.paths)} {self.damage}"


def cases(scene: Scene, chosen: random.Random) -> list[Case]:
    """Every file with every damage in both standings, and files that go together, in a seeded order.

    Files that go together are every fourth case. Each file has a case before any file has a second one.
    """
    corruptions: list[list[Case]] = []
    for standing in ("stopped", "killed"):
        for named in scene.files(standing):
            own = [Case(standing, (named,), damage) for damage in DAMAGES]
            if scene.older(named[1]).exists():
                own.append(Case(standing, (named,), "replaced by an older one"))
            chosen.shuffle(own)
            corruptions.append(own)
    chosen.shuffle(corruptions)
    rounds = iter([own[turn] for turn in range(len(DAMAGES) + 1) for own in corruptions if turn < len(own)])
    lost = list(together(scene))
    chosen.shuffle(lost)
    return [*(case for one in lost for case in (one, *itertools.islice(rounds, 3))), *rounds]


def together(scene: Scene) -> Iterator[Case]:
    """The log is lost together with what the state directory has of it: then idumb never starts over by itself."""
    files = dict(scene.files("stopped"))
    log = "repo/.git/idumb/store.db"
    newest = next(name for name in files if name.endswith("newest.json"))
    backups = [name for name in files if name.startswith("state/log/") and name.endswith(".db")]
    for names in ((log, newest), (log, *backups), (log, newest, *backups)):
        for damage in ("removed", "emptied"):
            yield Case("stopped", tuple((name, files[name]) for name in names), damage)


def try_case(scene: Scene, case: Case, chosen: random.Random, tally: Tally) -> None:
    scene.reset(case.standing)
    scene.run("status")  # so that the kept view is one that could be believed
    whole = {path: path.read_bytes() for _, path in case.paths if path.exists()}
    for _, path in case.paths:
        if case.damage in DAMAGES and path.exists():
            DAMAGES[case.damage](path, chosen)
        elif path.exists():
            shutil.copy2(scene.older(path), path)
    with tally.case(case.name):
        _read(scene, case)
        _finish(scene, case, whole, tally)


def _read(scene: Scene, case: Case) -> None:
    """Read-only commands answer correctly, or report that they cannot and what to do."""
    truth = scene.truth[case.standing]
    users = any(name.endswith("config.yaml") for name, _ in case.paths)
    status = scene.run("status")
    if status.code == 0 and not users:
        assert status.data["phases"] == truth.phases, f"status says what is not so: {status.out}"
    _require_way_out(status)
    log = scene.run("log", "1", "--limit", "1000")
    if log.code == 0 and not users:
        assert log.data["events"] == truth.events, "log shows another history"
    _require_way_out(log)


def _require_way_out(answer: Answer) -> None:
    if answer.code:
        assert answer.code in REFUSED, answer
        assert answer.error["hint"], f"no next step: {answer.out}"


def _finish(scene: Scene, case: Case, whole: Mapping[Path, bytes], tally: Tally) -> None:
    _open(scene.gates[2])
    answer = scene.go_on()
    if answer.code and "doctor --fix" in str(answer.error["hint"]):
        scene.run("doctor", "--fix")
        answer = scene.go_on()
        if answer.code in REFUSED:
            scene.run("doctor", "--fix", "--accept-loss")
            _check_restored(scene, tally)
            return
        tally.note("restored by idumb doctor --fix")
    if answer.code in REFUSED:
        # A file that the user owns stops with its place named, and goes on once it is fixed.
        assert any(name.endswith("config.yaml") for name, _ in case.paths), answer
        tally.note("stopped at a file that the user fixes")
        for path, data in whole.items():
            path.write_bytes(data)
        answer = scene.go_on()
    else:
        tally.note("continued")
    assert answer.code == 0, answer
    _check_end(scene)


def _check_restored(scene: Scene, tally: Tally) -> None:
    """After a yes, the log names the gap. What commits name as done is done, unless the whole log is gone."""
    (gap,) = scene.run("log", "--kind", "log.restored").data["events"]
    assert GitSandbox(scene.repo).kept("refs/idumb/"), "refs are gone"
    if not gap["payload"]["events"]:
        tally.note("begun anew after a yes, because there was no backup")
        return
    tally.note("restored after a yes")
    answer = scene.go_on()
    assert answer.code == 0, answer
    _check_files(scene)


def _check_end(scene: Scene) -> None:
    _check_files(scene)
    log = harness.events(Project(GitSandbox(scene.repo), scene.repo))
    done = [event.task for event in log if event.kind == "task.completed"]
    assert sorted(str(name) for name in done) == list(TASKS), f"completed: {done}"


def _check_files(scene: Scene) -> None:
    for name in TASKS:
        assert (scene.repo / f"{name}.txt").read_bytes() == b"made\n", f"{name} was run again"
    assert (scene.repo / "mine.txt").read_bytes() == b"changed and never committed\n"
    assert Project(GitSandbox(scene.repo), scene.repo).trailers("Idumb-Task") == list(TASKS)


# Single bytes


def flip_bytes(scene: Scene, count: int, chosen: random.Random, tally: Tally) -> None:
    """Flip a bit, or truncate, in the database or the newest number: the events are unchanged, or it is refused."""
    scene.reset("stopped")
    common = str(scene.common)
    events = _events(common)
    database = scene.common / "idumb" / "store.db"
    (newest,) = scene.state.glob("log/*/newest.json")
    whole = {path: path.read_bytes() for path in (database, newest)}
    kept = {*newest.parent.iterdir()}
    for number in range(count):
        path = chosen.choice((database, database, database, newest))
        damage = "cut" if chosen.random() < 0.1 else "flipped"
        DAMAGES[damage](path, chosen)
        with tally.case(f"{path.name} {damage}, number {number}"):
            _noticed_or_right(common, events, tally, path.name)
        for place, data in whole.items():
            place.write_bytes(data)
        for extra in {*database.parent.glob("store.db?*"), *newest.parent.iterdir()} - kept:
            extra.unlink()


def _noticed_or_right(common: str, events: Sequence[Event], tally: Tally, name: str) -> None:
    problem = _problem(common, events)
    if problem is None:
        tally.note(f"{name}: the events are unchanged")
        return
    assert problem.code.startswith("store."), problem
    assert problem.hint, problem
    tally.note(f"{name}: {problem.code}")
    log = SqliteEventLog(Database(common), "main", SystemClock())
    doctor_checks.restore(log.database, doctor_checks.plan(log.database), SystemClock())
    assert _events(common)[:-1] == events, "restored with other events"


def _problem(common: str, events: Sequence[Event]) -> IdumbError | None:
    try:
        assert _events(common) == events, "a damaged log was believed"
    except IdumbError as problem:
        return problem
    except (ValueError, TypeError, LookupError) as problem:
        raise AssertionError(f"a damaged log was believed, down to {problem}") from problem
    return None


def _events(common: str) -> list[Event]:
    """All events by number, and by run as `resume` reads them."""
    log = SqliteEventLog(Database(common, lambda: True), "main", SystemClock())
    try:
        events = list(log.events())
        runs = {event.run for event in events if event.run}
        by_run = [event for run in sorted(runs) for event in log.events(run=run)]
        assert sorted(by_run, key=lambda event: event.seq) == [e for e in events if e.run], "an index lies"
        return events
    finally:
        log.database.close()


def run(size: int | None, seed: int, folder: Path, tally: Tally) -> None:
    chosen = random.Random(seed)
    scene = Scene(folder)
    every = cases(scene, chosen)
    bytes_count = 1000 if size is None else int(size * _BYTES)
    flip_bytes(scene, bytes_count, chosen, tally)
    for case in every if size is None else every[: size - bytes_count]:
        try_case(scene, case, chosen, tally)


LEAST = {"store.db: store.corrupt": 30}
PROGRAMME = Programme(
    "T11", "corruption of every file that is kept", 160, None, run, (TRACEBACK,), push=16, least=LEAST
)
