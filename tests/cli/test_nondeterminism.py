"""Different results of the same request are reported, and refused by `--deterministic` (R-ENV-2)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import project as projects
from tests.support import seed
from tests.support.answer import Answer
from tests.support.envelopes import CONFIG, built, kinds, rewrite
from tests.support.gitrepo import GitSandbox
from tests.support.plans import run
from tests.support.prepared import Prepared
from tests.support.project import Project


def program_of(project: Project) -> Path:
    return project.folder.parent / "coder"


def chancy(project: Project, more: str = "") -> None:
    """Let the builder write how often it was called."""
    counter = project.folder.parent / "count"
    rewrite(program_of(project), f'#!/bin/sh\necho x >> {counter}\nwc -l < {counter} > "$IDUMB_TASK.txt"\n{more}')


def run_and_roll_back(project: Project) -> Project:
    project.configure(CONFIG.format(program=program_of(project)))
    project.plan([built("T1-01")])
    assert run(project, "--no-verify").code == 0
    assert project.quick("rollback", "1", "--to", "start", "--yes").code == 0
    return project


def _once(sandbox: GitSandbox) -> Project:
    """A phase that ran and was rolled back, with a builder that never writes the same file twice."""
    project = projects.create(sandbox)
    chancy(project)
    return run_and_roll_back(project)


@pytest.fixture
def once(prepared: Prepared) -> Project:
    project = prepared.get(_once)
    chancy(project)  # it is beside the repository, and another test may have changed it
    return project


def resumed(project: Project, *flags: str) -> Answer:
    return project.quick("resume", "1", *flags, "--no-verify", "--json")


def test_the_same_request_with_another_result_is_reported_and_refused_in_deterministic_mode(once: Project) -> None:
    """R-ENV-2: both attempts are named, and the run continues. Attempts of other runs count. No retry."""
    answer = resumed(once)
    assert answer.code == 0, answer.out
    (event,) = kinds(once, "nondeterminism.found")
    assert (event["paths"], event["earlier"]["attempt"], event["refused"]) == (["T1-01.txt"], 1, False)
    assert any("T1-01 left other bytes in T1-01.txt than run" in w for w in answer.object["warnings"])
    assert once.repo.git("show", f"{event['earlier']['tree']}:T1-01.txt") != once.read("T1-01.txt").strip()
    assert once.quick("rollback", "1", "--to", "start", "--yes").code == 0
    answer = resumed(once, "--deterministic")
    assert answer.code == 1
    row = answer.data["tasks"][0]
    assert (row["status"], row["attempts"]) == ("failed", 1)
    assert row["reason"].startswith("not deterministic: T1-01.txt differ from run")
    assert [found["refused"] for found in kinds(once, "nondeterminism.found")].count(True) == 1
    assert len(kinds(once, "nondeterminism.found")) == 2


@pytest.mark.parametrize("base", seed.one_on_a_push([True, False], "what differs"))
def test_another_result_on_another_base_or_of_another_version_is_not_reported(once: Project, *, base: bool) -> None:
    """R-ENV-2: what the builder started from, or its environment, differs, so the difference proves nothing."""
    if base:
        once.repo.write_all({"elsewhere.txt": "the user's\n"})
        once.repo.commit("elsewhere", "elsewhere.txt")
    else:
        chancy(once, "# new\n")
    assert resumed(once, "--deterministic").code == 0
    assert kinds(once, "nondeterminism.found") == []
