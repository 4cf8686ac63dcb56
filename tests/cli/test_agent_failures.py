"""Agents that cannot work, exceed a ceiling or exhaust their context: how the run reacts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support import project as projects
from tests.support.approvals import FIELDS, STRICT, approve, run
from tests.support.gitrepo import GitSandbox
from tests.support.project import Project, task

AGENT = """\
import json, os, pathlib, sys
told, number = sys.stdin.read(), int(os.environ["IDUMB_ATTEMPT"])
calls = pathlib.Path(os.environ["HOME"], "calls")
calls.write_text((calls.read_text() if calls.exists() else "") + f"{number}\\n")
pathlib.Path(os.environ["HOME"], f"told-{number}").write_text(told)
script = json.loads(pathlib.Path(os.environ["HOME"], "script.json").read_text())
step = script.pop(0) if script else {"write": "done"}
pathlib.Path(os.environ["HOME"], "script.json").write_text(json.dumps(script))
if "write" in step:
    with open("a.txt", "a") as file:
        file.write(step.pop("write"))
if "signal" in step:
    os.kill(os.getpid(), step["signal"])
if "exit" in step:
    sys.exit(step["exit"])
if "hang" in step:
    os.read(os.pipe()[0], 1)
pathlib.Path(os.environ["IDUMB_STATE_FILE"]).write_text(json.dumps({"model": "middle", **step}))
print("my last words")
"""


PLACE = "run: {{workspace: {}}}\n"
SUMMARY = ".planning/phases/1/1-SUMMARY.md"


@pytest.fixture
def project(sandbox: GitSandbox) -> Project:
    return projects.create(sandbox)


class Scene:
    """A project with one task, built by a program that follows a script, call by call."""

    def __init__(self, project: Project, home: Path, *script: dict[str, Any], settings: str = "",
                 calls: int = 1, head: str = "", fields: str = "") -> None:  # fmt: skip
        self.project, self.home = project, home
        (home / "agent.py").write_text(AGENT, encoding="utf-8")
        (home / "script.json").write_text(json.dumps(script), encoding="utf-8")
        binding = f"{{adapter: command, argv: [python3, {json.dumps(str(home / 'agent.py'))}], model: middle}}"
        project.configure(
            f"builder: coder\nbindings:\n  coder: {binding}\nretry: {{calls: {calls}, pause: 1s}}\n{settings}"
        )
        self.task = task("T1-01", files="create `a.txt`", check="grep -q done a.txt", fields=fields)
        project.plan([self.task], head=head)

    def calls(self) -> int:
        path = self.home / "calls"
        return len(path.read_text(encoding="utf-8").splitlines()) if path.exists() else 0


def test_a_transient_failure_stops_the_run_and_counts_no_attempt(project: Project, home: Path) -> None:
    """R-ADAPT-3: the next command continues."""
    scene = Scene(project, home, {"state": "rate-limited", "message": "429"})
    stopped = project.execute()
    assert (stopped.code, stopped.error["code"]) == (1, "run.halted")
    failure = stopped.data["failure"]
    assert (failure["failure"], failure["mend"]) == (
        "rate-limited",
        "Wait for the limit to pass, then idumb resume 1",
    )
    assert "coder is limited by its provider: 429" in stopped.error["message"]
    assert stopped.data["tasks"][0]["attempts"] == 0
    assert "idumb resume 1" in project.quick("show", "T1-01").out
    assert project.resume().code == 0
    assert scene.calls() == 2


LIMITED = {"state": "rate-limited", "message": "429"}


def test_a_call_is_retried_while_the_tree_is_unchanged(project: Project, home: Path) -> None:
    """R-ADAPT-3: the second call follows one without changes; the third would follow one with changes."""
    scene = Scene(project, home, LIMITED, {"write": "half ", **LIMITED}, {"write": "done"}, calls=3)
    stopped = project.execute()
    assert (stopped.code, stopped.error["code"]) == (1, "run.halted")
    assert (scene.calls(), project.read("a.txt")) == (2, "half ")
    assert "429; not called again, because files changed since the call began: a.txt" in stopped.error["message"]
    assert [e["payload"]["call"] for e in project.events("--kind", "call.retried")] == [1]
    assert stopped.data["tasks"][0]["attempts"] == 0
    assert project.resume().code == 0


def test_files_left_by_a_precondition_are_not_changes_of_the_call(project: Project, home: Path) -> None:
    """R-ADAPT-3, R-GIT-5."""
    fields = "- **Preconditions:**\n  - command `echo x > seen.txt`\n"
    scene = Scene(project, home, LIMITED, {"write": "done"}, calls=2, fields=fields)
    answer = project.execute()
    assert (answer.code, scene.calls()) == (0, 2), answer


def test_a_strict_run_calls_its_builder_once(project: Project, home: Path) -> None:
    """R-ADAPT-3: strict never retries, a call as little as an attempt."""
    scene = Scene(project, home, LIMITED, LIMITED, {"write": "done"}, calls=3, head=STRICT, fields=FIELDS)
    approve(project)
    stopped = run(project)
    assert (stopped.code, stopped.error["code"]) == (1, "run.halted"), stopped
    assert (scene.calls(), project.events("--kind", "call.retried")) == (1, [])


@pytest.mark.parametrize("workspace", ["here", "clone"])
@pytest.mark.parametrize("crash", [{"signal": 9}, {"signal": 11}, {"exit": 126}, {"exit": 127}], ids=str)
def test_after_a_crash_the_next_attempt_starts_from_the_task_base(
    project: Project, home: Path, crash: dict[str, Any], workspace: str
) -> None:
    """R-ADAPT-3, R-RUN-5: files left by a crash are not the builder's intended result."""
    scene = Scene(project, home, {"write": "half ", **crash}, {"write": "done"}, settings=PLACE.format(workspace))
    answer = project.execute()
    assert (answer.code, scene.calls(), project.read("a.txt")) == (0, 2, "done"), answer


