"""The table of files that tools leave, path by path."""

from __future__ import annotations

from idumb.domain import project_files


def roots(path: str) -> list[str]:
    return [match.root for match in project_files.leftovers(path)]


def test_what_a_tool_leaves_is_recognized_with_the_file_or_folder_that_it_belongs_to() -> None:
    cases: list[tuple[str, str]] = [
        ("__pycache__/a.cpython-311.pyc", "__pycache__/"),
        ("src/app/__pycache__/a.pyc", "src/app/__pycache__/"),
        ("a.pyc", "a.pyc"),
        (".pytest_cache/v/cache/lastfailed", ".pytest_cache/"),
        (".mypy_cache/3.12/a.json", ".mypy_cache/"),
        (".ruff_cache/0.1/1", ".ruff_cache/"),
        (".coverage", ".coverage"),
        ("tests/.coverage.host.12", "tests/.coverage.host.12"),
        ("htmlcov/index.html", "htmlcov/"),
        (".venv/bin/python", ".venv/"),
        (".tox/py/bin/x", ".tox/"),
        (".nox/tests/x", ".nox/"),
        (".hypothesis/examples/1", ".hypothesis/"),
        ("web/node_modules/a/node_modules/b.js", "web/node_modules/"),
        (".next/build-manifest.json", ".next/"),
        (".turbo/x", ".turbo/"),
        (".parcel-cache/x", ".parcel-cache/"),
        ("crate/target/debug/x", "crate/target/"),
        (".gradle/8/x", ".gradle/"),
        (".aider.chat.history.md", ".aider.chat.history.md"),
        (".aider.tags.cache.v4/cache.db", ".aider.tags.cache.v4/"),
        (".DS_Store", ".DS_Store"),
        ("img/Thumbs.db", "img/Thumbs.db"),
        (".claude/settings.local.json", ".claude/settings.local.json"),
        ("nb/.ipynb_checkpoints/a-checkpoint.ipynb", "nb/.ipynb_checkpoints/"),
        ("src/.a.py.swp", "src/.a.py.swp"),
        ("notes.txt~", "notes.txt~"),
        ("#notes.txt#", "#notes.txt#"),
        (".#notes.txt", ".#notes.txt"),
    ]
    assert not [(path, root) for path, root in cases if roots(path)[0] != root]


def test_other_files_are_not() -> None:
    cases: list[str] = [
        "pycache/a.py", "__pycache__", "a.pyc.txt", ".coveragerc", ".coverage/x", ".aider.conf.yml", ".aiderignore",
        ".claude/settings.json", "settings.local.json", "target", "node_modules", "my~file", "#todo", ".swp",
    ]  # fmt: skip
    assert not [path for path in cases if roots(path) != []]


def test_some_names_need_a_file_beside_or_inside_them() -> None:
    (cargo,) = project_files.leftovers("crate/target/debug/x")
    (environment,) = project_files.leftovers("venv/bin/x")
    (plain,) = project_files.leftovers(".venv/bin/x")
    assert (cargo.beside, cargo.inside) == ("crate/Cargo.toml", "")
    assert (environment.beside, environment.inside) == ("", "venv/pyvenv.cfg")
    assert (plain.beside, plain.inside) == ("", "")


def test_a_task_declares_such_a_file_only_by_its_name() -> None:
    cases: list[tuple[str, str, bool]] = [
        ("src/__pycache__/a.pyc", "src/**", False),
        ("src/__pycache__/a.pyc", "src/__pycache__/a.pyc", True),
        ("src/__pycache__/a.pyc", "src/__pycache__/", True),
        ("src/__pycache__/a.pyc", "**/*.pyc", True),
        ("node_modules/a.js", "node_modules/**", True),
        ("node_modules/a.js", "node_modules/b.js", False),
        (".coverage", "*", False),
    ]
    assert not [
        (path, claim, declared)
        for path, claim, declared in cases
        if project_files.declares_leftover(path, [claim]) is not declared
    ]
