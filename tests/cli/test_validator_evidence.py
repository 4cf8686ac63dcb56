"""A validator's PASS proves only what it shows; a person judges what depends on it alone (R-RUN-3)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.support import project as projects
from tests.support import seed
from tests.support.answer import Answer
from tests.support.gitrepo import GitSandbox
from tests.support.plans import run
from tests.support.project import Project, task, write

SCHEMA = json.loads((Path(__file__).parents[2] / "docs/schemas/evidence.json").read_text(encoding="utf-8"))
JUDGE = """\
n=1; while [ -e $HOME/judged-$n ]; do n=$((n + 1)); done
cat > $HOME/judged-$n; test ! -e $HOME/verdict-$n || cat $HOME/verdict-$n
"""
OPINIONS = "  - [ ] it is friendly — opinion\n  - [ ] it is short — opinion\n"
LEVEL = "gates: {validator: {level: 0}}\n"


def shows(*evidence: dict[str, Any], verdict: str = "PASS") -> str:
    return json.dumps({"verdict": verdict, "evidence": list(evidence), "findings": []})


def at(criterion: str, file: str = "a.txt", line: int = 1) -> dict[str, Any]:
    return {"criterion": criterion, "file": file, "line": line}


class Scene:
    """A task whose builder writes two lines, and whose validator gives the listed answers, call by call."""

    def __init__(self, sandbox: GitSandbox, home: Path, *verdict: str, criteria: str = OPINIONS, settings: str = "",
                 head: str = "", fields: str = "") -> None:  # fmt: skip
        self.project, self.home = projects.create(sandbox), home
        (home / "judge.sh").write_text(JUDGE, encoding="utf-8")
        for number, text in enumerate(verdict, 1):
            (home / f"verdict-{number}").write_text(text, encoding="utf-8")
        argv = json.dumps(["sh", str(home / "judge.sh")])
        self.project.configure(f"validator: judge\nbindings:\n  judge: {{adapter: command, argv: {argv}}}\n{settings}")
        work = [write("a.txt", "one\ntwo\n")]
        first_task = task("T1-01", files="create `a.txt`", criteria=criteria, steps=work, fields=fields)
        self.project.plan([first_task], head=head)

    def calls(self) -> int:
        return len(list(self.home.glob("judged-*")))

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


def test_a_pass_without_evidence_completes_nothing_that_is_otherwise_unproven(sandbox: GitSandbox, home: Path) -> None:
    """R-RUN-3: it prints nothing and exits with 0; a person's yes completes the task, a no fails the attempt."""
    scene = Scene(sandbox, home)
    decision = waits(scene.project, run(scene.project))
    assert decision["why"] == "The validator judge says PASS and shows no evidence, and nothing else proves this task."
    assert (decision["kind"], decision["evidence"][:2]) == ("criterion", ["PASS without evidence", "it is friendly"])
    assert [choice["id"] for choice in decision["choices"]] == ["yes", "no"]
    assert scene.evidence()["result"] == "opinion"
    assert waits(scene.project, scene.project.quick("resume", "1", "--json"))["id"] == decision["id"]
    assert scene.project.quick("decide", decision["id"], "yes", "--json").code == 0
    done = scene.project.quick("resume", "1", "--json")
    assert (done.code, scene.project.statuses()) == (0, {"T1-01": "completed"}), done
    assert "only by the tasks' own checks" not in done.out
    assert "validators and people" in done.data["verification"]["reason"]


def test_rejecting_a_pass_without_evidence_fails_the_attempt(sandbox: GitSandbox, home: Path) -> None:
    """R-RUN-3, R-RUN-5."""
    scene = Scene(sandbox, home, settings="run: {max_attempts: 1}\n")
    decision = waits(scene.project, run(scene.project))
    assert scene.project.quick("decide", decision["id"], "no", "--guidance", "too curt", "--json").code == 0
    failed = scene.project.quick("resume", "1", "--max-attempts", "1", "--json")
    assert (failed.code, failed.data["tasks"][0]["status"]) == (1, "failed"), failed
    assert "too curt" in failed.data["tasks"][0]["reason"]


CHECKED = "  - [ ] it is there — check: `test -s a.txt`\n"


