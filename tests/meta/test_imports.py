"""Modules that quick commands load. Start-up time is a promise, and every heavy import breaks it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from idumb.system import clock
from tests.meta import source
from tests.support.gitrepo import GitSandbox
from tests.support.project import Project

# fmt: off
HEAVY = frozenset({
    "asyncio", "concurrent", "email", "frontmatter", "griffe", "http", "importlib.metadata", "jsonschema",
    "markdown_it", "mistune", "multiprocessing", "pydoc", "pygit2", "rich", "ruamel", "ssl", "subprocess", "tomllib",
    "unittest", "urllib.request", "xml", "yaml",
})
# fmt: on
NOT_FOR_HELP = HEAVY | {"sqlite3", "idumb.agents", "idumb.gates", "idumb.git", "idumb.markdown", "idumb.store"}
# status and next are asked all the time: they load nothing that reads plans or the log.
NOT_FOR_STATUS = HEAVY | {"idumb.agents", "idumb.app.reading", "idumb.gates", "idumb.markdown", "sqlite3"}

ROADMAP = ".planning/ROADMAP.md"
PLACE = ".planning/phases/1/01-01-PLAN.md"
PLAN = """\
---
type: plan
phase: "1"
plan: "01"
title: One file
goal: There is a file
---

## Tasks

### T1-01: A file

- **Files:** create `a.txt`
- **Acceptance:**
  - [ ] It is there — check: `test -f a.txt`
"""


def loaded(folder: Path, *arguments: str) -> set[str]:
    """Names of all modules that `idumb ARGUMENTS` imports, in `folder`."""
    lines = run(folder, "-X", "importtime", "-m", "idumb", *arguments).stderr.splitlines()
    return {line.rsplit("|", 1)[1].strip() for line in lines if line.startswith("import time:")}


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(source.ROOT)}
    command = [sys.executable, *arguments]
    ended = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr[-2000:]
    return ended


def among(modules: set[str], names: frozenset[str]) -> set[str]:
    """Those of `names` that are loaded, themselves or through a module inside them."""
    return {name for name in names if any(module == name or module.startswith(f"{name}.") for module in modules)}


@pytest.fixture
def site(sandbox: GitSandbox, monkeypatch: pytest.MonkeyPatch) -> GitSandbox:
    """A project whose states were all read once, when its files had settled."""
    sandbox.write_all({ROADMAP: "# Roadmap\n\n## Phase 1: A file\n", PLACE: PLAN})
    project = Project(sandbox, sandbox.root)
    assert project.quick("init").code == 0
    sandbox.commit()
    settled = clock.nanoseconds() + 3_000_000_000
    monkeypatch.setattr(clock, "nanoseconds", lambda: settled)
    for command in ("status", "next", "roadmap"):
        assert project.quick(command).code == 0
    return sandbox


def test_a_repeated_status_is_answered_from_the_record(site: GitSandbox) -> None:
    """R-LOG-2: the first call after a change reads the log and the plans; every other one the record of that call."""
    for command in ("status", "next"):
        assert among(loaded(site.root, command), NOT_FOR_STATUS) == set(), command


def test_help_loads_only_its_own_packages_and_runs_no_garbage_collection(tmp_path: Path) -> None:
    """Garbage collection at exit took a tenth of the time of each command."""
    script = (
        "import gc, sys\n"
        "from idumb.__main__ import main\n"
        "sys.argv = ['idumb', '--help']\n"
        "try:\n    main()\n"
        "except SystemExit:\n    print(gc.get_freeze_count() > len(gc.get_objects()), *sys.modules)\n"
    )
    frozen, *modules = run(tmp_path, "-c", script).stdout.splitlines()[-1].split()
    assert frozen == "True"
    assert among(set(modules), NOT_FOR_HELP) == set()


_ENGINE = ("idumb.app.attempt", "idumb.app.engine", "idumb.domain.intake", "idumb.git.checkouts")
RARE = {
    "execute_phase": ("idumb.app.history.restore", "idumb.app.planning", "idumb.app.running.decisions"),
    "ended_run": _ENGINE,
}
"""Modules of a command on a run, and what they load when it happens: a restore, a question, more work to do."""


@pytest.mark.parametrize("module", RARE)
def test_commands_on_a_run_load_nothing_that_only_few_runs_need(tmp_path: Path, module: str) -> None:
    code = f"import sys, idumb.cli.run_commands, idumb.app.running.{module}; print(*sys.modules)"
    assert [name for name in run(tmp_path, "-c", code).stdout.split() if name.startswith(RARE[module])] == []
