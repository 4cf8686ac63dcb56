"""What idumb reads back of reports and of an old iDumb's files is read or named, and never trusted."""

from __future__ import annotations

import json
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from idumb.domain import canonical_json
from idumb.domain.runs import state_file
from idumb.markdown import report_files
from idumb.markdown.plan_files import PlanningFolder

NAMES = ("brain/state.json", "brain/execution/1/progress.json", "brain/execution/1/checkpoint-T1-01.json")
_PLAIN = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
_ROWS = _PLAIN | st.lists(_PLAIN, max_size=3) | st.dictionaries(st.text(max_size=8), _PLAIN, max_size=3)
JSON = _ROWS | st.lists(_ROWS, max_size=2) | st.dictionaries(st.text(max_size=8), _ROWS, max_size=2)
KEYS = st.sampled_from(["completed", "failed", "history", "anchors", "task_id", "status", "files_modified", "session"])


@given(st.sampled_from((*NAMES, "brain/execution/1/checkpoint-T1-02.md")), st.binary(max_size=200))
def test_any_file_content_is_understood_or_named(name: str, data: bytes) -> None:
    """R-LOG-9: the migrated data can be written into the log."""
    facts = report_files.old_state(f".idumb/{name}", data)
    assert facts is None or canonical_json.encode(state_file.import_payload((facts,)))


@given(st.sampled_from(NAMES), st.dictionaries(KEYS | st.text(max_size=5), JSON, max_size=4))
def test_any_json_content_is_understood_or_named(name: str, value: dict[str, object]) -> None:
    """R-LOG-9."""
    facts = report_files.old_state(f".idumb/{name}", json.dumps(value).encode())
    assert facts is None or canonical_json.encode(state_file.import_payload((facts,)))


def test_progress_and_checkpoints_of_idumb_do_not_count_as_old() -> None:
    ours = json.dumps({"completed": [], "contract_hash": "x", "run": "y"}).encode()
    assert report_files.old_state(".idumb/brain/execution/1/progress.json", ours) is None
    document = b"---\nid: checkpoint-T1-01\ntask_id: T1-01\nstatus: completed\nrun: abc\n---\n"
    assert report_files.old_state(".idumb/brain/execution/1/checkpoint-T1-01.md", document) is None


def test_files_of_a_project_in_the_folder_do_not_count_as_old() -> None:
    assert report_files.old_state(".idumb/gates/mine.py", b"print()") is None
    assert report_files.old_state(".idumb/brain/other.md", b"---\nrun: abc\n---\n") is None
    assert report_files.old_state(".idumb/brain/other.md", b"# Notes\n") is not None


def test_the_frontmatter_of_a_report_is_read() -> None:
    fields = report_files.metadata(b"---\ntype: summary\ntasks_completed: 5\n---\n\n# Text\n", "SUMMARY")
    assert fields == {"type": "summary", "tasks_completed": 5}


def test_other_content_is_ignored_and_breaks_nothing() -> None:
    cases: list[bytes] = [
        b"",
        b"# no frontmatter\n",
        b"---\ntype: plan\n---\n",
        b"---\n[" * 3000,
        b"---\n- a\n---\n",
        b"---\n&a [*a]\n---\n",
        b"---\ntype: !!python/object:os.system x\n---\n",
        b"---\n? ]\n---\n",
        b"\xff\xfe---\n",
        b"---\n" + b"x" * 200_000,
    ]
    assert not [data for data in cases if report_files.metadata(data, "SUMMARY") is not None]


def test_a_report_of_idumb_is_found_beside_those_of_other_tools(tmp_path: Path) -> None:
    (tmp_path / "01-01-SUMMARY.md").write_text("---\nphase: 1\nstatus: complete\n---\n", encoding="utf-8")
    assert PlanningFolder(str(tmp_path.parent)).recorded(tmp_path.name, "SUMMARY") is None
    (tmp_path / "01-a-SUMMARY.md").write_text("---\ntype: summary\nrun: r\n---\n", encoding="utf-8")
    assert PlanningFolder(str(tmp_path.parent)).recorded(tmp_path.name, "SUMMARY") == {"type": "summary", "run": "r"}
