"""Goals 7, 8 and 14: the work tree as a durable commit, and back."""

from __future__ import annotations

import itertools
import json
import os
import shlex
import time
from collections.abc import Callable, Iterator

from bench import floors, material, measure
from bench.material import Place
from bench.measure import Effort, Figure
from bench.starting import LIBRARIES


def snapshot(effort: Effort) -> Iterator[Figure]:
    """Goals 7 and 8: three files edited before each snapshot; every snapshot looks at every file."""
    seconds = {}
    for count in (100, 2000) if effort.quick else (100, 2000, 20_000):
        times = _snapshots(effort, material.repository(f"{effort.folder}/snap{count}", count))
        seconds[count] = measure.median(times, "ours")
        if count == 100:
            continue
        label = f"snapshot, {count:,} files"
        for number, beside, name, goal in (
            (7, "git status", "status", 1.5),
            (7, "git add -A && git commit", "commit", 0.6),
            (7, "git status, trees, ref, all forced to disk", "floor", None),
        ):
            yield Figure(number, label, beside, measure.ratio(times, "ours", name), goal, effort.rounds)
        value = measure.ratio(times, "keep", "commit")
        yield Figure(8, f"commit of a tree scanned before, {count:,} files", "git add -A && git commit", value, 0.2,
                     effort.rounds)  # fmt: skip
    largest = max(seconds)
    value = seconds[largest] / seconds[100]
    yield Figure(8, f"snapshot, {largest:,} files", "snapshot, 100 files", value, 6.0, effort.rounds,
                 note="looks at every file; see below")  # fmt: skip


def _snapshots(effort: Effort, place: Place) -> measure.Times:
    from idumb.git import discover
    from idumb.git.trees import GitTrees

    trees = GitTrees(discover.find(place.root))
    floor = floors.Trees(place)
    number = itertools.count()

    def edited(work: Callable[[int], object], *, then: Callable[[], object] = lambda: None) -> measure.Case:
        def case() -> float:
            at = next(number)
            for shift in range(3):
                _append(place, place.files[(at * 37 + shift * 11) % len(place.files)], at)
            start = time.perf_counter()
            work(at)
            took = time.perf_counter() - start
            then()
            return took

        return case

    def settle() -> None:
        place.git("add", "-A")
        place.git("commit", "-qm", "settle", "--allow-empty")

    def commit(at: int) -> None:
        place.git("add", "-A")
        place.git("commit", "-qm", f"commit {at}")

    def keep() -> float:
        tree = trees.scan()
        start = time.perf_counter()
        trees.keep(f"refs/idumb/worktrees/main/keep{next(number)}", tree, "bench")
        return time.perf_counter() - start

    trees.snapshot("refs/idumb/worktrees/main/first", "bench")
    return measure.turns(
        {
            "status": edited(lambda _: place.git("status", "--porcelain"), then=settle),
            "ours": edited(lambda at: trees.snapshot(f"refs/idumb/worktrees/main/snapshot{at}", "bench"), then=settle),
            "floor": edited(lambda at: floor.commit(floor.changed(), f"refs/bench/{at}"), then=settle),
            "commit": edited(commit),
            "keep": keep,
        },
        max(effort.rounds, 5) + 2,
    )


def _append(place: Place, path: str, number: int) -> None:
    with open(os.path.join(place.root, path), "a", encoding="utf-8") as stream:
        stream.write(f"# {number}\n")


def rollback(effort: Effort) -> Iterator[Figure]:
    """Goal 14: `idumb rollback` as a command, start and new commit included."""
    files = 2000 if effort.quick else 20_000
    tasks = 20
    place = material.project(f"{effort.folder}/rollback", files, tasks, material.editing, "task")
    place.idumb("execute-phase", "1", "--approve", place.approval(), "--no-verify")
    changed = [place.files[n * 37 % files] for n in range(1, tasks + 1)]
    texts = {path: place.git("show", f"HEAD:{path}") for path in changed}

    def ours() -> float:
        start = time.perf_counter()
        answer = place.idumb("rollback", "1", "--to", "start", "--yes", "--json")
        took = time.perf_counter() - start
        if not json.loads(answer)["ok"]:
            raise RuntimeError(answer)
        refused = json.loads(place.idumb("undo", "--json", expected=4))
        place.idumb(*shlex.split(refused["error"]["hint"])[1:])
        return took

    def floor() -> None:
        place.git("status", "--porcelain")
        for path, text in texts.items():
            with open(os.path.join(place.root, path), "wb") as stream:
                stream.write(text)

    def commit() -> float:
        for path in changed:
            _append(place, path, 0)
        start = time.perf_counter()
        place.git("-c", "core.fsync=all", "checkout", "HEAD~1", "--", *changed)
        place.git("-c", "core.fsync=all", "commit", "-qm", "back", "--allow-empty")
        took = time.perf_counter() - start
        place.git("-c", "core.fsync=all", "checkout", "HEAD~1", "--", *changed)
        place.git("reset", "-q", "--soft", "HEAD~1")
        return took

    libraries = measure.program(LIBRARIES, place.root, place.env)
    cases = {"ours": ours, "floor": floor, "commit": commit, "libraries": libraries}
    times = measure.turns(cases, effort.rounds)
    label = f"rollback of {tasks} files in {files:,}"
    value = measure.ratio(times, "ours", "floor")
    yield Figure(14, label, f"git status and {tasks} writes, no process, no commit", value, 1.5, effort.rounds)
    value = measure.ratio(times, "ours", "commit")
    yield Figure(14, label, "git checkout PATHS && git commit", value, 3, effort.rounds)
    label, value = "rollback: a program that only loads its libraries", measure.ratio(times, "libraries", "commit")
    yield Figure(14, label, "git checkout PATHS && git commit", value, None, effort.rounds)
