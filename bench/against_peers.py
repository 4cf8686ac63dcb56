"""Goals 3, 11 and 15 beside the tools that a user would choose instead; `make bench-peers` installs them."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator, Mapping

from bench import install_peers, material, measure, peers
from bench.measure import Effort, Figure
from bench.starting import idumb, installed

# What each answers for a project of 1,000 tasks, and the goal for `idumb status`. None of them checks the plan.
_ANSWERS: Mapping[str, tuple[tuple[str, ...], float | None]] = {
    "gsd-tools": (("progress", "json"), 1.0),
    "backlog": (("task", "list", "--plain"), 0.15),
    "task-master": (("list",), 0.03),
    "specify": (("workflow", "info", "workflow.yml"), None),
    "doit": (("list", "--all", "--status"), None),
    "make": (("-n",), None),
}
# How each runs tasks that start the program `true`. None of them keeps a snapshot, commits, or forces a state to disk.
_RUNS: Mapping[str, tuple[tuple[str, ...], float | None]] = {
    "specify": (("workflow", "run", "workflow.yml"), 0.3),
    "doit": (("run",), None),
    "make": ((), None),
}


def against_peers(effort: Effort) -> Iterator[Figure]:
    yield from _answers(effort)
    yield from _runs(effort)
    yield from _memory(effort)
    yield from _sizes()


def _answers(effort: Effort) -> Iterator[Figure]:
    """Goal 3."""
    tasks = 1000
    place = material.project(f"{effort.folder}/answer", 20, tasks, material.written)
    edited = material.project(f"{effort.folder}/edited", 20, tasks, material.written)
    path = ".planning/phases/1/01-PLAN.md"
    with open(os.path.join(edited.root, path), encoding="utf-8") as stream:
        text = stream.read()
    edits = iter(range(10**9))
    status = (*idumb(), "status")
    again = measure.program(status, edited.root, edited.env)

    def after_an_edit() -> float:
        edited.write(path, f"{text}\n<!-- edit {next(edits)} -->\n")
        start = time.perf_counter()
        again()
        return time.perf_counter() - start

    cases: dict[str, measure.Case] = {"status": measure.program(status, place.root, place.env), "edited": after_an_edit}
    for peer, (arguments, _) in _ANSWERS.items():
        start = peers.program(peer)
        if start is not None:
            its = peers.project(peer, f"{effort.folder}/{peer}", tasks)
            cases[peer] = measure.program((*start, *arguments), its.root, its.env)
    times = measure.turns(cases, effort.rounds, warm=2)
    for peer, (arguments, goal) in _ANSWERS.items():
        beside = " ".join((peer, *arguments))
        yield measure.beside_peer(3, f"idumb status, {tasks:,} tasks", beside, times, ("status", peer), goal)
        yield measure.beside_peer(
            3, f"idumb status after an edit of the plan, {tasks:,} tasks", beside, times, ("edited", peer)
        )


def _runs(effort: Effort) -> Iterator[Figure]:
    """Goal 11, from the start of the program to its end."""
    tasks, rounds = (100, 2) if effort.quick else (1000, 1)
    made = iter(range(10**9))

    def ours() -> float:
        place = material.project(f"{effort.folder}/run{next(made)}", 100, tasks, material.noop)
        approve = ("--approve", place.approval())
        run = measure.program((*idumb(), "execute-phase", "1", *approve, "--no-verify"), place.root, place.env)
        start = time.perf_counter()
        run()
        return time.perf_counter() - start

    cases: dict[str, measure.Case] = {"ours": ours}
    for peer, (arguments, _) in _RUNS.items():
        start = peers.program(peer)
        if start is not None:
            its = peers.project(peer, f"{effort.folder}/runs-{peer}", tasks, waits=False)
            cases[peer] = measure.program((*start, *arguments), its.root, its.env)
    times = measure.turns(cases, rounds, warm=0)
    for peer, (arguments, goal) in _RUNS.items():
        beside = " ".join((peer, *arguments))
        yield measure.beside_peer(11, f"run of {tasks:,} no-op tasks", beside, times, ("ours", peer), goal)


def _memory(effort: Effort) -> Iterator[Figure]:
    """Goal 15."""
    tasks = 200 if effort.quick else 1000
    what, engine = f"memory of a run of {tasks:,} tasks", peers.engine("DBOS", tasks, effort.folder)
    if engine is None:
        yield Figure(15, what, "DBOS, as many steps", None, 0.6, 0, note="DBOS is not installed")
        return
    place = material.project(f"{effort.folder}/memory", 100, tasks, material.noop)
    arguments = ("idumb", "execute-phase", "1", "--approve", place.approval(), "--no-verify")
    peak = measure.peak_memory(sys.executable, arguments, place.root, place.env, effort.folder)
    yield Figure(15, what, "DBOS, as many steps", peak / engine()["peak"], 0.6, 1)


def _sizes() -> Iterator[Figure]:
    """Goal 15: each with all that it needs, without its interpreter."""
    for peer in install_peers.FROM_NODE:
        size = sum(
            os.lstat(os.path.join(at, name)).st_size
            for at, _, names in os.walk(install_peers.folder(peer))
            for name in names
        )
        value = installed() / size if peers.program(peer) else None
        note = "" if value is not None else f"{peer} is not installed"
        yield Figure(15, "installed, with all core dependencies", peer, value, None, 0, note=note)