@pytest.mark.parametrize("workspace", ["here", "clone"])
@pytest.mark.parametrize("code", [1, 2, 137])
def test_after_any_other_failure_the_next_attempt_continues_from_the_work(
    project: Project, home: Path, code: int, workspace: str
) -> None:
    """R-ADAPT-3, R-RUN-5."""
    scene = Scene(project, home, {"write": "half ", "exit": code}, {"write": "done"}, settings=PLACE.format(workspace))
    answer = project.execute()
    assert (answer.code, scene.calls(), project.read("a.txt")) == (0, 2, "half done"), answer


def test_files_left_by_a_crash_are_removed_after_idumb_was_killed_too(project: Project, home: Path) -> None:
    """R-RUN-5: the log knows of the crash."""
    scene = Scene(project, home, {"write": "half ", "exit": 127}, {"write": "done"})
    assert project.execute("--max-attempts", "1").code == 1
    assert project.events("--kind", "attempt.finished")[-1]["payload"]["builder"]["crashed"] is True
    answer = project.resume("--retry-failed")
    assert (answer.code, scene.calls(), project.read("a.txt")) == (0, 2, "done"), answer


TIMEOUT = "- **Timeout:** 1s\n"


def test_a_timeout_is_retried_from_the_task_base_unless_the_task_says_otherwise(project: Project, home: Path) -> None:
    """R-RUN-5, R-PLAN-3."""
    scene = Scene(project, home, {"write": "half ", "hang": 1}, {"write": "done"}, fields=TIMEOUT)
    answer = project.execute()
    assert (answer.code, scene.calls(), project.read("a.txt")) == (0, 2, "done"), answer


def test_a_timeout_fails_the_task_if_the_task_says_so(project: Project, home: Path) -> None:
    """R-PLAN-3."""
    scene = Scene(project, home, {"hang": 1}, {"write": "done"}, fields=f"{TIMEOUT}- **On timeout:** fail\n")
    assert (project.execute().code, scene.calls()) == (1, 1)


def test_a_strict_run_does_not_retry_after_a_timeout(project: Project, home: Path) -> None:
    """R-RUN-5."""
    scene = Scene(project, home, {"hang": 1}, {"write": "done"}, head=STRICT, fields=FIELDS + TIMEOUT)
    approve(project)
    assert (run(project).code, scene.calls()) == (1, 1)


def test_an_open_breaker_applies_to_the_next_command_too(project: Project, home: Path) -> None:
    """R-ADAPT-3: the state is in the log, so no kill loses it."""
    scene = Scene(project, home, {"state": "network"}, settings="breaker: {failures: 1, time: 1h}\n")
    assert project.execute().code == 1
    again = project.resume()
    assert again.code == 1
    assert "not asked before" in again.error["message"]
    assert scene.calls() == 1
    kept = project.events("--kind", "breaker.changed")[-1]["payload"]
    assert (kept["key"], kept["state"], kept["failures"]) == ("command coder middle", "open", 1)


