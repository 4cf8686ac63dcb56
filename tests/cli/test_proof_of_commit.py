"""Checks judge what is committed, not the folder: in `here`, in a clone, and under each commit policy (R-RUN-3)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import approvals, seed
from tests.support import project as projects
from tests.support.answer import Answer
from tests.support.gitrepo import GitSandbox
from tests.support.project import Project, edit, making, shell, task, write


def test_work_that_names_a_path_of_this_machine_is_proven_by_weaker_evidence(project: Project) -> None:
    """R-RUN-3: an ignored file is where it was, so a check can read it by its whole path; no other machine has it."""
    place = f"{project.folder}/hidden.log"
    command = f"echo 'echo done' > {place}; echo '. {place}' > app.sh"
    again = [shell("echo '# more' >> app.sh")]
    project.plan(
        [
            task("T1-01", files="create `app.sh`", check="sh app.sh", steps=[shell(command)]),
            task("T1-02", files="modify `app.sh`", check="grep more app.sh", after="T1-01", steps=again),
        ]
    )
    assert project.execute("--no-verify").code == 0
    proofs = project.events("--kind", "evidence.recorded")
    weaker = {row["task"]: row["payload"].get("weaker") for row in proofs if row["task"]}
    assert weaker == {"T1-01": [f"app.sh names {place}, which only this machine has"], "T1-02": None}


def test_an_ignored_path_that_a_check_needs_is_named_with_the_line_that_provides_it(project: Project) -> None:
    """R-RUN-3: before that it is not there; then the check can use it, and cannot damage it."""
    project.repo.write_all({"data.log": "needed\n", "other.log": "x\n"})
    check = "test -s a.txt && grep -q needed data.log && rm data.log"
    project.plan([task("T1-01", files="create `a.txt`", check=check, steps=[write("a.txt", "x\n")])])
    answer = project.execute("--no-verify", "--max-attempts", "1")
    assert answer.code == 1
    line = "write `checkout: {provide: [data.log]}` in .idumb/config.yaml"
    assert f"AC-1 failed (it may need data.log, which git ignores: commit it if it is work, or {line})" in answer.out
    project.configure("checkout: {provide: [data.log]}\n")
    assert project.execute("--no-verify").code == 0
    proof = project.events("--kind", "evidence.recorded")[-1]["payload"]
    assert proof["weaker"] == ["may use data.log, which the commit does not hold (checkout.provide)"]
    assert project.read("data.log") == "needed\n"


REWRITES = "`sh build.sh` changed stamp.txt, which idumb restored"
STAMP = {"stamp.txt": "one\n", "build.sh": "echo x >> stamp.txt\n"}


@pytest.mark.nightly
def test_a_check_that_changes_another_committed_file_is_named_and_proves_less(project: Project) -> None:
    """R-RUN-3: such as `cargo test` with a Cargo.lock that is not up to date."""
    project.repo.commit_with(STAMP, "stamp")
    verify = "- **Verify:**\n  - `sh build.sh`\n  - `test $(wc -l < stamp.txt) = 1`\n"
    project.plan([making("T1-01", "a.txt", fields=verify), making("T1-02", "b.txt")])
    answer = project.execute("--max-attempts", "1")
    assert answer.code == 0, answer
    assert project.statuses() == {"T1-01": "completed", "T1-02": "completed"}
    events = project.events("--kind", "evidence.recorded")
    rows = {(row["task"], row["payload"]["subject"]): row["payload"] for row in events}
    named = {key: row.get("weaker") for key, row in rows.items() if row.get("weaker")}
    assert named == {("T1-01", "verify 1"): [REWRITES], ("T1-01", "verify 2"): [REWRITES]}
    assert rows["T1-01", "verify 1"]["changed"] == ["stamp.txt"]
    assert "[the check changed stamp.txt, which the commit holds; idumb restored it]" in str(rows["T1-01", "verify 1"])
    assert project.read("stamp.txt") == "one\n"
    (row,) = answer.data["verification"]["weaker"]
    assert row == {"reason": REWRITES, "subjects": ["T1-01 verify 1", "T1-01 verify 2"]}
    assert f"weaker: {REWRITES}: T1-01 verify 1, T1-01 verify 2" in project.quick("verify-work", "1").out
    for report in ("SUMMARY", "VERIFICATION"):
        (path,) = project.folder.glob(f"**/1-{report}.md")
        assert "changed stamp.txt, which idumb restored" in path.read_text().replace("\\", "")
    assert "changed stamp.txt, which idumb restored" in project.quick("prove", "1").err


def test_a_strict_task_refuses_a_check_that_changes_a_committed_file(project: Project) -> None:
    """R-RUN-3."""
    project.repo.commit_with(STAMP, "stamp")
    project.plan([making("T1-01", "a.txt", fields="- **Verify:** `test -s a.txt && sh build.sh`\n")])
    answer = approvals.strict(project, "--max-attempts", "1")
    (row,) = answer.data["tasks"]
    assert row["status"] == "failed"
    assert row["reason"].startswith("verify 1 changed stamp.txt, which the commit holds; in strict mode")


def test_a_strict_task_refuses_a_check_that_changes_a_committed_file_only_after_a_hook(project: Project) -> None:
    """R-RUN-3."""
    project.repo.commit_with({**STAMP, "build.sh": "grep -q formatted a.txt || exit 0\n" + STAMP["build.sh"]}, "stamp")
    project.plan([making("T1-01", "a.txt", fields="- **Verify:** `test -s a.txt && sh build.sh`\n")])
    project.repo.write(".git/hooks/pre-commit", "#!/bin/sh\necho formatted >> a.txt\ngit add a.txt\n", mode=0o755)
    (row,) = approvals.strict(project, "--max-attempts", "1").data["tasks"]
    assert row["status"] == "failed"
    assert "a hook changed its files after the proof, and then verify 1 changed stamp.txt" in row["reason"]


CHANGES = ("sh build.sh", "echo >> test_it.py", "echo : >> own.sh; sh own.sh")


@pytest.mark.parametrize("check", seed.one_on_a_push(CHANGES, "changing checks"))
def test_a_check_that_changes_what_it_judges_fails(project: Project, check: str) -> None:
    """R-RUN-3: the work of this run, also of earlier tasks, its tests, and the files that the check names."""
    project.repo.commit_with({"own.sh": "true\n", "test_it.py": "\n", "build.sh": "echo x >> a.txt\n"}, "tests")
    verify = f"- **Verify:** `{check}`\n"
    project.plan([making("T1-01", "a.txt"), making("T1-02", "b.txt", fields=verify)])
    answer = project.execute("--max-attempts", "1")
    assert project.statuses() == {"T1-01": "completed", "T1-02": "failed"}
    assert "which it should judge" in {row["id"]: row["reason"] for row in answer.data["tasks"]}["T1-02"]


@pytest.mark.parametrize(("hook", "code"), seed.one_on_a_push([("a.txt", 0), ("bad", 1)], "a hook that rewrites"))
def test_a_hook_that_rewrites_the_work_is_proven_once_more(project: Project, hook: str, code: int) -> None:
    """R-RUN-3: a formatter is welcome; of one that breaks the work, nothing is committed."""
    text = "grep -q formatted a.txt || echo formatted >> a.txt" if hook == "a.txt" else "echo broken > a.txt"
    hook_text = f"#!/bin/sh\n{text}\ngit add a.txt\n"
    project.plan([task("T1-01", files="create `a.txt`", check="grep -q made a.txt", steps=[write("a.txt", "made\n")])])
    project.commit_own()
    project.repo.write(".git/hooks/pre-commit", hook_text, mode=0o755)
    assert project.execute("--max-attempts", "1").code == code
    trees = [row["payload"]["tree"] for row in project.events("--kind", "evidence.recorded")]
    assert len(set(trees)) >= 2
    commits = project.repo.git("log", "--format=%T", "--", "a.txt").split()
    assert (commits, project.exists("a.txt")) == (trees[-1:], True) if code == 0 else ([], False)


def test_a_hook_that_changes_a_protected_file_commits_nothing(project: Project) -> None:
    """R-LOCK-5."""
    project.configure("protected: [lock.txt]\n")
    project.plan([making("T1-01", "a.txt")])
    project.commit_own()
    project.repo.write(".git/hooks/pre-commit", "#!/bin/sh\necho x > lock.txt\ngit add lock.txt\n", mode=0o755)
    answer = project.execute()
    assert (answer.code, "a hook changed lock.txt in its commit, which no task may change" in answer.out) == (1, True)
    assert not project.exists("a.txt")


def test_a_task_whose_check_a_later_task_breaks_is_never_verified_silently(project: Project) -> None:
    """R-RUN-13: every completed task's own checks run again on the final tree."""
    first = task("T1-01", files="create `a.txt`", check="test $(wc -l < a.txt) = 1", steps=[write("a.txt", "one\n")])
    second = task(
        "T1-02",
        files="modify `a.txt`",
        check="grep -q two a.txt",
        after="T1-01",
        steps=[edit("a.txt", "one\n", "one\ntwo\n")],
    )
    project.plan([first, second])
    answer = project.execute()
    assert answer.code == 1
    assert project.statuses() == {"T1-01": "completed", "T1-02": "completed"}
    broken = "T1-01 AC-1 passed when its task was done and fails on the final tree"
    hint = "T1-02 broke it; `- **Replaces:** T1-01/AC-1` in T1-02 says that it should"
    assert answer.data["verification"]["causes"] == [f"{broken}: {hint}"]
    assert "T1-02 broke it" in project.read(".planning/phases/1/1-VERIFICATION.md")
    verification = project.events("--kind", "verification.recorded")[-1]["payload"]
    assert verification["status"] == "partial"
    assert project.quick("decide", verification["decision"], "yes").code == 0
    assert project.resume().code == 0
    assert project.events("--kind", "verification.recorded")[-1]["payload"]["status"] == "passed"


