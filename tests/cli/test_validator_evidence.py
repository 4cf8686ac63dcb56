"""A validator's PASS proves only what it shows; a person judges what depends on it alone (R-RUN-3).

`unit/app/test_validator_evidence.py` has what the engine decides alone.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.support import project as projects
from tests.support.answer import Answer
from tests.support.gitrepo import GitSandbox
from tests.support.plans import run
from tests.support.project import Project, task, write

SCHEMA = json.loads((Path(__file__).parents[2] / "docs/schemas/evidence.json").read_text(encoding="utf-8"))
OPINIONS = "  - [ ] it is friendly — opinion\n  - [ ] it is short — opinion\n"


class Scene:
    """A task whose builder writes two lines, and whose validator answers nothing and exits with 0."""

    def __init__(self, sandbox: GitSandbox, home: Path, *, criteria: str = OPINIONS) -> None:
        self.project = projects.create(sandbox)
        argv = json.dumps(["sh", "-c", f"cat > {home}/judged"])
        self.project.configure(f"validator: judge\nbindings:\n  judge: {{adapter: command, argv: {argv}}}\n")
        self.project.plan(
            [task("T1-01", files="create `a.txt`", criteria=criteria, steps=[write("a.txt", "one\ntwo\n")])]
        )

    def evidence(self) -> dict[str, Any]:
        """Return the recorded state of the validator's last verdict."""
        evidence = [e["payload"] for e in self.project.events("--kind", "evidence.recorded")]
        last = [e for e in evidence if e["subject"] == "validator judge"][-1]
        jsonschema.validate(last, SCHEMA)
        return dict(last)


def waits(project: Project, answer: Answer) -> dict[str, Any]:
    """The one question that a task waits for; no attempt is used up by it."""
    assert answer.code == 5, answer
    assert (answer.data["tasks"][0]["status"], answer.data["tasks"][0]["attempts"]) == ("waiting", 0)
    (decision,) = project.quick("decisions", "--json").data["decisions"]
    assert decision["why"] in answer.data["tasks"][0]["reason"]
    return dict(decision)


@pytest.mark.nightly
def test_a_pass_without_evidence_completes_nothing_that_is_otherwise_unproven(sandbox: GitSandbox, home: Path) -> None:
    """R-RUN-3: it prints nothing and exits with 0; a person's yes completes the task, a no fails the attempt."""
    scene = Scene(sandbox, home)
    decision = waits(scene.project, run(scene.project))
    assert decision["why"] == "The validator judge says PASS and shows no evidence, and nothing else proves this task."
    assert (decision["kind"], decision["evidence"][:2]) == ("judge", ["PASS without evidence", "it is friendly"])
    assert [choice["id"] for choice in decision["choices"]] == ["yes", "no"]
    assert scene.evidence()["result"] == "opinion"
    assert waits(scene.project, scene.project.quick("resume", "1", "--json"))["id"] == decision["id"]
    assert scene.project.quick("decide", decision["id"], "yes", "--json").code == 0
    done = scene.project.quick("resume", "1", "--json")
    assert (done.code, scene.project.statuses()) == (0, {"T1-01": "completed"}), done
    assert "only by the tasks' own checks" not in done.out
    assert "validators and people" in done.data["verification"]["reason"]


CHECKED = "  - [ ] it is there — check: `test -s a.txt`\n"


def test_a_bare_pass_leaves_the_decision_to_the_other_proofs(sandbox: GitSandbox, home: Path) -> None:
    """R-RUN-3, R-RUN-4: a validator with a user's template is asked for evidence too."""
    scene = Scene(sandbox, home, criteria=CHECKED)
    (scene.project.folder / ".idumb/prompts").mkdir()
    (scene.project.folder / ".idumb/prompts/validator.md").write_text("Judge $id.\n", encoding="utf-8")
    answer = run(scene.project)
    assert (answer.code, scene.evidence()["result"]) == (0, "opinion"), answer
    assert "every check passed" not in answer.out
    prompt = (home / "judged").read_text(encoding="utf-8")
    assert prompt.startswith("Judge T1-01.\n")
    assert '"evidence": [{"criterion": "AC-1", "file": "path", "line": 1}]' in prompt
