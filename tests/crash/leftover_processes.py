"""T14: no process that the work started still runs after the work has ended.

A case combines a way from `escapes.py`, a host (agent, step or check), a behaviour of the host's own process, and an
end: it exits, it times out, idumb is stopped, or idumb is killed and resumed. After a kill, nothing tells whose a
daemon without environment and folder is; such daemons are counted apart.
"""

from __future__ import annotations

import itertools
import os
import random
import re
import select
import shutil
import signal
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from idumb.system import process_end, process_tree
from idumb.system.child_process import Program
from tests.crash import escapes
from tests.crash.programme import LEFT_PROCESS, CannotRun, Programme, Tally
from tests.support import project as projects
from tests.support import warm
from tests.support.ended import running
from tests.support.gitrepo import GitSandbox
from tests.support.project import making, shell, task
from tests.support.warm import Started

EXIT, TIMEOUT, TERM, INT, KILL = "exit", "timeout", "TERM", "INT", "KILL"
SIGNALS = {TERM: signal.SIGTERM, INT: signal.SIGINT, KILL: signal.SIGKILL}
CODES = {EXIT: 0, TIMEOUT: 1, TERM: 143, INT: 130, KILL: -9}
PHASES = {"agent": "1", "step": "2", "check": "3"}

CONFIG = """\
environment: [CASE]
bindings:
  escaping:
    adapter: command
    argv: [{python}, "{script}", "{{prompt_file}}"]
    prompt: file
run: {{check_timeout: {time}}}
"""
ROUNDS = 20
_AT_ONCE = 6
_READY = 60
_SECONDS = 6


@dataclass(frozen=True, slots=True)
class Case:
    host: str
    main: str
    end: str

    def __str__(self) -> str:
        return f"{self.host}, {self.main}, {self.end}"


def sample(size: int, chance: random.Random) -> list[Case]:
    """Return each host in turn; together they have every end that matters, and the agent every behaviour."""
    ends = (("exit", EXIT), ("wait", TERM), ("deaf", TIMEOUT), ("stopped", INT), ("deaf", KILL))
    hosts = [[Case("agent", *how) for how in ends]]
    hosts += [[Case(host, "wait", end) for end in (TIMEOUT, TERM, KILL)] for host in ("step", "check")]
    turns = itertools.zip_longest(*(chance.sample(host, len(host)) for host in hosts))
    return [case for turn in turns for case in turn if case is not None][:size]


def every_case() -> Iterator[Case]:
    for host in PHASES:
        yield Case(host, "exit", EXIT)
        for end in (TIMEOUT, TERM, INT, KILL):
            for main in ("wait", "deaf", "stopped") if host == "agent" else ("wait",):
                yield Case(host, main, end)


def run(size: int | None, seed: int, folder: Path, tally: Tally) -> None:
    if size is not None:
        one_round(folder, tally, sample(size, random.Random(seed)))
        return
    for number in range(ROUNDS):
        one_round(folder / str(number), tally, list(every_case()))


def one_round(folder: Path, tally: Tally, cases: list[Case], plant: str = "") -> None:
    if sys.platform != "linux":
        raise CannotRun("only Linux tells of all processes")
    times = {_SECONDS if case.end == TIMEOUT else _READY for case in cases}
    templates = {time: make_template(folder / f"template-{time}", time) for time in times}
    for first in range(0, len(cases), _AT_ONCE):
        begun = []
        for number, case in enumerate(cases[first : first + _AT_ONCE], first):
            template = templates[_SECONDS if case.end == TIMEOUT else _READY]
            begun.append(_begin(template, folder / f"case-{number}", case, plant))
        for one in begun:
            _strike(one)
        for one in begun:
            _judge(one, tally)
            os.close(one.door)
            shutil.rmtree(one.place, ignore_errors=True)


@dataclass(frozen=True, slots=True)
class Template:
    """`consents` by host."""

    place: Path
    consents: dict[str, str]


@dataclass(frozen=True, slots=True)
class Begun:
    case: Case
    place: Path
    consent: str
    door: int
    executor: Started


def make_template(place: Path, seconds: int) -> Template:
    """Create a project with one phase for each host. Work that has not ended after `seconds` is stopped."""
    project = projects.create(GitSandbox.create(place), files={"README.md": "# A project\n"})
    script = Path(escapes.__file__)
    line = f"{sys.executable} {script}"
    project.configure(CONFIG.format(python=sys.executable, script=script, time=seconds))
    fields = f"- **Timeout:** {seconds}s\n"
    hosted = {
        "agent": making("T1-01", "a.txt", fields=f"- **Builder:** escaping\n{fields}", steps=()),
        "step": making("T2-01", "a.txt", fields=fields, steps=[shell(line)]),
        "check": task("T3-01", files="create `b.txt`", check=line, steps=[shell("echo made > b.txt")]),
    }
    for host, text in hosted.items():
        project.plan([text], phase=PHASES[host])
    return Template(place, {host: project.approval(phase) for host, phase in PHASES.items()})


