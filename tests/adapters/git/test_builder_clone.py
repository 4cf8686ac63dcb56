"""Commits in a builder's clone are fetched as objects or refused with a reason (R-GIT-6)."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from idumb.app.ports.repository import BuilderCommits
from idumb.git import discover
from idumb.git.clones.builder_clone import BuilderClone
from idumb.git.clones.clone import Clone
from idumb.git.trees import GitTrees
from tests.support.gitrepo import GitSandbox

REF = "refs/idumb/worktrees/main/runs/r1/T1/1/commits"
PLAIN = "echo one > a.txt; git add a.txt; git commit -qm 'Add a'"


class CloneScene:
    """A clone for builders on a repository with two commits."""

    def __init__(self, sandbox: GitSandbox, trees: GitTrees) -> None:
        sandbox.write("kept.txt", "kept\n")
        sandbox.commit("first")
        sandbox.write("kept.txt", "kept on\n")
        sandbox.commit("second")
        place = discover.find(str(sandbox.root))
        self.clone = Clone(place, trees, "r1", sandbox.head())
        self.commits = BuilderClone(place, trees, self.clone, lambda text: text.replace("hush", "[redacted]"))
        self.commits.begin(sandbox.head())
        self.root = Path(self.clone.trees.root)

    def offered(self, script: str) -> BuilderCommits:
        """Return the commits that the clone offers after an agent ran this script."""
        subprocess.run(["sh", "-c", script], cwd=self.root, check=False, capture_output=True, timeout=60)
        return self.commits.take()


@pytest.fixture
def scene(sandbox: GitSandbox, trees: GitTrees) -> CloneScene:
    return CloneScene(sandbox, trees)


RAW = (
    "echo one > a.txt; git add a.txt; tree=$(git write-tree); head=$(git rev-parse HEAD);"
    " made=$(printf 'tree %s\\nparent %s\\n{headers}\\n\\n{message}' $tree $head | git hash-object -t commit -w"
    " --literally --stdin); git update-ref refs/heads/idumb $made"
)
WHO = "A <a@x.y> 1700000000 +0000"
PEOPLE = f"author {WHO}\\ncommitter {WHO}"


def raw(headers: str = PEOPLE, message: str = "Add a") -> str:
    return RAW.format(headers=headers, message=message)


ODD = (
    "echo one > a.txt; git update-ref HEAD $(git commit-tree -p HEAD -m Odd"
    " $(printf '100644 blob %s\\t.GIT\\n' $(git hash-object -w a.txt) | git mktree))"
)
REFUSED = {
    "moves the branch back": ("git reset -q --soft HEAD~1; " + PLAIN, "history was rewritten"),
    "begins another history": ("git update-ref -d HEAD; " + PLAIN, "history was rewritten"),
    "detaches HEAD": ("git checkout -q --detach; " + PLAIN, "HEAD detached"),
    "goes to another branch": ("git checkout -q -b mine; " + PLAIN, "another branch"),
    "merges": (
        "git checkout -q -b side; " + PLAIN + "; git checkout -q idumb; git merge -q --no-ff -m 'Merge' side",
        "merges 2",
    ),
    "removes .git": ("echo one > a.txt; rm -rf .git", "removed the git folder"),
    "makes .git a link": (PLAIN + "; mv .git ../elsewhere; ln -s ../elsewhere .git", "no longer a folder"),
    "makes .git a pipe": (PLAIN + "; rm -rf .git; mkfifo .git", "no longer a folder"),
    "makes HEAD a pipe": (PLAIN + "; rm .git/HEAD; mkfifo .git/HEAD", "another branch"),
    "makes its branch a pipe": (PLAIN + "; rm .git/refs/heads/idumb; mkfifo .git/refs/heads/idumb", "not a regular"),
    "makes an object a pipe": (
        PLAIN + "; o=$(git rev-parse HEAD); f=.git/objects/$(echo $o | cut -c1-2)/$(echo $o | cut -c3-); rm -f $f;"
        " mkfifo $f",
        "not a regular file",
    ),
    "borrows objects elsewhere": (
        PLAIN + "; git init -q ../more; echo $PWD/../more/.git/objects >> .git/objects/info/alternates",
        "borrow objects from elsewhere",
    ),
    "writes a damaged commit": (
        PLAIN + "; o=$(git rev-parse HEAD); f=.git/objects/$(echo $o | cut -c1-2)/$(echo $o | cut -c3-); rm -f $f;"
        " echo nothing > $f",
        "missing or damaged",
    ),
    "commits a submodule": (
        "git update-index --add --cacheinfo 160000,$(git rev-parse HEAD),a.txt; git commit -qm 'A module'", "submodule"
    ),
    "names nobody": (raw(f"author  <> 1 +0000\\ncommitter {WHO}"), "no name or no address"),
    "writes a NUL": (raw(message="Add\\000a"), "NUL"),
    "is not UTF-8": (raw(message="Add \\377"), "not UTF-8"),
    "says an encoding": (raw(PEOPLE + "\\nencoding latin1"), "'encoding'"),
    "says nothing": (raw(message=""), "no message"),
    "steers the terminal": (raw(message="Add \\033[2J"), "control characters"),
    "forges a trailer": (raw(message="Add\\n\\nIdumb-Task: T1-09\\n"), "Idumb-"),
    "writes a huge message": (
        "echo one > a.txt; git add a.txt; head -c 70000 /dev/zero | tr '\\0' x | git commit -qF -",
        "more than idumb takes",
    ),
    "tells a secret": ("echo one > a.txt; git add a.txt; git commit -qm 'Say hush'", "a secret in its message"),
    "names a file like git's folder": (ODD, "unsafe name"),
    "makes the folder of objects a link": (PLAIN + "; mv .git/objects ../o; ln -s ../o .git/objects", "not a regular"),
    "takes its own rights away": (PLAIN + "; chmod 000 .git/objects", ""),
}  # fmt: skip


def test_commits_have_what_git_removed_from_a_pack_that_idumb_had_open(
    sandbox: GitSandbox, trees: GitTrees, scene: CloneScene
) -> None:
    blob = sandbox.git("hash-object", "-w", "--stdin", given=b"one\n")
    sandbox.git("pack-objects", "-q", str(sandbox.common_dir / "objects/pack/pack"), given=f"{blob}\n".encode())
    sandbox.git("prune-packed")
    assert blob in trees.repository
    sandbox.git("gc", "-q", "--prune=now")
    offered = scene.offered(PLAIN)
    assert scene.commits.keep(offered, REF) == ""
    assert sandbox.git("cat-file", "blob", blob) == "one"
    sandbox.git("fsck", "--strict")


@pytest.mark.parametrize("history", REFUSED)
def test_commits_that_cannot_be_taken_are_refused_with_a_reason(
    sandbox: GitSandbox, scene: CloneScene, history: str
) -> None:
    script, words = REFUSED[history]
    before = sandbox.ledger()
    offered = scene.offered(script)
    if words:
        assert words in offered.problem
        assert offered.tip is None
    candidate = scene.clone.trees.scan()  # by a git folder of idumb's own
    assert scene.clone.trees.entry(candidate, "kept.txt") is not None
    scene.commits.drop()
    assert scene.clone.trees.scan() == candidate
    assert sandbox.ledger() == before
    assert sandbox.kept("refs/idumb/") == {}
    scene.clone.close()
    assert not list(scene.root.parent.glob("r1*"))


def test_too_many_commits_are_refused(scene: CloneScene) -> None:
    script = (
        "{ i=0; while [ $i -lt 10000 ]; do i=$((i+1)); printf 'commit refs/heads/idumb\\ncommitter A <a@x.y> '$i;"
        " printf ' +0000\\ndata 1\\nx\\n'; [ $i = 1 ] && printf 'from refs/heads/idumb^0\\n'; done; }"
        " | git fast-import --quiet"
    )
    assert "more than 100 commits" in scene.offered(script).problem


def test_valid_commits_are_fetched_as_objects_and_nothing_else_is(sandbox: GitSandbox, scene: CloneScene) -> None:
    script = (
        PLAIN + "; mkdir d; echo two > d/b.txt; git add d; git commit -qm 'Add b'; git tag mine; git branch other;"
        " git gc -q; echo loose | git hash-object -w --stdin"
    )
    refs = sandbox.refs()
    offered = scene.offered(script)
    assert (offered.problem, [one.subject for one in offered.commits]) == ("", ["Add a", "Add b"])
    assert [[change.path for change in one.changes] for one in offered.commits] == [["a.txt"], ["d/b.txt"]]
    base, candidate = sandbox.git("rev-parse", "HEAD^{tree}"), scene.clone.trees.scan()
    assert scene.commits.uncommitted(offered, base, candidate) == ()
    assert scene.commits.keep(offered, REF) == ""
    assert sandbox.refs() == {**refs, REF: offered.tip}
    assert sandbox.git("ls-tree", "-r", "--name-only", str(offered.tip)) == "a.txt\nd/b.txt\nkept.txt"
    assert sandbox.try_git("cat-file", "-e", sandbox.git("hash-object", "--stdin", given=b"loose\n")).returncode != 0
    sandbox.git("fsck", "--strict", "--no-dangling")
    again = scene.offered("echo three > c.txt; git add c.txt; git commit -qm 'Add c'")
    assert [one.subject for one in again.commits] == ["Add a", "Add b", "Add c"]


def test_a_file_that_only_a_lost_commit_has_leaves_nothing_fetched(sandbox: GitSandbox, scene: CloneScene) -> None:
    early = "echo early > a.txt; git add a.txt; git commit -qm 'Early'; o=$(git rev-parse HEAD:a.txt);"
    offered = scene.offered(early + " rm -f .git/objects/$(echo $o | cut -c1-2)/$(echo $o | cut -c3-); " + PLAIN)
    assert offered.problem == ""
    assert "missing or damaged" in scene.commits.keep(offered, REF)
    scene.commits.drop()
    assert sandbox.kept("refs/idumb/") == {}


def test_a_link_in_place_of_the_clone_is_not_followed(sandbox: GitSandbox, scene: CloneScene) -> None:
    before = sandbox.ledger()
    offered = scene.offered(f"cd ..; rm -rf r1; ln -s {sandbox.root} r1")
    assert "removed its clone" in offered.problem
    assert scene.clone.trees.entry(scene.clone.trees.scan(), "kept.txt") is not None
    scene.clone.close()
    assert sandbox.ledger() == before
    assert not scene.root.is_symlink()


def test_objects_borrowed_by_a_relative_path_are_available(sandbox: GitSandbox, tmp_path: Path) -> None:
    sandbox.write("kept.txt", "kept\n")
    sandbox.commit("first")
    sandbox.git("clone", "--quiet", "--shared", str(sandbox.root), str(tmp_path / "borrowing"))
    borrowing = GitSandbox(tmp_path / "borrowing")
    borrowing.git("config", "user.name", "Pat Tester")
    borrowing.git("config", "user.email", "pat@example.invalid")
    place = discover.find(str(borrowing.root))
    relative = os.path.relpath(sandbox.root / ".git" / "objects", borrowing.root / ".git" / "objects")
    (borrowing.root / ".git" / "objects" / "info" / "alternates").write_text(f"# mine\n{relative}\n")
    trees = GitTrees(place)
    copy = Clone(place, trees, "r1", borrowing.head())
    commits = BuilderClone(place, trees, copy, str)
    commits.begin(borrowing.head())
    assert GitSandbox(Path(copy.trees.root)).git("show", "HEAD:kept.txt") == "kept"
    subprocess.run(["sh", "-c", PLAIN], cwd=copy.trees.root, check=True, timeout=60)
    assert commits.take().problem == ""
    copy.close()
