"""The commit policy `builder`: agents commit in a clone, and what they commit is checked and taken (R-GIT-2)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support import project as projects
from tests.support import seed
from tests.support.answer import Answer
from tests.support.gitrepo import GitSandbox
from tests.support.project import Project, making, task

SETTINGS = (
    "git: {{commit: builder, reports: none}}\nrun: {{max_attempts: {attempts}}}\n"
    "builder: agent\nbindings:\n  agent: {agent}\n"
)
PLAIN = "echo one > a.txt; git add a.txt; git commit -qm 'Add a'"


def project_with(sandbox: GitSandbox, script: str, *, attempts: int | str = 1, tasks: tuple[str, ...] = ()) -> Project:
    """A project whose builder is a shell script that is started in the clone."""
    project = projects.create(sandbox, files={"README.md": "# A project\n", "kept.txt": "kept\n"})
    agent = f"{{adapter: command, argv: [sh, -c, {json.dumps(script)}]}}"
    sandbox.write(".idumb/config.yaml", SETTINGS.format(attempts=attempts, agent=agent))
    project.plan(tasks or (task("T1-01", files="create `a.txt`", check="test -s a.txt"),))
    return project


def execute(project: Project, *flags: str) -> Answer:
    consent = project.quick("check-plan", "1", "--json").data["contract_hash"]
    return project.quick("execute-phase", "1", "--approve", consent, "--no-verify", *flags, "--json")


def users(lines: list[str]) -> list[str]:
    """Without reports of idumb's own."""
    return [line for line in lines if ".planning/" not in line and ".idumb/" not in line]


def reason(answer: Answer) -> str:
    return str(answer.data["tasks"][0]["reason"])


def test_the_builder_s_commits_enter_the_user_s_history_unchanged(sandbox: GitSandbox) -> None:
    script = (
        "echo one > a.txt; git add a.txt; git commit -qm 'Add a' --author 'An Agent <agent@example.invalid>';"
        " echo two >> a.txt; git commit -qam 'Say two'"
    )
    project = project_with(sandbox, script)
    base = sandbox.head()
    sandbox.write("README.md", "staged\n")
    sandbox.git("add", "README.md")
    sandbox.write("README.md", "mine\n")
    answer = execute(project)
    assert answer.code == 0, answer
    history = sandbox.git("log", "--reverse", "--format=%H %s|%an|%cn", f"{base}..HEAD").splitlines()
    assert [line.partition(" ")[2] for line in history[:2]] == [
        "Add a|An Agent|Pat Tester",
        "Say two|Pat Tester|Pat Tester",
    ]
    tip = history[1].partition(" ")[0]
    row = answer.data["tasks"][0]
    assert (row["status"], row["commit"], row["git_hash"]) == ("completed", tip, tip)
    assert sandbox.git("show", "HEAD:a.txt") == "one\ntwo"
    assert users(sandbox.status()) == ["MM README.md"]
    assert sandbox.git("show", ":README.md") == "staged"
    sandbox.git("fsck", "--strict")
    assert not project.repo.clones.exists()


AMENDED = "echo one > a.txt; git add a.txt; git commit -q --amend -m 'Rewritten'"
MANY = (
    "i=0; while [ $i -lt 300 ]; do i=$((i+1)); printf 'commit refs/heads/idumb\\ncommitter A <a@x.y> %d +0000\\n"
    "data 1\\nx\\n' $i; [ $i = 1 ] && printf 'from refs/heads/idumb^0\\n'; done | git fast-import --quiet"
)
HOSTILE = {
    "amends the base": (AMENDED, "history was rewritten"),
    "makes .git a link into the repository": (
        PLAIN + "; rm -rf .git; ln -s REPOSITORY/.git .git",
        "no longer a folder",
    ),
    "makes .git a pipe": (PLAIN + "; rm -rf .git; mkfifo .git", "no longer a folder"),
    "hides a file in history": (
        "echo secret > s.txt; git add s.txt; git commit -qm 'Oops'; git rm -q s.txt; " + PLAIN,
        "s.txt",
    ),
    "commits nothing": ("echo one > a.txt", "`git.commit: builder`"),
    "leaves something uncommitted": (PLAIN + "; echo two >> a.txt", "must be committed"),
    "hides a change from git": (
        PLAIN + "; git update-index --assume-unchanged a.txt; echo two > a.txt",
        "must be committed",
    ),
    "commits what its files do not have": (PLAIN + "; rm a.txt", "must be committed"),
    "puts a pipe in the place of attributes": (
        PLAIN + "; echo two > a.txt; mkfifo .gitattributes",
        "must be committed",
    ),
    "commits too often": (MANY, "more than 100 commits"),
    "replaces its clone": ("here=$PWD; cd ..; rm -rf $here; ln -s REPOSITORY $here", "removed its clone"),
}


