"""Goal 9: what git and libgit2 do for one task, without the engine, the event log, the builder and the check."""

from __future__ import annotations

import itertools
import os
import shutil
import time
from collections.abc import Callable, Iterator

from bench import material, measure
from bench.material import Place
from bench.measure import Effort, Figure

_GOALS = {2000: 140.0, 20_000: 540.0}
_RUN = "refs/idumb/worktrees/main/runs/bench"


def git_part(effort: Effort) -> Iterator[Figure]:
    """Two snapshots of the user's files, a build, its candidate, a proof, a commit, its delivery; one file changes."""
    for count in (2000,) if effort.quick else (2000, 20_000):
        place = material.repository(f"{effort.folder}/part{count}", count)
        times = _times(effort, place)
        used, label = measure.cpu(times), f"git part of a task, {count:,} files: CPU time"
        yield Figure(9, label, "git add -A && git commit", measure.ratio(used, "ours", "commit"), None, effort.rounds)
        yield Figure(9, label, "", measure.median(used, "ours") * 1e3, _GOALS[count], effort.rounds, "ms")
        shutil.rmtree(place.root)


def _times(effort: Effort, place: Place) -> measure.Times:
    from idumb.git import discover
    from idumb.git.checkouts.checkout import BUILD, PROOF
    from idumb.git.checkouts.pool import Checkouts
    from idumb.git.history import GitHistory
    from idumb.git.trees import GitTrees

    numbers = itertools.count()
    os.environ["IDUMB_CHECKOUTS"] = f"{place.root}.checkouts"
    repository = discover.find(place.root)
    trees = GitTrees(repository)
    command = Checkouts(repository, lambda: trees)
    build, proof = command.open(BUILD), command.open(PROOF)
    history = GitHistory(repository, proof=lambda: proof)

    def task() -> None:
        number = next(numbers)
        path, name = _path(place, number), f"{_RUN}/T1-{number}/1"
        head = history.head()
        base = history.tree_of(head.commit)
        trees.snapshot(f"{name}/base", "before")
        build.show(base, head.commit)
        build.begin(f"{name}/left")
        _append(build.top, path, number)
        candidate = build.trees.scan()
        build.trees.keep(f"{name}/work", candidate, "candidate")
        proof.show(candidate, head.commit)
        proof.restore()
        made = history.make(candidate, head.commit, f"task {number}", hooks=True)
        trees.snapshot(f"{name}/user", "before delivery")
        conflicts = trees.restore(candidate, base, [path])
        words = history.advance(head.branch, str(made.commit), head.commit, "bench")
        build.end()
        trees.release_displaced()
        if conflicts or words:
            raise RuntimeError(words or f"{path} was not delivered")

    def commit() -> None:
        number = next(numbers)
        _append(place.root, _path(place, number), number)
        place.git("add", "-A")
        place.git("commit", "-qm", f"commit {number}")

    times = measure.turns({"ours": _measured(task), "commit": _measured(commit)}, effort.rounds, warm=2)
    command.close()
    if place.git("status", "--porcelain"):
        raise RuntimeError(f"not all of {place.root} was delivered")
    return times


def _path(place: Place, number: int) -> str:
    return place.files[number * 37 % len(place.files)]


def _append(top: str, path: str, number: int) -> None:
    with open(os.path.join(top, path), "a", encoding="utf-8") as stream:
        stream.write(f"# {number}\n")


def _measured(work: Callable[[], object]) -> measure.Case:
    def case() -> float:
        start, before = time.perf_counter(), measure.processor_time()
        work()
        return measure.Took(time.perf_counter() - start, measure.processor_time() - before)

    return case
