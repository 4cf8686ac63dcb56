"""Which events may leave the database (R-LOG-8)."""

from __future__ import annotations

from idumb.app.core import kept_runs

STARTS = [
    ("r1", "1", "main", 1),
    ("r2", "1", "main", 10),
    ("r3", "2", "main", 20),
    ("r4", "1", "other", 30),
    ("r5", "1", "main", 40),
]


def test_the_newest_run_of_each_phase_in_each_working_tree_is_live_and_what_it_took_tasks_from() -> None:
    assert kept_runs.live(STARTS, lambda _: ()) == {"r3", "r4", "r5"}
    carried = {"r5": {"r2"}, "r2": {"r1"}, "r1": {"r2"}}
    assert kept_runs.live(STARTS, lambda run: carried.get(run, ())) == {"r1", "r2", "r3", "r4", "r5"}