def test_commits_that_cannot_be_taken_fail_the_attempt_and_change_nothing(sandbox: GitSandbox) -> None:
    ids = [f"T1-{number:02}" for number in range(1, len(HOSTILE) + 1)]
    cases = [
        f"{id}) {script.replace('REPOSITORY', str(sandbox.root)).replace('a.txt', f'{id}.txt')};;"
        for id, (script, _) in zip(ids, HOSTILE.values(), strict=True)
    ]
    tasks = tuple(task(id, files=f"create `{id}.txt`", check=f"test -s {id}.txt") for id in ids)
    project = project_with(
        sandbox, f"case $IDUMB_TASK in {' '.join(cases)} esac", tasks=tasks, attempts="1, halt_after: 99"
    )
    before = sandbox.ledger()
    answer = execute(project)
    assert answer.code == 1, answer
    for row, (name, (_, words)) in zip(answer.data["tasks"], HOSTILE.items(), strict=True):
        assert (row["status"], words in row["reason"]) == ("failed", True), (name, row)
    after = sandbox.ledger()
    assert projects.user_bytes(before, after) == []
    assert (after.head, after.config, after.index, after.refs) == (
        before.head, before.config, before.index, before.refs,
    )  # fmt: skip
    assert not list(project.folder.glob("*.txt"))[1:]  # kept.txt


def test_a_retry_continues_from_its_own_commits(sandbox: GitSandbox) -> None:
    """R-GIT-2: valid commits of a failed attempt are the start of the next one."""
    script = (
        "if [ -e a.txt ]; then git log --format=%s -1 > ../seen; echo good >> a.txt; git commit -qam 'Mend a';"
        " else " + PLAIN + "; fi"
    )
    checked = (
        task("T1-01", files="create `a.txt`", check="grep -q good a.txt && git log -2 --format=%s | grep -q 'Add a'"),
    )
    project = project_with(sandbox, script, attempts=2, tasks=checked)
    answer = execute(project)
    assert answer.code == 0, answer
    assert sandbox.git("log", "-2", "--format=%s").splitlines() == ["Mend a", "Add a"]
    shown = project.quick("show", "T1-01", "--json").data["attempts"]
    assert [one["subject"] for one in shown[1]["committed"]["commits"]] == ["Add a", "Mend a"]
    assert "Mend a (Pat Tester <pat@example.invalid>)" in project.quick("show", "T1-01").out


def test_uncommitted_work_is_reported_to_the_next_attempt_which_still_has_it(sandbox: GitSandbox) -> None:
    script = (
        "if [ -e a.txt ]; then grep -q 'committed nothing' $IDUMB_FEEDBACK_FILE && "
        + PLAIN
        + "; else echo x > a.txt; fi"
    )
    answer = execute(project_with(sandbox, script, attempts=2))
    assert answer.code == 0, answer
    assert sandbox.git("log", "-1", "--format=%s") == "Add a"


def test_idumb_commits_steps_and_agents_build_on_top(sandbox: GitSandbox) -> None:
    script = "cp b.txt a.txt; git add a.txt; git commit -qm 'Copy b'"
    tasks = (
        making("T1-01", "b.txt", "from steps\n"),
        task("T1-02", files="create `a.txt`", check="grep -q steps a.txt", after="T1-01"),
        making("T1-03", "c.txt", after="T1-02"),
    )
    project = project_with(sandbox, script, tasks=tasks)
    answer = execute(project)
    assert answer.code == 0, answer
    assert sandbox.git("log", "-3", "--format=%s").splitlines() == ["Task T1-03", "Copy b", "Task T1-01"]
    assert project.trailers("Idumb-Task") == ["T1-01", "T1-03"]
    assert users(sandbox.status()) == []
    base = sandbox.git("rev-parse", "HEAD~3")
    assert project.quick("rollback", "1", "--to", "start", "--yes").code == 0
    assert not project.exists("a.txt")
    assert sandbox.git("diff", "--name-only", base, "HEAD") == ""
    assert project.quick("undo", "--yes").code == 0
    assert project.read("a.txt") == "from steps\n"
    assert users(sandbox.status()) == []


