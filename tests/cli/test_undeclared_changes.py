"""What changes besides the declared files: by tasks, tools, checks, validators, links and commits (R-GIT-5)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import project as projects
from tests.support import seed
from tests.support.gitrepo import GitSandbox
from tests.support.plans import run
from tests.support.project import Project, edit, failing_task, making, shell, task, write


def test_an_undeclared_change_stops_the_run_and_is_named_kept_and_never_committed(project: Project) -> None:
    """R-ASK-1, R-ASK-3, R-GIT-5, R-GIT-6, R-RUN-2, R-GATE-4."""
    strays = [write("a.txt", "a\n"), write("stray.txt", "s\n")]
    project.plan([making("T1-01", "a.txt", steps=strays), making("T1-02", "b.txt", after="T1-01")])
    settings = project.read(".idumb/config.yaml")
    answer = run(project)
    assert (answer.code, answer.error["code"]) == (5, "run.waiting")
    assert "stray.txt" in answer.error["message"]

    (question,) = project.quick("decisions", "--json").data["decisions"]
    assert (question["id"], question["evidence"]) == ("T1-01.deviation.1", ["stray.txt"])
    set_it = "idumb config set run.on_deviation"
    assert [(choice["id"], choice.get("remember")) for choice in question["choices"]] == [
        ("keep", f"{set_it} keep"), ("leave-out", f"{set_it} leave-out"), ("stop", None),
    ]  # fmt: skip
    assert [path for path in ("stray.txt", "a.txt") if project.exists(path)] == []
    assert project.trailers("Idumb-Task") == []
    assert project.statuses()["T1-02"] == "pending"
    shown = project.quick("show", "T1-01", "--json").data["attempts"][0]
    assert shown["deviations"] == ["stray.txt"]
    assert {(line["path"], line["status"]) for line in shown["ledger"]} >= {("stray.txt", "undeclared")}
    accepted = project.quick("resume", "1", "--on-deviation", "keep", "--no-verify", "--json")
    assert accepted.code == 0, accepted.out
    assert project.read(".idumb/config.yaml") == settings
    assert project.repo.tree()["stray.txt"]
    assert project.trailers("Idumb-Task") == ["T1-01", "T1-02"]
    assert project.quick("rollback", "1", "--to", "start", "--yes").code == 0  # the task's ledger has it now
    assert not project.exists("stray.txt")


def test_a_failed_task_has_a_checkpoint_too(project: Project) -> None:
    """R-GIT-2: a snapshot before each attempt, and after each the files as it left them, with error and attempts."""
    project.plan([failing_task("T1-01", "a.txt")])
    head = project.repo.head()
    assert run(project, "--max-attempts", "2").code == 1
    refs = project.repo.kept("refs/idumb/")
    for attempt in (1, 2):
        (base,) = [oid for ref, oid in refs.items() if ref.endswith(f"/T1-01/{attempt}/base")]
        (after,) = [oid for ref, oid in refs.items() if ref.endswith(f"/T1-01/{attempt}/checkpoint")]
        assert "worktree/a.txt" not in project.repo.tree(base)
        assert "worktree/a.txt" in project.repo.tree(after)
    document = project.read(".idumb/brain/execution/1/checkpoint-T1-01.md")
    for line in ("status: failed", f'git_hash: "{head}"', '  - "a.txt"', "validation_result: fail"):
        assert line in document
    for line in ("retry_count: 1", "attempt: 2", 'error_message: "AC-1 failed"'):
        assert line in document


def test_conditions_and_invariants_are_checked(project: Project) -> None:
    """R-RUN-3, R-PLAN-3, R-PLAN-4, R-RUN-14, R-GATE-3."""
    invariants = 'invariants: [{id: INV-1, text: no secrets, check: "test ! -e secret.txt"}]\n'
    project.plan(
        [
            making(
                "T1-01",
                "a.txt",
                fields="- **Preconditions:** file exists README.md\n- **Postconditions:** file exists a.txt\n",
            ),
            making("T1-02", "b.txt", fields="- **Preconditions:** file exists nowhere.txt\n"),
            making("T1-03", "c.txt", fields="- **Postconditions:** file absent c.txt\n"),
            making("T1-04", "secret.txt"),
        ],
        head=invariants,
    )
    answer = run(project, "--max-attempts", "1")
    assert answer.code == 5
    assert project.statuses() == {"T1-01": "completed", "T1-02": "waiting", "T1-03": "failed", "T1-04": "failed"}
    assert not project.exists("b.txt")  # refused before anything was built
    question = next(d for d in project.quick("decisions", "--json").data["decisions"] if d["task"] == "T1-02")
    assert (question["id"], question["evidence"]) == (
        "T1-02.precondition.1",
        ["precondition 1: file exists nowhere.txt (failed)"],
    )
    assert "INV-1" in {row["id"]: row["reason"] for row in answer.data["tasks"]}["T1-04"]


def test_a_declared_file_that_became_a_link_to_the_outside_is_not_work(project: Project, tmp_path: Path) -> None:
    outside = project.repo.write(str(tmp_path / "outside.txt"), "hello\n")
    steps = [shell(f"ln -s {outside} greeting.txt")]
    project.plan([task("T1-01", files="create `greeting.txt`", check="grep -q hello greeting.txt", steps=steps)])
    answer = run(project, "--max-attempts", "1")
    assert answer.code == 1
    reason = answer.data["tasks"][0]["reason"]
    assert f"greeting.txt is a link that leads out of the working tree, to {outside}" in reason
    assert project.events("--kind", "evidence.recorded") == []
    assert "Task T1-01" not in project.subjects()


ONCE = "run: {max_attempts: 1}\n"
HIDES = "mkdir -p helper; echo check.sh > helper/.gitignore; echo 'test -s a.txt' > helper/check.sh; echo a > a.txt"
ROOT = "echo helper > .gitignore; mkdir -p helper; echo exit > helper/check.sh; echo a > a.txt"


@pytest.fixture
def ignoring(sandbox: GitSandbox) -> Project:
    return projects.create(sandbox, files={"README.md": "one\n"})


def undeclared(project: Project) -> list[str]:
    (ended,) = project.events("1", "--kind", "attempt.finished")
    return [row["path"] for row in ended["payload"]["ledger"] if row["status"] == "undeclared"]


@pytest.mark.parametrize(
    "script", seed.one_on_a_push([HIDES, ROOT, f"{HIDES}; git add a.txt; git commit -qm x"], "hidden files")
)
def test_files_hidden_by_new_rules_are_undeclared_changes(ignoring: Project, script: str) -> None:
    ignoring.plan([task("T1-01", files="create `a.txt`", check="sh helper/check.sh")])
    ignoring.built_by(f"{script}\nexit 0", ONCE)
    ended = run(ignoring, "--no-verify")
    assert ended.code in {1, 5}, ended
    assert undeclared(ignoring) == [".gitignore" if script == ROOT else "helper/.gitignore", "helper/check.sh"]
    assert [words for words in ended.object["warnings"] if "git ignores, because of" in words], ended


def test_an_ignored_file_that_only_a_pattern_declares_is_not_overwritten(project: Project) -> None:
    """R-GIT-1: it is in no tree."""
    project.repo.write_all({".git/info/exclude": "own/\n", "own/key": "mine\n"})
    step = write("own/key", "theirs\n")
    project.plan([task("T1-01", files="modify `own/**`", check="grep -q theirs own/key", steps=[step])])
    answer = project.execute("--max-attempts", "1", "--no-verify")
    assert answer.code == 1, answer.out
    assert project.read("own/key") == "mine\n"


LEAVES = (
    "mkdir -p __pycache__ .venv/src; echo $$ > __pycache__/a.pyc; test -e .venv/pipe || mkfifo .venv/pipe;"
    " git init -q .venv/src/pkg; echo > .venv/src/pkg/x"
)


@pytest.mark.parametrize("commits", seed.one_on_a_push([":", "git add -- *.py; git commit -qm work"], "tool files"))
def test_builders_and_checks_leave_them_and_the_run_ends_well(ignoring: Project, commits: str) -> None:
    check = "mkdir -p __pycache__; date +%N > __pycache__/a.pyc; touch .coverage; test -s {}"
    ignoring.plan(
        [
            task("T1-01", files="create `a.py`", check=check.format("a.py")),
            task("T1-02", files="create `b.py`", check=check.format("b.py"), after="T1-01"),
        ],
        tail=f"\n## Success criteria\n\n- [ ] it works — check: `{check.format('b.py')}`\n",
    )
    ignoring.built_by(f"{LEAVES}; test -e a.py && echo b > b.py; echo a > a.py; {commits}\nexit 0", ONCE)
    ended = run(ignoring)
    assert ended.code == 0, ended
    assert ended.object["warnings"] == []
    tracked = ignoring.repo.git("ls-files").split()
    assert {"a.py", "b.py"} <= set(tracked)
    assert not [path for path in tracked if path.startswith(("__pycache__", ".venv", ".coverage"))]
    assert not ignoring.exists("__pycache__")


PASS = '{"verdict": "PASS", "evidence": [], "findings": []}'


def test_what_a_validator_changes_is_removed_and_none_of_it_is_yours(sandbox: GitSandbox, tmp_path: Path) -> None:
    """R-GIT-2: neither in the work nor in an edit of the user's that no commit has. It sees what was proven."""
    validated = projects.create(sandbox, files={"README.md": "# A project\n", "theirs.txt": "theirs\n"})
    changes = "echo broken > a.txt; echo broken > theirs.txt; rm README.md; echo new > new.txt"
    script = f"cat > /dev/null\ntest -s a.txt && grep -qx theirs theirs.txt || exit 1; {changes}; echo '{PASS}'\n"
    program = sandbox.write(str(tmp_path / "judge"), f"#!/bin/sh\n{script}", mode=0o755)
    validated.configure(f"validator: judge\nbindings:\n  judge: {{adapter: command, argv: [{program}]}}\n")
    validated.plan([making("T1-01", "a.txt")])
    sandbox.write("theirs.txt", "theirs, and not committed\n")
    before = sandbox.ledger()
    answer = validated.execute("--no-verify")
    assert answer.code == 0, answer
    assert validated.repo.git("show", "--name-only", "--format=", "HEAD~1").split() == ["a.txt"]
    assert projects.user_bytes(before, validated.repo.ledger()) == ["a.txt"]


