"""`show --debug` asks the debugger; `show --transcript` says what an agent did in an attempt (R-RUN-2)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from idumb.views import page
from tests.support import plans, seed
from tests.support import project as projects
from tests.support.answer import Answer
from tests.support.gitrepo import GitSandbox
from tests.support.plans import run
from tests.support.prepared import prepared_project
from tests.support.project import Project, create, making, shell, task

PLAN = ".planning/phases/1/01-PLAN.md"
ROLES = "bindings: {one: {adapter: command, argv: [sh, agent.sh]}}\nroles: {debugger: {binding: one}}\n"
CEILING = "ceilings: {run: {tokens: 9}}\n"
BROKEN = task(
    "T1-02",
    files="create `b.txt`",
    check="echo 'b is \x1b[31mwrong'; grep -q right b.txt",
    after="T1-01",
    steps=[shell("test -e b.txt && echo again >> b.txt || echo wrong > b.txt")],
)


def _failed(sandbox: GitSandbox) -> Project:
    """T1-01 is done, T1-02 failed twice. The debugger works in a copy and answers with text from the project."""
    project = projects.create(sandbox)
    project.repo.commit_with({"agent.sh": f"cat > told.md; cat '{project.folder}/reply.md'\n"}, "agent")
    project.configure(ROLES + CEILING)
    project.plan([making("T1-01", "a.txt"), BROKEN])
    assert run(project, "--max-attempts", "2").code == 1
    return project


project = prepared_project(_failed)


def debug(project: Project, *flags: str) -> Answer:
    alone = () if "--approve" in flags else ("--facts-only",)
    return project.quick("show", "T1-02", "--debug", *flags, *alone, "--json")


def test_debug_shows_attempts_their_changes_and_next_actions(project: Project) -> None:
    """R-ADAPT-6."""
    before = project.events()
    data = debug(project).data
    failed = data["task"]
    assert (failed["id"], failed["status"]) == ("T1-02", "failed")
    assert [a["outcome"] for a in failed["attempts"]] == ["failed", "failed"]
    assert "wrong" in failed["attempts"][1]["evidence"][0]["output"]
    assert [c["since"] for c in failed["changes"]] == ["start", "attempt 1"]
    assert failed["changes"][0]["files"] == [{"path": "b.txt", "added": 1, "removed": 0}]
    assert "+wrong" in failed["changes"][0]["diff"]
    offered = [one["command"] for one in data["checklist"]]
    assert "idumb dlq retry T1-02" in offered
    assert any("AC-1 fails" in one["text"] for one in data["checklist"])
    assert data["diagnosis"] is None
    assert project.events() == before
    words = project.quick("show", "t1-02", "--debug", "--facts-only").out
    assert "- See the changes of the task.\n" in words
    assert (failed["envelope"], "model" in words) == ([], False)  # steps have none


def test_a_task_that_did_not_fail_is_shown_too(project: Project) -> None:
    done = project.json("show", "T1-01", "--debug", "--facts-only").data
    assert (done["task"]["status"], done["next"]) == ("completed", ["idumb show T1-01 --diff"])
    assert [one["command"] for one in done["checklist"]] == done["next"]
    assert project.json("show", "T1-01", "--diff").code == 0
    assert project.json("show", "T1-09", "--debug").error["code"] == "task.unknown"


@pytest.mark.nightly
def test_a_task_that_another_run_took_over_keeps_its_changes_and_envelopes(sandbox: GitSandbox) -> None:
    project = projects.create(sandbox)
    project.built_by("echo attempt $IDUMB_ATTEMPT > a.txt")
    built = task("T1-01", files="create `a.txt`", check="grep 2 a.txt")
    project.plan([built])
    assert run(project, "--no-verify").code == 0
    before = project.json("show", "T1-01", "--debug", "--facts-only").data
    more = making("T1-02", "b.txt", after="T1-01"), making("T1-03", "c.txt", after="T1-02")
    for number in (1, 2):  # taken over from the run that made it, then from one that took it over
        project.plan([built, *more[:number]])
        assert run(project, "--no-verify").code == 0
    after = project.json("show", "T1-01", "--debug", "--facts-only").data
    assert after["run"] != before["run"]
    for name in ("attempts", "changes", "envelope"):
        assert after["task"][name] == before["task"][name] != []
    assert project.json("audit", "bundle", "1").data["bundle"]["tasks"][0]["evidence"]


def answering(project: Project, reply: str) -> str:
    """Let the debugger answer so; the consent that asking it needs."""
    (project.folder / "reply.md").write_text(reply, encoding="utf-8")
    refused = project.quick("show", "T1-02", "--debug", "--json")
    assert (refused.code, refused.error["code"]) == (5, "consent.missing")
    return str(refused.error["details"]["consent_hash"])


def test_the_debugger_is_asked_once_a_person_consented(project: Project) -> None:
    """R-ADAPT-6, R-ADAPT-1: its text is shown as an opinion, and changes nothing."""
    before = project.read(PLAN)
    data = debug(project, "--approve", answering(project, "b.txt:1 says it.\n")).data
    assert data["diagnosis"] == {"binding": "one", "text": "b.txt:1 says it.\n", "failure": ""}
    assert project.read(PLAN) == before
    assert "Diagnosis by one (an opinion):" in project.quick("show", "T1-02", "--debug").out


SECRET = "sk-ant-api03-" + "x7Kq" * 12
CLAUDE = (
    {"type": "system", "subtype": "init", "session_id": "s", "model": "claude-test"},
    {"type": "assistant", "message": {"content": [{"type": "text", "text": f"I use {SECRET}."}]}},
    {"type": "assistant", "message": {
        "content": [{"type": "tool_use", "name": "Write", "input": {"file_path": "a.txt", "content": "made"}}],
        "usage": {"input_tokens": 900, "output_tokens": 12}}},
    {"type": "result", "subtype": "success", "is_error": False, "result": "Done.", "usage": {"input_tokens": 900}},
)  # fmt: skip
CODEX = (
    {"type": "thread.started", "thread_id": "t"},
    {"type": "item.completed", "item": {"type": "agent_message", "text": "I begin."}},
    {"type": "item.completed", "item": {"type": "command_execution", "command": "make", "exit_code": 2}},
    {"type": "item.completed", "item": {"type": "file_change", "changes": [{"path": "a.txt", "kind": "add"}]}},
    {"type": "turn.completed", "usage": {"input_tokens": 900, "output_tokens": 12}},
)


def reporting(project: Project, tmp_path: Path, name: str, events: tuple[object, ...]) -> None:
    """Bind an agent that writes `a.txt` and prints these events."""
    (tmp_path / "events").write_text("".join(f"{json.dumps(event)}\n" for event in events), encoding="utf-8")
    script = f"#!/bin/sh\ncat > /dev/null\ncat {tmp_path}/events\necho made > a.txt\n"
    program = project.repo.write(str(tmp_path / "bin" / name), script, mode=0o755)
    project.configure(f"builder: it\nbindings: {{it: {{adapter: {name}, argv: [{program}]}}}}\n")


def transcript(project: Project, *flags: str) -> dict[str, list[str]]:
    answer = project.quick("show", "T1-01", "--transcript", *flags, "--json")
    assert answer.code == 0, answer
    return {row["role"]: row["output"].splitlines() for row in answer.data["transcripts"]}


@pytest.mark.parametrize(
    ("name", "events", "lines"),
    seed.one_on_a_push([
        ("claude", CLAUDE, ["model claude-test", "says: I use [redacted", "Write a.txt", "912 tokens so far",
                            "ended: success"]),
        ("codex", CODEX, ["says: I begin.", "run make: exit 2", "add a.txt", "912 tokens so far"]),
    ], "a vendor"),
)  # fmt: skip
def test_what_a_vendor_reports_becomes_short_lines_without_secrets(
    sandbox: GitSandbox, tmp_path: Path, name: str, events: tuple[object, ...], lines: list[str]
) -> None:
    """R-RUN-2: the attempt keeps what its agent did."""
    project = create(sandbox)
    reporting(project, tmp_path, name, events)
    project.plan([making("T1-01", "a.txt", steps=())])
    assert plans.run(project, "--no-verify").code == 0
    kept = transcript(project)["builder"]
    assert len(kept) == len(lines), kept
    assert all(line.startswith(start) for line, start in zip(kept, lines, strict=True)), kept
    assert "Write a.txt" in project.quick("show", "T1-01", "--transcript").out or name == "codex"


def test_steps_and_any_program_have_a_transcript_of_each_attempt(sandbox: GitSandbox) -> None:
    project = create(sandbox)
    project.built_by("echo working on $IDUMB_ATTEMPT; echo made > a.txt")
    done = making("T1-02", "b.txt", after="T1-01")
    project.plan([task("T1-01", files="create `a.txt`", check="test -s b.txt"), done])
    assert plans.run(project, "--max-attempts", "2").code == 1
    assert transcript(project) == {"builder": ["working on 2"]}
    blocked = project.json("show", "T1-02", "--debug").data
    assert (blocked["checklist"], blocked["next"]) == ([], ["idumb next 1"]), "it cannot be retried"
    assert "permanent" not in project.quick("show", "T1-02", "--debug").out
    assert transcript(project, "--attempt", "1") == {"builder": ["working on 1"]}
    missing = project.quick("show", "T1-01", "--transcript", "--attempt", "3", "--json")
    assert missing.error["code"] == "task.no-attempt"
    project.plan([making("T1-01", "b.txt")])
    assert plans.run(project, "--no-verify", "--force").code == 0
    assert transcript(project) == {"builder": ["write_file b.txt: completed"]}


@pytest.mark.nightly
def test_the_page_of_a_run_has_the_end_of_each_transcript_folded(
    tmp_path: Path, sandbox: GitSandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R-OPS-1: limited in bytes, all together too."""
    monkeypatch.setattr(page, "_MOST_OF_TRANSCRIPTS", 100)
    project = create(sandbox)
    project.plan([making("T1-01", "a.txt")])
    assert plans.run(project).code == 0
    assert project.quick("report", "1", "--html", str(tmp_path / "page.html")).code == 0
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "<details><summary>Transcript of the builder</summary>" in text
    assert page._last_bytes("a" * 101, 100) == f"…{'a' * 100}"


def test_a_task_of_a_person_has_no_transcript(sandbox: GitSandbox) -> None:
    project = create(sandbox)
    project.configure("builder: human\n")
    project.plan([task("T1-01", files="create `a.txt`", check="test -s a.txt")])
    plans.run(project)
    answer = project.quick("show", "T1-01", "--transcript", "--json")
    assert (answer.code, answer.error["code"]) == (4, "task.no-transcript")
