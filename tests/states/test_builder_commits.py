"""States of repositories in which builders commit: each works with every byte of the user's kept, or is refused."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.states import ledgers, matrix
from tests.states.matrix import Case
from tests.states.state import ALL, FILES, TOUCHED, copied
from tests.support import project as projects
from tests.support import seed
from tests.support.gitrepo import GitSandbox
from tests.support.project import task
from tests.support.warm import Warm

SCRIPT = (
    "case $IDUMB_TASK in T1-01) mkdir -p out; sed -i s/two/TWO/ app.txt; echo one > out/one.txt;"
    " git add -f app.txt out/one.txt; git commit -qm 'Add one';;"
    " *) mkdir -p out; git rm -q old.txt; echo two > out/two.txt; git add -f out/two.txt; git commit -qm 'Add two';;"
    " esac"
)
WORKS = (
    "a detached head",
    "a linked worktree",
    "beside linked worktrees",
    "line endings by attribute",
    "a filter that rewrites files",
    "large files kept elsewhere",
    "encodings and idents by attribute",
    "a sparse checkout that leaves out what tasks make",
    "a sparse index",
    "a shallow clone",
    "a partial clone",
    "a clone that borrows objects",
    "automatic line endings",
    "hooks elsewhere",
    "settings that change commits",
    "packed and replaced",
    "staged and edited again",
    "edits under skip worktree",
    "a split index",
    "a dirty submodule",
    "a repository inside",
    "rules that ignore what tasks make",
    "odd names",
)
REFUSED = (
    "no commits yet",
    "a work tree elsewhere",
    "sha 256",
    "refs in a table",
    "no identity",
    "edits in a file that a task edits",
    "an untracked file where a task makes one",
    "an ignored file where a task makes one",
)


def template(place: Path) -> str:
    """The project of `matrix`, with the same changes made by a builder that commits them; the hash to consent to."""
    project = projects.create(GitSandbox.create(place / "repo"), files=FILES)
    agent = f"{{adapter: command, argv: [sh, -c, {json.dumps(SCRIPT)}]}}"
    project.configure(
        f"git: {{commit: builder}}\nrun: {{max_attempts: 1}}\nbuilder: agent\nbindings:\n  agent: {agent}\n"
    )
    project.plan(
        [
            task("T1-01", files="modify `app.txt`, create `out/one.txt`", check="test -s out/one.txt"),
            task("T1-02", files="delete `old.txt`, create `out/two.txt`", check="test -s out/two.txt", after="T1-01"),
        ]
    )
    return project.approval()


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Warm, str]]:
    folder = tmp_path_factory.mktemp("commits")
    consent = template(folder / "fresh")
    with Warm(folder / "answers") as warm:
        yield folder, warm, consent


@pytest.mark.parametrize("name", seed.one_on_a_push(WORKS, "works"))
def test_a_builder_s_commits_are_delivered_and_nothing_else_changes(
    place: tuple[Path, Warm, str], tmp_path: Path, name: str
) -> None:
    """R-GIT-2, R-GIT-7."""
    folder, warm, consent = place
    scene = copied(folder / "fresh", tmp_path / "case")
    repo = ALL[name].make(scene) or scene.repo
    before, tree, head = ledgers.record(repo), repo.git("rev-parse", "HEAD^{tree}"), repo.head()
    case = Case(warm, ALL[name], scene, consent)
    answer = case.execute(repo)
    assert answer.code == 0, answer
    after = ledgers.record(repo)
    ledgers.kept(before, after)
    assert [path for path in TOUCHED if path not in after.user] == ["old.txt"]
    assert b"TWO" in (repo.root / "app.txt").read_bytes()
    subjects = repo.git("log", "--format=%s", f"{head}..HEAD").splitlines()
    assert subjects[-2:] == ["Add two", "Add one"]
    assert repo.try_git("fsck", "--no-progress", "--no-dangling").returncode == 0
    assert not list(repo.clones.glob("*"))
    assert case.idumb(repo, "rollback", "1", "--to", "start", "--yes").code == 0
    ledgers.equal("after a rollback", before.user, ledgers.record(repo).user)
    changed = repo.git("diff-tree", "-r", "--name-only", tree, "HEAD").splitlines()
    assert [path for path in changed if path.split("/")[0] not in ledgers.OWN] == []


@pytest.mark.parametrize("name", seed.one_on_a_push(REFUSED, "refused"))
def test_an_undeliverable_result_is_refused_before_anything_changes(
    place: tuple[Path, Warm, str], tmp_path: Path, name: str
) -> None:
    """R-GIT-7: in one clear line, as with commits by idumb."""
    folder, warm, consent = place
    scene = copied(folder / "fresh", tmp_path / "case")
    repo = ALL[name].make(scene) or scene.repo
    matrix.refused(Case(warm, ALL[name], scene, consent), repo, ALL[name].code)
