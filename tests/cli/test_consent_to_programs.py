"""Consent to an agent shows its configuration, and covers its program's path, not its bytes (R-LOCK-3)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import project as projects
from tests.support.answer import Answer
from tests.support.gitrepo import GitSandbox
from tests.support.prepared import Prepared
from tests.support.project import Project, task

CONFIG = "builder: b\nbindings: {b: {adapter: command, argv: [coder]}}\n"


def put(folder: Path, text: str) -> str:
    """Write a program `coder` that writes this word into a.txt; return its path."""
    folder.mkdir(exist_ok=True)
    program = folder / "coder"
    program.write_text(f"#!/bin/sh\necho {text} > a.txt\n", encoding="utf-8")
    program.chmod(0o755)
    return str(program)


def _rolled_back(sandbox: GitSandbox) -> Project:
    """A phase that the coder in folder `one` built once, and that was rolled back."""
    project = projects.create(sandbox)
    project.configure(CONFIG)
    project.plan([task("T1-01", files="create `a.txt`", check="test -s a.txt")])
    with pytest.MonkeyPatch.context() as patch:
        _use_first(project, patch)
        assert project.execute().code == 0
    assert project.read("a.txt") == "one\n"
    assert project.json("rollback", "1", "--to", "start", "--yes").code == 0
    return project


def _use_first(project: Project, patch: pytest.MonkeyPatch) -> None:
    put(project.folder.parent / "one", "one")
    patch.setenv("PATH", str(project.folder.parent / "one"), prepend=":")


@pytest.fixture
def project(prepared: Prepared, monkeypatch: pytest.MonkeyPatch) -> Project:
    project = prepared.get(_rolled_back)
    _use_first(project, monkeypatch)
    return project


def again(project: Project, *flags: str) -> Answer:
    return project.quick("execute-phase", "1", "--force", "--json", *flags)


def test_a_different_program_of_the_same_name_needs_consent(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R-LOCK-3: the refusal names both programs, and a hash that covers the new one."""
    here = project.quick("check-plan", "1", "--json").data
    assert here["consent"] is True
    other = put(tmp_path / "two", "two")
    monkeypatch.setenv("PATH", str(tmp_path / "two"), prepend=":")
    assert project.quick("check-plan", "1", "--json").data["consent"] is False
    both = f"agent b (program: was {project.folder.parent / 'one/coder'}, is {other})"
    for flags, code, named in (((), 5, "missing"), (("--approve", here["consent_hash"]), 4, "other-hash")):
        refused = again(project, *flags)
        assert (refused.code, refused.error["code"]) == (code, f"consent.{named}")
        assert refused.error["details"]["changed"] == ["agent b"]
        assert both in refused.error["message"]
    assert not project.exists("a.txt")
    assert again(project, "--no-verify", "--approve", refused.error["details"]["expected"]).code == 0
    assert project.read("a.txt") == "two\n"
    assert project.quick("check-plan", "1", "--json").data["consent"] is True


def test_nobody_is_asked_to_consent_to_a_program_inside_the_repository(project: Project) -> None:
    """R-LOCK-3: the run would halt at it, so it is refused first, and nothing is recorded."""
    put(project.folder / "tools", "inside")
    project.configure("builder: b\nbindings:\n  b: {adapter: command, argv: [tools/coder]}\n")
    checked = project.quick("check-plan", "1", "--json")
    assert (checked.code, checked.data["findings"][0]["code"]) == (3, "agent.inside-repository")
    assert ".idumb/config.yaml:3 first" in checked.error["hint"]
    agreed = ("--approve", checked.data["consent_hash"])
    quick = project.quick("quick", "make b", "--files", "b.txt", "--check", "test -s b.txt", "--json")
    for refused in (project.json("execute-phase", "1"), project.json("execute-phase", "1", *agreed), quick):
        assert (refused.code, refused.error["code"]) == (4, "agent.inside-repository")
        assert refused.error["message"].startswith("The binding b: Program tools/coder is inside the repository")
    assert project.quick("check-plan", "1", "--json").data["consent"] is False
    assert project.quick("decisions", "--json").data["decisions"] == []


AGENTS = """\
builder: b
validator: hosted
bindings:
  b: {adapter: handoff, environment: [AWS_SECRET_ACCESS_KEY], timeout: 77, options: {folder: FOLDER, wait: 4}}
  hosted: {adapter: model, model: "openai:small", environment: [MODEL_KEY], options: {base_url: "http://127.0.0.1:9/v1"}}
roles: {planner: {binding: b}, researcher: {binding: hosted}}
"""
SHOWN = (
    (
        'b: handoff, starts no program; environment: AWS_SECRET_ACCESS_KEY; options: {"folder": "FOLDER", "wait": 4};'
        " timeout: 77 s"
    ),
    (
        "hosted: model, starts no program; environment: MODEL_KEY;"
        ' options: {"base_url": "http://127.0.0.1:9/v1"}; model: openai:small'
    ),
)


@pytest.fixture
def configured(sandbox: GitSandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.setenv("MODEL_KEY", "not-to-be-seen")
    project = projects.create(sandbox)
    project.configure(AGENTS.replace("FOLDER", str(tmp_path / "away")))
    project.plan([task("T1-01", files="create `a.txt`", check="test -s a.txt")])
    return project


def expected(tmp_path: Path) -> list[str]:
    return [line.replace("FOLDER", str(tmp_path / "away")) for line in SHOWN]


@pytest.mark.parametrize("command", ["execute-phase", "approve"])
def test_consent_to_a_phase_shows_adapter_server_variables_and_options(
    configured: Project, tmp_path: Path, command: str
) -> None:
    """R-LOCK-3."""
    answer = configured.quick(command, "1", "--json")
    assert answer.code == (5 if command == "execute-phase" else 4), answer
    agents = [line for line in answer.error["details"]["evidence"] if line.startswith("agent ")]
    assert agents == [f"agent {line}" for line in expected(tmp_path)]


def test_a_secret_in_an_option_is_hidden_and_a_missing_program_is_shown(configured: Project) -> None:
    """R-LOCK-3."""
    token = "ghp_" + "a1B2" * 9
    configured.configure(
        "builder: b\nbindings:\n  b: {adapter: command, argv: [no-such-agent, 'two words'], options: {token: "
        + token
        + "}}\n"
    )
    answer = configured.quick("execute-phase", "1", "--json")
    (line,) = (text for text in answer.error["details"]["evidence"] if text.startswith("agent "))
    assert line.startswith("agent b: command, starts no-such-agent 'two words' (")
    assert "[redacted:" in line
    assert token not in answer.out
