"""Facts that `doctor` and `verify` judge by, without a repository."""

from __future__ import annotations

from idumb.app.verify import recorded_elsewhere
from idumb.git import doctor_checks
from tests.support.cases import every


@every(
    "words, expected",
    [
        ("git version 2.39.5\n", (2, 39, 5)),
        ("git version 2.39.5 (Apple Git-154)", (2, 39, 5)),
        ("git version 2.50.0.rc1.3", (2, 50, 0)),
        ("1.9.7", (1, 9, 7)),
        ("", (0,)),
    ],
)
def test_a_version_is_read_from_program_output(words: str, expected: tuple[int, ...]) -> None:
    assert doctor_checks.version(words) == expected


def test_a_refspec_publishes_snapshots_if_its_source_includes_them() -> None:
    """M9."""
    cases: list[tuple[str, bool]] = [
        ("refs/*:refs/*", True),
        ("+refs/*:refs/*", True),
        ("refs/idumb/*:refs/idumb/*", True),
        ("refs/idumb/worktrees/main/x", True),
        ("refs/heads/*:refs/heads/*", False),
        ("main", False),
        (":", False),
        ("", False),
    ]
    assert not [
        (refspec, published) for refspec, published in cases if doctor_checks.publishes(refspec) is not published
    ]


def trailers(task: str | None = None, back: str | None = None, *, undo: bool = False) -> dict[str, str]:
    named = {"Idumb-Task": task, "Idumb-Rollback": back, "Idumb-Undo": "x" if undo else None}
    return {"Idumb-Run": "r", **{key: value for key, value in named.items() if value is not None}}


@every(
    "oldest_first, done",
    [
        ([trailers("T1-01"), trailers("T1-02")], 2),
        ([trailers("T1-01"), trailers("T1-01")], 1),
        ([trailers("T1-01"), trailers("T1-02"), trailers(back="T1-01")], 1),
        ([trailers("T1-01"), trailers("T1-02"), trailers(back="start")], 0),
        ([trailers("T1-01"), trailers("T1-02"), trailers(back="start"), trailers(undo=True)], 2),
        ([trailers("T1-01"), trailers(back="start"), trailers(undo=True), trailers(undo=True)], 0),
        ([trailers("T1-01"), trailers("T1-02"), trailers(back="T1-01"), trailers("T1-02")], 2),
        ([trailers()], 0),
    ],
)
def test_commits_show_completed_work_after_rollbacks_and_their_undo(
    oldest_first: list[dict[str, str]], done: int
) -> None:
    newest_first = [(str(number), row) for number, row in reversed([*enumerate(oldest_first)])]
    assert len(recorded_elsewhere.commits_of_tasks(newest_first)) == done
