"""Checkpoints, progress, state, summary and verification, from replayed runs."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from msgspec.structs import replace
from ruamel.yaml import YAML

from idumb.domain.contract import Contract
from idumb.views import graph as graphs
from idumb.views import summary
from idumb.views.documents import MarkdownDocuments
from tests.support import example_files
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


LEDGER = [{"path": "notes|1.txt", "status": "undeclared", "actual": "created", "declared": None}]
CARRIED = {
    "status": "completed", "git_hash": examples.COMMIT, "snapshot": "5" * 40, "tree": examples.TREE,
    "files": ["src/slug.py"], "attempt": 1, "seconds": 600.0, "at": NOW, "seq": 3, "commit": examples.COMMIT,
}  # fmt: skip


def _partial(**accepted: Any) -> examples.Log:
    log = examples.partial_run()
    log.add("decision.answered", "T1-05", decision="T1-05.work", choice="slug", by="ann", guidance="")
    if accepted:
        log.add("task.accepted", "T1-02", **accepted, commit=None)
    return log


def _carried() -> examples.Log:
    log = examples.Log(examples.slugs())
    fields = {"from_run": "fedcba", "status": "completed", "reason": "", "effect": "", "checkpoint": CARRIED}
    log.add("task.carried", "T1-01", **fields)
    return log


def _by_a_person() -> examples.Log:
    log = examples.Log(examples.slugs())
    log.evidence("T1-01", "AC-1", "passed", command=None, exit_code=None, output="ann answered yes: | fine")
    log.complete("T1-01")
    return log


def _without_duration() -> str:
    log = examples.partial_run()
    state = log.state
    kept = state.tasks["T1-02"].checkpoint
    assert kept is not None
    state.tasks["T1-02"] = replace(state.tasks["T1-02"], checkpoint=replace(kept, seconds=None))
    return MarkdownDocuments.checkpoint(state, log.contract.tasks["T1-02"])


def _checked(subject: str, text: str, result: str, **more: Any) -> dict[str, Any]:
    return {"subject": subject, "text": text, "result": result, **more}


GAPS: dict[str, Any] = {
    "status": "failed",
    "reason": "SC-1 failed",
    "evidence": [
        _checked("SC-1", "the suite", "failed", command="pytest", exit_code=1),
        _checked("SC-2", "it reads well", "waiting", command=None, exit_code=None),
        _checked("SC-3", "it is elegant", "opinion", command=None, exit_code=None),
        _checked("SC-4", "it is kind", "passed", output="ann answered yes"),
        _checked("SC-5", "it is short", "failed", output="ann answered no"),
        _checked("SC-6", "it runs", "errored", output="no program"),
        _checked("SC-7", "it builds", "passed", command="true", exit_code=0),
    ],
    "mismatches": ["a.py is not as T1-01 left it"],
    "unproven": ["it scales"],
    "opinions": ["it is elegant"],
    "skipped": ["T1-04"],
    "accepted": {"T1-03": "good | enough"},
}
ACCEPTED = {"reason": "good enough"}


def _graph(draw: Callable[[Contract, Mapping[str, str]], str]) -> str:
    log = examples.partial_run()
    return draw(log.contract, log.statuses)


DOCUMENTS: dict[str, Callable[[], str]] = {
    "checkpoint-of-a-failed-task.md": lambda: _checkpoint(examples.partial_run(), ledger=LEDGER),
    "checkpoint-without-a-duration.md": _without_duration,
    "checkpoint-proven-by-a-person.md": lambda: _checkpoint(_by_a_person(), "T1-01"),
    "progress.json": lambda: MarkdownDocuments.progress(_partial().state, _partial().statuses),
    "progress-with-an-accepted-task.json": lambda: MarkdownDocuments.progress(
        _partial(**ACCEPTED).state, _partial(**ACCEPTED).statuses
    ),
    "summary.md": lambda: _summary(_partial()),
    "summary-with-an-accepted-task.md": lambda: _summary(_partial(**ACCEPTED)),
    "summary-with-work-of-an-earlier-run.md": lambda: _summary(_carried()),
    "verification.md": _verification,
    "verification-with-gaps.md": lambda: _verification(**GAPS),
    "graph.txt": lambda: _graph(graphs.text),
    "graph.mermaid": lambda: _graph(graphs.mermaid),
}


@every("name", DOCUMENTS)
def test_each_document_is_as_the_file_of_its_name(name: str) -> None:
    """R-GIT-2, R-LOG-4, R-OPS-2, R-RUN-5, R-ADAPT-5, R-PLAN-6: `documents` has what a user reads of a run."""
    text = DOCUMENTS[name]().replace(examples.slugs().hash, "c" * 64)
    example_files.compare(Path(__file__).parent / "documents" / name, text)


@every("ledger_status, verdict", [("declared", "PARTIAL"), ("undeclared", "FAIL")])
def test_a_partial_proof_is_partial_unless_the_ledger_is_broken(ledger_status: str, verdict: str) -> None:
    log = examples.partial_run()
    log.evidence("T1-02", "AC-2", "passed", 2)
    line = {"path": "a", "status": ledger_status, "actual": "created", "declared": None}
    assert _front(_checkpoint(log, ledger=[line]))["verdict"] == verdict


@every("status", ["waiting", "skipped", "pending"])
def test_the_checkpoint_of_a_task_outside_the_tables_is_linked_too(status: str) -> None:
    """R-OPS-2."""
    log = examples.partial_run()
    given = {"evidence": log.evidence_by_task, "line_counts": COUNTS, "now": NOW, "links": LINKS}
    text = summary.render(log.contract, log.state, {**log.statuses, "T1-01": status}, **given)  # type: ignore[arg-type]
    assert f"- **Other checkpoints:** [T1-01]({LINKS['T1-01']})" in _section(text, "Overview")
    assert "Other checkpoints" not in _summary(log)


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
