"""`idumb prove` in a clone or a CI job, which has no log: the committed plan and HEAD are enough (R-RUN-13)."""

from __future__ import annotations

from pathlib import Path

import jsonschema
import pytest

from tests.support import ended_runs
from tests.support.gitrepo import GitSandbox
from tests.support.plans import PLAN, run
from tests.support.prepared import Prepared
from tests.support.project import Project, making
from tests.support.schemas import published

SCHEMA = published("prove")


@pytest.fixture
def clone(prepared: Prepared, tmp_path: Path) -> Project:
    """A colleague's clone of a finished phase of one task, which creates `a.txt`."""
    origin = prepared.get(ended_runs.done)
    place = tmp_path / "clone"
    origin.repo.git("clone", "--quiet", str(origin.folder), str(place))
    cloned = Project(GitSandbox(place), place)
    cloned.repo.git("config", "user.name", "A")
    cloned.repo.git("config", "user.email", "a@example.org")
    return cloned


def agreed(project: Project) -> str:
    """The option that agrees to what `prove` refuses to run without consent."""
    refused = project.quick("prove", "1", "--json")
    assert (refused.code, refused.error["code"]) == (4, "consent.missing")
    assert refused.error["details"]["evidence"] == ["test -s a.txt"]
    return str(refused.error["details"]["contract_hash"])


def test_a_colleague_proves_a_phase_without_a_log(clone: Project, tmp_path: Path) -> None:
    before = clone.repo.ledger()
    summary = tmp_path / "summary.md"
    answer = clone.quick("prove", "1", "--approve", agreed(clone), "--summary", str(summary), "--json")
    assert answer.code == 0, answer
    assert "| T1-01 | proven |" in summary.read_text(encoding="utf-8")
    jsonschema.Draft202012Validator(SCHEMA).validate(answer.data)
    assert (answer.data["run"], answer.data["commit"]) == (None, clone.repo.head())
    assert [(row["id"], row["result"]) for row in answer.data["tasks"]] == [("T1-01", "proven")]
    assert clone.repo.ledger() == before


def test_a_later_commit_that_breaks_a_check_is_not_proven(clone: Project) -> None:
    """Also where the log is, if HEAD is asked for."""
    consent = agreed(clone)
    clone.repo.write("a.txt", "")
    clone.repo.commit("empty it")
    answer = clone.quick("prove", "1", "--approve", consent, "--json")
    assert (answer.code, answer.error["code"]) == (1, "prove.mismatch")
    assert answer.data["tasks"][0]["result"] == "mismatch"


def test_a_task_without_a_commit_is_not_proven(project: Project) -> None:
    """No report says that the phase was verified, so nothing stands for the missing commit."""
    project.plan([making("T1-01", "a.txt"), making("T1-02", "b.txt")])
    assert run(project, "--no-verify").code == 0
    first = project.repo.git("log", "--format=%H", "--grep=^Idumb-Task: T1-01$")
    project.repo.git("reset", "--soft", first)  # someone made one commit of the rest, without its trailers
    project.repo.git("commit", "--quiet", "-m", "the rest")
    answer = project.quick("prove", "--commit", "HEAD", "--json")
    assert {row["id"]: row["result"] for row in answer.data["tasks"]} == {"T1-01": "proven", "T1-02": "no_commit"}
    assert project.quick("prove", "--commit", first, "--json").error["code"] == "prove.other-commit"


@pytest.mark.parametrize("path", [PLAN, ".idumb/config.yaml"])
def test_what_is_not_committed_as_it_is_now_is_refused(clone: Project, path: str) -> None:
    clone.repo.write(path, clone.read(path) + "\n")
    assert clone.quick("prove", "1", "--json").error["code"] == "prove.uncommitted"
