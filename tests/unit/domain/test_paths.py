"""Which paths a plan may write, and which globs cover which paths."""

from __future__ import annotations

from idumb.domain import paths
from tests.support.cases import every


def test_ambiguous_paths_and_those_outside_the_workspace_have_a_problem() -> None:
    cases: list[str] = ["", "/etc/passwd", "../x", "a/../../x", "a//b", "./a", "a/.", "~/x", "a\0b", "C:/x"]
    assert not [path for path in cases if paths.problem(path) is None]


def test_unusual_names_are_valid() -> None:
    cases: list[str] = ["a", "a/b.c", "-rf", ":(top)x", "new\nline", "a b", "a/", "\udcff", "...", "..a/b"]
    assert not [path for path in cases if paths.problem(path) is not None]


def test_globs_match_as_documented() -> None:
    cases: list[tuple[str, str, bool]] = [
        ("src/a.py", "src/**", True),
        ("src/a/b.py", "src/**", True),
        ("src", "src/**", False),
        ("src/a.py", "src/*.py", True),
        ("src/a/b.py", "src/*.py", False),
        ("src/a/b.py", "src/**/*.py", True),
        ("src/b.py", "src/**/*.py", True),
        ("a.py", "**/*.py", True),
        ("ax", "a?", True),
        ("a/", "a?", False),
        ("a1", "a[0-9]", True),
        ("ab", "a[!0-9]", True),
        ("a1", "a[!0-9]", False),
        ("a.ts", "a.{ts,js}", True),
        ("a.py", "a.{ts,js}", False),
        ("out/x/y", "out/", True),
        ("a.b", "a.b", True),
        ("axb", "a.b", False),
        ("[id].tsx", "[id].tsx", True),
        ("x", "[!]", False),
        ("a/*", "a/[*]", True),
    ]
    assert not [(path, glob, covered) for path, glob, covered in cases if paths.matches(path, glob) is not covered]


def test_git_and_idumb_files_are_protected_whatever_is_declared() -> None:
    cases: list[str] = [
        ".git/config",
        ".GIT/hooks/x",
        "sub/.git/config",
        ".git",
        ".idumb/x",
        ".idumb",
        ".planning/phases/1/01-PLAN.md",
        ".Planning/x",
    ]
    assert not [path for path in cases if paths.protecting_rule(path, (), declared=[path]) is None]


def test_agent_and_ci_files_are_protected_unless_declared_by_name() -> None:
    assert paths.protecting_rule(".github/workflows/ci.yml", ()) == ".github/**"
    assert paths.protecting_rule(".github/workflows/ci.yml", (), declared=[".github/workflows/ci.yml"]) is None
    assert paths.protecting_rule(".env", (), declared=["**"]) == ".env"


def test_scope_protected_admits_no_exception() -> None:
    assert paths.protecting_rule("src/a.py", ("src/**",), declared=["src/a.py"]) == "src/**"
    assert paths.protecting_rule("migrations/1.sql", ("migrations",)) == "migrations"


@every("glob", ["**a" * 8 + "x", "*a" * 40, "**/a/" * 30 + "x", "{a,b}" * 30, "[ab]*" * 30 + "x"])
def test_no_glob_needs_exponential_time(glob: str) -> None:
    """S11: a glob comes from a plan, which is untrusted."""
    assert not paths.matches("a" * 3000 + "!", glob)
    assert not paths.matches("a/" * 1000 + "!", glob)


@every("path", ["~$letter.docx", "dir/~x"])
def test_a_tilde_that_names_no_home_is_part_of_a_name(path: str) -> None:
    assert paths.problem(path) is None


def test_a_set_of_globs_matches_what_each_of_them_matches() -> None:
    covers = paths.cover(["a.py", "src/**", "[z]"])
    assert [path for path in ("a.py", "src/x/y", "[z]", "z", "b.py") if covers(path)] == ["a.py", "src/x/y", "[z]", "z"]