def test_a_bare_pass_leaves_the_decision_to_the_other_proofs(sandbox: GitSandbox, home: Path) -> None:
    """R-RUN-3, R-RUN-4: a validator with a user's template is asked for evidence too."""
    scene = Scene(sandbox, home, criteria=CHECKED)
    (scene.project.folder / ".idumb/prompts").mkdir()
    (scene.project.folder / ".idumb/prompts/validator.md").write_text("Judge $id.\n", encoding="utf-8")
    answer = run(scene.project)
    assert (answer.code, scene.evidence()["result"]) == (0, "opinion"), answer
    assert "every check passed" not in answer.out
    prompt = (home / "judged-1").read_text(encoding="utf-8")
    assert prompt.startswith("Judge T1-01.\n")
    assert '"evidence": [{"criterion": "AC-1", "file": "path", "line": 1}]' in prompt


def test_a_pass_with_evidence_for_every_criterion_completes_the_task(sandbox: GitSandbox, home: Path) -> None:
    """R-RUN-3: the command that it shows is never run."""
    command = {"criterion": "it is friendly", "command": "wc -c a.txt; touch ran.txt", "output": "8 a.txt"}
    scene = Scene(sandbox, home, shows(command, at("ac-2: it is short", "./a.txt", 2)))
    answer = run(scene.project, "--no-verify")
    assert (answer.code, scene.project.statuses()) == (0, {"T1-01": "completed"}), answer
    recorded = scene.evidence()
    assert (recorded["result"], len(recorded["shown"])) == ("passed", 2)
    assert not scene.project.exists("ran.txt")


@pytest.mark.parametrize(
    ("reply", "why"),
    seed.one_on_a_push(
        [
            (shows(at("AC-1", "a.txt", 3)), "it cites a.txt:3, which the judged files do not have"),
            (shows(at("AC-1", "../judge.sh")), "it cites ../judge.sh:1, which the judged files do not have"),
            (json.dumps({"verdict": "PASS", "evidence": "all of it"}), "its evidence is no list"),
        ],
        "invalid evidence",
    ),
)
def test_a_pass_with_invalid_evidence_is_requested_again_and_then_a_person_is_asked(
    sandbox: GitSandbox, home: Path, reply: str, why: str
) -> None:
    """R-RUN-3: whatever else proves the task; the second call gets the problem of the first answer."""
    scene = Scene(sandbox, home, reply, reply, criteria=CHECKED)
    decision = waits(scene.project, run(scene.project))
    assert decision["why"] == "The validator judge gave an answer that cannot be used."
    assert why in decision["evidence"][0]
    assert (scene.calls(), scene.evidence()["result"]) == (2, "unproven")
    assert why in (home / "judged-2").read_text(encoding="utf-8")
    assert why not in (home / "judged-1").read_text(encoding="utf-8")
    (retried,) = [e["payload"] for e in scene.project.events("--kind", "call.retried")]
    assert (retried["role"], retried["failure"]) == ("validator", "malformed")


def test_the_second_answer_of_a_validator_counts(sandbox: GitSandbox, home: Path) -> None:
    """R-RUN-3."""
    scene = Scene(sandbox, home, shows(at("AC-1", "nothere.py", 99)), shows(at("AC-1"), at("AC-2")))
    answer = run(scene.project, "--no-verify")
    assert (answer.code, scene.calls(), scene.evidence()["result"]) == (0, 2, "passed"), answer


def test_a_failing_verdict_needs_no_evidence(sandbox: GitSandbox, home: Path) -> None:
    """R-RUN-3: evidence in a FAIL proves nothing either way."""
    scene = Scene(sandbox, home, shows(at("AC-1", "nothere.py", 99), verdict="FAIL"))
    failed = run(scene.project, "--max-attempts", "1")
    assert (failed.code, scene.calls()) == (1, 1)
    assert "validator judge failed" in failed.data["tasks"][0]["reason"]


def test_a_validator_of_level_0_asks_no_person(sandbox: GitSandbox, home: Path) -> None:
    """R-GATE-6."""
    bad = shows(at("AC-1", "nothere.py", 99))
    scene = Scene(sandbox, home, bad, bad, criteria=CHECKED, settings=LEVEL)
    assert run(scene.project, "--no-verify").code == 0


def test_evidence_refers_to_files_of_the_judged_clone(sandbox: GitSandbox, home: Path) -> None:
    """R-RUN-3, R-GIT-5; and what waits there for a person is delivered by their yes."""
    scene = Scene(sandbox, home, shows(at("AC-1")), settings="run: {workspace: clone}\n")
    decision = waits(scene.project, run(scene.project))
    assert decision["why"] == "The validator judge shows nothing for AC-2, and nothing else proves it."
    assert scene.project.quick("decide", decision["id"], "yes", "--json").code == 0
    assert scene.project.quick("resume", "1", "--no-verify", "--json").code == 0
    assert scene.project.read("a.txt") == "one\ntwo\n"
