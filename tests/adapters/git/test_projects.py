"""The ports of a project in a subfolder: its paths, and what is outside (R-GIT-8)."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from idumb.domain import paths
from idumb.domain.runs import project_key
from idumb.git import discover
from idumb.git.history import GitHistory
from idumb.git.projects import known_projects
from idumb.git.projects.project_history import ProjectHistory
from idumb.git.projects.project_paths import ProjectPaths
from idumb.git.projects.project_trees import ProjectTrees
from idumb.git.trees import GitTrees
from tests.support.cases import every
from tests.support.gitrepo import GitSandbox

NAMES = st.text(st.sampled_from("ab-.%2F é"), min_size=1, max_size=3).filter(lambda name: name.strip("."))
PATHS = st.lists(NAMES, min_size=1, max_size=4).map("/".join)


@given(PATHS, PATHS)
def test_a_path_is_the_same_after_both_translations(folder: str, path: str) -> None:
    project = ProjectPaths(folder)
    assert project.stored(project.shown(path)) == path
    assert project.shown(path).startswith("../") != project.has(path)
    assert project.shown(project.own(path)) == path


@given(PATHS, st.sampled_from(["main", "wt", "a@b", "x-1"]))
def test_the_key_of_a_project_names_its_working_tree_and_folder(folder: str, tree: str) -> None:
    key = project_key.key(tree, folder)
    assert project_key.place(key) == (tree, folder)
    assert "/" not in key
    assert project_key.place(tree) == (tree, "")


@pytest.mark.parametrize("path", ["../web/a", "../../a", "/a", "a/../../web/a"])
def test_nothing_outside_the_project_is_written_committed_or_removed(sandbox: GitSandbox, path: str) -> None:
    sandbox.write_all({"apps/web/a": "web\n", "apps/api/a": "api\n"})
    sandbox.commit()
    place = discover.find(str(sandbox.root))
    trees, history = ProjectTrees(GitTrees(place), "apps/api"), ProjectHistory(GitHistory(place), "apps/api")
    tree, head = trees.scan(), history.head().commit
    sandbox.write("apps/web/a", "edited\n")
    empty = history.tree_of(None)
    commit = {"expected_head": head, "hooks": False, "allow_empty": True}
    calls: list[Callable[[], object]] = [
        lambda: trees.restore(empty, tree, [path], force=True),
        lambda: trees.overlay(tree, empty, [path]),
        lambda: trees.committed(head, empty, [path]),
        lambda: history.commit([path], "message", **commit),  # type: ignore[arg-type]
        lambda: history.settle_index(head or "", [path]),
        lambda: history.unstage([path]),
    ]
    for call in calls:
        with pytest.raises(ValueError, match="outside the project"):
            call()
    assert sandbox.read("apps/web/a") == "edited\n"
    assert history.head().commit == head


def test_changes_end_at_the_folder_and_the_others_begin_with_two_dots(sandbox: GitSandbox) -> None:
    sandbox.write_all({"top": "1\n", "apps/web/a": "1\n", "apps/api/a": "1\n"})
    trees = ProjectTrees(GitTrees(discover.find(str(sandbox.root))), "apps/api")
    before = trees.scan()
    sandbox.write_all({"top": "2\n", "apps/web/a": "2\n", "apps/api/a": "2\n", "apps/b": "2\n"})
    after = trees.scan()
    assert [change.path for change in trees.changes(before, after)] == ["a"]
    assert [change.path for change in trees.changes_outside(before, after)] == ["../b", "../web/a", "../../top"]
    assert trees.diff(before, after).startswith("diff --git a/a b/a\n")
    assert trees.line_counts(before, after) == {"a": (1, 1)}


def test_a_project_whose_folder_becomes_a_link_has_lost_its_files(sandbox: GitSandbox) -> None:
    """The link itself is a change outside."""
    sandbox.write_all({"apps/web/a": "1\n", "apps/api/a": "1\n"})
    trees = ProjectTrees(GitTrees(discover.find(str(sandbox.root))), "apps/api")
    before = trees.scan()
    sandbox.remove("apps/api")
    sandbox.link("apps/api", "web")
    after = trees.scan()
    assert [(c.path, c.kind) for c in trees.changes(before, after)] == [("a", "deleted")]
    assert [(c.path, c.kind) for c in trees.changes_outside(before, after)] == [("../api", "created")]


def test_a_patch_applies_in_the_folder_and_nowhere_else(sandbox: GitSandbox) -> None:
    sandbox.write_all({"apps/web/a": "1\n", "apps/api/a": "1\n"})
    trees = ProjectTrees(GitTrees(discover.find(str(sandbox.root))), "apps/api")
    text = "--- a/{0}\n+++ b/{0}\n@@ -1 +1 @@\n-1\n+2\n"
    assert trees.apply_patch(text.format("a"), lambda _: None) == (True, "")
    assert (sandbox.read("apps/api/a"), sandbox.read("apps/web/a")) == ("2\n", "1\n")
    assert not trees.apply_patch(text.format("../web/a"), lambda _: None)[0]
    assert sandbox.read("apps/web/a") == "1\n"


def test_commits_of_two_projects_are_told_apart_by_a_trailer(sandbox: GitSandbox) -> None:
    sandbox.write_all({"apps/api/a": "1\n", "b": "1\n"})
    place = discover.find(str(sandbox.root))
    top = GitHistory(place)
    api = ProjectHistory(GitHistory(place, project=discover.Project(place, "apps/api")), "apps/api")
    for history, path in ((api, "a"), (top, "b")):
        head = history.head().commit
        message = "Work\n\nIdumb-Task: T1-01\n"
        assert history.commit([path], message, expected_head=head, hooks=False, allow_empty=False).commit
    assert [row["Idumb-Task"] for _, row in api.trailers_since(None)] == ["T1-01"]
    assert len(top.trailers_since(None)) == 1
    assert (
        sandbox.git("log", "-1", "--skip=1", "--format=%(trailers:key=Idumb-Project,valueonly)").strip() == "apps/api"
    )


@pytest.mark.parametrize(
    ("files", "start", "found"),
    [
        ((), "a/b", ""),
        (("a/.planning/x",), "a/b", "a"),
        (("a/.idumb/config.yaml", "a/b/.idumb/config.yaml"), "a/b", "a"),
        ((".idumb/config.yaml", "a/.planning/x"), "a/b", ""),
        (("a/.idumb/config.yaml", ".planning/x"), "a/b", "a"),
        (("a/.idumb/config.yaml",), "c", ""),
    ],
)
def test_the_outermost_folder_that_is_set_up_is_the_project(
    sandbox: GitSandbox, files: tuple[str, ...], start: str, found: str
) -> None:
    sandbox.write_all({**dict.fromkeys(files, "x\n"), "a/b/x": "x\n", "c/x": "x\n"})
    place = discover.find(str(sandbox.root))
    assert discover.find_project(str(sandbox.root / start), place).folder == found


def test_projects_are_found_by_their_configuration_and_by_their_state(sandbox: GitSandbox) -> None:
    sandbox.write_all({"a/.idumb/config.yaml": "", "b/x": "", ".gitignore": "c/\n", "c/.idumb/config.yaml": ""})
    place = discover.find(str(sandbox.root))
    (sandbox.git_dir / "idumb/worktrees" / project_key.key("main", "b")).mkdir(parents=True)
    (sandbox.git_dir / "idumb/worktrees" / project_key.key("main", "gone")).mkdir(parents=True)
    assert known_projects.below(place, "") == {"a": False, "b": True}
    assert known_projects.below(place, "a") == {}


@every("glob", ["**", "**/*", "*/web/a", "../web/a", "../**"])
def test_no_declaration_covers_a_path_outside(glob: str) -> None:
    """R-RUN-2."""
    assert paths.protecting_rule("../web/a", (), ("../web/a",)) == paths.OUTSIDE
    assert glob == "../web/a" or not paths.matches("../web/a", glob)