def test_commits_wait_for_a_person_s_approval_and_are_then_taken(sandbox: GitSandbox) -> None:
    for_person = task("T1-01", files="create `a.txt`", check="test -s a.txt", fields="- **Validator:** human\n")
    project = project_with(sandbox, PLAIN, tasks=(for_person,))
    before = sandbox.ledger()
    assert execute(project).code == 5
    assert projects.user_bytes(before, sandbox.ledger()) == []
    (question,) = project.quick("decisions", "--json").data["decisions"]
    assert project.quick("decide", question["id"], question["choices"][0]["id"]).code == 0
    answer = project.quick("resume", "1", "--no-verify", "--json")
    assert answer.code == 0, answer
    assert sandbox.git("log", "-1", "--format=%s") == "Add a"
    last = project.quick("show", "T1-01", "--json").data["attempts"][-1]
    assert [one["subject"] for one in last["committed"]["commits"]] == ["Add a"]


def test_idumb_commits_work_from_an_editor_and_agents_build_on_top(sandbox: GitSandbox) -> None:
    tasks = (
        task("T1-01", files="create `a.txt`", check="test -s a.txt", fields="- **Builder:** editor\n"),
        task("T1-02", files="modify `a.txt`", check="grep -q two a.txt", after="T1-01"),
        "### T1-03: A person says so\n\n- **Kind:** human-verify\n- **Depends on:** T1-02\n\n",
    )
    project = project_with(sandbox, "echo two >> a.txt; git commit -qam 'Say two'", tasks=tasks)
    consent = project.quick("check-plan", "1", "--json").data["contract_hash"]
    assert project.quick("start", "T1-01", "--approve", consent).code == 0
    sandbox.write("a.txt", "one\n")
    assert project.quick("submit", "T1-01").code == 0
    assert project.quick("resume", "1", "--no-verify").code == 5
    assert sandbox.git("log", "-2", "--format=%s").splitlines() == ["Say two", "Task T1-01"]
    (question,) = project.quick("decisions", "--json").data["decisions"]
    assert project.quick("decide", question["id"], "yes").code == 0
    assert project.quick("resume", "1").code == 0
    assert project.quick("rollback", "1", "--to", "T1-01", "--yes").code == 0
    assert project.read("a.txt") == "one\n"


def test_a_task_that_changes_nothing_needs_no_commit(sandbox: GitSandbox) -> None:
    project = project_with(sandbox, "true", tasks=(task("T1-01", files="none", check="test -s kept.txt"),))
    head = sandbox.head()
    answer = execute(project)
    assert (answer.code, answer.data["tasks"][0]["commit"]) == (0, None), answer
    assert sandbox.head() == head


def test_commits_that_no_longer_fit_are_rebased_onto_the_new_ones(sandbox: GitSandbox) -> None:
    """R-GIT-6: the user commits on the branch while the builder works."""
    script = f"(cd {sandbox.root}; [ -e theirs ] || {{ touch theirs; git add theirs; git commit -qm Theirs; }}); "
    project = project_with(sandbox, script + PLAIN)
    first = execute(project)
    assert first.code == 1, first
    assert first.error["code"] == "git.commit-refused"
    assert not project.exists("a.txt")
    answer = project.quick("resume", "1", "--no-verify", "--json")
    assert answer.code == 0, answer
    assert sandbox.git("log", "-2", "--format=%s").splitlines() == ["Add a", "Theirs"]


def test_a_conflicting_user_change_is_never_overwritten(sandbox: GitSandbox) -> None:
    project = project_with(sandbox, f"echo mine > {sandbox.root}/a.txt; " + PLAIN)
    head = sandbox.head()
    answer = execute(project)
    assert answer.code == 1, answer
    assert (sandbox.head(), project.read("a.txt")) == (head, "mine\n")
    (project.folder / "a.txt").unlink()
    assert project.quick("resume", "1", "--no-verify", "--json").code == 0
    assert (sandbox.git("log", "-1", "--format=%s"), project.read("a.txt")) == ("Add a", "one\n")


