"""Completed tasks are handed off, and agents elsewhere build or judge tasks; no handoff blocks a run (R-ADAPT-2)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support import project as projects
from tests.support.answer import Answer
from tests.support.gitrepo import GitSandbox
from tests.support.plans import run
from tests.support.prepared import prepared_project
from tests.support.project import Project, making, task

SEVERAL = (
    "- **Handoff to:**\n  - human (error recovery)\n  - verifier\n- **Priority:** high\n- **Notes:** look at <b>a</b>\n"
)


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """T1-01 has two receivers, T1-02 one that does not exist, T1-03 none on purpose."""
    project = projects.create(GitSandbox.create(tmp_path_factory.mktemp("handoff") / "repo"))
    project.plan(
        [
            making("T1-01", "a.txt", fields=SEVERAL),
            making("T1-02", "b.txt", fields="- **Handoff to:** nobody-here\n"),
            making("T1-03", "c.txt", fields="- **Handoff to:** human (never)\n"),
        ]
    )
    assert run(project, "--no-verify").code == 0
    return project


def handoff(project: Project, *words: str) -> Answer:
    return project.quick("handoff", *words, "--json")


def test_a_completed_task_writes_a_handoff_to_each_receiver_and_the_run_continues(ran: Project) -> None:
    """R-HAND-1."""
    listing = handoff(ran, "list").data
    assert [(h["task"], h["to_agent"], h["handoff_type"]) for h in listing["handoffs"]] == [
        ("T1-01", "human", "error_recovery"),
        ("T1-01", "verifier", "standard"),
    ]
    first = listing["handoffs"][0]
    operation = ran.events("--kind", "handoff.created")[0]["operation"]
    assert (first["from_agent"], first["request_id"], first["priority"]) == ("steps", operation, "high")
    assert (first["status"], first["deliverables"]) == ("pending", ["a.txt (created)"])
    assert first["acceptance_criteria"] == ["AC-1: it holds"]
    assert [(f["task"], f["to_agent"]) for f in listing["failed"]] == [("T1-02", "nobody-here")]
    assert [e["task"] for e in ran.events("--kind", "handoff.failed")] == ["T1-02"]
    assert set(ran.statuses().values()) == {"completed"}


def test_each_handoff_is_saved_as_markdown_and_committed_with_the_reports(ran: Project) -> None:
    """R-HAND-1."""
    for one in handoff(ran, "list").data["handoffs"]:
        text = ran.read(one["path"])
        assert f"to_agent: {one['to_agent']}\n" in text
        assert f"priority: {one['priority']}\n" in text
        assert "## Next steps\n\n```\nlook at <b>a</b>\n```\n" in text
    assert ran.repo.git("status", "--porcelain") == ""


def test_handoffs_are_filtered_by_run_phase_status_and_agent_and_counted(ran: Project) -> None:
    """R-HAND-2."""
    run = handoff(ran, "list").data["handoffs"][0]["run"]
    for chosen, count in (
        (("--run", run), 2),
        (("--run", "0000"), 0),
        (("--phase", "01"), 2),
        (("--phase", "2"), 0),
        (("--agent", "verifier"), 1),
        (("--status", "failed"), 0),
    ):
        listed = handoff(ran, "list", *chosen).data
        assert len(listed["handoffs"]) == listed["stats"]["total"] == count, chosen
    assert handoff(ran, "list").data["stats"]["by_agent"] == {"human": 1, "verifier": 1}
    assert "pending 2" in ran.quick("handoff", "list").out


def test_a_status_update_is_shown_in_the_list_and_the_document(ran: Project) -> None:
    """R-HAND-2; R-LOG-1: the events name run and task, and reports of the run stay as they are."""
    one = handoff(ran, "list", "--agent", "verifier").data["handoffs"][0]
    name = one["handoff_id"][:8]
    assert handoff(ran, "update", name, "in_progress", "--why", "begun").data["handoff"]["status"] == "in_progress"
    done = handoff(ran, "update", name, "complete").data["handoff"]
    assert [(s["status"], s["reason"]) for s in done["said"]] == [("in_progress", "begun"), ("complete", "")]
    assert "status: complete\n" in ran.read(one["path"])
    for kind in ("handoff.updated", "handoff.completed"):
        (event,) = ran.events("1", "--task", "T1-01", "--kind", kind)
        assert (event["run"], event["task"], event["attempt"]) == (one["run"], "T1-01", 1)
        assert event["payload"]["handoff_id"] == one["handoff_id"]
    assert ran.quick("doctor", "--json").code == 0
    assert handoff(ran, "list", "--status", "complete").data["handoffs"][0]["handoff_id"] == one["handoff_id"]
    assert "complete" in ran.quick("handoff", "list").out


def test_an_unknown_handoff_and_an_invalid_status_are_refused(ran: Project) -> None:
    for words, code in ((("show", "ffff-none"), "handoff.unknown"), (("show", "T1-01"), "handoff.ambiguous")):
        answer = handoff(ran, *words)
        assert (answer.code, answer.error["code"]) == (3, code), answer
    name = handoff(ran, "list").data["handoffs"][0]["handoff_id"]
    assert handoff(ran, "update", name, "done").error["code"] == "handoff.bad-status"
    assert handoff(ran, "update", name).code == 2


def test_a_document_that_cannot_be_written_stops_nothing(sandbox: GitSandbox) -> None:
    """R-HAND-1: a failed handoff is reported and never stops the run."""
    project = projects.create(sandbox)
    project.plan([making("T1-01", "a.txt", fields="- **Handoff to:** human\n")])
    (project.folder / ".idumb/brain/handoffs").write_text("in the way", encoding="utf-8")
    project.commit_own()
    answer = run(project, "--no-verify")
    assert answer.code == 0, answer
    assert any("could not be written" in warning for warning in answer.object["warnings"])
    assert len(handoff(project, "list").data["handoffs"]) == 1


MADE = task("T1-01", files="create `a.txt`, modify `README.md`", check="grep -q right a.txt")
PATCH = """\
I made it.
```diff
diff --git a/README.md b/README.md
--- a/README.md
+++ b/README.md
@@ -1 +1,2 @@
 # A project
+and more
diff --git a/a.txt b/a.txt
new file mode 100644
--- /dev/null
+++ b/a.txt
@@ -0,0 +1 @@
+{}
```
"""


def answered(folder: Path, body: str) -> list[str]:
    """Answer every open handoff of a folder as another process does; their names."""
    done = []
    for asked in sorted(folder.glob("*.md")):
        answer = asked.with_name(f"{asked.stem}.answer.md")
        if asked.name.endswith(".answer.md") or answer.exists():
            continue
        text = f"---\ntype: answer\nhandoff: {asked.stem}\noutcome: done\n---\n{body}\nEND OF ANSWER\n"
        answer.with_suffix(".part").write_text(text, encoding="utf-8")
        answer.with_suffix(".part").rename(answer)
        done.append(asked.stem)
    return done


def _waiting(sandbox: GitSandbox) -> Project:
    """T1-01 waits for its first answer."""
    project = projects.create(sandbox)
    project.configure("builder: away\nbindings:\n  away: {adapter: handoff}\n")
    project.plan([MADE])
    assert run(project).code == 5
    return project


asking = prepared_project(_waiting)


def requests(project: Project) -> Path:
    return next((project.folder / ".git").rglob("handoffs"))


def test_a_task_waits_for_its_answer_across_restarts_and_its_files_are_judged(asking: Project) -> None:
    """R-ADAPT-2."""
    folder = requests(asking)
    request_file = next(folder.glob("T1-01-builder-*.md"))
    text = request_file.read_text(encoding="utf-8")
    assert "grep -q right a.txt" in text
    assert "# A project" in text

    answered(folder, PATCH.format("wrong"))
    answer = asking.quick("resume", "1", "--json")
    assert answer.code == 5, answer
    second = next(p for p in folder.glob("T1-01-builder-*.md") if p.stem.split(".")[0] != request_file.stem)
    assert "AC-1" in second.read_text(encoding="utf-8").partition("what was wrong")[2]

    assert answered(folder, '```json\n{"edits": [{"tool": "edit_file", "path": "a.txt", "find": "wrong",'
                            ' "replace": "right"}]}\n```') == [second.stem]  # fmt: skip
    answer = asking.quick("resume", "1", "--no-verify", "--json")
    assert answer.code == 0, answer
    assert (asking.read("a.txt"), asking.read("README.md")) == ("right\n", "# A project\nand more\n")
    assert set(asking.statuses().values()) == {"completed"}


def test_a_handoff_folder_that_tasks_could_write_is_reported_and_refused(sandbox: GitSandbox) -> None:
    """R-ADAPT-2: tasks could write their own answers there; nothing is started to detect it."""
    asking = projects.create(sandbox)
    asking.plan([MADE])
    for place in ("answers", str(asking.folder / "answers")):
        asking.configure(f"builder: away\nbindings:\n  away: {{adapter: handoff, options: {{folder: '{place}'}}}}\n")
        answer = asking.quick("check-plan", "1", "--json")
        assert (answer.code, answer.data["errors"]) == (3, 1)
        (finding,) = answer.data["findings"]
        assert (finding["code"], finding["line"], finding["column"]) == ("agent.bad-option", 3, 3)
        assert "folder" in finding["message"]
        assert ".idumb/config.yaml:3 first" in answer.error["hint"]
        refused = asking.quick("execute-phase", "1", "--json")
        assert (refused.code, refused.error["code"]) == (4, "agent.bad-option")
        assert refused.error["message"].count("The binding away") == 1


BUILDS = 'printf x >> "$IDUMB_REPOSITORY/../called"; printf done >> a.txt'


def request_files(project: Project) -> list[Path]:
    folder = project.folder / ".git/idumb/worktrees/main/handoffs"
    return sorted(p for p in folder.glob("T1-01-validator-*.md") if not p.name.endswith(".answer.md"))


def answer(place: Path, verdict: str) -> None:
    verdict_text = json.dumps({"verdict": verdict, "findings": []})
    text = f"---\nhandoff: {place.stem}\noutcome: done\n---\n```json\n{verdict_text}\n```\nEND OF ANSWER\n"
    place.with_name(f"{place.stem}.answer.md").write_text(text, encoding="utf-8")


@pytest.mark.nightly
@pytest.mark.parametrize("builder", ["builder: builds\n", ""])
def test_the_work_waits_and_is_not_repeated(project: Project, builder: str) -> None:
    """R-ADAPT-2: nor is asked whether an effect may be had twice, or what had to hold before the work."""
    before = "- **Preconditions:** file absent a.txt\n- **Rollback:** compensatable\n  - `true`\n"
    fields = before if builder else ""
    steps = [] if builder else [projects.write("a.txt", "done")]
    project.plan([task("T1-01", files="create `a.txt`", check="grep -qx done a.txt", fields=fields, steps=steps)])
    argv = json.dumps(["sh", "-c", BUILDS])
    bindings = f"{{builds: {{adapter: command, argv: {argv}}}, away: {{adapter: handoff}}}}"
    project.configure(f"{builder}validator: away\nbindings: {bindings}\n")
    waits = run(project)
    assert waits.code == 5, waits
    assert waits.data["tasks"][0]["status"] == "waiting"
    (place,) = request_files(project)
    assert str(place) in waits.data["tasks"][0]["reason"]
    (event,) = project.events("--kind", "handoff.asked")
    question, _, ticket = place.stem.rpartition("-")  # the request may be predictable; its name is not
    assert (event["payload"]["question"], event["payload"]["ticket"], len(ticket)) == (question, ticket, 16)
    again = project.quick("resume", "1", "--json")
    assert (again.code, request_files(project)) == (5, [place])
    assert len(project.events("--kind", "handoff.asked")) == 1
    answer(place, "PASS")
    assert project.quick("resume", "1", "--no-verify", "--json").code == 0
    assert project.statuses() == {"T1-01": "completed"}
    assert project.read("a.txt") == "done"
    if builder:
        assert (project.folder.parent / "called").read_text(encoding="utf-8") == "x"
