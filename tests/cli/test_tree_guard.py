"""Changes that an agent in a copy makes to the user's own tree are named and can be reverted."""

from __future__ import annotations

import json
import shlex
import subprocess
from pathlib import Path

import pytest

from tests.support import fake_model, scripted_roles, seed
from tests.support.answer import Answer
from tests.support.gitrepo import GitSandbox
from tests.support.project import Project, making

ROLES = "refs/idumb/worktrees/main/roles/"
RESEARCH = ".planning/phases/2/2-RESEARCH.md"


@pytest.fixture
def project(sandbox: GitSandbox, tmp_path: Path) -> Project:
    planning = scripted_roles.create(sandbox, tmp_path / "agents")
    sandbox.write("notes.txt", "mine, nowhere else\n")
    return planning.project


def bind(project: Project, script: str) -> None:
    """The researcher runs this in the user's own folder and prints a word."""
    commands = f"cd {shlex.quote(str(project.folder))} && {{ {script}; }} >&2; echo 'Nothing to tell.'"
    argv = json.dumps(["sh", "-c", commands])
    project.configure(f"bindings: {{r: {{adapter: command, argv: {argv}}}}}\nroles: {{researcher: {{binding: r}}}}\n")
    project.commit_own()


def research(project: Project) -> Answer:
    refused = project.quick("research", "2", "--json")
    return project.quick("research", "2", "--json", "--approve", refused.error["details"]["consent_hash"])


def researched(project: Project, script: str) -> Answer:
    bind(project, script)
    return research(project)


def shown(project: Project, command: str) -> str:
    return subprocess.run(
        command, shell=True, cwd=project.folder, check=True, capture_output=True, text=True, encoding="utf-8"
    ).stdout


def test_files_that_a_role_deletes_or_changes_in_the_user_s_tree_are_named_with_their_bytes(
    project: Project, sandbox: GitSandbox
) -> None:
    """R-GIT-6, R-GIT-2: the user may have done it, so the answer counts, nothing is reverted, the snapshot stays."""
    readme = project.read("README.md")
    answer = researched(project, "rm notes.txt; echo evil >> README.md; echo new > came.txt")
    assert answer.code == 0
    [named] = [warning for warning in answer.object["warnings"] if "in your own working tree" in warning]
    for words in ("README.md (changed)", "came.txt (new)", "notes.txt (deleted)", "It may have been you."):
        assert words in named
    [changed, deleted] = named.partition("Earlier state: ")[2].removesuffix(".").split("; ")
    assert shown(project, deleted) == "mine, nowhere else\n"
    assert shown(project, changed) == readme
    assert not project.exists("notes.txt")
    assert project.exists(RESEARCH)
    [snapshot] = sandbox.kept(ROLES).values()
    assert snapshot in deleted


def test_an_unused_answer_is_kept_and_can_be_taken(project: Project) -> None:
    """R-GIT-6: if HEAD changed, the result would be written to another place."""
    answer = researched(project, "git switch -qc elsewhere")
    assert (answer.code, answer.error["code"]) == (4, "role.changed-tree")
    kept = answer.error["details"]["answer"]
    assert kept in answer.error["message"]
    assert f"idumb research 2 --from {kept}" in answer.error["hint"]
    assert "symbolic-ref" not in answer.error["hint"]
    assert not project.exists(RESEARCH)
    assert project.quick("research", "2", "--from", kept).code == 0
    assert "Nothing to tell." in project.read(RESEARCH)


CHANGES = [
    ("git branch -D other", "git rev-parse refs/heads/other"),
    ("git tag -d v1", "git rev-parse refs/tags/v1"),
    ("git update-ref refs/heads/main HEAD~1", "git rev-parse HEAD"),
    ("git symbolic-ref HEAD refs/heads/other", "git symbolic-ref HEAD"),
    ("git read-tree HEAD", "git diff --cached --name-only"),
]