def test_builder_commits_work_before_the_first_commit_and_with_converted_line_endings(sandbox: GitSandbox) -> None:
    """R-GIT-7."""
    project = projects.create(sandbox, files={"README.md": "# A project\r\n"}, commit=False)
    sandbox.git("config", "core.autocrlf", "true")
    script = "printf 'one\\r\\n' > a.txt; git add a.txt 2> /dev/null; git commit -qm 'Add a'"
    agent = f"{{adapter: command, argv: [sh, -c, {json.dumps(script)}]}}"
    (project.folder / ".idumb" / "config.yaml").write_text(SETTINGS.format(attempts=1, agent=agent))
    project.plan([task("T1-01", files="create `a.txt`", check="test -s a.txt")], commit=False)
    answer = execute(project)
    assert answer.code == 0, answer
    assert sandbox.git("log", "--format=%s") == "Add a"
    assert (project.folder / "a.txt").read_bytes() == b"one\r\n"
    assert sandbox.git("cat-file", "blob", "HEAD:a.txt") == "one"
    assert not [line for line in sandbox.status() if "a.txt" in line]


def test_a_detached_head_moves_without_a_branch(sandbox: GitSandbox) -> None:
    project = project_with(sandbox, PLAIN)
    sandbox.git("checkout", "-q", "--detach")
    main = sandbox.git("rev-parse", "main")
    answer = execute(project)
    assert answer.code == 0, answer
    assert (sandbox.git("rev-parse", "main"), sandbox.git("rev-parse", "HEAD~1")) == (main, main)
    assert sandbox.try_git("symbolic-ref", "HEAD").returncode != 0


def test_a_builder_that_cannot_run_git_is_refused_before_anything_runs(sandbox: GitSandbox) -> None:
    project = project_with(sandbox, PLAIN)
    project.configure(SETTINGS.format(attempts=1, agent="{adapter: claude}"))
    answer = project.quick("check-plan", "1", "--json")
    assert answer.code == 3, answer
    assert "task.builder-cannot-commit" in answer.out
    assert "shell: true" in answer.out


def test_builders_never_commit_in_the_user_s_own_working_tree(sandbox: GitSandbox) -> None:
    project = project_with(sandbox, PLAIN)
    answer = execute(project, "--workspace", "here")
    assert (answer.code, answer.error["code"]) == (4, "commit.needs-clone")


def test_the_builder_is_asked_to_commit_with_a_user_s_template_too(sandbox: GitSandbox, tmp_path: Path) -> None:
    project = project_with(sandbox, f"cat > {tmp_path}/told; " + PLAIN)
    prompt_file = tmp_path / "told"
    answer = execute(project)
    assert answer.code == 0, answer
    assert "Commit your work on the current branch" in prompt_file.read_text()
    assert "Do not commit" not in prompt_file.read_text()


def test_a_builder_that_removes_its_clone_fails_with_that_reason(sandbox: GitSandbox) -> None:
    gone = 'if [ -z "$IDUMB_FEEDBACK_FILE" ]; then cd ../..; rm -rf $(dirname $OLDPWD); exit; fi;'
    script = f"{gone} grep -q 'removed its clone' $IDUMB_FEEDBACK_FILE && {{ {PLAIN}; }}"
    answer = execute(project_with(sandbox, script, attempts=2))
    assert answer.code == 0, answer
    assert answer.data["tasks"][0]["attempts"] == 2
    assert sandbox.git("log", "-1", "--format=%s") == "Add a"


def test_nothing_is_created_or_removed_if_the_clones_folder_leads_elsewhere(
    sandbox: GitSandbox, tmp_path: Path
) -> None:
    (tmp_path / "home").mkdir()
    project = project_with(sandbox, f"here=$PWD; cd /; rm -rf $(dirname $here); ln -s {tmp_path}/home $(dirname $here)")
    assert execute(project).error["code"] == "git.clone-gone"
    again = project.quick("resume", "1", "--json")
    assert (again.code, again.error["code"]) == (4, "git.clone-gone"), again
    assert list((tmp_path / "home").iterdir()) == []
    project.repo.clones.unlink()
    project.configure(SETTINGS.format(attempts=1, agent=f"{{adapter: command, argv: [sh, -c, {json.dumps(PLAIN)}]}}"))
    assert execute(project).code == 0


