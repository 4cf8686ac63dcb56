"""Checkpoints, progress, state, summary and verification, from replayed runs."""

from __future__ import annotations

import io
import json
import re
from typing import Any

from msgspec.structs import replace
from ruamel.yaml import YAML

from idumb.views import summary
from idumb.views.documents import MarkdownDocuments
from tests.support.cases import every
from tests.unit.views import examples

NOW = "2026-01-02T04:00:00.000000Z"
LINKS = {"T1-01": "../../../.idumb/brain/execution/1/checkpoint-T1-01.md"}
COUNTS: dict[str, tuple[int | None, int | None]] = {
    "src/slug.py": (10, 0),
    "src/models.py": (1, 2),
    "logo.png": (None, None),
}


def _front(text: str) -> dict[str, Any]:
    _, front, _ = text.split("---\n", 2)
    loaded = YAML(typ="safe", pure=True).load(io.StringIO(front))
    assert isinstance(loaded, dict)
    return loaded


def _section(text: str, title: str) -> str:
    section = re.search(rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)", text, re.DOTALL | re.MULTILINE)
    assert section is not None, title
    return section[1]


def _summary(log: examples.Log, **more: Any) -> str:
    given = {"evidence": log.evidence_by_task, "line_counts": COUNTS, "now": NOW, "links": LINKS, **more}
    return summary.render(log.contract, log.state, log.statuses, **given)


def _verification(log: examples.Log | None = None, **changes: Any) -> str:
    contract = (log or examples.Log(examples.slugs())).contract
    return MarkdownDocuments.verification(contract, examples.record(contract, **changes), now=NOW)


def _checkpoint(log: examples.Log, task: str = "T1-02", **more: Any) -> str:
    evidence = log.evidence_by_task.get(task, ())
    return MarkdownDocuments.checkpoint(log.state, log.contract.tasks[task], evidence=evidence, **more)


def test_a_checkpoint_carries_the_fields_of_idumb_first_and_in_order() -> None:
    """R-GIT-2: git hash, files, result, attempts, error, duration, and the snapshot."""
    log = examples.partial_run()
    front = _front(_checkpoint(log))
    assert list(front)[:10] == [
        "id", "timestamp", "task_id", "status", "git_hash", "files_modified", "validation_result", "retry_count",
        "error_message", "duration_seconds",
    ]  # fmt: skip
    assert front["id"] == "checkpoint-T1-02"
    assert (front["status"], front["validation_result"], front["retry_count"]) == ("failed", "fail", 1)
    assert front["files_modified"] == ["src/models.py"]
    assert front["error_message"] == "no attempt is left"
    assert front["snapshot"] == "5" * 40
    state = log.state
    kept = state.tasks["T1-02"].checkpoint
    assert kept is not None
    state.tasks["T1-02"] = replace(state.tasks["T1-02"], checkpoint=replace(kept, seconds=None))
    text = MarkdownDocuments.checkpoint(state, log.contract.tasks["T1-02"])
    assert "unknown duration" in text
    assert _front(text)["duration_seconds"] is None


def test_a_checkpoint_shows_evidence_ledger_and_deviations() -> None:
    log = examples.partial_run()
    ledger = [{"path": "notes|1.txt", "status": "undeclared", "actual": "created", "declared": None}]
    text = _checkpoint(log, ledger=ledger)
    assert _section(text, "Evidence").count("| AC-1") == 1
    assert r"| `notes\|1.txt` | nothing | created | undeclared |" in _section(text, "Ledger")
    assert "undeclared file: notes.txt" in _section(text, "Deviations")


@every("ledger_status, verdict", [("declared", "PARTIAL"), ("undeclared", "FAIL")])
def test_a_partial_proof_is_partial_unless_the_ledger_is_broken(ledger_status: str, verdict: str) -> None:
    log = examples.partial_run()
    log.evidence("T1-02", "AC-2", "passed", 2)
    line = {"path": "a", "status": ledger_status, "actual": "created", "declared": None}
    assert _front(_checkpoint(log, ledger=[line]))["verdict"] == verdict


def test_a_person_s_answer_is_shown_as_proof() -> None:
    log = examples.Log(examples.slugs())
    log.evidence("T1-01", "AC-1", "passed", command=None, exit_code=None, output="ann answered yes: | fine")
    log.complete("T1-01")
    assert r"| AC-1 | passed | ann answered yes: \| fine | - |" in _checkpoint(log, "T1-01")


def test_progress_has_the_lists_of_idumb_and_the_remaining_tasks() -> None:
    """R-LOG-4."""
    log = examples.partial_run()
    progress = json.loads(MarkdownDocuments.progress(log.state, log.statuses))
    assert (progress["completed"], progress["failed"], progress["blocked"]) == (
        ["T1-01", "T1-04"],
        ["T1-02"],
        ["T1-03"],
    )
    assert (progress["waiting"], progress["remaining"], progress["current"]) == (["T1-05"], [], None)
    assert progress["git_hash"] == examples.COMMIT
    assert progress["started_at"] == log.events[0].at


