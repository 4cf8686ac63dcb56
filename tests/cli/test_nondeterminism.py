"""Different results of the same request are reported, and refused by `--deterministic` (R-ENV-2)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import project as projects
from tests.support.envelopes import BUILDER, CONFIG, built, kinds, rewrite
from tests.support.gitrepo import GitSandbox
from tests.support.project import Project


@pytest.fixture
def project(sandbox: GitSandbox) -> Project:
    return projects.create(sandbox)


@pytest.fixture
def program(tmp_path: Path, project: Project) -> Path:
    """A builder outside the repository that makes TASK.txt, and a configuration that names it."""
    executable = tmp_path / "coder"
    rewrite(executable, BUILDER)
    project.configure(CONFIG.format(program=executable))
    return executable


def chancy(counter: Path) -> str:
    """A builder that writes how often it was called."""
    return f'#!/bin/sh\necho x >> {counter}\nwc -l < {counter} > "$IDUMB_TASK.txt"\n'


@pytest.fixture
def twice(project: Project, program: Path, tmp_path: Path) -> Project:
    """A phase that ran and was rolled back, with a builder that never writes the same file twice."""
    rewrite(program, chancy(tmp_path / "count"))
    project.plan([built("T1-01")])
    assert project.execute().code == 0
    assert project.json("rollback", "1", "--to", "start", "--yes").code == 0
    return project


def test_the_same_request_with_another_result_is_reported(twice: Project) -> None:
    """R-ENV-2: both attempts are named, and the run continues."""
    answer = twice.resume()
    assert answer.code == 0, answer.out
    (event,) = kinds(twice, "nondeterminism.found")
    assert (event["paths"], event["earlier"]["attempt"], event["refused"]) == (["T1-01.txt"], 1, False)
    assert any("T1-01 left other bytes in T1-01.txt than run" in w for w in answer.object["warnings"])
    assert twice.repo.git("show", f"{event['earlier']['tree']}:T1-01.txt") != twice.read("T1-01.txt").strip()


def test_deterministic_mode_refuses_another_result_and_does_not_retry(twice: Project) -> None:
    """R-ENV-2."""
    answer = twice.resume("--deterministic")
    assert answer.code == 1
    row = answer.data["tasks"][0]
    assert (row["status"], row["attempts"]) == ("failed", 1)
    assert row["reason"].startswith("not deterministic: T1-01.txt differ from run")
    assert kinds(twice, "nondeterminism.found")[0]["refused"] is True


def test_the_same_result_is_not_reported(project: Project, program: Path) -> None:
    """R-ENV-2."""
    project.plan([built("T1-01")])
    assert project.execute().code == 0
    assert project.json("rollback", "1", "--to", "start", "--yes").code == 0
    assert project.resume("--deterministic").code == 0
    assert kinds(project, "nondeterminism.found") == []


def test_another_result_on_another_base_is_not_reported(twice: Project) -> None:
    """R-ENV-2: the base differs, so the difference proves nothing."""
    twice.repo.write_all({"elsewhere.txt": "the user's\n"})
    assert twice.resume("--deterministic").code == 0
    assert kinds(twice, "nondeterminism.found") == []


def test_another_result_of_another_version_is_not_reported(twice: Project, program: Path, tmp_path: Path) -> None:
    """R-ENV-2: the environment differs."""
    rewrite(program, chancy(tmp_path / "count") + "# new\n")
    assert twice.resume("--deterministic").code == 0
    assert kinds(twice, "nondeterminism.found") == []


def test_a_new_run_is_compared_with_the_previous_run(twice: Project) -> None:
    """R-ENV-2: attempts of other runs count."""
    assert twice.resume().code == 0
    assert twice.json("rollback", "1", "--to", "start", "--yes").code == 0
    assert twice.resume("--deterministic").code == 1
    assert len(kinds(twice, "nondeterminism.found")) == 2