@pytest.mark.parametrize("folder", ["", "apps/web"])
def test_init_proposes_the_folders_of_installed_dependencies(sandbox: GitSandbox, folder: str) -> None:
    """Those above a project, too. A file with such a name, which says where they are, is not proposed."""
    ignored = {".gitignore": "node_modules\nvendor\n.venv\n", ".venv": "elsewhere\n"}
    sandbox.write_all({**ignored, "package.json": "{}\n", "vendor.txt": "x\n"})
    sandbox.commit_with({"node_modules/a/index.js": "x\n", "apps/web/b": ""})
    project = Project(sandbox, sandbox.root / folder)
    answer = project.json("init", *["--here"][: len(folder)])
    assert answer.data["provided"] == ["node_modules"]
    assert "  provide: [node_modules]" in (sandbox.root / folder / ".idumb/config.yaml").read_text()
    assert project.json("init").data["provided"] == []


def test_init_proposes_what_installs_dependencies(sandbox: GitSandbox) -> None:
    """It writes the proposal as a comment."""
    manifests = {"package.json": '{"dependencies": {"a": "1"}}\n', "package-lock.json": "{}\n"}
    sandbox.commit_with({".gitignore": "node_modules\n", "go.mod": "module x\nrequire a v1\n", **manifests})
    project = Project(sandbox, sandbox.root)
    answer = project.json("init")
    assert (answer.data["provided"], answer.data["proposed"]) == ([], ["npm ci", "go mod download"])
    written = project.read(".idumb/config.yaml")
    assert "#   prepare: [npm ci, go mod download]" in written
    project.repo.write(".idumb/config.yaml", written.replace("# checkout", "checkout").replace("#   pre", "  pre"))
    assert project.quick("status", "--json").code == 0, "without the comment signs, the proposal is valid"