def test_doctor_shows_an_open_breaker_and_closes_it_on_request(project: Project, home: Path) -> None:
    """R-ADAPT-3: with its failures, and when it is asked again."""
    scene = Scene(project, home, {"state": "network"}, settings="breaker: {failures: 1, time: 1h}\n")
    assert project.execute().code == 1
    healthy = project.quick("doctor", "--json")
    (breakers,) = [c for c in healthy.data["checks"] if c["code"] == "agents.breakers"]
    assert (healthy.code, breakers["state"]) == (0, "warn")
    assert "command coder middle: open since" in breakers["symptoms"][0]["found"]
    assert "1 call in a row failed, the last by network" in breakers["symptoms"][0]["found"]
    assert "no calls before" in breakers["symptoms"][0]["means"]
    assert "next: idumb doctor --fix" in project.quick("doctor").out
    mended = project.quick("doctor", "--fix", "--json")
    assert any("command coder middle is closed" in done for done in mended.data["mended"])
    assert "ok       agents.breakers" in project.quick("doctor").out
    assert project.resume().code == 0
    assert scene.calls() == 2


def test_doctor_shows_failures_that_have_not_opened_a_breaker_yet(project: Project, home: Path) -> None:
    """R-ADAPT-3."""
    Scene(project, home, {"state": "network"})
    assert project.execute().code == 1
    (breakers,) = [c for c in project.quick("doctor", "--json").data["checks"] if c["code"] == "agents.breakers"]
    assert breakers["state"] == "ok"
    assert breakers["symptoms"][0]["found"].startswith("command coder middle: closed, 1 call in a row failed")


def test_the_same_failure_on_the_same_bytes_is_not_repeated(project: Project, home: Path) -> None:
    """R-RUN-5, R-ADAPT-3."""
    scene = Scene(project, home, {"state": "declined"}, {"state": "declined"}, {"write": "done"})
    failed = project.execute()
    assert failed.code == 1
    assert scene.calls() == 2
    assert "coder declined the work" in failed.data["tasks"][0]["reason"]


def test_a_run_that_would_exceed_its_ceiling_asks_first(project: Project, home: Path) -> None:
    """R-ADAPT-3: it is looked at, and written down, before the call."""
    used = {"usage": {"cost_usd": 0.75, "tokens_in": 10, "tokens_out": 5}}
    ceilings = "ceilings: {run: {cost_usd: 1.50}, task: {cost_usd: 9}}\n"
    scene = Scene(project, home, {"write": "a", **used}, {"write": "b", **used}, {"write": "done"}, settings=ceilings)
    stopped = project.execute()
    assert (stopped.code, scene.calls()) == (5, 2)
    decision = project.json("decisions").data["decisions"][0]
    assert decision["id"] == "T1-01.ceiling.run.1"
    assert decision["evidence"][0] == "$1.50 of $1.50 used"
    begun = project.events("--kind", "attempt.started")[-1]["payload"]["ceilings"]["run"]
    assert (begun["ceiling"], begun["used"]["cost_usd"]) == ({"cost_usd": 1.5}, 0.75)
    assert project.json("decide", decision["id"], "raise").code == 0
    assert project.resume().code == 0
    assert scene.calls() == 3
    shown = project.quick("metrics", "1", "--json").data
    assert [(row["role"], row["model"], row["cost_usd"]) for row in shown["calls"]] == [
        ("builder", "middle", 0.75),
        ("builder", "middle", 0.75),
        ("builder", "middle", None),
    ]
    assert (shown["total"]["tokens"], shown["total"]["cost_usd"], shown["total"]["unknown_cost"]) == (30, 1.5, 1)
    assert "builder (coder, middle) on T1-01 attempt 3: completed in" in project.quick("metrics", "1").out
    assert "tokens 30 and 1 unknown call" in project.quick("metrics", "1").out
    assert "- **Used by agents:** tokens 30 and 1 unknown call; cost $1.50 and" in project.read(SUMMARY)
    assert 'cost: "$1.50 and 1 unknown call"' in project.read(".idumb/brain/execution/1/checkpoint-T1-01.md")
    assert "used by the builder (middle): 10 tokens in, 5 out, $0.75" in project.quick("show", "T1-01").out


