"""Goals 9 to 12: the cost of a task without its agent, and the cost of a resume."""

from __future__ import annotations

import functools
import json
import math
import os
import shutil
import signal
import statistics
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from bench import floors, material, measure, peers
from bench.material import Place
from bench.measure import Effort, Figure
from bench.starting import LIBRARIES, idumb
from idumb.app.core import run_context
from idumb.system import process_tree

_TASKS = 24


class Arrived(NamedTuple):
    """An event: its kind, and the moment and the CPU seconds of the command and all its processes when it came."""

    kind: str
    moment: float
    cpu: float


def watched(place: Place, *arguments: str, stop_after: str | None = None) -> list[Arrived]:
    """Return every event of a command, interrupted after the kind `stop_after`."""
    with subprocess.Popen(
        [*material.IDUMB, *arguments, "--events"], cwd=place.root, env=place.env, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        assert process.stderr is not None
        seen = []
        for line in process.stdout:
            seen.append(Arrived(str(json.loads(line)["kind"]), time.perf_counter(), _cpu(process.pid)))
            if seen[-1].kind == stop_after:
                process.send_signal(signal.SIGINT)
                stop_after = None
        words = process.stderr.read()
    if process.returncode not in {0, 128 + signal.SIGINT}:
        raise RuntimeError(f"idumb {' '.join(arguments)} ended with {process.returncode}: {words}")
    return seen


def _cpu(pid: int) -> float:
    """Return the CPU seconds of a process, its children that run, and all that ended; NaN where there is no /proc."""
    seconds = [_own_cpu(one) for one in process_tree.descendants([pid])]
    return sum((one for one in seconds[1:] if not math.isnan(one)), start=seconds[0])


def _own_cpu(pid: int) -> float:
    fields = process_tree.status(pid)
    return math.nan if fields is None else sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


def per_task(seen: list[Arrived]) -> measure.Took:
    """Seconds from one checkpoint to the next, over a whole run; its beginning and end do not count."""
    first, *_, last = (event for event in seen if event.kind == "checkpoint.recorded")
    count = sum(event.kind == "checkpoint.recorded" for event in seen) - 1
    return measure.Took((last.moment - first.moment) / count, (last.cpu - first.cpu) / count)


def whole_task(effort: Effort) -> Iterator[Figure]:
    """Goal 9: each task starts a process that edits a file and a process that checks, in every way alike."""
    for files in (100, 2000) if effort.quick else (100, 2000, 20_000):
        for policy in ("none", "task"):
            yield from _whole_task(effort, files, policy)


def _whole_task(effort: Effort, files: int, policy: str) -> Iterator[Figure]:
    rounds = effort.rounds
    folder = f"{effort.folder}/task{files}{policy}"
    place = material.project(folder, files, _TASKS, material.editing, policy, phases=rounds + 1)
    phases = iter(range(1, rounds + 2))

    def ours() -> float:
        phase = str(next(phases))
        return per_task(watched(place, "execute-phase", phase, "--approve", place.approval(phase), "--no-verify"))

    loops: dict[str, Callable[[Place, floors.Database], floors.Loop]] = {
        "ALL-STATUS": floors.all_status,
        "ALL-CLI": floors.all_cli,
        "SAME-SAFETY": functools.partial(floors.same_safety, commits=policy == "task"),
        "SAME-PROOF": functools.partial(floors.same_proof, commits=policy == "task"),
    }
    cases: dict[str, measure.Case] = {"ours": ours}
    for name, loop in loops.items():
        journal = "TRUNCATE" if name.startswith("SAME") else "WAL"
        cases[name] = _looped(place, loop, f"{folder}.{name}.db", journal)
    times = measure.turns(cases, rounds, before=place.settle)
    status = 1.5 if files == 100 else 1.2
    goals = {"ALL-STATUS": status, "ALL-CLI": None if files == 100 else 0.8}
    label = f"whole task, {files:,} files, commit policy {policy}"
    for name in loops:
        yield Figure(9, label, name, measure.ratio(times, "ours", name), goals.get(name), rounds)
    yield Figure(9, label, "", measure.median(times, "ours") * 1e3, None, rounds, "ms")
    used = measure.cpu(times)
    for name in loops:
        yield Figure(9, f"{label}: CPU time", name, measure.ratio(used, "ours", name), None, rounds)
    yield Figure(9, f"{label}: CPU time", "", measure.median(used, "ours") * 1e3, None, rounds, "ms")
    shutil.rmtree(f"{place.root}.proof")
    shutil.rmtree(folder)


def _looped(
    place: Place, loop: Callable[[Place, floors.Database], floors.Loop], path: str, journal: str
) -> measure.Case:
    def case() -> float:
        database = floors.Database(path, journal)
        task = loop(place, database)
        task(0)
        start, before = time.perf_counter(), sum(os.times()[:4])
        for number in range(1, _TASKS):
            task(number)
        took, used = time.perf_counter() - start, sum(os.times()[:4]) - before
        database.close()
        return measure.Took(took / (_TASKS - 1), used / (_TASKS - 1))

    return case


def orchestration(effort: Effort) -> Iterator[Figure]:
    """Goal 10, R-RUN-15: the engine with git and processes still, against the same transactions in raw SQLite."""
    from bench.bare import BareServices
    from idumb.app.running import execute_phase
    from idumb.cli import opened_services
    from idumb.views.terminal import ask

    tasks = 200
    place = material.project(f"{effort.folder}/bare", 20, tasks, material.noop, "none", phases=effort.rounds + 1)
    phases = iter(range(1, effort.rounds + 2))
    payloads: list[list[str]] = []

    class Seen(opened_services.Silent):
        def __init__(self) -> None:
            self.moments: list[float] = []

        def event(self, event: object) -> None:
            if getattr(event, "kind", "") == "checkpoint.recorded":
                self.moments.append(time.perf_counter())

    def ours() -> float:
        phase, seen = str(next(phases)), Seen()
        services = BareServices(place.root, ask.Nobody, lambda: seen)
        request = run_context.RunRequest(phase, approve=(place.approval(phase),), verify=False)
        execute_phase.execute(services, request)
        if not payloads:
            payloads.extend(_transactions(services))
        services.log.database.close()
        return (seen.moments[-1] - seen.moments[0]) / (len(seen.moments) - 1)

    def raw() -> float:
        database = floors.Database(f"{effort.folder}/raw.db", "TRUNCATE")
        start = time.perf_counter()
        for number in range(tasks):
            for payload in payloads:
                database.write(f"T{number}", payload)
        took = (time.perf_counter() - start) / tasks
        database.close()
        return took

    times = measure.turns({"ours": ours, "raw": raw, **_engines(effort, tasks)}, effort.rounds)
    value = measure.ratio(times, "ours", "raw")
    yield Figure(10, "orchestration of a task, git and processes still", "its raw SQLite transactions", value, 2.0,
                 effort.rounds)  # fmt: skip
    cost = measure.median(times, "ours") * 1e3
    yield Figure(10, "orchestration of a task, git and processes still", "", cost, 100.0, effort.rounds, "ms")
    yield Figure(10, "transactions a task", "", float(len(payloads)), None, 0, "")
    for peer, goal in (("LangGraph", 0.4), ("DBOS", 0.15)):
        yield measure.beside_peer(10, "orchestration of a task", peer, times, ("ours", peer), goal)


def _engines(effort: Effort, steps: int) -> dict[str, measure.Case]:
    def case(engine: Callable[[], Mapping[str, float]]) -> measure.Case:
        return lambda: engine()["seconds"]

    engines = {name: peers.engine(name, steps, effort.folder) for name in ("LangGraph", "DBOS")}
    return {name: case(engine) for name, engine in engines.items() if engine is not None}


def _transactions(services: object) -> list[list[str]]:
    """What one task in the middle of the newest run wrote, as texts, a list for each transaction."""
    log = services.log  # type: ignore[attr-defined]
    last = list(log.events(kind="checkpoint.recorded"))[-2]
    transactions: dict[str, list[str]] = {}
    for event in log.events(run=last.run, task=last.task):
        transactions.setdefault(event.at, []).append(json.dumps(dict(event.payload)))
    return list(transactions.values())


def long_runs(effort: Effort) -> Iterator[Figure]:
    """Goal 11: no-op tasks in a 100-file repository, commit policy none."""
    costs = {}
    for tasks in (100, 300) if effort.quick else (100, 1000, 10_000):
        rounds = {100: 5, 1000: 2}.get(tasks, 1)
        figures = []
        for number in range(rounds):
            place = material.project(f"{effort.folder}/long{tasks}-{number}", 100, tasks, material.noop)
            seen = watched(place, "execute-phase", "1", "--approve", place.approval(), "--no-verify")
            figures.append(per_task(seen))
            shutil.rmtree(place.root)
        costs[tasks] = statistics.median(figures)
        label = f"run of {tasks:,} no-op tasks, 100 files: cost a task"
        yield Figure(11, label, "", costs[tasks] * 1e3, None, rounds, "ms")
        if tasks > 100:
            yield Figure(11, label, "the same at 100 tasks", costs[tasks] / costs[100], 1.1, rounds)


def resuming(effort: Effort) -> Iterator[Figure]:
    """Goal 12: from the start of `idumb resume` to the first attempt it makes, half of the tasks done."""
    tasks = 100 if effort.quick else 1000
    place = material.project(f"{effort.folder}/resume", 100, tasks, material.noop)
    _stop_in_the_middle(place, tasks // 2)
    place.idumb("status")

    def resume() -> float:
        start = time.perf_counter()
        seen = watched(place, "resume", "1", stop_after="attempt.started")
        return next(event.moment for event in seen if event.kind == "attempt.started") - start

    status = measure.program((*idumb(), "status"), place.root, place.env)

    def stale() -> None:
        view = os.path.join(place.root, ".git", "idumb")
        for at, _, names in os.walk(view):
            for name in names:
                if name == "status.json":
                    os.unlink(os.path.join(at, name))
        status()

    status()
    libraries = measure.program(LIBRARIES, place.root, place.env)
    cases = {"resume": resume, "fresh": stale, "warm": status, "libraries": libraries}
    times = measure.turns(cases, effort.rounds, warm=1)
    label = f"resume to its first attempt, {tasks // 2:,} of {tasks:,} tasks done"
    for beside, name, goal in (
        ("idumb status, cached view", "warm", None),
        ("idumb status, view rebuilt", "fresh", 1.3),
    ):
        yield Figure(12, label, beside, measure.ratio(times, "resume", name), goal, effort.rounds)
    label, value = "resume: a program that only loads its libraries", measure.ratio(times, "libraries", "fresh")
    yield Figure(12, label, "idumb status, view rebuilt", value, None, effort.rounds)


def _stop_in_the_middle(place: Place, done: int) -> None:
    argv = [*material.IDUMB, "execute-phase", "1", "--approve", place.approval(), "--no-verify", "--events"]
    null = subprocess.DEVNULL
    with subprocess.Popen(
        argv, cwd=place.root, env=place.env, stdin=null, stdout=subprocess.PIPE, stderr=null, text=True
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            done -= json.loads(line)["kind"] == "task.completed"
            if done == 0:
                process.send_signal(signal.SIGINT)
