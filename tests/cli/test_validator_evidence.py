"""A validator's PASS proves only what it shows; a person judges what depends on it alone (R-RUN-3).

`unit/app/test_validator_evidence.py` has what the engine decides alone.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema

from tests.support import project as projects
from tests.support.gitrepo import GitSandbox
from tests.support.plans import run
from tests.support.project import task, write
from tests.support.schemas import published

SCHEMA = published("evidence")
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
