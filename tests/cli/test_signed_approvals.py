"""Signed approvals: valid in another clone of the repository, and only unchanged and by an allowed signer."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from tests.adapters.store.test_approvals import allow, make_key
from tests.support import approvals
from tests.support.approvals import approve, contract, refused, run
from tests.support.gitrepo import GitSandbox
from tests.support.prepared import prepared_project
from tests.support.project import Project

project = prepared_project(approvals.create)


@pytest.fixture
def key(tmp_path: Path) -> Path:
    if shutil.which("ssh-keygen") is None:
        pytest.skip("there is no ssh-keygen")
    return make_key(tmp_path / "key")


def _clone(project: Project, tmp_path: Path) -> Project:
    """The same project in a fresh clone, as on an unattended machine."""
    clone = GitSandbox(tmp_path / "there")
    project.repo.git("clone", "--quiet", str(project.folder), str(clone.root))
    for name, value in (("user.name", "CI"), ("user.email", "ci@example.invalid")):
        clone.git("config", name, value)
    return Project(clone, clone.root)


def test_a_signed_approval_is_valid_in_another_clone(project: Project, tmp_path: Path, key: Path) -> None:
    """R-LOCK-3: a signature, if any, is verified."""
    file = tmp_path / "approval.json"
    approval = approve(project, "--sign", str(key), "--file", str(file)).data
    assert (approval["signed"], approval["file"]) == (True, str(file))
    clone = _clone(project, tmp_path)
    refused(run(clone), "approval.missing")
    refused(run(clone, "--approval", str(file)), "approval.no-signers")
    allow(key)
    clone.repo.write("a.txt", "mine\n")
    refused(run(clone, "--approval", str(file)), "task.dirty-path")


def test_a_signed_approval_with_one_field_changed_is_refused(project: Project, tmp_path: Path, key: Path) -> None:
    """R-LOCK-3."""
    file = tmp_path / "approval.json"
    approve(project, "--sign", str(key), "--file", str(file), "--expires", "1d")
    allow(key)
    whole, clone = json.loads(file.read_text()), _clone(project, tmp_path)
    for field, value in {"base_commit": None, "expires": None, "by": "x", "need": "0" * 64}.items():
        file.write_text(json.dumps({**whole, "grant": {**whole["grant"], field: value}}))
        refused(run(clone, "--approval", str(file)), "approval.bad-signature")


def test_a_signed_approval_by_an_unknown_signer_is_refused(project: Project, tmp_path: Path, key: Path) -> None:
    """R-LOCK-3."""
    file = tmp_path / "approval.json"
    approve(project, "--sign", str(key), "--file", str(file))
    allow(make_key(tmp_path / "other"))
    refused(run(_clone(project, tmp_path), "--approval", str(file)), "approval.bad-signature")
    refused(run(project), "approval.bad-signature")  # the kept one is verified too


def test_a_signed_approval_revoked_here_stays_revoked(project: Project, tmp_path: Path, key: Path) -> None:
    """R-LOCK-4: importing the file again does not undo the revocation."""
    file = tmp_path / "approval.json"
    allow(key)
    approve(project, "--sign", str(key), "--file", str(file))
    assert project.quick("approve", "1", "--revoke", "--json").code == 0
    refused(run(project, "--approval", str(file)), "approval.revoked")


def test_an_unsigned_file_and_an_invalid_key_are_refused(project: Project, tmp_path: Path) -> None:
    answer = project.quick("approve", "1", "--file", str(tmp_path / "x"), "--json")
    assert (answer.code, answer.error["code"]) == (2, "usage")
    given = (*project.answers(), "--hash", contract(project))
    signing = ("approve", "1", *given, "--sign", str(tmp_path / "none"), "--json")
    refused(project.quick(*signing), "approval.not-signed")
    refused(run(project), "approval.missing")
    missing = run(project, "--approval", os.devnull)
    assert (missing.code, missing.error["code"]) == (3, "approval.unreadable")
    both = project.quick("approve", "1", "--revoke", "--hash", "0" * 64, "--json")
    assert both.code == 2