@pytest.mark.parametrize(("script", "look"), seed.one_on_a_push(CHANGES, "a role's changes to git"))
def test_the_suggested_command_reverts_a_role_s_changes_to_git(
    project: Project, sandbox: GitSandbox, script: str, look: str
) -> None:
    """R-GIT-6."""
    sandbox.commit("one more", "notes.txt")
    for arguments in (["branch", "other"], ["tag", "v1"]):
        sandbox.git(*arguments)
    sandbox.write("staged.txt", "staged\n")
    sandbox.git("add", "staged.txt")
    bind(project, script)
    before = shown(project, look)
    answer = research(project)
    messages = " ".join([*answer.object["warnings"], (answer.object["error"] or {"message": ""})["message"]])
    for back in messages.partition("Earlier state: ")[2].partition(". ")[0].removesuffix(".").split("; "):
        shown(project, back.partition("  (")[0])
    assert shown(project, look) == before


def test_refs_of_idumb_that_a_role_deletes_are_reported_and_restored(project: Project, sandbox: GitSandbox) -> None:
    """R-GIT-6: the snapshot that can restore the bytes is kept."""
    script = "git for-each-ref --format='delete %(refname)' refs/idumb | git update-ref --stdin; rm notes.txt"
    answer = researched(project, script)
    assert "idumb's own refs were moved or deleted" in answer.error["message"]
    snapshot = answer.error["details"]["snapshot"]
    assert list(sandbox.kept(ROLES).values()) == [snapshot]
    assert sandbox.git("show", f"{snapshot}:worktree/notes.txt") == "mine, nowhere else"


def test_a_commit_during_a_role_call_is_the_user_s_own(project: Project, sandbox: GitSandbox) -> None:
    """No byte changed and none is unreachable; without a problem no snapshot stays."""
    assert researched(project, "git add notes.txt; git commit -qm notes -- notes.txt").code == 0
    assert project.exists(RESEARCH)
    assert sandbox.kept(ROLES) == {}


OPINIONS = [("rm -f n*.txt", "heard"), ("git switch -qc elsewhere", "refused")]


@pytest.mark.parametrize(("script", "refused"), seed.one_on_a_push(OPINIONS, "opinions"))
def test_changes_during_an_opinion_lose_no_verification(project: Project, script: str, refused: str) -> None:
    """R-ADAPT-5: checks decide; changes are reported, and if HEAD changed the opinion is ignored."""
    folder = shlex.quote(str(project.folder))
    argv = json.dumps(["sh", "-c", f"cd {folder} && {script} >&2; echo 'It looks fine.'"])
    project.configure(f"bindings: {{v: {{adapter: command, argv: {argv}}}}}\nroles: {{verifier: {{binding: v}}}}\n")
    project.plan([making("T1-01", "a.txt")], head="success_criteria: ['A is there — check: `test -s a.txt`']\n")
    assert project.execute().error["code"] == "verification.partial"  # nobody consented to the verifier
    verified = project.quick("verify-work", "1", "--json")
    answer = project.quick("verify-work", "1", "--json", "--approve", verified.error["details"]["consent_hash"])
    assert (answer.data["status"], [e["result"] for e in answer.data["evidence"]]) == ("partial", ["passed"])
    assert "While the verifier worked in its copy" in str(answer.object)
    assert ("[role.changed-tree]" in str(answer.object)) == (refused == "refused")


def test_a_model_behind_a_server_needs_no_snapshot(project: Project, sandbox: GitSandbox) -> None:
    """An adapter that starts no process can write nothing here: not even a ref is made for it."""
    rule = json.dumps({"when": "phase 2", "times": 9, "answers": [{"say": "Nothing to tell."}]})
    with fake_model.serving(rule) as served:
        options = json.dumps({"base_url": f"{served.address}/v1", "schema": "prompt"})
        binding = f"{{adapter: http, model: fake, options: {options}}}"
        project.configure(f"bindings: {{m: {binding}}}\nroles: {{researcher: {{binding: m}}}}\n")
        assert research(project).code == 0
    assert sandbox.kept("refs/idumb/") == {}