def test_what_a_commit_of_the_user_breaks_is_no_task_s_fault(project: Project) -> None:
    """R-RUN-13: he reverts the work of T1-01 while T1-02 is built."""
    reverts = shell('git -C "$IDUMB_REPOSITORY" -c user.name=x -c user.email=x@y revert --no-edit HEAD')
    builds = shell("echo made > b.txt")
    last = task("T1-02", files="create `b.txt`", check="test -s b.txt", after="T1-01", steps=[reverts, builds])
    project.plan([making("T1-01", "a.txt"), last])
    (cause, _) = project.execute().data["verification"]["causes"]
    assert cause.endswith("fails on the final tree: a change outside the run before T1-02 broke it")


@pytest.fixture
def hooked(sandbox: GitSandbox) -> Project:
    return projects.create(sandbox, files={"README.md": "one\n"})


def hook(project: Project, name: str, text: str) -> None:
    project.repo.write(f".git/hooks/{name}", f"#!/bin/sh\n{text}\n", mode=0o755)


def committed(project: Project, path: str) -> str:
    return project.repo.git("show", f"HEAD:{path}")


def run(project: Project, *flags: str) -> Answer:
    return project.execute("--no-verify", *flags)


def counted(project: Project, tmp_path: Path) -> Path:
    """Plan a task that makes `a.txt`; return the file with a line for each call of its agent."""
    calls = tmp_path / "calls"
    project.built_by(f"echo called >> {calls}; echo hello > a.txt")
    project.plan([task("T1-01", files="create `a.txt`", check="test -s a.txt")])
    return calls