def test_an_accepted_task_counts_as_completed_and_is_listed_separately() -> None:
    log = examples.partial_run()
    log.add("task.accepted", "T1-02", reason="good enough", commit=None)
    progress = json.loads(MarkdownDocuments.progress(log.state, log.statuses))
    assert "T1-02" in progress["completed"]
    assert progress["accepted"] == ["T1-02"]
    assert "accepted by a person: good enough" in _section(_summary(log), "Completed Tasks")
    assert log.statuses["T1-03"] == "ready"


def test_the_summary_has_the_frontmatter_and_the_seven_sections() -> None:
    """R-OPS-2."""
    text = _summary(examples.partial_run())
    front = _front(text)
    assert list(front)[:11] == [
        "type", "phase", "status", "created", "validator", "tasks_completed", "tasks_failed", "tasks_skipped",
        "tasks_blocked", "total_duration_minutes", "files_modified_count",
    ]  # fmt: skip
    assert (front["tasks_completed"], front["tasks_failed"], front["tasks_blocked"]) == (2, 1, 1)
    assert (front["type"], front["phase"], front["status"]) == ("summary", "1", "executed")
    assert front["files_modified_count"] == 5
    assert re.findall(r"^## (.*)$", text, re.MULTILINE) == [
        "Overview", "Completed Tasks", "Failed Tasks", "Blocked Tasks", "Deviations from Plan", "Files Modified",
        "Next Steps",
    ]  # fmt: skip


def test_the_summary_links_checkpoints_and_draws_the_outcome_of_each_task() -> None:
    """R-OPS-2: a link for every checkpoint, a picture of the dependencies."""
    text = _summary(examples.partial_run())
    assert f"| [T1-01]({LINKS['T1-01']}) | Slug function | 1m15s | 1 passed | `1a2b3c4` |" in text
    assert '["T1-03: Addresses in the site map<br/>blocked"]:::blocked' in _section(text, "Overview")
    assert "n0 --> n1" in _section(text, "Blocked Tasks")


@every("status", ["waiting", "skipped", "pending"])
def test_the_checkpoint_of_a_task_outside_the_tables_is_linked_too(status: str) -> None:
    """R-OPS-2."""
    log = examples.partial_run()
    given = {"evidence": log.evidence_by_task, "line_counts": COUNTS, "now": NOW, "links": LINKS}
    text = summary.render(log.contract, log.state, {**log.statuses, "T1-01": status}, **given)  # type: ignore[arg-type]
    assert f"- **Other checkpoints:** [T1-01]({LINKS['T1-01']})" in _section(text, "Overview")
    assert "Other checkpoints" not in _summary(log)


def test_the_summary_explains_failures_and_next_actions() -> None:
    """R-OPS-2, R-RUN-5: reason, attempts, diagnosis, remediation; blocked by what, and how to unblock."""
    text = _summary(examples.partial_run())
    failed, blocked = _section(text, "Failed Tasks"), _section(text, "Blocked Tasks")
    assert "| T1-02 | Unique slugs | no attempt is left | 2 |" in failed
    assert "AC-1 failed with exit 1: `pytest -q -k unique`" in failed
    assert "E  two are equal" in failed
    assert "old output" not in failed
    assert "idumb resume 1 --retry-failed" in failed
    assert "T1-02 (failed)" in blocked
    assert "idumb accept T1-02 --why REASON" in blocked


def test_the_summary_counts_lines_by_folder_and_lists_unknowns() -> None:
    """R-OPS-2: line counts."""
    files = _section(_summary(examples.partial_run()), "Files Modified")
    assert "- `slug.py`: +10 -0" in files
    assert "- `logo.png`: binary" in files
    assert "- `README.md`: as before the run, or not counted" in files
    assert "Total: 5 files, +11 -2, 1 binary, 2 without a count." in files


def test_the_summary_lists_deviations_of_scope_and_time_and_answers() -> None:
    log = examples.partial_run()
    log.add("decision.answered", "T1-05", decision="T1-05.work", choice="slug", by="ann", guidance="")
    deviations = _section(_summary(log), "Deviations from Plan")
    assert "**Answers of people**\n\n- T1-05.work: slug, by ann" in deviations
    assert "- T1-02: undeclared file: notes.txt" in deviations
    assert "- T1-01: took 1m15s, estimated 1.0s" in deviations


