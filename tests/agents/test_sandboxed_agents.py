"""Real command-line agents in the sandbox: they work there, and write nothing elsewhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from idumb.composition.sandboxes import LocalSandboxes
from idumb.domain.permissions import SANDBOX_BWRAP
from tests.agents import installed
from tests.support import project as projects
from tests.support.gitrepo import GitSandbox
from tests.support.project import Project, task

pytestmark = [pytest.mark.agents, pytest.mark.timeout(600)]

UNASKED = ("claude", "codex")
"""They do not ask before each edit, so a file that is not declared is in their checkout, and the run asks about it."""


def rules(name: str) -> list[str]:
    """Both tasks, and a file that is not declared: last for Copilot, whose turn ends at a veto."""
    writes = ['{path: other/out.txt, content: "x\\n"}', '{path: notes/words.txt, content: "one\\ntwo\\n"}']
    first, second = reversed(writes) if name == "copilot" else writes
    return [
        f"""when: "# T1-01:"
tools: true
answers:
  - write: {first}
  - write: {second}
  - {{say: "notes/words.txt is there.", tokens: {{in: 1000, out: 20}}}}""",
        """when: "# T1-02:"
tools: true
answers:
  - write: {path: notes/more.txt, content: "three\\n"}
  - {say: "notes/more.txt is there.", tokens: {in: 2000, out: 30}}""",
    ]


@pytest.fixture
def project(sandbox: GitSandbox) -> Project:
    project = projects.create(sandbox, files={"other/kept.txt": "kept\n"})
    one = task("T1-01", files="create `notes/words.txt`", check="grep -q two notes/words.txt")
    two = task("T1-02", files="create `notes/more.txt`", check="grep -qx three notes/more.txt", after="T1-01")
    project.plan([one, two])
    return project


@pytest.mark.parametrize("name", [*installed.PACKAGES, *installed.ACP_PACKAGES])
def test_a_real_agent_works_in_the_sandbox_and_writes_nothing_elsewhere(
    name: str, project: Project, home: Path
) -> None:
    if reason := LocalSandboxes().support().no_bwrap:
        pytest.skip(reason)
    if name in installed.ACP_PACKAGES:
        installed.configure_acp(project, name, {"sandbox": SANDBOX_BWRAP})
    else:
        installed.configure(project, name, {"sandbox": SANDBOX_BWRAP})
    before = {*home.iterdir(), home / "state"}
    served = "claude" if name in installed.ACP_PACKAGES else name
    consent = project.approval()
    ended = installed.alone(project, served, rules(name), "execute-phase", "1", "--approve", consent, "--json")
    if name in UNASKED:
        assert ended.code == 5, ended.out + ended.err
        [question] = ended.answer["data"]["decisions"]
        assert (question["kind"], question["evidence"]) == ("undeclared", ["other/out.txt"])
        assert not project.exists("other/out.txt")
        resume = ("resume", "1", "--on-deviation", "leave-out", "--json")
        ended = installed.alone(project, served, rules(name), *resume)
    attempts = [e["payload"]["builder"] for e in project.events("1", "--kind", "attempt.finished")]
    assert ended.code == 0, ended.out + ended.err
    assert not project.exists("other/out.txt")
    judged = 3 if name in UNASKED else 2  # the first work is judged once more, without the file
    assert [attempt["sandbox"] for attempt in attempts] == [SANDBOX_BWRAP] * judged
    assert project.read("notes/more.txt") == "three\n"
    assert set(home.iterdir()) == before