TOKEN = "ghp_" + "0123456789abcdefghijABCDEFGHIJ012345"


@pytest.fixture
def committing(sandbox: GitSandbox) -> Project:
    """The agent of the first task commits, that of the second does not."""
    project = projects.create(sandbox)
    own = f"echo a > a.txt; git add a.txt; git commit -qm first; git commit -q --allow-empty -m 'feat: an a {TOKEN}'"
    steps = [shell(f"{own}; echo b > b.txt")]
    first = task("T1-01", files="create `a.txt`, create `b.txt`", check="test -s a.txt && test -s b.txt", steps=steps)
    project.plan([first, task("T1-02", files="create `c.txt`", after="T1-01", steps=[shell("echo c > c.txt")])])
    return project


def test_its_files_are_in_the_task_s_commit_and_its_messages_are_shown_without_secrets(committing: Project) -> None:
    answer = committing.execute("--no-verify")
    assert answer.data["tasks"][0]["files"] == ["a.txt", "b.txt"], answer
    assert committing.subjects()[-3:-1] == ["Task T1-01", "Task T1-02"]
    messages = committing.json("show", "T1-01").data["attempts"][0]["messages"]
    assert (messages[0], messages[1][:10], TOKEN in messages[1]) == ("first", "feat: an a", False)
    assert "its commit: first" in committing.quick("show", "T1-01").out
    assert "messages" not in committing.events("1", "--kind", "attempt.finished")[1]["payload"]


@pytest.fixture
def modifying(sandbox: GitSandbox) -> Project:
    project = projects.create(sandbox, files={"app.txt": "one\ntwo\n", ".gitignore": "*.log\n"})
    project.plan(
        [task("T1-01", files="modify `app.txt`", check="grep -q TWO app.txt", steps=[edit("app.txt", "two", "TWO")])]
    )
    return project


@pytest.mark.nightly
def test_files_outside_all_snapshots_are_in_the_warnings(modifying: Project) -> None:
    """An ignored file and a nested repository."""
    modifying.repo.write_all({"debug.log": "l", ".idumb/brain/execution/9/progress.json": "{}"})
    GitSandbox.create(modifying.folder / "inner").write("a", "a")
    answer = modifying.execute()
    assert answer.code == 0, answer
    warnings = "\n".join(answer.object["warnings"])
    for words in ("ignored by git): debug.log", "a repository of its own): inner"):
        assert words in warnings
    assert ".idumb" not in warnings
    assert modifying.resume().object["warnings"] == []
