"""Facts that `doctor` and the taking over of old files judge by, without a repository."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from idumb.app.verify import outside_work
from idumb.domain import canonical_json
from idumb.domain.runs import state_file
from idumb.git import doctor_checks
from idumb.markdown.importers import old_idumb
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


NAMES = ("brain/state.json", "brain/execution/1/progress.json", "brain/execution/1/checkpoint-T1-01.json")
_PLAIN = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
_ROWS = _PLAIN | st.lists(_PLAIN, max_size=3) | st.dictionaries(st.text(max_size=8), _PLAIN, max_size=3)
JSON = _ROWS | st.lists(_ROWS, max_size=2) | st.dictionaries(st.text(max_size=8), _ROWS, max_size=2)
KEYS = st.sampled_from(["completed", "failed", "history", "anchors", "task_id", "status", "files_modified", "session"])


@given(st.sampled_from((*NAMES, "brain/execution/1/checkpoint-T1-02.md")), st.binary(max_size=200))
def test_any_file_content_is_understood_or_named(name: str, data: bytes) -> None:
    """R-LOG-9: the migrated data can be written into the log."""
    facts = old_idumb.read(f".idumb/{name}", data)
    assert facts is None or canonical_json.encode(state_file.import_payload((facts,)))


@given(st.sampled_from(NAMES), st.dictionaries(KEYS | st.text(max_size=5), JSON, max_size=4))
def test_any_json_content_is_understood_or_named(name: str, value: dict[str, object]) -> None:
    """R-LOG-9."""
    facts = old_idumb.read(f".idumb/{name}", json.dumps(value).encode())
    assert facts is None or canonical_json.encode(state_file.import_payload((facts,)))


def test_progress_and_checkpoints_of_idumb_do_not_count_as_old() -> None:
    ours = json.dumps({"completed": [], "contract_hash": "x", "run": "y"}).encode()
    assert old_idumb.read(".idumb/brain/execution/1/progress.json", ours) is None
    document = b"---\nid: checkpoint-T1-01\ntask_id: T1-01\nstatus: completed\nrun: abc\n---\n"
    assert old_idumb.read(".idumb/brain/execution/1/checkpoint-T1-01.md", document) is None


def test_files_of_a_project_in_the_folder_do_not_count_as_old() -> None:
    assert old_idumb.read(".idumb/gates/mine.py", b"print()") is None
    assert old_idumb.read(".idumb/brain/other.md", b"---\nrun: abc\n---\n") is None
    assert old_idumb.read(".idumb/brain/other.md", b"# Notes\n") is not None


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
    assert len(outside_work.commits_of_tasks(newest_first)) == done
