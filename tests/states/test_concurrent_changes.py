"""F24, F25: changes by a user or an agent while a task is being built; a script plays both."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.states import ledgers
from tests.states.ledgers import Record
from tests.states.matrix import Case
from tests.states.state import TOUCHED, State, copied, template
from tests.support import seed
from tests.support.gitrepo import GitSandbox
from tests.support.warm import Warm

GIT = "git -c user.name=Pat -c user.email=pat@example.invalid"


@dataclass(frozen=True, slots=True)
class ConcurrentChange:
    """`script` runs in the working tree while the second task is built; then the run ends with `code` and `error`.

    `changes` are the paths that the script itself changes; `fix` is what the user runs before `resume`, and None if the
    next step is a rollback.
    """

    name: str
    script: str
    code: int
    error: str = ""
    changes: tuple[str, ...] = ()
    fix: str | None = "true"


CONCURRENT_CHANGES = [
    ConcurrentChange("collects garbage", "git -c gc.reflogExpire=now gc -q --prune=now", 0),
    ConcurrentChange(
        "repacks and expires", "git reflog expire --expire=now --all; git repack -qad; git prune --expire=now", 0
    ),
    ConcurrentChange("makes a branch and a tag", "git branch mine; git tag mine", 0),
    ConcurrentChange(
        "commits what was staged before",
        f"{GIT} commit -qm mine",
        4,
        "git.committed-meanwhile",
        (),
        "git reset -q --soft HEAD~1",
    ),
    ConcurrentChange("unstages", "git reset -q -- second.txt", 0),
    ConcurrentChange("stages everything", "git add -A", 0),
    ConcurrentChange("stages and collects garbage", "git add -A; git gc -q --prune=now", 0),
    ConcurrentChange("forgets files", "git rm -qf --cached first.txt second.txt", 0),
    ConcurrentChange(
        "commits a new edit",
        f"echo x > first.txt; {GIT} commit -qm x first.txt",
        4,
        "git.committed-meanwhile",
        ("first.txt",),
    ),
    ConcurrentChange("stages a new file", "echo x > x.txt; git add x.txt", 5, "run.waiting", ("x.txt",), None),
    ConcurrentChange("stashes everything", f"{GIT} stash -qu", 1, "run.halted", ("second.txt",), None),
    ConcurrentChange("amends", f"{GIT} commit -q --amend -m amended", 4, "git.branch-rewritten"),
    ConcurrentChange(
        "goes one commit back",
        "git reset -q --soft HEAD~1",
        4,
        "git.branch-rewritten",
        (),
        "git reset -q --soft ORIG_HEAD",
    ),
    ConcurrentChange(
        "rebases", f"{GIT} rebase -q --autostash --force-rebase HEAD~1", 4, "git.branch-rewritten", ("second.txt",)
    ),
    ConcurrentChange(
        "switches to a new branch", "git switch -qc other", 4, "git.other-branch", (), "git switch -q main"
    ),
    ConcurrentChange("detaches HEAD", "git switch -q --detach", 4, "git.other-branch", (), "git switch -q main"),
    ConcurrentChange(
        "adds a hook",
        "mkdir -p .git/hooks; echo exit 1 > .git/hooks/x",
        4,
        "git.guarded-changed",
        (),
        "rm .git/hooks/x",
    ),
    ConcurrentChange(
        "sets an alias", "git config alias.x y", 4, "git.guarded-changed", (), "git config --unset alias.x"
    ),
    ConcurrentChange(
        "makes it bare", "git config core.bare true", 4, "git.guarded-changed", (), "git config core.bare false"
    ),
    ConcurrentChange("deletes a branch", "git branch -qD kept", 4, "git.refs-deleted", (), "git branch kept HEAD"),
    ConcurrentChange(
        "rewinds a branch",
        f"git branch -qf kept $({GIT} commit-tree -m x HEAD^{{tree}})",
        4,
        "git.refs-moved",
        (),
        "git branch -qf kept HEAD",
    ),
    ConcurrentChange(
        "goes forward on a branch", f"git update-ref refs/heads/kept $({GIT} commit-tree -p HEAD -m x HEAD^{{tree}})", 0
    ),
    ConcurrentChange(
        "deletes idumb's refs",
        "rm -rf .git/refs/idumb; sed -i /idumb/d .git/packed-refs || :",
        4,
        "git.own-refs-changed",
    ),
]


@pytest.fixture(scope="module")
def templates(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Warm, str]]:
    place = tmp_path_factory.mktemp("meanwhile")
    consent = template(place / "fresh")
    with Warm(place / "answers") as warm:
        yield place, warm, consent


@pytest.fixture
def case(templates: tuple[Path, Warm, str], tmp_path: Path) -> Case:
    place, warm, consent = templates
    scene = copied(place / "fresh", tmp_path / "case")
    scene.repo.write_all({"third.txt": "edited\n", "untracked.txt": "mine\n", ".secret": "key\n"})
    scene.repo.write("second.txt", "staged\n")
    scene.repo.git("add", "second.txt")
    scene.repo.write("second.txt", "edited again\n")
    return Case(warm, State("meanwhile", ("F24",), lambda _: None), scene, consent)


ENDINGS = (
    "",
    "run.waiting",
    "git.committed-meanwhile",
    "git.branch-rewritten",
    "git.other-branch",
    "git.guarded-changed",
)


@pytest.mark.parametrize("ending", ENDINGS)
def test_nothing_is_lost_if_during_a_task(case: Case, ending: str) -> None:
    """R-GIT-6, F24: the run continues, or stops and keeps everything; then its suggested command works.

    One change for each ending; which, the commit chooses.
    """
    _is_survived(case, seed.one_of([change for change in CONCURRENT_CHANGES if change.error == ending], ending))


@pytest.mark.nightly
@pytest.mark.parametrize(
    "change", CONCURRENT_CHANGES, ids=[change.name.replace(" ", "-") for change in CONCURRENT_CHANGES]
)
def test_nothing_is_lost_whatever_happens_during_a_task(case: Case, change: ConcurrentChange) -> None:
    _is_survived(case, change)


def _is_survived(case: Case, change: ConcurrentChange) -> None:
    repo = case.scene.repo
    repo.git("branch", "kept")
    before = ledgers.record(repo)
    case.say("actor", change.script + "\n")
    answer = case.execute(repo, "--max-attempts", "1", "--no-verify")
    assert answer.code == change.code, answer
    if answer.code == 0:
        for words in [words for words in answer.object["warnings"] if "the index changed" in words]:
            staged_again = words.partition("Earlier state: ")[2]
            subprocess.run(["sh", "-ec", staged_again], cwd=repo.root, check=True)
        assert_kept(before, repo, change)
        return
    assert answer.error["code"] == change.error, answer.error
    assert answer.error["hint"]
    case.say("actor", "exit 0\n")
    if change.fix is None:
        assert case.idumb(repo, "rollback", "1", "--to", "start", "--yes").code == 0
        ledgers.equal("files", user(before, change), user(ledgers.record(repo), change))
        return
    case.say("fix", change.fix + "\n")
    subprocess.run(["sh", "../fix"], cwd=repo.root, check=True)
    assert_kept(before, repo, change)
    assert case.resume(repo, "--no-verify").code == 0
    assert_kept(before, repo, change)
    assert (repo.root / "out/two.txt").exists()


def user(record: Record, change: ConcurrentChange) -> dict[str, object]:
    return {path: entry for path, entry in record.user.items() if path not in change.changes}


def assert_kept(before: Record, repo: GitSandbox, change: ConcurrentChange) -> None:
    after = ledgers.record(repo)
    own = (*TOUCHED, *(path for path in change.changes if path != "second.txt"))
    ledgers.equal("files", without(before.user, own), without(after.user, own))
    ledgers.equal(
        "index", without(before.index, (*own, *change.changes)), without(after.index, (*own, *change.changes))
    )


def without(ledger_part: Mapping[str, object], but: tuple[str, ...]) -> dict[str, object]:
    return {path: value for path, value in ledger_part.items() if path.partition("\0")[0] not in but and path != "out"}


def test_a_repository_moved_during_a_task_is_intact_in_its_new_place(case: Case) -> None:
    """F25: the run ends with one clear line, and continues in the repository's new place."""
    repo = case.scene.repo
    before = ledgers.record(repo)
    case.say("actor", "cd ..; mv repo moved\n")
    answer = case.execute(repo)
    assert answer.code not in {0, 70}, answer
    moved = GitSandbox(case.scene.case / "moved")
    ledgers.equal("files", without(before.user, TOUCHED), without(ledgers.record(moved).user, TOUCHED))
    case.say("actor", "exit 0\n")
    answer = case.resume(moved, "--approve", case.consent, "--no-verify")
    assert answer.code == 0, answer
    assert (moved.root / "out/two.txt").exists()


def test_a_repository_deleted_during_a_task_gives_one_clear_line(case: Case) -> None:
    """F25."""
    case.say("actor", "rm -rf ../repo\n")
    answer = case.execute(case.scene.repo)
    assert answer.code not in {0, 70}, answer
    assert "\n" not in answer.error["message"]
