"""`checkout.prepare`: what checks need is installed once per lock file, in the proving tree (R-RUN-3)."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from tests.support.plans import run
from tests.support.project import Project, shell, task, write


def _commit(project: Project, files: dict[str, str], ignored: str) -> None:
    project.repo.write_all({**files, ".gitignore": f"{project.read('.gitignore')}{ignored}\n"})
    project.repo.commit("project")


def _plan(project: Project, check: str, *names: str) -> None:
    tasks = [
        task(f"T1-0{i}", files=f"create `{n}`", check=check, steps=[write(n, "x\n")]) for i, n in enumerate(names, 1)
    ]
    project.plan(tasks)


def _runs(folder: Path) -> int:
    counted = folder / "runs"
    return len(counted.read_text().splitlines()) if counted.exists() else 0


@pytest.fixture
def made(project: Project, tmp_path: Path) -> Project:
    """Return a project whose check needs what `make deps` installs; each installation is counted."""
    makefile = f"deps:\n\techo run >> {tmp_path}/runs\n\tmkdir -p deps\n\tcp list.lock deps/list\n\ttouch deps/mine\n"
    _commit(project, {"Makefile": makefile, "requirements.txt": "one\n", "list.lock": "one\n"}, "/deps")
    project.configure("checkout: {prepare: [make deps]}\n")
    return project


def test_what_checks_need_is_installed_once_and_kept_for_later_commands(made: Project, tmp_path: Path) -> None:
    _plan(made, "grep one deps/list", "a.txt", "b.txt")
    answer = run(made, "--no-verify")
    assert answer.code == 0, answer.out
    assert not made.exists("deps")
    assert _runs(tmp_path) == 1
    proof = made.events("--kind", "evidence.recorded")[-1]["payload"]
    assert "weaker" not in proof
    assert "deps <- checkout.prepare" in proof["locations"]
    assert made.quick("verify-work", "1").code == 0
    assert _runs(tmp_path) == 1
    proven = made.quick("prove", "1")
    assert proven.code == 0, proven.out
    assert _runs(tmp_path) == 2, "in a fresh clone, they are installed again"
    assert "Installing what checks need: make deps" in proven.out + proven.err


def test_a_program_that_a_builder_replaced_does_not_install_unseen(
    made: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The builder puts another `make` on PATH, which installs what the check expects."""
    programs = tmp_path / "bin"
    programs.mkdir()
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    plant = f"echo x > a.txt; printf '#!/bin/sh\\nmkdir deps; echo two > deps/list\\n' > {programs}/make"
    steps = [shell(f"{plant}; chmod +x {programs}/make")]
    made.plan([task("T1-01", files="create `a.txt`", check="grep two deps/list", steps=steps)])
    assert run(made, "--no-verify").code == 0
    proof = made.events("--kind", "evidence.recorded")[0]["payload"]
    assert proof["changed_programs"] == [f"{programs}/make"]
    assert [words for words in proof["weaker"] if words.endswith("changed during the run")]


@pytest.mark.nightly
def test_a_command_that_fails_stops_the_run_and_does_not_count(made: Project) -> None:
    made.configure("checkout: {prepare: ['echo no such package; exit 3']}\n")
    _plan(made, "test -e deps/list", "a.txt")
    answer = run(made, "--no-verify")
    assert answer.code == 1
    assert "`echo no such package; exit 3` (checkout.prepare) failed: exit 3" in answer.out
    assert "Correct checkout.prepare in .idumb/config.yaml" in answer.out
    assert "idumb execute-phase 1" in answer.out
    assert made.statuses()["T1-01"] != "failed"
    made.configure("checkout: {prepare: [make deps]}\n")
    assert run(made, "--no-verify").code == 0


def test_a_command_that_changes_committed_files_is_refused(made: Project) -> None:
    made.configure("checkout: {prepare: ['make deps && echo two > requirements.txt']}\n")
    _plan(made, "true", "a.txt")
    answer = run(made, "--no-verify")
    assert answer.code == 1
    assert "checkout.prepare changed requirements.txt, which the commit holds" in answer.out
    assert made.read("requirements.txt") == "one\n"


def test_consent_names_the_commands_and_covers_them(made: Project, tmp_path: Path) -> None:
    _plan(made, "test -e deps/list", "a.txt")
    asked = made.quick("execute-phase", "1")
    assert (asked.code, _runs(tmp_path)) == (5, 0)
    assert "before checks: make deps" in asked.err
    consent = re.findall("--approve ([0-9a-f]{64})", asked.err)[0]
    made.configure("checkout: {prepare: [make deps, 'echo more']}\n")
    other = made.quick("execute-phase", "1", "--approve", consent)
    assert other.code != 0
    assert "would run has now the hash" in other.err
    assert _runs(tmp_path) == 0
