"""F24, F25, and incidents of similar tools: what a user or an agent does while a task is built; a script plays both."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.states import ledgers
from tests.states.ledgers import Record
from tests.states.matrix import Case
from tests.states.state import TOUCHED, copied, template
from tests.states.states import State
from tests.support import seed
from tests.support.answer import Answer
from tests.support.gitrepo import GitSandbox

GIT = "git -c user.name=Pat -c user.email=pat@example.invalid"


@dataclass(frozen=True, slots=True)
class ConcurrentChange:
    """The user runs `script` in the working tree while the second task is built; then the run ends with `code`.

    `fix` is what he runs before `resume`, if the run did not complete.
    """

    name: str
    script: str
    code: int = 0
    error: str = ""
    fix: str = "true"


CONCURRENT_CHANGES = [
    ConcurrentChange("collects garbage", "git -c gc.reflogExpire=now gc -q --prune=now"),
    ConcurrentChange(
        "repacks and expires", "git reflog expire --expire=now --all; git repack -qad; git prune --expire=now"
    ),
    ConcurrentChange("makes a branch and a tag", "git branch mine; git tag mine"),
    ConcurrentChange("commits what was staged before", f"{GIT} commit -qm mine"),
    ConcurrentChange("unstages", "git reset -q -- second.txt"),
    ConcurrentChange("stages everything", "git add -A"),
    ConcurrentChange("stages and collects garbage", "git add -A; git gc -q --prune=now"),
    ConcurrentChange("forgets files", "git rm -qf --cached first.txt second.txt"),
    ConcurrentChange("commits a new edit", f"echo x > first.txt; {GIT} commit -qm x first.txt"),
    ConcurrentChange("stages a new file", "echo x > x.txt; git add x.txt"),
    ConcurrentChange("stashes everything", f"{GIT} stash -q"),
    ConcurrentChange("amends", f"{GIT} commit -q --amend -m amended"),
    ConcurrentChange("rebases", f"{GIT} rebase -q --autostash --force-rebase HEAD~1"),
    ConcurrentChange("switches to a new branch", "git switch -qc other", 5, "run.waiting", "git switch -q main"),
    ConcurrentChange("detaches HEAD", "git switch -q --detach", 5, "run.waiting", "git switch -q main"),
    ConcurrentChange("adds a hook", "mkdir -p .git/hooks; echo exit 1 > .git/hooks/x"),
    ConcurrentChange("sets an alias", "git config alias.x y"),
    ConcurrentChange("deletes a branch", "git branch -qD kept"),
    ConcurrentChange("rewinds a branch", f"git branch -qf kept $({GIT} commit-tree -m x HEAD^{{tree}})"),
    ConcurrentChange(
        "goes forward on a branch", f"git update-ref refs/heads/kept $({GIT} commit-tree -p HEAD -m x HEAD^{{tree}})"
    ),
]


@pytest.fixture(scope="module")
def templates(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    place = tmp_path_factory.mktemp("meanwhile")
    return place, template(place / "fresh")


@pytest.fixture
def case(templates: tuple[Path, str], tmp_path: Path) -> Case:
    place, consent = templates
    scene = copied(place / "fresh", tmp_path / "case")
    scene.repo.write_all(
        {"third.txt": "edited\n", "untracked.txt": "mine\n", ".secret": "key\n", "build/out.bin": "big\n"}
    )
    scene.repo.write("second.txt", "staged\n")
    scene.repo.git("add", "second.txt")
    scene.repo.write("second.txt", "edited again\n")
    return Case(State("meanwhile"), scene, consent)


@pytest.mark.parametrize("change", seed.one_on_a_push(CONCURRENT_CHANGES, "while a task is built"))
def test_nothing_is_lost_whatever_the_user_does_while_a_task_is_built(case: Case, change: ConcurrentChange) -> None:
    """R-GIT-6, F24: files and index are as the user left them, and the task is done, at the latest after `resume`."""
    repo = case.scene.repo
    repo.git("branch", "kept")
    alone = copied(case.scene.case, case.scene.case.parent / "alone").repo
    subprocess.run(["sh", "-c", change.script], cwd=alone.root, check=True)
    case.say("actor", f"cd {repo.root}\n{change.script}\n")
    answer = case.execute(repo, "--max-attempts", "1", "--no-verify")
    assert answer.code == change.code, answer
    assert_kept(ledgers.record(alone), ledgers.record(repo))
    if answer.code:
        assert answer.error["code"] == change.error
        case.say("actor", "exit 0\n")
        subprocess.run(["sh", "-c", change.fix], cwd=repo.root, check=True)
        assert case.resume(repo, "--no-verify").code == 0
    assert (repo.root / "out/two.txt").exists()
    assert repo.git("status", "--porcelain", "--", *TOUCHED) == ""


def assert_kept(before: Record, after: Record) -> None:
    ledgers.equal("files", without(before.user, TOUCHED), without(after.user, TOUCHED))
    ledgers.equal("index", without(before.index, TOUCHED), without(after.index, TOUCHED))


def without(ledger_part: Mapping[str, object], but: tuple[str, ...]) -> dict[str, object]:
    return {path: value for path, value in ledger_part.items() if path.partition("\0")[0] not in but and path != "out"}


@pytest.mark.nightly
def test_a_repository_moved_during_a_task_is_intact_in_its_new_place(case: Case) -> None:
    """F25: the run ends with one clear line, and continues in the repository's new place."""
    repo = case.scene.repo
    before = ledgers.record(repo)
    case.say("actor", 'cd "$CASE"; mv repo moved\n')
    answer = case.execute(repo)
    assert answer.code not in {0, 70}, answer
    moved = GitSandbox(case.scene.case / "moved")
    ledgers.equal("files", without(before.user, TOUCHED), without(ledgers.record(moved).user, TOUCHED))
    case.say("actor", "exit 0\n")
    answer = case.resume(moved, "--approve", case.consent, "--no-verify")
    assert answer.code == 0, answer
    assert (moved.root / "out/two.txt").exists()


