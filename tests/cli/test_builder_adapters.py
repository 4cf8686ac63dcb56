"""One plan, built by a model behind a server and by an ACP agent: the same tree (R-ADAPT-2)."""

from __future__ import annotations

from tests.support import project as projects
from tests.support.fake_model import serving
from tests.support.gitrepo import GitSandbox
from tests.support.plans import run
from tests.support.project import task


def by_model(address: str, model: str) -> str:
    options = f"options: {{base_url: '{address}/v1'}}"
    return f"builder: one\nbindings: {{one: {{adapter: model, model: 'openai:{model}', {options}}}}}\n"


def test_an_unknown_model_costs_no_attempt_and_the_run_continues_after_the_fix(
    sandbox: GitSandbox,
) -> None:
    """R-ADAPT-1, R-ADAPT-2."""
    project = projects.create(sandbox)
    project.plan([task("T1-01", files="create `a.txt`", check="grep -q made a.txt")])
    with serving("answers: [{fault: unknown-model}]") as refusing:
        project.configure(by_model(refusing.address, "nonsense"))
        answer = run(project)
    assert (answer.code, answer.error["details"]["failure"]) == (1, "unknown-model")
    assert "Correct or omit `model` in .idumb/config.yaml, then idumb execute-phase 1" in answer.error["message"]
    assert answer.error["hint"] == "idumb execute-phase 1"
    wants = "when: T1-01\ntools: true\nanswers: [{write: {path: a.txt, content: made}}, {say: Done.}]"
    with serving(wants) as served:
        project.configure(by_model(served.address, "fake-model"))
        again = run(project, "--no-verify")
        assert again.code == 0, again
    assert project.read("a.txt") == "made"