def test_a_hook_that_formats_and_refuses_once_costs_no_further_call_of_the_agent(
    hooked: Project, tmp_path: Path
) -> None:
    """R-RUN-3: as hooks of the framework pre-commit do. The user's file is the committed one."""
    calls = counted(hooked, tmp_path)
    formats = (
        "grep -q HELLO a.txt && exit 0; sed -i s/hello/HELLO/ a.txt; echo 'files were modified by this hook'; exit 1"
    )
    hook(hooked, "pre-commit", f"test -e a.txt || exit 0; {formats}")
    assert run(hooked).code == 0
    assert (calls.read_text(), committed(hooked, "a.txt"), hooked.read("a.txt")) == ("called\n", "HELLO", "HELLO\n")
    assert hooked.repo.git("status", "--porcelain") == ""


def test_a_hook_that_lacks_what_git_ignores_names_it_and_costs_no_further_call_of_the_agent(
    hooked: Project, tmp_path: Path
) -> None:
    hooked.repo.commit_with({".gitignore": "node_modules\n"}, "what git ignores")
    hooked.repo.write("node_modules/.bin/lint-it", "#!/bin/sh\n", mode=0o755)
    calls = counted(hooked, tmp_path)
    hook(hooked, "pre-commit", "PATH=$PWD/node_modules/.bin:$PATH; lint-it")
    halted = run(hooked)
    assert (halted.error["code"], calls.read_text()) == ("git.commit-refused", "called\n")
    assert "`checkout: {provide: [node_modules]}`" in halted.error["message"]
    hook(hooked, "pre-commit", "exit 0")
    assert (hooked.resume("--no-verify").code, calls.read_text()) == (0, "called\n")


def test_a_hook_that_refuses_the_message_costs_no_further_call_and_another_form_of_it_is_committed(
    hooked: Project, tmp_path: Path
) -> None:
    calls = counted(hooked, tmp_path)
    hook(hooked, "commit-msg", 'grep -q "^feat: " "$1" || { echo subject-empty; exit 1; }')
    halted = run(hooked)
    assert (halted.error["code"], "git.message" in halted.error["message"]) == ("git.commit-refused", True)
    settings = hooked.read(".idumb/config.yaml")
    hooked.repo.write(".idumb/config.yaml", settings + 'git: {message: "feat: {title}"}\n')
    assert hooked.json("amend", "1", "--from-file", "--yes").code == 0
    assert hooked.resume("--no-verify").code == 0
    assert ("feat: Task T1-01" in hooked.subjects(), calls.read_text()) == (True, "called\n")


def test_the_words_of_a_hook_about_the_work_are_for_the_agent_also_if_they_sound_like_a_folder(
    hooked: Project, tmp_path: Path
) -> None:
    calls, runs = tmp_path / "calls", tmp_path / "runs"
    hooked.repo.commit_with({".gitignore": "coverage\n"}, "what git ignores")
    hooked.repo.write("coverage/report.txt", "60\n")
    hooked.built_by(f"echo called >> {calls}; cat {calls} > a.txt")
    hooked.plan([task("T1-01", files="create `a.txt`", check="test -s a.txt")])
    low = "test $(wc -l < a.txt) -gt 1 || { echo the coverage is too low; exit 1; }"
    hook(hooked, "pre-commit", f"test ! -e a.txt || {{ echo run >> {runs}; {low}; }}")
    assert (run(hooked).code, calls.read_text()) == (0, "called\n" * 2)
    assert runs.read_text().startswith("run\n" * 2)
    assert len(runs.read_text().splitlines()) <= 3, "no hook of messages was there to refuse: it ran again"


@pytest.mark.nightly
def test_a_hook_may_change_more_than_the_task_but_nothing_that_tasks_may_not(hooked: Project) -> None:
    """R-RUN-3: a hook can run what the task wrote."""
    hooked.repo.commit_with({"lint.sh": "true\n"}, "a script that a hook runs")
    target = hooked.folder.parent / "target"
    script = f"for f in README.md $(cat {target}); do grep -q more $f || {{ echo '# more' >> $f; git add $f; }}; done\n"
    hooked.plan([task("T1-01", files="modify `lint.sh`", check="test -s lint.sh", steps=[write("lint.sh", script)])])
    hook(hooked, "pre-commit", "sh ./lint.sh")
    target.write_text(".idumb/config.yaml\n")
    halted = run(hooked)
    assert (halted.code, hooked.subjects()[-1]) == (1, "plan")
    assert "a hook changed .idumb/config.yaml in its commit" in str(halted.object)
    assert "more" not in hooked.read(".idumb/config.yaml")
    target.write_text("\n")
    assert hooked.resume("--no-verify").code == 0
    assert "more" in committed(hooked, "README.md")
