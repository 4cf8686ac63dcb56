"""Modules that quick commands load. Start-up time is a promise, and every heavy import breaks it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.meta import source
from tests.support.gitrepo import GitSandbox

# fmt: off
HEAVY = frozenset({
    "asyncio", "concurrent", "email", "frontmatter", "griffe", "http", "importlib.metadata", "jsonschema", "mistune",
    "multiprocessing", "pydoc", "pygit2", "rich", "ruamel", "ssl", "subprocess", "tomllib", "unittest",
    "urllib.request", "xml", "yaml",
})
# fmt: on
NOT_FOR_HELP = HEAVY | {"sqlite3", "idumb.agents", "idumb.gates", "idumb.git", "idumb.markdown", "idumb.store"}
# status and next are asked all the time: they load neither the command line library nor what makes dataclasses.
NOT_FOR_STATUS = HEAVY | {
    "click",
    "dataclasses",
    "idumb.agents",
    "idumb.app",
    "idumb.gates",
    "idumb.markdown",
    "inspect",
    "sqlite3",
}
NOT_AFTER_AN_EDIT = frozenset({"click", "idumb.git.history", "mistune", "pygit2", "subprocess"})

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
    result = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "idumb", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(source.ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr[-2000:]
    lines = (line for line in result.stderr.splitlines() if line.startswith("import time:"))
    return {line.rsplit("|", 1)[1].strip() for line in lines}


def among(modules: set[str], names: frozenset[str]) -> set[str]:
    """Those of `names` that are loaded, themselves or through a module inside them."""
    return {name for name in names if any(module == name or module.startswith(f"{name}.") for module in modules)}


@pytest.mark.parametrize("option", ["--help", "--version"])
def test_help_and_version_load_only_their_own_packages(tmp_path: Path, option: str) -> None:
    assert among(loaded(tmp_path, option), NOT_FOR_HELP) == set()


@pytest.mark.parametrize("command", ["status", "next"])
def test_a_repeated_status_is_answered_from_the_record(sandbox: GitSandbox, command: str) -> None:
    """The first call after an edit may parse the plan; every other one reads the record kept by the plan's hash."""
    sandbox.write(".planning/phases/1/01-01-PLAN.md", PLAN)
    loaded(sandbox.root, "init")
    sandbox.commit()
    loaded(sandbox.root, command)
    assert among(loaded(sandbox.root, command), NOT_FOR_STATUS) == set()


@pytest.mark.parametrize("command", ["status", "roadmap"])
def test_the_first_status_after_an_edit_loads_no_library_for_what_did_not_change(
    sandbox: GitSandbox, command: str
) -> None:
    """What commits and the roadmap say is kept from the status before."""
    plan = ".planning/phases/1/01-01-PLAN.md"
    sandbox.write(plan, PLAN)
    sandbox.write(".planning/ROADMAP.md", "# Roadmap\n\n## Phase 1: A file\n")
    loaded(sandbox.root, "init")
    sandbox.commit()
    loaded(sandbox.root, command)
    sandbox.write(plan, PLAN + "<!-- edited -->\n")
    assert among(loaded(sandbox.root, command), NOT_AFTER_AN_EDIT) == set()


def test_a_command_that_exits_runs_no_garbage_collection(tmp_path: Path) -> None:
    """Garbage collection at exit took a tenth of the time of each command."""
    script = (
        "import gc, sys\n"
        "from idumb.__main__ import main\n"
        "sys.argv = ['idumb', '--version']\n"
        "try:\n    main()\nexcept SystemExit:\n    print(gc.get_freeze_count() > len(gc.get_objects()))\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", script],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(source.ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert ended.stdout.splitlines()[-1] == "True"


def test_the_measurement_detects_a_heavy_import() -> None:
    assert among({"sqlite3.dbapi2", "json"}, NOT_FOR_HELP) == {"sqlite3"}


def test_commands_on_a_run_load_nothing_that_only_few_runs_need() -> None:
    """A restore, a changed plan and a question at a terminal load their modules when they happen."""
    code = "import sys, idumb.cli.run_commands, idumb.app.running.quick; print(*sys.modules)"
    environment = {**os.environ, "PYTHONPATH": str(source.ROOT)}
    names = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    rare = {"idumb.app.history.restore", "idumb.app.planning", "idumb.app.running.decisions", "idumb.domain.plan_diff"}
    assert rare & set(names.stdout.split()) == set()
