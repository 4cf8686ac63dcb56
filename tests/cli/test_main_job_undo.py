"""Rollback, undo and a changed plan on the command line."""

from __future__ import annotations

import subprocess

from tests.support import project as projects
from tests.support.gitrepo import GitSandbox
from tests.support.plans import run
from tests.support.prepared import prepared_project
from tests.support.project import Project, delete, edit, making, shell, task


def _three_tasks(sandbox: GitSandbox) -> Project:
    project = projects.create(sandbox)
    project.plan(
        [
            making("T1-01", "a.txt", "one\n"),
            task(
                "T1-02",
                files="modify `a.txt`",
                check="grep -q two a.txt",
                after="T1-01",
                steps=[edit("a.txt", "one", "two")],
            ),
            task(
                "T1-03",
                files="delete `README.md`",
                check="! test -e README.md",
                after="T1-02",
                steps=[delete("README.md")],
            ),
        ]
    )
    assert project.execute().code == 0
    return project


ran = prepared_project(_three_tasks)
"""A phase of three tasks that create, change and delete, verified."""


def test_rollback_to_a_task_is_a_new_commit_that_undo_reverts_exactly(ran: Project) -> None:
    """R-GIT-3, R-GIT-4: the branch never moves back, progress is trimmed, undo is exact, undo of undo too."""
    before, head, reports = ran.repo.tree(), ran.repo.head(), ran.repo.ledger()
    answer = ran.json("rollback", "1", "--to", "T1-01", "--yes")
    assert answer.code == 0, answer.out
    assert answer.data["tasks"] == ["T1-02", "T1-03"]
    assert answer.data["paths"] == ["README.md", "a.txt"]
    assert (ran.read("a.txt"), ran.exists("README.md")) == ("one\n", True)
    assert ran.repo.git("merge-base", head, "HEAD") == head
    assert ran.trailers("Idumb-Rollback") == ["T1-01"]
    assert ran.repo.status() == []
    assert ran.statuses() == {"T1-01": "completed", "T1-02": "ready", "T1-03": "pending"}
    assert ran.json("status").data["phases"][0]["state"] != "verified"
    assert ran.repo.tree(answer.data["kept"])["worktree/a.txt"] == before["a.txt"]
    undone = ran.json(*ran.undoing())
    assert undone.code == 0, undone.out
    assert projects.user_bytes(reports, ran.repo.ledger()) == []
    assert ran.repo.status() == []
    assert set(ran.statuses().values()) == {"completed"}
    assert ran.json("status").data["phases"][0]["state"] == "verified"
    assert ran.json(*ran.undoing()).code == 0
    assert ran.read("a.txt") == "one\n"


def test_rollback_to_the_start_and_resume_repeat_everything(ran: Project) -> None:
    """R-GIT-3: under the same consent."""
    assert ran.quick("rollback", "1", "--to", "start", "--yes").code == 0
    assert (ran.exists("a.txt"), ran.exists("README.md")) == (False, True)
    assert set(ran.statuses().values()) == {"ready", "pending"}
    assert ran.resume("--no-verify").code == 0
    assert ran.read("a.txt") == "two\n"


def test_rollback_never_loses_partly_staged_changes(ran: Project) -> None:
    """R-GIT-3, R-GIT-6: staged bytes that neither working tree nor HEAD has; undo is refused too."""
    content = ran.read("a.txt")
    ran.repo.write("a.txt", "precious\n")
    ran.repo.git("add", "a.txt")
    ran.repo.write("a.txt", content)
    before = ran.repo.ledger()
    for words in (("rollback", "1", "--to", "start", "--yes"), ran.undoing()):
        refused = ran.quick(*words, "--json")
        assert (refused.code, refused.error["code"]) == (4, "rollback.conflict"), refused.out
        assert "a.txt (has other staged content)" in refused.error["message"]
        assert ran.repo.ledger() == before
    (way,) = refused.error["details"]["files"]
    subprocess.run(["sh", "-c", f"{way['keep']} && {way['put_back']}"], cwd=ran.folder, check=True)
    assert ran.read("a.txt.staged") == "precious\n"
    assert ran.quick("rollback", "1", "--to", "start", "--yes", "--json").code == 0


LEFT = """for at in deep/a.txt gone.txt plain.txt both.txt './-d.txt' '[x].txt' run.sh now-link.txt
do echo task > "$at"; done; chmod +x run.sh ./-d.txt; ln -s plain.txt link; rm README.md"""
CHANGED = """rm -r deep gone.txt link
for at in plain.txt both.txt './-d.txt' '[x].txt' x.txt run.sh link README.md; do echo mine > "$at"; done
chmod +x plain.txt; chmod -x run.sh ./-d.txt; ln -sf x.txt now-link.txt; git add both.txt ':(literal)[x].txt' x.txt
git rm -q --cached link"""


