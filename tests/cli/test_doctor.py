"""`idumb doctor`: reports every problem, runs and changes nothing by itself, and names the next step."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from tests.support import doctor as doctors
from tests.support.doctor import doctor, problems, symptoms_of
from tests.support.gitrepo import GitSandbox
from tests.support.prepared import prepared_project
from tests.support.project import Project

project = prepared_project(doctors.create)


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
    assert [c["code"] for c in data["checks"] if c["state"] != "ok"] == []
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


def test_outside_a_repository_doctor_says_so_and_checks_the_machine(tmp_path: Path, home: Path) -> None:
    (tmp_path / "empty").mkdir()
    answer = doctor(Project(GitSandbox(tmp_path / "empty"), tmp_path / "empty"))
    assert answer.code == 1
    assert "git.program" in {check["code"] for check in answer.data["checks"]}
    assert "is not in a git repository" in problems(answer, "git.repository")[0]["found"]


def test_a_merge_in_progress_is_named(project: Project) -> None:
    (project.repo.git_dir / "MERGE_HEAD").write_text(project.repo.head() + "\n", encoding="utf-8")
    assert "merge" in symptoms_of(project, "git.state", "problem")[0]["found"]


def test_fixes_are_recorded_in_the_log(project: Project) -> None:
    (project.folder / ".idumb/brain/execution/1/progress.json").unlink()
    answer = doctor(project, "--fix")
    lines = answer.data["fixed"]
    assert (answer.code, len(lines)) == (0, 1)
    assert project.events("--kind", "doctor.fixed")[0]["payload"] == {"done": lines, "failed": []}
