"""Which files of the project a command runs: its scripts, its tests, and folders of tests."""

from __future__ import annotations

from idumb.domain.plans.run_files import RunFiles, of_command

MAKE = ("Makefile", "makefile", "GNUmakefile")


def test_the_files_that_a_command_runs_are_read_from_its_words() -> None:
    expected = {
        "pytest": RunFiles(suites=("",)),
        "pytest tests/test_a.py::test_x": RunFiles(tests=("tests/test_a.py",)),
        "CI=1 pytest tests": RunFiles(suites=("tests",)),
        "python -m pytest tests/test_a.py": RunFiles(tests=("tests/test_a.py",)),
        "python3 -m unittest tests.test_a": RunFiles(tests=("tests/test_a.py",)),
        "uv run pytest tests/test_a.py": RunFiles(tests=("tests/test_a.py",)),
        "npx jest src/a.test.ts": RunFiles(tests=("src/a.test.ts",)),
        "bash -c 'pytest tests/test_b.py'": RunFiles(tests=("tests/test_b.py",)),
        "go test ./...": RunFiles(suites=("",)),
        "go vet && go test ./pkg": RunFiles(suites=("pkg",)),
        "go build ./...": RunFiles(),
        "cargo test": RunFiles(suites=("",)),
        "cargo test --test api": RunFiles(tests=("tests/api.rs",)),
        "cargo build": RunFiles(),
        "bun test a.test.ts": RunFiles(tests=("a.test.ts",)),
        "node --test tests/a.test.js": RunFiles(tests=("tests/a.test.js",)),
        "node server.js": RunFiles(),
        "python tools/check.py pytest": RunFiles(programs=("tools/check.py",)),
        "sh tests/run.sh": RunFiles(tests=("tests/run.sh",)),
        "cd sub && pytest": RunFiles(suites=("sub",)),
        "cd sub && sh check.sh": RunFiles(programs=("sub/check.sh",)),
        "make check": RunFiles(programs=MAKE),
        "make -f build/Makefile check": RunFiles(programs=("build/Makefile",)),
        "npm test": RunFiles(programs=("package.json",)),
        "npm install": RunFiles(),
    }
    assert {command: of_command(command) for command in expected} == expected
