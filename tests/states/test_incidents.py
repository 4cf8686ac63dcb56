"""Incidents of similar tools, each as a test that is named after it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.states import ledgers
from tests.states.ledgers import Record
from tests.states.matrix import Case
from tests.states.state import State, copied, template
from tests.support import seed
from tests.support.answer import Answer
from tests.support.gitrepo import GitSandbox

BACK = ("rollback", "1", "--to", "start", "--yes")


@pytest.fixture(scope="module")
def incident_template(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    place = tmp_path_factory.mktemp("incidents")
    return place, template(place / "fresh")


@pytest.fixture
def case(incident_template: tuple[Path, str], tmp_path: Path) -> Case:
    place, consent = incident_template
    return Case(State("incident", (), lambda _: None), copied(place / "fresh", tmp_path / "case"), consent)


@pytest.fixture
def repo(case: Case) -> GitSandbox:
    """With uncommitted edits, untracked and ignored files."""
    repo = case.scene.repo
    repo.write_all({"third.txt": "edited\n", "untracked.txt": "mine\n", ".secret": "key\n", "build/out.bin": "big\n"})
    return repo


def ran(case: Case, repo: GitSandbox, *flags: str) -> Answer:
    answer = case.execute(repo, "--no-verify", *flags)
    assert answer.code == 0, answer
    return answer


def back(case: Case, repo: GitSandbox, before: Record) -> None:
    """The printed command restores every byte."""
    answer = case.idumb(repo, *BACK)
    assert answer.code == 0, answer
    ledgers.equal("files", before.user, ledgers.record(repo).user)


def test_a_rollback_deletes_no_untracked_output_that_the_agent_did_not_change(case: Case, repo: GitSandbox) -> None:
    """R-GIT-1, F2, F3: a restore that cleaned the tree took a gigabyte of results along."""
    ran(case, repo)
    repo.write_all({"results/one.bin": "made since\n", "build/two.bin": "made since\n", "out/more.txt": "made since\n"})
    before = ledgers.record(repo)
    assert case.idumb(repo, *BACK).code == 0
    ledgers.kept(before, ledgers.record(repo))
    assert repo.read("results/one.bin") == "made since\n"
    assert repo.read("out/more.txt") == "made since\n"


@pytest.mark.nightly
def test_rolled_back_ignore_rules_delete_no_file(case: Case, repo: GitSandbox) -> None:
    """F4: a restore reverted .gitignore, then removed files that were no longer ignored."""
    repo.write(".gitignore", "*.log\nbuild/\n.secret\ndata/\n")
    repo.write("data/model.bin", "precious\n")
    ran(case, repo)
    repo.git("checkout", "--quiet", "--", ".gitignore")
    before = ledgers.record(repo)
    assert case.idumb(repo, *BACK).code == 0
    ledgers.kept(before, ledgers.record(repo))
    assert case.undo(repo).code == 0
    assert repo.read("data/model.bin") == "precious\n"


@pytest.mark.nightly
def test_an_agent_that_changes_ignore_rules_hides_and_loses_nothing(case: Case, repo: GitSandbox) -> None:
    """F4: uncovered files are not the task's, and none of them is changed."""
    before = ledgers.record(repo)
    case.say("actor", "echo '*.txt' > .git/info/exclude; printf '*.log\\n' > .gitignore\n")
    answer = case.execute(repo, "--max-attempts", "1")
    assert answer.code in {4, 5}, answer
    case.say("actor", "exit 0\n")
    (repo.git_dir / "info/exclude").unlink(missing_ok=True)
    back(case, repo, before)


DISCARDING = (
    "git checkout -q .",
    "git restore .",
    "git reset -q --hard",
    "git -c user.name=a -c user.email=b stash -q",
    "git -c user.name=a -c user.email=b stash -qu",
    "git clean -qfd",
    "git rm -rqf --cached docs; rm -r docs untracked.txt",
)


@pytest.mark.nightly
@pytest.mark.parametrize("script", seed.one_on_a_push(DISCARDING, "discard"))
def test_an_agent_that_discards_uncommitted_work_discards_only_its_own(
    case: Case, repo: GitSandbox, script: str
) -> None:
    """R-GIT-1, F58."""
    before = ledgers.record(repo)
    case.say("actor", script + "\n")
    assert case.execute(repo, "--max-attempts", "1").code in (0, 1, 5)
    ledgers.kept(before, ledgers.record(repo))


