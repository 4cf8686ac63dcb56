"""What it costs to run checks in a working tree of their own, beside git's means for one."""

from __future__ import annotations

import itertools
import os
import shutil
import time
from collections.abc import Callable, Iterator

from bench import material, measure
from bench.measure import Effort, Figure

_CHANGED = 10


def proving(effort: Effort) -> Iterator[Figure]:
    """Ten files change in a repository; their tree is shown, and then compared after a check."""
    for count in (100, 2000) if effort.quick else (100, 2000, 20_000):
        times = _times(effort, material.repository(f"{effort.folder}/proving{count}", count))
        label = f"checkout, {count:,} files"
        cases = (
            ("first", "git worktree add", "the first tree of a run"),
            ("next", "git worktree add", f"the next tree, {_CHANGED} files differ"),
            ("next", "git checkout", f"the next tree, {_CHANGED} files differ"),
            ("restore", "git status", "files that a check changed"),
        )
        for ours, theirs, what in cases:
            yield Figure(9, f"{label}: {what}", theirs, measure.ratio(times, ours, theirs), None, effort.rounds)
        for name, what in (("first", "the first tree"), ("next", "the next tree"), ("restore", "after a check")):
            yield Figure(9, f"{label}: {what}", "", measure.median(times, name) * 1e3, None, effort.rounds, "ms")


def _times(effort: Effort, place: material.Place) -> measure.Times:
    from idumb.git import discover
    from idumb.git.checkouts.checkout import PROOF
    from idumb.git.checkouts.pool import Checkouts
    from idumb.git.trees import GitTrees

    numbers = itertools.count()
    os.environ["IDUMB_CHECKOUTS"] = f"{place.root}.checkouts"
    repository = discover.find(place.root)
    command = Checkouts(repository, lambda: GitTrees(repository))
    shown = command.open(PROOF)
    linked = f"{place.root}.linked"

    def commit() -> tuple[str, str]:
        number = next(numbers)
        for shift in range(_CHANGED):
            with open(os.path.join(place.root, place.files[(number * 37 + shift * 11) % len(place.files)]), "a") as f:
                f.write(f"# {number}\n")
        place.git("commit", "-qam", f"change {number}")
        head, tree = place.git("rev-parse", "HEAD", "HEAD^{tree}").decode().split()
        return head, tree

    shown.show(commit()[1], None)
    place.git("worktree", "add", "-q", "--detach", linked, "HEAD")
    after: Callable[[], str] = lambda: commit()[0]  # noqa: E731 - a case needs a call without arguments

    def first() -> float:
        head, tree = commit()
        another = Checkouts(repository, lambda: GitTrees(repository))
        fresh = another.open(PROOF)

        def removed() -> None:
            shutil.rmtree(fresh.top)
            another.close()

        return _timed(lambda: fresh.show(tree, head), removed)

    def added() -> float:
        after()
        folder = f"{linked}-new"

        def removed() -> None:
            place.git("worktree", "remove", "--force", folder)

        return _timed(lambda: place.git("worktree", "add", "-q", "--detach", folder, "HEAD"), removed)

    def following() -> float:
        head, tree = commit()
        return _timed(lambda: shown.show(tree, head))

    def checked_out() -> float:
        head = after()
        return _timed(lambda: place.git("-C", linked, "checkout", "-q", "--detach", head))

    cases: dict[str, measure.Case] = {
        "first": first,
        "git worktree add": added,
        "next": following,
        "git checkout": checked_out,
        "restore": lambda: _timed(shown.restore),
        "git status": lambda: _timed(lambda: place.git("-C", linked, "status", "--porcelain")),
    }
    times = measure.turns(cases, effort.rounds)
    command.close()
    shutil.rmtree(linked)
    return times


def _timed(work: Callable[[], object], then: Callable[[], object] = lambda: None) -> float:
    start = time.perf_counter()
    work()
    took = time.perf_counter() - start
    then()
    return took