def _begin(template: Template, place: Path, case: Case, plant: str) -> Begun:
    place.mkdir()
    shutil.copytree(template.place, place / "repo", symlinks=True)
    os.mkfifo(place / "door")
    door = os.open(place / "door", os.O_RDWR | os.O_NONBLOCK)
    (place / "tmp").mkdir()
    (place / "main").write_text(case.main, encoding="utf-8")
    consent = template.consents[case.host]
    argv = ["execute-phase", PHASES[case.host], "--approve", consent, "--max-attempts", "1", "--json"]
    hook = "tests.crash.leftover_processes:planted" if plant else ""
    started = warm.start(place / "repo", *argv, environment=_environment(place), hook=hook, given=plant)
    return Begun(case, place, consent, door, started)


def _environment(place: Path) -> dict[str, str]:
    """Return variables with which everything is below the case's folder, also the working tree of the checks."""
    return {"CASE": str(place), "TMPDIR": str(place / "tmp"), "XDG_STATE_HOME": str(place / "state")}


def planted(fault: str) -> None:
    """Hook: end only the process group, and search for no other process."""
    assert fault == "only the group", fault
    process_end.adopt_orphans = lambda: False
    process_tree.descendants = lambda roots: [*roots]
    process_tree.carrying = lambda *_: []
    setattr(Program, "tree", lambda program: [program.pid])  # noqa: B010 - mypy forbids to assign a method


def _strike(begun: Begun) -> None:
    if begun.case.end in SIGNALS and _wait_for_door(begun.door, begun.executor.pid):
        os.kill(begun.executor.pid, SIGNALS[begun.case.end])


def _judge(begun: Begun, tally: Tally) -> None:
    case, place = begun.case, begun.place
    answer = begun.executor.wait()
    words = f"{case}: {answer}"
    if case.end == KILL:
        argv = ["resume", PHASES[case.host], "--approve", begun.consent, "--json"]
        again = warm.run(place / "repo", *argv, environment=_environment(place))
        words += f" {again}"
        with tally.case(f"{case}: the next command"):
            assert again.code == 0, words
    with tally.case(f"{case}: how it ends"):
        # The control of a check, on the tree before the work, is the run that meets the time limit.
        meets_no_limit = case.host == "check" and case.end == TIMEOUT
        assert answer.code == (0 if meets_no_limit else CODES[case.end]), words
    with tally.case(f"{case}: temporary files"):
        assert os.listdir(place / "tmp") == [], words
        assert [str(path) for path in (place / "repo/.git/idumb").rglob("idumb-*")] == [], words
    pids = _noted(place)
    for name in escapes.NAMES:
        with tally.case(f"{case}: {name}", LEFT_PROCESS):
            assert name in pids or case.end == TIMEOUT, f"{name} was not started"
            living = [pid for pid in pids.get(name, ()) if process_tree.is_alive(pid)]
            living += _moving(place, pids) if name == escapes.MOVING else []
            if living and case.end == KILL and name == escapes.UNKNOWN:
                tally.note("daemons without environment and folder that outlived a kill")
                continue
            assert not living, f"{name} lives: {[process_tree.status(pid) for pid in living]}"
    with tally.case(f"{case}: others", LEFT_PROCESS):
        unknown = pids.get(escapes.UNKNOWN, ()) if case.end == KILL else ()
        assert [line for pid, line in _strangers(place, pids) if pid not in unknown] == []
    process_end.send([pid for group in pids.values() for pid in group], signal.SIGKILL)
    process_end.send([pid for pid, _ in _strangers(place, pids)], signal.SIGKILL)


def _wait_for_door(door: int, pid: int) -> bool:
    """Return whether everything has started; False if the executor ends before that."""
    process = os.pidfd_open(pid)
    try:
        return door in select.select([door, process], [], [], float(_READY))[0]
    finally:
        os.close(process)


def _noted(place: Path) -> dict[str, list[int]]:
    pids: dict[str, list[int]] = {}
    if (place / "pids").exists():
        for line in (place / "pids").read_text(encoding="utf-8").splitlines():
            name, pid, began = line.rsplit(" ", 2)
            # another process may have this number by now
            if process_tree.process_started(int(pid)) in {int(began), None}:
                pids.setdefault(name, []).append(int(pid))
            else:
                pids.setdefault(name, [])
    return pids


def _moving(place: Path, pids: dict[str, list[int]]) -> list[int]:
    """Stop the group before reading it, because a process that forks continually never lives long."""
    group = re.search(rf"^{escapes.MOVING} (\d+) ", (place / "pids").read_text(encoding="utf-8"), re.MULTILINE)
    if group is None:
        return []
    process_end.send_group(int(group[1]), signal.SIGSTOP)
    statuses = {entry: process_tree.status(int(entry)) for entry in filter(str.isdecimal, os.listdir("/proc"))}
    group_members = {int(pid): fields for pid, fields in statuses.items() if fields and fields[2] == group[1].encode()}
    process_end.send_group(int(group[1]), signal.SIGKILL)
    return [pid for pid, fields in group_members.items() if fields[0] not in {b"Z", b"X"}]


def _strangers(place: Path, pids: dict[str, list[int]]) -> list[tuple[int, str]]:
    """Return other processes that use the case's folder or name it."""
    return [
        (pid, f"{pid} {line!r} in {folder}")
        for pid, line, folder in running()
        if (str(place).encode() in line or folder.startswith(str(place))) and pid != os.getpid()
    ]


PROGRAMME = Programme("T14", "ways to leave a process behind", 11, None, run, (LEFT_PROCESS,), least={"cases": 301})