def test_the_commands_of_a_conflict_save_both_versions_and_let_the_rollback_succeed(sandbox: GitSandbox) -> None:
    """R-GIT-3, R-GIT-6: files, programs, links, a folder that is gone; nothing else is unstaged."""
    project = projects.create(sandbox, files={"README.md": "# A project\n", "gone.txt": "1\n"})
    made = ("-d.txt", "[x].txt", "both.txt", "link", "now-link.txt", "plain.txt", "run.sh")
    files = "modify `deep/a.txt`, modify `gone.txt`, delete `README.md`" + "".join(f", create `{p}`" for p in made)
    second = task("T1-02", files=files, check="test -x run.sh", after="T1-01", steps=[shell(LEFT)])
    project.plan([making("T1-01", "deep/a.txt"), second])
    assert project.execute("--no-verify").code == 0
    left = sandbox.ledger()
    subprocess.run(["sh", "-ec", CHANGED], cwd=project.folder, check=True)
    changed = sandbox.ledger()
    refused = project.json("rollback", "1", "--to", "T1-01", "--yes")
    assert sandbox.ledger() == changed
    ways = {row["path"]: (row["keep"], row["put_back"]) for row in refused.error["details"]["files"]}
    assert sorted(ways) == sorted((*made, "README.md", "deep/a.txt", "gone.txt"))
    assert [path for path, (keep, _) in ways.items() if keep is None] == ["deep/a.txt", "gone.txt"]
    assert [path for path, (_, back) in ways.items() if "git reset" in back] == ["[x].txt", "both.txt"]
    for command in (command for way in ways.values() for command in way if command):
        subprocess.run(["sh", "-ec", command], cwd=project.folder, check=True)
    saved = {path: project.read(f"{path}.mine") for path in ways if ways[path][0]}
    assert saved == {path: "x.txt" if path == "now-link.txt" else "mine\n" for path in saved}
    assert projects.user_bytes(left, sandbox.ledger()) == sorted((*(f"{path}.mine" for path in saved), "x.txt"))
    assert project.json("rollback", "1", "--to", "T1-01", "--yes").code == 0
    assert sandbox.git("diff", "--cached", "--name-only") == "x.txt"


def test_the_commands_of_a_conflict_move_aside_what_is_in_the_way_of_a_file(sandbox: GitSandbox) -> None:
    """R-GIT-3: a folder with its name, and a link above it; nothing is written through the link."""
    project = projects.create(sandbox, files={"deep/a": "1", "deep/b": "1", "c": "1"})
    edits = shell("for at in deep/a deep/b c; do echo task > $at; done")
    project.plan([task("T1-01", files="modify `deep/a`, `deep/b`, `c`", check="grep task c", steps=[edits])])
    assert project.execute("--no-verify").code == 0
    blocked = "mv deep own; ln -s own deep; echo mine > own/a; rm c; mkdir c; echo mine > c/mine"
    subprocess.run(["sh", "-ec", blocked], cwd=project.folder, check=True)
    ways = project.json("rollback", "1", "--to", "start", "--yes").error["details"]["files"]
    for command in (way[name] for way in ways for name in ("keep", "put_back") if way[name]):
        subprocess.run(["sh", "-ec", command], cwd=project.folder, check=True)
    assert project.json("rollback", "1", "--to", "start", "--yes").code == 0
    assert (project.read("own/a"), project.read("c.mine/mine")) == ("mine\n", "mine\n")
    assert (project.read("deep/a"), project.read("deep/b"), project.read("c")) == ("1", "1", "1")


def test_rollback_changes_no_other_file_and_not_the_index(ran: Project) -> None:
    """R-GIT-3: untracked, ignored, staged and partly staged files of the user."""
    ran.repo.write_all({"mine.txt": "mine\n", "debug.log": "ignored\n", ".gitignore": "*.log\n# more\n"})
    ran.repo.write("part.txt", "staged\n")
    ran.repo.git("add", "part.txt")
    ran.repo.write("part.txt", "not staged\n")
    before, status = ran.repo.ledger(), ran.repo.status()
    assert ran.quick("rollback", "1", "--to", "T1-01", "--yes").code == 0
    assert set(projects.user_bytes(before, ran.repo.ledger())) == {"README.md", "a.txt"}
    assert ran.repo.status() == status
    assert ran.repo.git("show", ":part.txt") == "staged"


def test_rollback_without_a_terminal_needs_the_option_and_shows_what_it_would_do(ran: Project) -> None:
    """R-GIT-3, R-ASK-2."""
    before = ran.repo.ledger()
    answer = ran.quick("rollback", "1", "--to", "T1-02", "--json")
    assert (answer.code, answer.error["code"]) == (4, "rollback.not-confirmed")
    assert "--yes" in answer.error["hint"]
    assert answer.error["details"]["paths"] == ["README.md"]
    assert ran.repo.ledger() == before
    missing = ran.quick("rollback", "1", "--to", "T1-09", "--yes", "--json")
    assert (missing.code, missing.error["code"]) == (3, "rollback.no-checkpoint")


def test_a_changed_plan_starts_a_new_run_that_keeps_completed_work(ran: Project) -> None:
    """R-ADAPT-2, R-RUN-12: unchanged completed tasks are carried; resume refuses an unapproved plan."""
    place = ran.folder / ".planning/phases/1/01-PLAN.md"
    place.write_text(place.read_text() + "\n" + making("T1-04", "d.txt", after="T1-03"))
    ran.commit_own()
    refused = ran.quick("resume", "1", "--json")
    assert (refused.code, refused.error["code"]) == (4, "run.contract-changed")
    assert refused.error["details"]["changed"] == [".planning/phases/1/01-PLAN.md"]
    answer = run(ran, "--no-verify")
    assert answer.code == 0, answer.out
    assert ran.trailers("Idumb-Task") == ["T1-01", "T1-02", "T1-03", "T1-04"]
    assert ran.quick("show", "T1-02", "--diff", "--json").data["files"] == [{"path": "a.txt", "added": 1, "removed": 1}]
    assert ran.quick("rollback", "1", "--to", "T1-01", "--yes").code == 0
    assert (ran.read("a.txt"), ran.exists("d.txt"), ran.repo.status()) == ("one\n", False, [])
