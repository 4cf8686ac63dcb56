"""Work that is done elsewhere: a file asks, another answers; the task waits, across restarts, and bytes are judged."""

from __future__ import annotations

from pathlib import Path

from tests.support import project as projects
from tests.support.gitrepo import GitSandbox
from tests.support.plans import run
from tests.support.prepared import prepared_project
from tests.support.project import Project, task

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


project = prepared_project(_waiting)


def requests(project: Project) -> Path:
    return next((project.folder / ".git").rglob("handoffs"))


def test_a_task_waits_for_its_answer_across_restarts_and_its_files_are_judged(project: Project) -> None:
    """R-ADAPT-2."""
    folder = requests(project)
    request_file = next(folder.glob("T1-01-builder-*.md"))
    text = request_file.read_text(encoding="utf-8")
    assert "grep -q right a.txt" in text
    assert "# A project" in text

    answered(folder, PATCH.format("wrong"))
    answer = project.quick("resume", "1", "--json")
    assert answer.code == 5, answer
    second = next(p for p in folder.glob("T1-01-builder-*.md") if p.stem.split(".")[0] != request_file.stem)
    assert "AC-1" in second.read_text(encoding="utf-8").partition("what was wrong")[2]

    assert answered(folder, '```json\n{"edits": [{"tool": "edit_file", "path": "a.txt", "find": "wrong",'
                            ' "replace": "right"}]}\n```') == [second.stem]  # fmt: skip
    answer = project.quick("resume", "1", "--no-verify", "--json")
    assert answer.code == 0, answer
    assert (project.read("a.txt"), project.read("README.md")) == ("right\n", "# A project\nand more\n")
    assert set(project.statuses().values()) == {"completed"}


def test_a_handoff_folder_that_tasks_could_write_is_reported_and_refused(sandbox: GitSandbox) -> None:
    """R-ADAPT-2: tasks could write their own answers there; nothing is started to detect it."""
    project = projects.create(sandbox)
    project.plan([MADE])
    for place in ("answers", str(project.folder / "answers")):
        project.configure(f"builder: away\nbindings:\n  away: {{adapter: handoff, options: {{folder: '{place}'}}}}\n")
        answer = project.quick("check-plan", "1", "--json")
        assert (answer.code, answer.data["errors"]) == (3, 1)
        (finding,) = answer.data["findings"]
        assert (finding["code"], finding["line"], finding["column"]) == ("agent.bad-option", 3, 3)
        assert "folder" in finding["message"]
        assert ".idumb/config.yaml:3 first" in answer.error["hint"]
        refused = project.quick("execute-phase", "1", "--json")
        assert (refused.code, refused.error["code"]) == (4, "agent.bad-option")
        assert refused.error["message"].count("The binding away") == 1
