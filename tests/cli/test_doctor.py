"""`idumb doctor`: reports every problem, runs and changes nothing by itself, and names the next step."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.support import doctor as doctors
from tests.support.doctor import doctor, problems, store, symptoms_of
from tests.support.gitrepo import GitSandbox
from tests.support.prepared import Prepared
from tests.support.project import Project


@pytest.fixture
def project(prepared: Prepared) -> Project:
    return prepared.get(doctors.create)


def test_a_healthy_project_has_no_problem_and_is_only_read(project: Project) -> None:
    """S1: no byte changes anywhere, including idumb's own state and the state directory."""
    places = [project.folder, Path(os.environ["XDG_STATE_HOME"])]

    def everything() -> dict[str, tuple[int, bytes]]:
        files = [f for place in places for f in sorted(place.rglob("*")) if f.is_file()]
        return {str(f): (f.stat().st_mtime_ns, f.read_bytes()) for f in files}

    before = everything()
    answer = project.quick("doctor")
    assert answer.code == 0, answer.out
    assert "0 problems" in answer.out
    assert everything() == before
    data = doctor(project).data
    # Of the machine, not of the project: a disk in memory.
    assert {c["code"] for c in data["checks"] if c["state"] != "ok"} <= {"disk.kind"}
    assert len({check["code"] for check in data["checks"]}) == len(data["checks"])


def test_doctor_runs_no_program_of_the_repository(project: Project, tmp_path: Path) -> None:
    """S1: it runs no monitor, hook, filter, pager or alias of the repository."""
    canary = tmp_path / "canary"
    trap = tmp_path / "trap"
    trap.write_text(f"#!/bin/sh\ntouch {canary}\n", encoding="utf-8")
    trap.chmod(0o755)
    hooks = project.repo.common_dir / "hooks"
    hooks.mkdir(exist_ok=True)
    for name in ("post-index-change", "reference-transaction", "post-checkout", "pre-commit"):
        shutil.copy(trap, hooks / name)
    for key in ("core.fsmonitor", "core.pager", "diff.external", "filter.x.clean", "core.sshCommand", "alias.version"):
        project.repo.git("config", key, str(trap))
    project.repo.write(".gitattributes", "* filter=x diff=x\n")
    doctor(project)
    assert not canary.exists()
    names = next(c for c in doctor(project).data["checks"] if c["code"] == "git.hooks")["symptoms"][-1]["found"]
    assert "pre-commit" in names


def test_a_repository_without_commits_and_idumb_is_not_a_problem(sandbox: GitSandbox) -> None:
    project = Project(sandbox, sandbox.root)
    answer = doctor(project)
    assert answer.code == 0, answer.out
    assert problems(answer, "config.reads")[0]["fix"] == "idumb init"


def test_outside_a_repository_doctor_says_so_and_checks_the_machine(tmp_path: Path, home: Path) -> None:
    (tmp_path / "empty").mkdir()
    answer = doctor(Project(GitSandbox(tmp_path / "empty"), tmp_path / "empty"))
    assert answer.code == 1
    assert "git.program" in {check["code"] for check in answer.data["checks"]}
    assert "is not in a git repository" in problems(answer, "git.repository")[0]["found"]


def test_a_bare_repository_is_named(tmp_path: Path) -> None:
    bare = GitSandbox.create(tmp_path / "bare", options=("--bare",))
    assert "bare" in symptoms_of(Project(bare, bare.root), "git.repository", "problem")[0]["found"]


def test_a_repository_in_an_unsupported_format_is_named(tmp_path: Path) -> None:
    """F15."""
    repo = GitSandbox.create(tmp_path / "sha256", options=("--object-format=sha256",))
    repo.write("a", "a")
    repo.commit()
    place = Project(repo, repo.root)
    assert "repository format" in symptoms_of(place, "git.repository", "problem")[0]["found"]


def test_an_unknown_extension_is_named(project: Project) -> None:
    """F15: git itself refuses to read such a repository."""
    project.repo.git("config", "core.repositoryFormatVersion", "1")
    config = project.repo.root / ".git/config"
    config.write_text(config.read_text() + "[extensions]\n\trefStorage = reftable\n", encoding="utf-8")
    answer = project.quick("doctor", "--json")
    assert "refstorage" in problems(answer, "git.repository")[0]["found"]


def test_a_merge_in_progress_is_named(project: Project) -> None:
    (project.repo.git_dir / "MERGE_HEAD").write_text(project.repo.head() + "\n", encoding="utf-8")
    assert "merge" in symptoms_of(project, "git.state", "problem")[0]["found"]


def test_fixes_are_recorded_in_the_log(project: Project) -> None:
    (project.folder / ".idumb/brain/execution/1/progress.json").unlink()
    answer = doctor(project, "--fix")
    lines = answer.data["fixed"]
    assert (answer.code, len(lines)) == (0, 1)
    assert project.events("--kind", "doctor.fixed")[0]["payload"] == {"done": lines, "failed": []}


def test_a_missing_log_is_one_problem_and_its_consequences_are_reported_once(project: Project) -> None:
    """R-LOG-6: the same cause nine times would hide the one next step."""
    store(project).unlink()
    shutil.rmtree(Path(os.environ["XDG_STATE_HOME"]) / "idumb" / "log")
    output = project.quick("doctor").out
    assert output.count("see store.opens") == 1
    cause = symptoms_of(project, "store.opens", "problem")[0]["found"]
    assert output.count(cause) == 1
    assert "log.refs, log.unknown-refs" in output
    answer = doctor(project)
    assert {one["state"] for one in problems(answer, "log.refs")} == {"warn"}
    assert sum(answer.data["counts"].values()) == len(answer.data["checks"])
    assert answer.data["counts"]["not_examined"] > 1


def test_an_unreadable_configuration_is_one_problem(project: Project) -> None:
    """R-OPS-4: checks that need it are not examined, and the plans are not reported as wrong."""
    project.configure("builder: [\n")
    answer, output = doctor(project), project.quick("doctor").out
    assert [one["code"] for one in answer.data["checks"] if one["state"] == "problem"] == ["config.reads"]
    assert "skipped  checks.dependencies, plans.read: see config.reads" in output
    assert output.count("Invalid YAML") == 1
    assert "phase 1 cannot run" not in output


def test_problems_with_one_cause_name_the_next_step_once(project: Project) -> None:
    for name in ("state.json", "execution/1/progress.json"):
        (project.folder / ".idumb/brain" / name).unlink()
    output = project.quick("doctor").out
    assert "state.json: the file is missing" in output
    assert "progress.json: the file is missing" in output
    assert output.count("next: idumb doctor --fix") == 1


def test_problems_are_exit_code_1_and_name_the_next_command(project: Project) -> None:
    store(project).unlink()
    answer = project.quick("doctor")
    assert answer.code == 1
    assert "[doctor.problems]" in answer.err
    assert "      idumb doctor --fix\n" in answer.err
