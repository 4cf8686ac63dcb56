"""Which files that a check changed decide its own result (R-RUN-3)."""

from __future__ import annotations

from idumb.domain.plans import run_files


def test_what_decides_a_check_is_judged() -> None:
    cases: list[tuple[str, str, str]] = [
        ("cargo test", "Cargo.lock", ""),
        ("npm test", "package-lock.json", ""),
        ("npm test", "package.json", "judged"),
        ("make check", "Makefile", "judged"),
        ("make check", "docs/report.html", ""),
        ("pytest -q", "tests/test_a.py", "judged"),
        ("pytest -q", "tests/data/expected.txt", "judged"),
        ("pytest -q", "conftest.py", "judged"),
        ("npx jest", "src/__tests__/__snapshots__/a.test.js.snap", ""),
        ("pytest", "tests/__snapshots__/test_a.ambr", ""),
        ("diff out.txt expected.txt", "expected.txt", "judged"),
        ("sh ./accept.sh", "accept.sh", "judged"),
        ("ruff format .", "src/old.py", ""),
        ("ruff format src", "src/old.py", ""),
    ]
    assert not [
        (command, path, judged)
        for command, path, judged in cases
        if run_files.deciding(command, [path]) != ((path,) if judged else ())
    ]
