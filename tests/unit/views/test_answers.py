"""The text output of commands, from the data of use cases; that of a refusal fits on a screen."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from idumb.domain.action import Action
from idumb.views import answer
from tests.support import example_files
from tests.support.cases import every

FINDING = {
    "code": "task.duplicate-id", "severity": "error", "path": ".planning/phases/1/01-PLAN.md", "line": 12, "column": 1,
    "field": "id", "found": "T1-01", "accepted": "an id unique in the phase", "message": "Task id T1-01 is used twice.",
    "fix": "Give this task an unused id.",
}  # fmt: skip
DECISION = {
    "id": "T1-05.work", "kind": "decision", "what": "Which name?", "why": "two fit", "evidence": ["read the list"],
    "choices": [{"id": "a", "text": "slug", "consequence": "the record says a", "command": None}], "task": "T1-05",
}  # fmt: skip


def _row(task: str, status: str, **more: Any) -> dict[str, Any]:
    return {"id": task, "title": f"Title of {task}", "status": status, **more}


def _run(outcome: str, **more: Any) -> dict[str, Any]:
    tasks = [_row("T1-01", "completed"), _row("T1-02", "failed", attempts=3, reason="AC-1 failed", checkpoint="c.md")]
    return {
        "run": "0123", "phase": "1", "outcome": outcome, "reason": "", "summary": "S.md", "files_modified": 3,
        "counts": {"completed": 1, "failed": 1, "blocked": 1}, "tasks": tasks, "verification": None, "decisions": [],
        "next": ["idumb show T1-02"], **more,
    }  # fmt: skip


def _view(**more: Any) -> dict[str, Any]:
    row = {
        "phase": "1", "title": "Slugs", "state": "failed", "reason": "", "decisions": [DECISION], "problems": [],
        "tasks": {"total": 3, "completed": 1, "failed": 1, "blocked": 1}, "next": [_row("T1-04", "ready")],
        "others": [{**_row("T1-03", "blocked"), "why": "waits for T1-02 (failed)"}], "more": 4, **more,
    }  # fmt: skip
    following = {"phase": "1", "command": "idumb resume 1", "why": "1 failed"}
    shown = {"phases": [row], "next": following, "decisions": [], "kept": {"words": ""}, "owner": None}
    return {"initialised": True, **shown}


def test_foreign_text_is_escaped() -> None:
    hostile = "a\x1b[2J\u202eb"
    view = _view(title=hostile, problems=[hostile], next=[_row("T1-04", "ready") | {"title": hostile}])
    texts = [answer.render(f"status.{name}", view) for name in ("status", "upcoming", "roadmap")]
    run = _run("partial", reason=hostile, tasks=[_row("T1-02", "failed", reason=hostile)])
    texts.append(answer.render("run.ended", run))
    texts.append(answer.failure("x.y", hostile, hostile, [{**FINDING, "message": hostile, "found": hostile}]))
    for text in texts:
        assert "\x1b" not in text
        assert "\u202e" not in text
        assert "\\x1b[2J" in text


def test_status_and_next_say_each_fact_once_and_end_with_the_command() -> None:
    wrong = {"why": "PLAN.md:3: no title", "command": "idumb check-plan 1"}
    view = {**_view(problems=[wrong["why"]]), "next": {"phase": "1", **wrong}}
    held = [{"by": "T1-02", "status": "failed", "reason": "AC-1 failed", "tasks": ["T1-03"], "actions": ["idumb next"]}]
    shown = (("status", view), ("upcoming", view), ("upcoming", _view(blocked=held)))
    texts = [answer.render(f"status.{name}", each) for name, each in shown]
    ends = [text.splitlines()[-1].partition("  ")[0] for text in texts]
    assert ends == ["Next: idumb check-plan 1", "Next: idumb check-plan 1", "Next: idumb resume 1"]
    assert [text.count(wrong["why"]) for text in texts[:2]] == [1, 1]
    assert texts[2].count("T1-03") == 1
    alone = {
        **_view(next=[], others=[], more=0, decisions=[]),
        "next": {"phase": "1", "command": "idumb undo", "why": ""},
    }
    alone["owner"] = {"pid": 1, "host": "h", "standing": "stopped", "since": 7, "command": "quick"}  # a damaged card
    owner = "In use by process 1 on h, which is stopped, since 7: quick"
    assert answer.render("status.upcoming", alone) == f"{owner}\nNext: idumb undo\n"
    assert answer.render("status.upcoming", {**alone, "owner": None}) == "Next: idumb undo\n"


LOOK = {
    "id": "look", "text": "see what changed", "consequence": "nothing is written " * 9, "command": "idumb show T1-01",
}  # fmt: skip
KEEP = {"id": "keep", "text": "leave it", "consequence": "nothing happens", "command": None}


def many(count: int) -> list[dict[str, Any]]:
    return [{**LOOK, "id": f"c{number}", "command": f"idumb show T1-{number:02}"} for number in range(count)]


@every("count", [0, 1, 5])
def test_a_refusal_fits_on_a_screen_and_ends_with_a_command(count: int) -> None:
    details = {
        "evidence": [f"line {number} " * 20 for number in range(30)],
        "choices": [KEEP, *many(count), LOOK, KEEP],
    }
    text = answer.failure("x.y", "words " * 40, "Look first", [FINDING] * count, details, width=80)
    lines = text.splitlines()
    assert len(lines) <= 24
    assert "more (--json has all)" in text
    assert lines[-1] == "      idumb show T1-01"


def test_a_command_longer_than_the_terminal_and_many_findings_leave_the_refusal_on_the_screen() -> None:
    hint = Action.of("approve", "1", "--hash", "0" * 64)
    details = {"evidence": [f"line {number}" for number in range(30)], "choices": [{**LOOK, "command": hint}]}
    for findings in ([], [FINDING] * 30):
        lines = answer.failure("x.y", "No.", hint, findings, details).splitlines()
        assert sum(1 + len(line) // 80 for line in lines) <= 24
        assert lines[-1] == f"      {hint}"
    assert sum(line.endswith(" more (--json has all)") for line in lines) == 2


def test_each_command_is_printed_once() -> None:
    retry = Action.of("resume", "1", "--retry-failed")
    details = {"choices": [{**LOOK, "command": retry}]}
    text = answer.failure(
        "x.y", "It failed.", retry, details=details, following=[retry, Action("undo"), Action("undo")]
    )
    assert text.count("idumb resume 1 --retry-failed") == 1
    assert text.splitlines()[-1] == "  next: idumb undo"


def test_words_wrap_at_the_width_of_the_terminal_and_commands_stay_whole() -> None:
    command = Action.of("accept", "T1-01", "--why", "a reason that is longer than the terminal")
    text = answer.failure("x.y", "word " * 30, None, details={"choices": [{**LOOK, "command": command}]}, width=30)
    assert [line for line in text.splitlines() if len(line) > 30] == [f"      {command}"]
    assert answer.failure("x.y", "word " * 30, None).splitlines()[0].endswith("[x.y]"), "no terminal, no wrapping"
    for details in (None, {"evidence": ["seen"], "asked": True}):
        lines = answer.failure("x.y", "No.", command, details=details, width=30).splitlines()
        assert lines == ["idumb: No. [x.y]", "  next:", f"      {command}"]


def test_commands_keep_their_line_breaks_and_spaces() -> None:
    evidence = {"evidence": ["  runs   printf 'a  b' # note\nrm -r x"]}
    of_file = Action.of("show", "a  b\nc\x1bd")
    shown = ["  - runs   printf 'a  b' # note", "        rm -r x", r"  next: idumb show 'a  b'$'\n''c'$'\x1b''d'"]
    assert answer.failure("x.y", "No.", of_file, details=evidence).splitlines()[1:] == shown
    assert answer.failure("usage", "No.", of_file).splitlines()[1:] == shown[2:], "once"
    offered = answer.failure("x.y", "No.", None, details={"choices": [{**LOOK, "command": str(of_file)}]})
    assert offered.splitlines()[-1] == "      " + shown[2].removeprefix("  next: ")
    question = {"id": "q", "what": "What?", "why": "Why.", "choices": [], **evidence}
    assert shown[:2] == answer.render("decide.decisions", {"decisions": [question]}).splitlines()[2:]


_SPENT = {"seconds": 1, "tokens": 0, "cost_usd": 0}
_HEAD = {"number": 1, "phase": "1", "run": "r1", "state": "completed", **_SPENT}
_TIMES = {"recorded": "2026-01-02T03:04:05.1Z", "rebuilt": "2026-01-02T03:04:05.2Z"}
_UPCOMING = {
    "phases": [{"phase": "1", "next": [], "others": [], "decisions": [], "more": 3}],
    "owner": {"pid": 1, "host": "h", "standing": "running", "since": "2026-01-02T03:04:05Z", "command": "quick"},
    "next": {"phase": "1", "command": None, "why": "nothing"}, "decisions": [],
}  # fmt: skip
_CHECKED = {
    "phase": "1", "plans": ["p.md"], "findings": [], "errors": 0, "warnings": 0, "mode": "guided", "contract_hash": "c",
    "consent_hash": "c", "plan_hashes": {"p.md": "ab"}, "plan_versions": {"p.md": "2"},
}  # fmt: skip
_FLOW = {
    "phase": "W1", "name": "greet", "version": "", "inputs": {}, "state": "completed", "definition": "same",
    "steps": [{"task": "TW1-01", "step": "", "status": "completed", "reason": "", "outputs": {"words": ""}}],
}  # fmt: skip


_PASSED = {"status": "passed", "reason": "AC-2 has no proof; Ann accepted it", "weaker": []}
_WARNED = [{"state": "warn", "found": "kept", "path": p, "means": "M", "fix": "F", "fixes": False} for p in "ab"]
_FINE = {"state": "ok", "found": "2 files", "path": "", "means": "", "fix": "", "fixes": False}
_DRY = {
    "tasks": [_row("T1-01", "completed")], "would_commit": [{"task": "T1-01", "subject": "a"}], "files": [], "diff": "",
}  # fmt: skip
_VERSION = {"name": "adapter_version", "value": {"git_lfs": "3.4"}, "absent": False, "source": None}


def _complete(**record: Any) -> tuple[str, dict[str, Any]]:
    done = {"counts": {"completed": 5}, "tasks": [_row("T1-01", "completed")]}
    return "run.ended", _run("complete", **done, verification={**_PASSED, **record})


ANSWERS: dict[str, tuple[str, dict[str, Any]]] = {
    "check-plan-with-a-finding": (
        "plan.check_plan",
        {"phase": "1", "folder": "f", "plans": ["p"], "findings": [FINDING], "errors": 1, "warnings": 0},
    ),
    "check-plan-verbose": ("plan.verbose", _CHECKED),
    "run-complete": _complete(reason="every check passed"),
    "run-complete-and-accepted": _complete(decision="1.verified.1.x"),
    "run-complete-and-not-all-verified": _complete(open=["roadmap 2 has no proof"]),
    "run-partial": ("run.ended", _run("partial", reason="3 tasks failed in a row")),
    "run-failed": ("run.ended", _run("failed", tasks=_run("failed")["tasks"][1:])),
    "run-failed-before-its-tasks": ("run.ended", _run("failed", tasks=[], reason="no task could start")),
    "dry-run": ("run.ended", {"phase": "1", "outcome": "complete", "dry_run": _DRY}),
    "dry-run-without-tasks": (
        "run.ended",
        {"phase": "1", "outcome": "complete", "dry_run": {"tasks": [], "files": [], "diff": ""}},
    ),
    "rolled-back": (
        "run.rolled_back",
        {"phase": "1", "to": "T1-01", "tasks": ["T1-01"], "paths": ["a"], "commit": None, "compensated": ["T1-01"]},
    ),
    "workflow-without-findings": ("workflows.check", {"findings": [], "errors": 0, "path": "w.md"}),
    "workflow-status": ("workflows.status", {"runs": [_FLOW]}),
    "next-of-many": ("status.upcoming", _UPCOMING),
    "compare": (
        "monitoring.compare",
        {"first": _HEAD, "second": _HEAD, "tasks": [{"id": "T1", "first": None, "second": None}], "differences": []},
    ),
    "replay": (
        "monitoring.replay",
        {"run": "1", "events": 2, "compared": 1, "differences": [{"event": 1, "kind": "k", "what": "at", **_TIMES}]},
    ),
    "transcript": ("show.transcript", {"id": "T1", "attempt": 2, "transcripts": [{"role": "builder", "output": "x"}]}),
    "envelope": (
        "show.envelope",
        {"task": "T1-01", "attempt": 1, "run": "r", "builder": "b", "digest": "d", "parts": [_VERSION]},
    ),
    "decisions": ("decide.decisions", {"decisions": [DECISION, {**DECISION, "id": "T1-06.work"}]}),
    "decisions-none": ("decide.decisions", {"decisions": []}),
    "doctor": (
        "set_up.doctor",
        {
            "checks": [{"code": "store.private", "state": "warn", "about": "A", "symptoms": [*_WARNED, _FINE]}],
            "counts": {"problem": 0, "warn": 1, "not_examined": 0},
            "fixed": [],
        },
    ),
}


@every("name", ANSWERS)
def test_each_answer_is_as_the_file_of_its_name(name: str) -> None:
    """R-RUN-6, R-PLAN-5, R-LOCK-1."""
    example_files.compare(Path(__file__).parent / "answers" / f"{name}.txt", answer.render(*ANSWERS[name]))