def test_a_ceiling_that_is_not_raised_ends_the_task(project: Project, home: Path) -> None:
    """R-ADAPT-3: unreported usage is shown as unknown."""
    scene = Scene(
        project, home, {"write": "a"}, {"write": "b"}, settings="ceilings: {task: {attempts: 1, tokens: 5}}\n"
    )
    assert project.execute().code == 5
    assert project.json("decide", "T1-01.ceiling.task.1", "stop").code == 0
    ended = project.resume()
    assert (ended.code, scene.calls()) == (1, 1)
    assert ended.data["tasks"][0]["status"] == "failed"


@pytest.mark.parametrize("handover", ["The header is there.", ""])
def test_a_fresh_agent_continues_after_a_full_context(project: Project, home: Path, handover: str) -> None:
    """R-RUN-10: with the agent's own summary or one made by idumb; it counts as no failed attempt."""
    full = {"state": "context-exhausted", "handover": handover, "write": "half "}
    scene = Scene(project, home, full, {"write": "done"}, settings="run: {max_attempts: 1}\n")
    assert project.execute().code == 0
    assert (scene.calls(), project.read("a.txt")) == (2, "half done")
    prompt = (home / "told-2").read_text(encoding="utf-8")
    assert "Another agent worked on this task until its context was full" in prompt
    expected = (handover,) if handover else ("- created `a.txt`, 1 lines added", "> my last words")
    assert all(words in prompt for words in expected)
    assert expected[0] in project.read(".idumb/brain/execution/1/context-T1-01-1.md")
    assert "Another agent" not in (home / "told-1").read_text(encoding="utf-8")


def test_the_user_s_template_is_the_builder_s_prompt_and_part_of_consent(project: Project, home: Path) -> None:
    """R-ADAPT-1."""
    (project.folder / ".idumb/prompts").mkdir()
    mine = project.folder / ".idumb/prompts/builder.md"
    mine.write_text("Only $id, $title.\n", encoding="utf-8")
    Scene(project, home, {"write": "done"})
    before = project.approval()
    mine.write_text("Only $id.\n", encoding="utf-8")
    refused = project.json("execute-phase", "1", "--approve", before)
    assert (refused.code, refused.error["code"]) == (4, "consent.other-contract")
    assert project.execute().code == 0
    assert (home / "told-1").read_text(encoding="utf-8") == "Only T1-01.\n"
    parts = {part["name"]: part for part in project.quick("envelope", "show", "T1-01", "--json").data["parts"]}
    assert (parts["prompt"]["source"], parts["model"]["value"]) == ("Only $id.\n", "middle")


JUDGE = """import os, pathlib, sys
pathlib.Path(os.environ["HOME"], "judged").write_text(sys.stdin.read())
"""


def test_a_validator_gets_the_criteria_and_the_change(project: Project, home: Path) -> None:
    """R-ADAPT-3, R-RUN-4, R-OPS-1: its usage is counted beside the builder's, for its adapter too."""
    (home / "judge.py").write_text(JUDGE, encoding="utf-8")
    Scene(project, home, {"write": "done\n"})
    settings = project.read(".idumb/config.yaml")
    judge = f"  judge: {{adapter: command, argv: [python3, {json.dumps(str(home / 'judge.py'))}]}}"
    project.configure(settings.replace("bindings:\n", f"validator: judge\nbindings:\n{judge}\n"))
    assert project.execute().code == 0
    prompt = (home / "judged").read_text(encoding="utf-8")
    assert "grep -q done a.txt" in prompt
    assert "+done" in prompt
    used = project.quick("metrics", "1", "--json").data
    assert [(row["role"], row["binding"], row["adapter"]) for row in used["calls"]] == [
        ("builder", "coder", "command"),
        ("validator", "judge", "command"),
    ]
    calls = {row["by"]: row["calls"] for row in used["sums"] if row["by"] in {"task", "adapter"}}
    assert calls == {"task": 2, "adapter": used["total"]["calls"]}


def test_a_task_fails_after_too_many_exhausted_contexts(project: Project, home: Path) -> None:
    """R-RUN-10."""
    scene = Scene(project, home, *({"state": "context-exhausted", "write": f"{n}"} for n in range(9)),
                  settings="run: {max_attempts: 1}\n")  # fmt: skip
    ended = project.idumb("execute-phase", "1", "--approve", project.approval())
    assert ended.code == 1
    assert scene.calls() == 4
    assert "0 attempts" not in ended.out
    assert "failed after 4 attempts" in ended.out
    assert "| 4 |" in project.read(".planning/phases/1/1-SUMMARY.md")