@pytest.mark.nightly
def test_a_repository_deleted_during_a_task_gives_one_clear_line(case: Case) -> None:
    """F25."""
    case.say("actor", 'rm -rf "$CASE/repo"\n')
    answer = case.execute(case.scene.repo)
    assert answer.code not in {0, 70}, answer
    assert "\n" not in answer.error["message"]


BACK = ("rollback", "1", "--to", "start", "--yes")


def ran(case: Case, repo: GitSandbox, *flags: str) -> Answer:
    answer = case.execute(repo, "--no-verify", *flags)
    assert answer.code == 0, answer
    return answer


def test_a_rollback_deletes_no_untracked_output_that_the_agent_did_not_change(case: Case) -> None:
    """R-GIT-1, F2, F3: a restore that cleaned the tree took a gigabyte of results along."""
    repo = case.scene.repo
    ran(case, repo)
    repo.write_all({"results/one.bin": "made since\n", "build/two.bin": "made since\n", "out/more.txt": "made since\n"})
    before = ledgers.record(repo)
    assert case.idumb(repo, *BACK).code == 0
    ledgers.kept(before, ledgers.record(repo))
    assert repo.read("results/one.bin") == "made since\n"
    assert repo.read("out/more.txt") == "made since\n"


def test_results_never_overwrite_uncommitted_edits(case: Case) -> None:
    """F1, R-GIT-6: files of a checkout were copied over uncommitted edits."""
    repo = case.scene.repo
    repo.write("app.txt", "one\ntwo\nthree\nmine\n")
    before = ledgers.record(repo)
    answer = case.execute(repo)
    assert answer.code == 5, answer
    ledgers.equal("files", before.user, ledgers.record(repo).user)


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
def test_files_that_a_builder_puts_into_its_git_folder_are_never_run(case: Case, script: str) -> None:
    """F53, R-GIT-6: crafted commondir, hooks, configuration; its work is committed all the same."""
    repo = case.scene.repo
    before = ledgers.record(repo)
    case.say("hook", "#!/bin/sh\ntouch $CASE/ran\n")
    (case.scene.case / "hook").chmod(0o755)
    case.say("actor", script + "\n")
    ran(case, repo)
    assert not (case.scene.case / "ran").exists()
    ledgers.kept(before, ledgers.record(repo))


ACTS = (
    "git checkout -q .",
    "git restore .",
    "git reset -q --hard",
    f"{GIT} stash -q",
    f"{GIT} stash -qu",
    "git clean -qfd",
    "git rm -rqf --cached docs; rm -r docs",
    "echo '*.txt' > .git/info/exclude; printf '*.log\\n' > .gitignore",
    'mv docs ../moved; ln -s "$CASE/outside" docs',
)


@pytest.mark.nightly
@pytest.mark.parametrize("script", ACTS)
def test_an_agent_that_discards_hides_or_replaces_files_does_it_only_in_its_checkout(case: Case, script: str) -> None:
    """R-GIT-1, F4, F19, F58: and going back follows no link."""
    repo, outside = case.scene.repo, case.scene.outside
    before = ledgers.record(repo)
    case.say("actor", script + "\n")
    assert case.execute(repo, "--max-attempts", "1").code in (0, 1, 4, 5)
    ledgers.kept(before, ledgers.record(repo))
    assert case.idumb(repo, *BACK).code == 0
    ledgers.equal("files", before.user, ledgers.record(repo).user)
    assert list(outside.iterdir()) == []
