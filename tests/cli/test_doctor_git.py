"""`idumb doctor` checks the repository: refs, locks, identity, hooks, nested repositories (R-GIT-7)."""

from __future__ import annotations

import pytest

from tests.support import doctor as doctors
from tests.support.doctor import doctor, fixed, problems, symptoms_of
from tests.support.prepared import prepared_project
from tests.support.project import Project

project = prepared_project(doctors.create)


def test_a_branch_that_names_no_commit_is_named(project: Project) -> None:
    (project.repo.common_dir / "refs/heads/main").write_text("1" * 40 + "\n", encoding="utf-8")
    assert "reflog" in symptoms_of(project, "git.head", "problem")[0]["fix"]


def test_a_ref_of_idumb_emptied_by_a_power_cut_is_restored(project: Project) -> None:
    """F31: the log knows what it named."""
    kept = project.repo.kept()
    (ref,) = [name for name in project.repo.refs("refs/idumb/") if "/done/" in name]
    (project.repo.common_dir / ref).write_bytes(b"")
    assert symptoms_of(project, "git.refs", "problem")[0]["fixes"]
    assert any(ref in line for line in fixed(project, "git.refs"))
    assert {name: oid for name, oid in project.repo.kept().items() if not name.endswith("/scan")} == {
        name: oid for name, oid in kept.items() if not name.endswith("/scan")
    }


def test_a_branch_emptied_by_a_power_cut_is_left_to_the_user(project: Project) -> None:
    """The branch belongs to the user; the check names what git knows."""
    project.repo.git("branch", "other")
    (project.repo.common_dir / "refs/heads/other").write_bytes(b"")
    symptom = symptoms_of(project, "git.refs", "problem")[0]
    assert (symptom["path"], symptom["fixes"]) == ("refs/heads/other", False)
    doctor(project, "--fix")
    assert (project.repo.common_dir / "refs/heads/other").read_bytes() == b""


def test_what_stands_in_the_way_is_named(project: Project) -> None:
    """M10, F34: a missing identity, hooks elsewhere, an ignored record, and what killed programs left behind."""
    project.repo.git("config", "--unset", "user.name")
    project.repo.git("config", "user.useConfigOnly", "true")
    project.repo.git("config", "core.hooksPath", ".husky")
    project.repo.write(".gitignore", ".idumb/\n")
    lock = project.repo.write(".git/index.lock")
    answer = doctor(project)
    assert "user.name" in problems(answer, "git.identity")[0]["fix"]
    assert ".husky" in problems(answer, "git.hooks")[0]["found"]
    assert ".gitignore:1:.idumb/" in problems(answer, "git.ignores")[0]["found"]
    assert [one["path"] for one in problems(answer, "git.locks")] == [str(lock)]
    doctor(project, "--fix")
    assert lock.exists()  # it may not belong to idumb


@pytest.mark.nightly
def test_a_push_that_would_publish_snapshots_is_named(project: Project) -> None:
    """M9."""
    for name, value in (("mirror", "true"), ("push", "+refs/*:refs/*"), ("push", "refs/idumb/*:refs/idumb/*")):
        project.repo.git("config", f"remote.x.{name}", value)
        assert "publishes snapshots" in symptoms_of(project, "git.push", "warn")[0]["means"], value
        project.repo.git("config", "--unset", f"remote.x.{name}")
    project.repo.git("config", "remote.x.push", "refs/heads/*:refs/heads/*")
    assert problems(doctor(project), "git.push") == []