def test_work_of_an_earlier_run_is_listed_and_not_counted_again() -> None:
    log = examples.Log(examples.slugs())
    before = {
        "status": "completed", "git_hash": examples.COMMIT, "snapshot": "5" * 40, "tree": examples.TREE,
        "files": ["src/slug.py"], "attempt": 1, "seconds": 600.0, "at": NOW, "seq": 3, "commit": examples.COMMIT,
    }  # fmt: skip
    fields = {"from_run": "fedcba", "status": "completed", "reason": "", "effect": "", "checkpoint": before}
    log.add("task.carried", "T1-01", **fields)
    text = _summary(log)
    assert "| [T1-01](" in text
    assert "| Slug function | earlier run `fedcba` | proven by the earlier run | `1a2b3c4` |" in text
    assert _front(text)["total_duration_minutes"] == 0
    assert "Timeline" not in text


def test_foreign_text_breaks_no_table_of_the_reports() -> None:
    log = examples.Log(examples.slugs(title=examples.NASTY))
    log.evidence("T1-02", "AC-1", "failed", output="```\n# no heading\n\x1b[2J", command="echo `|` <b>")
    log.complete("T1-01")
    log.fail("T1-02", examples.NASTY, "a|b\n`c`.py", deviations=[examples.NASTY], feedback="```\nmore")
    for text in (_summary(log), _verification(log), _checkpoint(log)):
        _front(text)
        assert "<script" not in text.split("---\n", 2)[2]
        assert "\x1b" not in text
        assert "\u202e" not in text
        for row in re.findall(r"^\| .*$", text, re.MULTILINE):
            assert row.endswith(" |")
    row = next(line for line in _summary(log).splitlines() if line.startswith("| T1-02"))
    assert len(re.findall(r"(?<!\\)\|", row)) == 5


def test_verification_ties_criteria_to_evidence_and_requirements_to_tasks() -> None:
    """R-ADAPT-5: goal-backward, with evidence."""
    text = _verification()
    assert "| SC-1: the whole suite passes | proven | `pytest -q` passed, exit 0 |" in _section(
        text, "Success criteria"
    )
    assert "INV-1: the package imports | proven" in _section(text, "Invariants")
    assert "T1-01 test 1: titles become slugs | proven" in _section(text, "Tests")
    requirements = _section(text, "Requirements")
    assert "| REQ-1: lower-case ASCII | yes | T1-01 (completed): AC-1 check |" in requirements
    assert "| REQ-9: nobody does this | no | no task covers it |" in requirements
    assert "- REQ-9 is not met" in _section(text, "Gaps")


@every(
    "row, cells",
    [
        ({"result": "passed", "output": "ann answered yes"}, "proven | ann answered yes |"),
        ({"result": "failed", "output": "ann answered no"}, "disproven | ann answered no |"),
        ({"result": "errored", "output": "no program"}, "disproven | no program errored (could not run) |"),
        ({"result": "passed", "command": "true", "exit_code": 0}, "proven | `true` passed, exit 0 |"),
    ],
)
def test_verification_shows_an_answer_of_a_person_without_a_result_after_it(row: dict[str, Any], cells: str) -> None:
    text = _verification(evidence=[{"subject": "SC-1", "text": "Reads well", **row}])
    assert f"| SC-1: Reads well | {cells}\n" in text


def test_verification_never_counts_opinions_or_unproven_criteria_as_proof() -> None:
    text = _verification(unproven=["it scales"], opinions=["it is elegant"])
    weak = _section(text, "Unproven and opinions")
    assert "- it scales: unproven" in weak
    assert "- it is elegant: opinion only" in weak
    assert "- T1-02 AC-3: opinion only" in weak
    assert "- T1-02 AC-4: unproven" in weak
    assert "| T1-02 | AC-4: it is fast | unproven | completed |" in _section(text, "Criteria of the tasks")


def test_verification_lists_every_gap() -> None:
    failed = {"subject": "SC-1", "text": "the suite", "command": "pytest", "result": "failed", "exit_code": 1}
    opinion = {"subject": "SC-3", "text": "it is elegant", "command": None, "result": "opinion", "exit_code": None}
    waiting = {"subject": "SC-2", "text": "it reads well", "command": None, "result": "waiting", "exit_code": None}
    text = _verification(
        status="failed",
        reason="SC-1 failed",
        evidence=[failed, waiting, opinion],
        mismatches=["a.py is not as T1-01 left it"],
        skipped=["T1-04"],
        accepted={"T1-03": "good | enough"},
    )
    gaps = _section(text, "Gaps")
    assert _front(text)["status"] == "failed"
    assert "- SC-1: disproven: the suite" in gaps
    assert "SC-3" not in gaps
    assert "- SC-2: waits for a person: it reads well" in gaps
    assert "- a.py is not as T1-01 left it" in gaps
    assert "T1-03" in gaps
    assert "- T1-04 was skipped" in gaps
    assert "accepted by a person: good" in _section(text, "Unproven and opinions")
