"""The question for consent to an agent shows its whole configuration (R-LOCK-3)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import project as projects
from tests.support.gitrepo import GitSandbox
from tests.support.project import Project, task

CONFIG = """\
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
def project(sandbox: GitSandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.setenv("MODEL_KEY", "not-to-be-seen")
    project = projects.create(sandbox)
    project.configure(CONFIG.replace("FOLDER", str(tmp_path / "away")))
    project.plan([task("T1-01", files="create `a.txt`", check="test -s a.txt")])
    return project


def expected(tmp_path: Path) -> list[str]:
    return [line.replace("FOLDER", str(tmp_path / "away")) for line in SHOWN]


@pytest.mark.parametrize("command", ["execute-phase", "approve"])
def test_consent_to_a_phase_shows_adapter_server_variables_and_options(
    project: Project, tmp_path: Path, command: str
) -> None:
    """R-LOCK-3."""
    answer = project.quick(command, "1", "--json")
    assert answer.code == (5 if command == "execute-phase" else 4), answer
    agents = [line for line in answer.error["details"]["evidence"] if line.startswith("agent ")]
    assert agents == [f"agent {line}" for line in expected(tmp_path)]


def test_a_secret_in_an_option_is_hidden_and_a_missing_program_is_shown(project: Project) -> None:
    """R-LOCK-3."""
    token = "ghp_" + "a1B2" * 9
    project.configure(
        "builder: b\nbindings:\n  b: {adapter: command, argv: [no-such-agent, 'two words'], options: {token: "
        + token
        + "}}\n"
    )
    answer = project.quick("execute-phase", "1", "--json")
    (line,) = (text for text in answer.error["details"]["evidence"] if text.startswith("agent "))
    assert line.startswith("agent b: command, starts no-such-agent 'two words' (")
    assert "[redacted:" in line
    assert token not in answer.out
