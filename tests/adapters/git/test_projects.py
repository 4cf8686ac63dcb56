"""The ports of a project in a subfolder: its paths, and what is outside (R-GIT-8)."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from idumb.domain import paths
from idumb.domain.proof.ledger import Entry
from idumb.domain.runs import project_key
from idumb.git import discover, disk, projects
from idumb.git.history import GitHistory
from idumb.git.projects import ProjectPaths
from idumb.git.trees import GitTrees
from tests.support import checkouts
from tests.support.cases import every
from tests.support.gitrepo import GitSandbox

NAMES = st.text(st.sampled_from("ab-.%2F é"), min_size=1, max_size=3).filter(lambda name: name.strip("."))
PATHS = st.lists(NAMES, min_size=1, max_size=4).map("/".join)


@pytest.fixture
def api(sandbox: GitSandbox) -> GitTrees:
    return GitTrees(discover.find(str(sandbox.root)), folder="apps/api")


@pytest.fixture
def history(sandbox: GitSandbox) -> GitHistory:
    place = discover.find(str(sandbox.root))
    return GitHistory(place, project=discover.Project(place, "apps/api"))


@settings(max_examples=30)
@given(PATHS | st.just(""), PATHS)
def test_a_path_is_the_same_after_both_translations(folder: str, path: str) -> None:
    project = ProjectPaths(folder)
    assert project.to_repository(project.to_project(path)) == path
    assert project.to_project(path).startswith("../") != project.contains(path)
    assert project.all_to_project(project.inside([path])) == (path,)


@every(
    "pattern, rule",
    [("cfg/x", "/api/cfg/x"), ("/x", "/api/x"), ("!a/b", "!/api/a/b"), ("deps/", "deps/"), (".env", ".env")],
)
def test_a_pattern_with_a_folder_begins_in_the_project(pattern: str, rule: str) -> None:
    assert ProjectPaths("api").rule(pattern) == rule
    assert ProjectPaths("").rule(pattern) == pattern


@settings(max_examples=30)
@given(PATHS, st.sampled_from(["main", "wt", "a@b", "x-1"]))
def test_the_key_of_a_project_names_its_working_tree_and_folder(folder: str, tree: str) -> None:
    key = project_key.of_project(tree, folder)
    assert project_key.parts(key) == (tree, folder)
    assert "/" not in key
    assert project_key.parts(tree) == (tree, "")


@pytest.mark.parametrize("path", ["../web/a", "../../a", "/a", "a/../../web/a"])
def test_nothing_outside_the_project_is_written_committed_or_removed(
    sandbox: GitSandbox, api: GitTrees, history: GitHistory, path: str
) -> None:
    sandbox.commit_with({"apps/web/a": "web\n", "apps/api/a": "api\n"})
    tree, head = api.scan(), history.head().commit
    sandbox.write("apps/web/a", "edited\n")
    empty = history.tree_of(None)
    calls: list[Callable[[], object]] = [
        lambda: api.restore(empty, tree, [path], force=True),
        lambda: api.overlay(tree, empty, [path]),
        lambda: api.committed(head, empty, [path]),
    ]
    for call in calls:
        with pytest.raises(ValueError, match="outside the project"):
            call()
    assert sandbox.read("apps/web/a") == "edited\n"
    assert history.head().commit == head


def test_changes_end_at_the_folder_and_the_others_begin_with_two_dots(sandbox: GitSandbox, api: GitTrees) -> None:
    sandbox.write_all({"top": "1\n", "apps/web/a": "1\n", "apps/api/a": "1\n"})
    before = api.scan()
    sandbox.write_all({"top": "2\n", "apps/web/a": "2\n", "apps/api/a": "2\n", "apps/b": "2\n"})
    after = api.scan()
    assert [change.path for change in api.changes(before, after)] == ["a"]
    assert [change.path for change in api.changes_outside(before, after)] == ["../b", "../web/a", "../../top"]
    assert api.diff(before, after).startswith("diff --git a/a b/a\n")
    assert api.line_counts(before, after) == {"a": (1, 1)}
    sandbox.remove("apps/api")
    sandbox.link("apps/api", "web")
    linked = api.scan()  # the project has lost its files, and the link itself is a change outside
    assert [(c.path, c.kind) for c in api.changes(after, linked)] == [("a", "deleted")]
    assert [(c.path, c.kind) for c in api.changes_outside(after, linked)] == [("../api", "created")]


def test_a_patch_applies_in_the_folder_and_nowhere_else(sandbox: GitSandbox, api: GitTrees) -> None:
    sandbox.write_all({"apps/web/a": "1\n", "apps/api/a": "1\n"})
    text = "--- a/{0}\n+++ b/{0}\n@@ -1 +1 @@\n-1\n+2\n"
    assert api.apply_patch(text.format("a"), lambda _: None) == (True, "")
    assert (sandbox.read("apps/api/a"), sandbox.read("apps/web/a")) == ("2\n", "1\n")
    assert not api.apply_patch(text.format("../web/a"), lambda _: None)[0]
    assert sandbox.read("apps/web/a") == "1\n"


def test_a_scan_names_what_it_leaves_out_by_paths_of_the_project(sandbox: GitSandbox, api: GitTrees) -> None:
    sandbox.write_all({"apps/api/.gitignore": "log\n", "apps/web/.gitignore": "log\n", "apps/api/log": "1\n"})
    sandbox.write("apps/web/log", "1\n")
    for name in ("apps/api/inner", "apps/web/inner"):
        GitSandbox.create(sandbox.root / name).write("f", "1\n")
    api.scan()
    sandbox.write_all({".gitignore": "deps/\n", "deps/x": ""})
    assert (api.ignored(), api.ignored(above=True)) == (("log",), ("log", "../../deps/"))
    assert api.repositories() == ("inner",)
    assert api.omitted() == {"log": paths.IGNORED_BY_GIT, "inner": "a repository of its own"}
    assert api.hidden_by([".gitignore"]) == {"log": (".gitignore", "log")}
    assert api.entry(api.scan(["log"]), "log") is not None


def test_links_folders_and_files_of_a_project_are_found_from_its_folder(sandbox: GitSandbox, api: GitTrees) -> None:
    sandbox.write_all({"apps/api/src/a": "1\n", "apps/web/a": "1\n"})
    for name, target in {"inside": "src/a", "beside": "../web/a", "away": "../../../x"}.items():
        sandbox.link(f"apps/api/{name}", target)
    tree = api.scan()
    assert api.root == str(sandbox.root / "apps/api")
    assert [api.outside_target(name) for name in ("inside", "beside", "away")] == [None, None, "../../../x"]
    assert api.is_folder(tree, "src")
    assert api.is_folder(tree, "../web")
    assert api.entry(tree, "src/a") == api.entry(tree, "../web/a")
    assert api.entry(tree, "a") is None
    sandbox.write_all({"apps/api/src/a": "2\n", "apps/api/b": "1\n"})
    assert api.restore(tree, tree, ["src/a", "b"])[0].path == "b"


def test_the_files_that_are_forced_to_disk_are_those_of_the_project(
    sandbox: GitSandbox, api: GitTrees, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = sandbox.write("apps/api/a", "1\n")
    api.force(["a"])
    monkeypatch.setattr(disk, "failed", {str(place)})
    with pytest.raises(OSError, match="forced to disk"):
        api.force(["a"])


def test_a_commit_is_known_to_convert_files_of_the_project(sandbox: GitSandbox, api: GitTrees) -> None:
    sandbox.commit_with({"apps/api/.gitattributes": "*.txt text eol=crlf\n"})
    sandbox.write_all({"apps/api/a.txt": "1\r\n", "apps/api/b": "1\r\n"})
    tree = api.committed(sandbox.head(), api.scan(), ["a.txt", "b"])
    assert sandbox.git("cat-file", "blob", f"{tree}:apps/api/a.txt") == "1"


def test_history_is_asked_and_answers_in_paths_of_the_project(sandbox: GitSandbox, history: GitHistory) -> None:
    sandbox.commit_with({"apps/api/a": "1\n", "apps/api/b": "1\n", "apps/web/a": "1\n"})
    sandbox.write_all(dict.fromkeys(("apps/api/a", "apps/api/b", "apps/api/new", "apps/web/a", "apps/api/log"), "2\n"))
    sandbox.write("apps/api/.gitignore", "log\n")
    GitSandbox.create(sandbox.root / "apps/api/inner").write("f", "1\n")
    sandbox.git("add", "apps/api/a", "apps/web/a")
    assert list(history.staged(["a", "b"])) == ["a"]
    assert history.added(["a", "new"]) == ("new",)
    assert history.ignored(["a", "log"]) == {"log"}
    assert history.uncommitted(["a", "n*"]) == ("a", "new")
    assert history.repositories(["inner/f"]) == ("inner",)
    assert list(history.committed(None, dict.fromkeys(("a", "new"), Entry(0o100644, "0" * 40)))) == ["a"]


def test_hooks_in_a_project_are_guarded_by_its_paths(sandbox: GitSandbox, history: GitHistory) -> None:
    sandbox.write("apps/api/hooks/pre-commit", "#!/bin/sh\n", mode=0o755)
    sandbox.git("config", "core.hooksPath", "apps/api/hooks")
    sandbox.commit()
    assert history.hooks_in_tree() == {"hooks/pre-commit"}
    assert {".git/config", "hooks/pre-commit"} <= history.state().guarded.keys()


def test_commits_of_two_projects_are_told_apart_by_a_trailer(sandbox: GitSandbox) -> None:
    with checkouts.committing(sandbox) as top, checkouts.committing(sandbox, "apps/api") as api:
        for history in (api, top):
            head = history.head().commit
            made = history.make(history.tree_of(head), head, "Work\n\nIdumb-Task: T1-01\n", hooks=False).commit
            assert made is not None
            assert history.advance(history.head().branch, made, head, "Work") == ""
    assert [row["Idumb-Task"] for _, row in api.trailers_since(None)] == ["T1-01"]
    assert len(top.trailers_since(None)) == 1


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
    (sandbox.git_dir / "idumb/worktrees" / project_key.of_project("main", "b")).mkdir(parents=True)
    (sandbox.git_dir / "idumb/worktrees" / project_key.of_project("main", "gone")).mkdir(parents=True)
    assert projects.below(place, "") == {"a": False, "b": True}
    assert projects.below(place, "a") == {}


@every("glob", ["**", "**/*", "*/web/a", "../web/a", "../**"])
def test_no_declaration_covers_a_path_outside(glob: str) -> None:
    """R-RUN-2."""
    assert paths.protecting_rule("../web/a", (), ("../web/a",)) == paths.OUTSIDE
    assert glob == "../web/a" or not paths.matches("../web/a", glob)
