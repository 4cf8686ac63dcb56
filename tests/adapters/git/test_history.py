"""HEAD, obstacles, identity, uncommitted changes. R-GIT-6, R-GIT-7, F5-F9, F15, F23, F25."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from idumb.app.ports import Head
from idumb.domain import errors
from idumb.domain.proof.ledger import Entry
from idumb.git import discover, git_program
from idumb.git.history import GitHistory
from idumb.git.trees import GitTrees
from tests.support.errors import refusing
from tests.support.gitrepo import GitSandbox

UNKNOWN = Entry(0o100644, "0" * 40)


def test_head_names_commit_and_branch(sandbox: GitSandbox, history: GitHistory) -> None:
    """R-GIT-6, F7: also if another process commits."""
    for _ in range(2):
        head = sandbox.commit()
        assert history.head() == Head(head, "main")
        assert history.head_tree() == sandbox.git("rev-parse", "HEAD^{tree}")
    sandbox.git("checkout", "-q", "--detach")
    assert history.head() == Head(head, None)
    sandbox.git("checkout", "-q", "-b", "feature/x")
    assert history.head() == Head(head, "feature/x")


def test_a_commit_that_is_missing_below_head_is_named(sandbox: GitSandbox, history: GitHistory) -> None:
    """As in a clone that borrows objects of a repository that somebody deleted."""
    first, lost, last = (sandbox.commit() for _ in range(3))
    sandbox.object_file(lost).unlink()
    for call in (lambda: history.descends(first, last), lambda: history.trailers_since(None)):
        with refusing("git.object-missing", f"object {lost} is missing"):
            call()


def test_git_is_asked_once_for_conflicts_and_staged_paths(
    sandbox: GitSandbox, history: GitHistory, monkeypatch: pytest.MonkeyPatch
) -> None:
    sandbox.commit_with({"a": "1"})
    asked, read = list[str](), git_program.read

    def noted(root: str, arguments: Sequence[str], **options: Any) -> git_program.Result:
        asked.append(arguments[0])
        return read(root, arguments, **options)

    monkeypatch.setattr(git_program, "read", noted)
    history.require_usable()
    assert history.staged(["a"]) == {}
    assert asked == ["diff-index"]


def test_a_missing_tree_of_head_and_a_damaged_index_are_named_before_anything_runs(
    sandbox: GitSandbox, history: GitHistory
) -> None:
    sandbox.commit_with({"a": "1"})
    tree = sandbox.git("rev-parse", "HEAD^{tree}")
    place = sandbox.object_file(tree)
    data = place.read_bytes()
    place.unlink()
    with pytest.raises(errors.Refusal, match=f"object {tree} is missing"):
        history.require_usable()
    place.write_bytes(data)
    (sandbox.root / ".git/index").write_bytes(b"DIRC")
    with refusing("git.failed"):
        history.require_usable()


def _two_sides(sandbox: GitSandbox) -> None:
    sandbox.commit_with({"a": "1\n"})
    sandbox.git("checkout", "-q", "-b", "side")
    sandbox.commit_with({"a": "2\n"})
    sandbox.git("checkout", "-q", "main")
    sandbox.commit_with({"a": "3\n"})


OBSTACLES = {
    "merge": ["merge side"],
    "rebase": ["rebase side"],
    "cherry-pick": ["cherry-pick side"],
    "revert": ["revert --no-edit HEAD~1"],
    "am": ["format-patch -1 -o ../patches side", "am ../patches/0001-work.patch"],
    "bisect": ["bisect start"],
}


def stash(sandbox: GitSandbox) -> None:
    sandbox.write("a", "4\n")
    sandbox.git("stash")
    sandbox.commit_with({"a": "5\n"})
    sandbox.try_git("stash", "apply")


@pytest.mark.parametrize("name", [*OBSTACLES, "git.unmerged", "git.index-locked"])
def test_an_operation_in_progress_is_an_obstacle(sandbox: GitSandbox, history: GitHistory, name: str) -> None:
    """F6: libgit2 calls the state after a conflicting `stash apply` clean."""
    _two_sides(sandbox)
    for command in OBSTACLES.get(name, ()):
        sandbox.try_git(*command.split())
    if name == "git.unmerged":
        stash(sandbox)
    elif name == "git.index-locked":
        sandbox.write(".git/index.lock")
    with refusing(f"git.{name}-in-progress" if name in OBSTACLES else name) as refused:
        history.require_usable()
    words = refused.value.message
    assert not any(word in words for word in ("\n", "--abort", "--hard", "clean -", "checkout -f", "rm "))


def test_why_git_knows_nobody_is_what_it_calls_fatal(sandbox: GitSandbox, history: GitHistory) -> None:
    sandbox.git("config", "user.name", "")
    assert history.identity_problem() == "empty ident name (for <pat@example.invalid>) not allowed"
    sandbox.write(".git/config", "[include]\npath = config\n")
    assert history.identity_problem() == "exceeded maximum include depth (10) while including"


def test_an_operation_in_another_worktree_is_not_an_obstacle_here(sandbox: GitSandbox, tmp_path: Path) -> None:
    """F10."""
    _two_sides(sandbox)
    sandbox.git("worktree", "add", "-q", "-b", "third", str(tmp_path / "third"))
    sandbox.try_git("merge", "side")
    GitHistory(discover.find(str(tmp_path / "third"))).require_usable()


def test_unreadable_formats_are_refused_in_one_line(sandbox: GitSandbox) -> None:
    """F15."""
    sandbox.git("config", "core.repositoryFormatVersion", "1")
    sandbox.git("config", "extensions.unheardOf", "true")
    place = discover.find(str(sandbox.root))
    with refusing("git.unsupported-format") as refused:
        GitHistory(place).require_usable()
    assert "\n" not in refused.value.message
    with refusing("git.unsupported-format"):
        GitTrees(place).snapshot("refs/idumb/worktrees/main/x", "before")


def test_uncommitted_paths_are_those_that_git_calls_changed(sandbox: GitSandbox, history: GitHistory) -> None:
    changed = ["gone", "mode", "na\udcff", "replaced", "staged", "unstaged", "work"]
    sandbox.write_all(dict.fromkeys([*changed[:2], *changed[3:], "same", "d/same", "src/a.py"], "1"))
    sandbox.write("run", "1", mode=0o755)
    sandbox.link("link", "same")
    sandbox.commit()
    sandbox.write_all({"work": "2", "staged": "2", "src/new.py": "1", "src/note": "1", "na\udcff": "1"})
    sandbox.git("add", "staged")
    sandbox.write("staged", "1")
    sandbox.git("rm", "-q", "--cached", "unstaged")
    for path in ("gone", "replaced"):
        sandbox.remove(path)
    sandbox.link("replaced", "1")
    (sandbox.root / "mode").chmod(0o755)
    every = [*changed, "same", "d/same", "run", "link", "absent", "no/folder/x"]
    assert history.uncommitted(every) == tuple(changed)
    assert [path for path in every if history.uncommitted([path])] == changed
    assert history.uncommitted(["src/*.py"]) == ("src/new.py",)
    assert history.uncommitted([]) == ()


def test_other_line_endings_of_a_checkout_are_not_uncommitted(sandbox: GitSandbox, history: GitHistory) -> None:
    """F17."""
    sandbox.commit_with({".gitattributes": "*.t text eol=crlf\n", "a.t": "1\n"})
    sandbox.remove("a.t")
    sandbox.git("checkout", "--", "a.t")
    assert (sandbox.root / "a.t").read_bytes() == b"1\r\n"
    assert history.uncommitted(["a.t", "*.t"]) == ()


def test_a_base_that_was_pruned_hides_no_commit(sandbox: GitSandbox, history: GitHistory) -> None:
    sandbox.write("a", "1")
    only = sandbox.commit("one\n\nIdumb-Run: r1")
    assert history.trailers_since("1" * 40) == ((only, {"Idumb-Run": "r1"}),)
    assert "a" in history.committed("1" * 40, {"a": UNKNOWN})


def test_variables_that_redirect_git_are_ignored(
    sandbox: GitSandbox, history: GitHistory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """F9."""
    other = GitSandbox.create(tmp_path / "other")
    monkeypatch.setenv("GIT_DIR", str(other.git_dir))
    monkeypatch.setenv("GIT_INDEX_FILE", str(tmp_path / "nowhere"))
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "core.bare")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", "true")
    sandbox.write("a", "1")
    history.require_usable()
    assert history.uncommitted(["a"]) == ("a",)
    made = history.make(history.tree_of(None), None, "T1", hooks=False).commit
    assert made is not None
    assert history.advance(history.head().branch, made, None, "T1") == ""
    monkeypatch.undo()
    assert sandbox.head() == made
    assert not other.head()


def test_every_content_that_a_path_had_since_the_base_was_committed(sandbox: GitSandbox, history: GitHistory) -> None:
    """Also on a branch that was merged, and what stayed the same."""
    sandbox.commit_with({"a": "1", "d/x": "1", "same": "1", "before": "1"})
    sandbox.remove("before")
    base = sandbox.commit()
    sandbox.git("switch", "--quiet", "-c", "side")
    sandbox.commit_with({"a": "side", "[a]": "glob"})
    sandbox.git("switch", "--quiet", "-")
    sandbox.remove("d")
    sandbox.commit_with({"a": "2", "d": "now a file"})
    sandbox.git("merge", "--quiet", "--strategy=ours", "-m", "merged", "side")

    def blob(text: str) -> str:
        return sandbox.git("hash-object", "--stdin", given=text.encode())

    found = history.committed(base, dict.fromkeys(["a", "d", "d/x", "same", "before", "[a]", "none"], UNKNOWN))
    assert found == {
        "a": {blob("1"), blob("2"), blob("side")},
        "d": {blob("now a file")},
        "d/x": {blob("1")},
        "same": {blob("1")},
        "[a]": {blob("glob")},
    }
    assert history.committed("1" * 40, dict.fromkeys(("before", "a"), UNKNOWN)).keys() == {"before", "a"}
    assert blob("1") in history.committed(base, {"a": Entry(0o100644, blob("1"))})["a"]


def test_the_tree_of_head_is_named_without_being_read(sandbox: GitSandbox, history: GitHistory) -> None:
    """R-LOG-5: an unreadable tree is reported as a system error and not as a defect."""
    sandbox.commit_with({"a": "1"})
    tree = sandbox.git("rev-parse", "HEAD^{tree}")
    sandbox.object_file(tree).unlink()
    assert history.head_tree() == tree


def test_a_filter_of_a_submodule_s_configuration_does_not_run(
    sandbox: GitSandbox, history: GitHistory, tmp_path: Path
) -> None:
    """F53: that configuration is not guarded, so git is never started in a submodule."""
    sandbox.add_submodule("sub", {"lib": "lib\n"})
    sandbox.commit_with({f"src/{number}": "x\n" for number in range(9)})
    ran, own = tmp_path / "ran", sandbox.common_dir / "modules/sub"
    GitSandbox(sandbox.root / "sub").git("config", "filter.x.clean", f"touch {ran}; cat")
    (own / "info").mkdir(exist_ok=True)
    (own / "info/attributes").write_text("* filter=x\n")
    sandbox.write_all({"sub/lib": "bil\n", "src/1": "y\n"})
    assert history.uncommitted(["**"]) == ("src/1",)
    assert history.uncommitted(["src/1", "sub"]) == ("src/1",)
    assert not ran.exists()