def test_hooks_and_settings_of_the_clone_are_never_used(sandbox: GitSandbox, tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    script = (
        f"mkdir -p .git/hooks; for h in post-index-change reference-transaction post-checkout pre-commit; do"
        f" printf '#!/bin/sh\\ntouch {mark}\\n' > .git/hooks/$h; chmod +x .git/hooks/$h; done;"
        f" git -c core.hooksPath=/dev/null add a.txt 2> /dev/null; echo one > a.txt;"
        f" git -c core.hooksPath=/dev/null add a.txt; git -c core.hooksPath=/dev/null commit -qm 'Add a';"
        f" git config core.fsmonitor 'touch {mark}'; git config core.hooksPath .git/hooks;"
        f" git config filter.x.clean 'touch {mark}; cat'; echo '* filter=x' > .git/info/attributes"
    )
    project = project_with(sandbox, script)
    answer = execute(project)
    assert answer.code == 0, answer
    assert not mark.exists()
    assert sandbox.git("show", "HEAD:a.txt") == "one"


def test_a_builder_that_works_in_the_user_s_own_tree_fails_and_each_path_is_named(sandbox: GitSandbox) -> None:
    project = project_with(sandbox, f"cd {sandbox.root}; echo mine > a.txt; echo other > kept.txt; git add a.txt")
    answer = execute(project)
    assert answer.code == 1, answer
    assert "it changed nothing in its clone, but a.txt changed" in reason(answer)
    (kept,) = (oid for name, oid in sandbox.kept().items() if name.endswith("/T1-01/1/base"))
    assert sandbox.git("show", f"{kept}:worktree/kept.txt") == "kept"
    assert users(sandbox.status()) == ["A  a.txt", " M kept.txt"]
    again = project.quick("resume", "1", "--retry-failed", "--no-verify")
    assert again.code == 4, again
    assert "a.txt" in again.err


def test_user_files_that_changed_while_the_builder_worked_are_named(sandbox: GitSandbox) -> None:
    project = project_with(sandbox, f"echo other > {sandbox.root}/kept.txt; " + PLAIN)
    consent = project.quick("check-plan", "1", "--json").data["contract_hash"]
    answer = project.quick("execute-phase", "1", "--approve", consent, "--no-verify")
    assert answer.code == 0, answer
    output = answer.out + answer.err
    assert "files of your own working tree changed: kept.txt" in output
    assert "worktree/kept.txt" in output
    assert project.read("kept.txt") == "other\n"


@pytest.mark.parametrize("rules", seed.one_on_a_push(["", "a.txt\n"], "undeliverable"))
def test_undeliverable_work_is_refused_before_the_builder_is_called(
    sandbox: GitSandbox, rules: str, tmp_path: Path
) -> None:
    project = project_with(sandbox, f"touch {tmp_path}/asked; " + PLAIN)
    sandbox.write("a.txt", "mine\n")
    sandbox.write(".git/info/exclude", rules)
    answer = execute(project)
    assert (answer.code, answer.error["code"]) == (4, "task.dirty-path"), answer
    assert "a.txt" in answer.error["message"]
    assert not (tmp_path / "asked").exists()
    assert project.read("a.txt") == "mine\n"


def test_filtered_files_are_compared_correctly_in_a_repository_with_many_of_them(sandbox: GitSandbox) -> None:
    project = project_with(sandbox, "printf 'one\\r\\n' > a.txt; git add a.txt; git commit -qm 'Add a'")
    sandbox.git("config", "core.autocrlf", "true")
    sandbox.write_all({f"0{number:03}.txt": "a\r\nb\r\n" for number in range(250)})
    sandbox.commit("many", *(f"0{number:03}.txt" for number in range(250)))
    answer = execute(project)
    assert answer.code == 0, answer
    assert sandbox.git("cat-file", "blob", "HEAD:a.txt") == "one"
    assert users(sandbox.status()) == []


def test_attributes_that_a_task_writes_apply_to_its_own_files(sandbox: GitSandbox) -> None:
    script = (
        "echo '*.txt text eol=crlf' > .gitattributes; printf 'one\\r\\n' > a.txt; git add .gitattributes a.txt;"
        " git commit -qm 'Add a'"
    )
    tasks = (task("T1-01", files="create `a.txt`, create `.gitattributes`", check="test -s a.txt"),)
    answer = execute(project_with(sandbox, script, tasks=tasks))
    assert answer.code == 0, answer
    assert sandbox.git("cat-file", "blob", "HEAD:a.txt") == "one"


def test_settings_of_all_levels_reach_the_clone_and_no_hooks_do(
    sandbox: GitSandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An agent with a home of its own sees no settings of the user's, and commits as if it did."""
    hooks = tmp_path / "hooks"
    hooks.mkdir()
    for name in ("pre-commit", "commit-msg", "post-commit"):
        (hooks / name).write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
        (hooks / name).chmod(0o755)
    project = project_with(
        sandbox,
        "unset GIT_CONFIG_GLOBAL; export HOME=$PWD/..; printf 'one\\r\\n' > a.txt; git add a.txt;"
        " git commit -qm 'Add a'",
    )
    place = tmp_path / "gitconfig"
    place.write_text(f"[core]\n\tautocrlf = true\n\thooksPath = {hooks}\n[user]\n\tname = A\n\temail = a@b.c\n")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(place))
    consent = project.quick("check-plan", "1", "--json").data["contract_hash"]
    assert project.quick("execute-phase", "1", "--approve", consent, "--no-verify").code == 0
    assert sandbox.git("cat-file", "blob", "HEAD:a.txt") == "one"
    assert not (tmp_path / "ran").exists()


LARGE = (
    "sh -c 's=$(git config lfs.storage || echo $(git rev-parse --absolute-git-dir)/lfs); mkdir -p $s;"
    " f=$(mktemp $s/XXXXXX); cat > $f; h=$(git hash-object --no-filters $f); mv $f $s/$h; echo pointer $h'"
)


def test_every_version_of_an_externally_stored_large_file_is_kept(sandbox: GitSandbox) -> None:
    """As large-file extensions do it: git holds a pointer, and the filter puts the bytes into a folder of git's."""
    script = (
        "printf first > a.txt; git add a.txt; git commit -qm 'Add a'; printf second > a.txt; git commit -qam 'Change a'"
    )
    project = project_with(sandbox, script)
    sandbox.git("config", "filter.lfs.clean", LARGE)
    sandbox.git("config", "filter.lfs.required", "true")
    sandbox.write(".gitattributes", "a.txt filter=lfs -text\n")
    sandbox.commit("attributes", ".gitattributes")
    answer = execute(project)
    assert answer.code == 0, answer
    for commit, text in (("HEAD~1", "first"), ("HEAD", "second")):
        word, _, name = sandbox.git("show", f"{commit}:a.txt").partition(" ")
        assert (word, (project.folder / ".git" / "lfs" / name).read_text()) == ("pointer", text)
    assert (project.read("a.txt"), users(sandbox.status())) == ("second", [])


def test_commits_beside_the_branch_stay_in_the_clone(sandbox: GitSandbox) -> None:
    script = (
        "git commit -q --allow-empty -m 'Nothing yet'; " + PLAIN + "; git tag v1; git branch other; git notes add -m n;"
        " git stash push -q --include-untracked; git config alias.x y; git remote add away nowhere"
    )
    project = project_with(sandbox, script)
    before = sandbox.ledger()
    answer = execute(project)
    assert answer.code == 0, answer
    assert sandbox.git("log", "-2", "--format=%s").splitlines() == ["Add a", "Nothing yet"]
    after = sandbox.ledger()
    assert (set(after.refs), after.config) == (set(before.refs), before.config)


def test_a_repository_created_in_the_clone_is_not_dropped_silently(sandbox: GitSandbox) -> None:
    project = project_with(sandbox, "git init -q sub; echo x > sub/f; " + PLAIN)
    GitSandbox.create(sandbox.root / "mine").write("kept.txt", "mine\n")
    answer = execute(project)
    assert answer.code == 1, answer
    assert reason(answer).endswith("which cannot be delivered: sub")