def test_results_never_overwrite_uncommitted_edits(case: Case, repo: GitSandbox) -> None:
    """F1, R-GIT-6: files of a checkout were copied over uncommitted edits."""
    repo.write("app.txt", "one\ntwo\nthree\nmine\n")
    before = ledgers.record(repo)
    answer = case.execute(repo)
    assert answer.code == 5, answer
    ledgers.equal("files", before.user, ledgers.record(repo).user)


def test_a_task_s_commit_deletes_no_file_that_the_task_did_not_change(case: Case, repo: GitSandbox) -> None:
    """F5: a commit with `add -A` recorded the user's deletions and half of the user's work."""
    repo.remove("second.txt")
    repo.git("rm", "--quiet", "--cached", "first.txt")
    ran(case, repo)
    for commit in repo.git("rev-list", "HEAD~2..HEAD").split():
        changed = repo.git("diff-tree", "-r", "--no-commit-id", "--name-only", commit).split()
        assert {"second.txt", "first.txt"}.isdisjoint(changed), changed
    assert repo.tree()["second.txt"]
    assert repo.tree()["first.txt"]


@pytest.mark.nightly
def test_names_in_another_case_write_or_delete_nothing_outside(case: Case, repo: GitSandbox) -> None:
    """F18: a path that differed by case led out of the workspace and was deleted there."""
    outside = case.scene.outside
    (outside / "app.txt").write_text("outside\n", encoding="ascii")
    ran(case, repo)
    repo.remove("out")
    repo.link("out", str(outside))
    (outside / "one.txt").write_text("outside\n", encoding="ascii")
    (outside / "two.txt").write_text("outside\n", encoding="ascii")
    answer = case.idumb(repo, *BACK)
    assert answer.code in {0, 4}, answer
    assert sorted(path.name for path in outside.iterdir()) == ["app.txt", "one.txt", "two.txt"]
    assert {path.read_text(encoding="ascii") for path in outside.iterdir()} == {"outside\n"}
    assert os.path.islink(repo.root / "out")


INTO_THE_GIT_FOLDER = (
    'echo "$CASE/outside" > .git/commondir',
    'mkdir -p .git/hooks; cp "$CASE/hook" .git/hooks/pre-commit',
    'git config core.fsmonitor "touch $CASE/ran; false"',
    'git config filter.x.clean "touch $CASE/ran; cat"; mkdir -p .git/info; echo "* filter=x" > .git/info/attributes',
    "git config core.bare true",
    'git config core.worktree "$CASE/repo"',
    "rm .git/index",
)


@pytest.mark.parametrize("script", seed.one_on_a_push(INTO_THE_GIT_FOLDER, "git folder"))
def test_files_that_a_builder_puts_into_its_git_folder_are_never_run(case: Case, repo: GitSandbox, script: str) -> None:
    """F53, R-GIT-6: crafted commondir, hooks, configuration; its work is committed all the same."""
    before = ledgers.record(repo)
    case.say("hook", "#!/bin/sh\ntouch $CASE/ran\n")
    (case.scene.case / "hook").chmod(0o755)
    case.say("actor", script + "\n")
    ran(case, repo)
    assert not (case.scene.case / "ran").exists()
    ledgers.kept(before, ledgers.record(repo))


@pytest.mark.nightly
def test_a_folder_that_becomes_a_link_during_the_run_leads_no_write_outside(case: Case, repo: GitSandbox) -> None:
    """F19: a builder put a link in the place of a folder; going back must not follow it."""
    before = ledgers.record(repo)
    for name in ("kept.txt", "deep"):
        assert (repo.root / "docs" / name).exists()
    case.say("actor", f"mv docs ../moved; ln -s {case.scene.outside} docs\n")
    answer = case.execute(repo, "--max-attempts", "1")
    assert answer.code == 5, answer
    assert "docs" in answer.error["message"]
    assert case.idumb(repo, *BACK).code == 0
    ledgers.equal("files", before.user, ledgers.record(repo).user)
    assert list(case.scene.outside.iterdir()) == []


@pytest.mark.nightly
def test_a_file_emptied_by_a_power_cut_is_named_and_not_overwritten(case: Case, repo: GitSandbox) -> None:
    """M3, F31: it is named, and not overwritten before a person has examined it."""
    ran(case, repo)
    repo.write("app.txt", "")
    answer = case.idumb(repo, *BACK)
    assert answer.code == 4
    assert "app.txt" in answer.error["message"]
    assert repo.read("app.txt") == ""
