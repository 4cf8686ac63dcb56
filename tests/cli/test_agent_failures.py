"""Agents that cannot work, exceed a ceiling or exhaust their context: how the run reacts.

`unit/app/test_agent_client.py` has what the engine decides alone.
"""

from __future__ import annotations

import json
import os
import shlex
import signal
from pathlib import Path
from typing import Any

import pytest

from idumb.domain.runs.event import Event
from idumb.views.terminal.plain_progress import PlainProgress
from tests.support.plans import run
from tests.support.project import Project, task

AGENT = """\
cat > $HOME/told-$IDUMB_ATTEMPT; echo $IDUMB_ATTEMPT >> $HOME/calls
. $HOME/step-$(wc -l < $HOME/calls | tr -d ' ')
echo 'my last words'
"""


def step(*, write: str = "", signal: int = 0, exit: int | None = None, **said: Any) -> str:
    """The shell lines of one call: it writes, ends in some way, or says something about itself."""
    lines = [f"printf %s {shlex.quote(write)} >> a.txt"] if write else []
    lines += [f"kill -{signal} $$"] if signal else []
    lines += [] if exit is None else [f"exit {exit}"]
    lines.append(f"printf %s {shlex.quote(json.dumps({'model': 'middle', **said}))} > $IDUMB_STATE_FILE")
    return "\n".join(lines)


SUMMARY = ".planning/phases/1/1-SUMMARY.md"


class Scene:
    """A project with one task, built by a program that follows a script, call by call."""

    def __init__(self, project: Project, home: Path, *script: dict[str, Any], settings: str = "",
                 calls: int = 1, fields: str = "") -> None:  # fmt: skip
        self.project, self.home = project, home
        (home / "agent.sh").write_text(AGENT, encoding="utf-8")
        for number, words in enumerate((*script, *({"write": "done"},) * 3), 1):
            (home / f"step-{number}").write_text(step(**words), encoding="utf-8")
        binding = f"{{adapter: command, argv: [sh, {json.dumps(str(home / 'agent.sh'))}], model: middle}}"
        project.configure(
            f"builder: coder\nbindings:\n  coder: {binding}\nretry: {{calls: {calls}, pause: 1s}}\n{settings}"
        )
        self.task = task("T1-01", files="create `a.txt`", check="grep -q done a.txt", fields=fields)
        project.plan([self.task])

    def calls(self) -> int:
        path = self.home / "calls"
        return len(path.read_text(encoding="utf-8").splitlines()) if path.exists() else 0


def test_an_open_breaker_applies_to_the_next_command_until_doctor_closes_it(project: Project, home: Path) -> None:
    """R-ADAPT-3, R-HAND-3: the state is in the log; doctor and the dead letter say when the agent is asked again."""
    unreachable = {"state": "network"}
    scene = Scene(project, home, unreachable, unreachable, settings="breaker: {failures: 2, time: 1h}\n")
    assert run(project).code == 1
    breakers = _breakers(project)
    assert breakers["state"] == "ok"
    assert breakers["symptoms"][0]["found"].startswith("command coder middle: closed, 1 call in a row failed")
    assert project.quick("resume", "1", "--json").code == 1
    again = project.quick("resume", "1", "--json")
    assert again.code == 1
    assert "not asked before" in again.error["message"]
    assert scene.calls() == 2
    kept = project.events("--kind", "breaker.changed")[-1]["payload"]
    assert (kept["key"], kept["state"], kept["failures"]) == ("command coder middle", "open", 2)
    breakers = _breakers(project)
    assert breakers["state"] == "warn"
    symptom = breakers["symptoms"][0]
    assert "command coder middle: open since" in symptom["found"]
    assert "2 calls in a row failed, the last by network" in symptom["found"]
    assert "no calls before" in symptom["means"]
    (letter,) = project.json("dlq", "list", "--retryable").data["dead_letters"]
    assert letter["retry_after"] > kept["since"], letter
    fixed = project.quick("doctor", "--fix", "--json")
    assert any("command coder middle is closed" in done for done in fixed.data["fixed"])
    assert project.quick("resume", "1", "--no-verify", "--json").code == 0
    assert scene.calls() == 3


def _breakers(project: Project) -> dict[str, Any]:
    healthy = project.quick("doctor", "--json")
    assert healthy.code == 0
    (found,) = [row for row in healthy.data["checks"] if row["code"] == "agents.breakers"]
    return dict(found)


@pytest.mark.nightly
def test_a_run_that_would_exceed_its_ceiling_asks_first(project: Project, home: Path) -> None:
    """R-ADAPT-3."""
    used = {"usage": {"cost_usd": 0.75, "tokens_in": 10, "tokens_out": 5}}
    ceilings = "ceilings: {run: {cost_usd: 1.50}, task: {cost_usd: 9}}\n"
    scene = Scene(project, home, {"write": "a", **used}, {"write": "b", **used}, {"write": "done"}, settings=ceilings)
    stopped = run(project)
    assert (stopped.code, scene.calls()) == (5, 2)
    decision = project.quick("decisions", "--json").data["decisions"][0]
    assert decision["id"] == "T1-01.ceiling.run.1"
    assert decision["evidence"][0] == "$1.50 of $1.50 used"
    assert project.quick("decide", decision["id"], "raise").code == 0
    assert project.quick("resume", "1", "--no-verify", "--json").code == 0
    assert scene.calls() == 3
    shown = project.quick("show", "1", "--usage", "--json").data
    assert [(row["role"], row["model"], row["cost_usd"]) for row in shown["calls"]] == [
        ("builder", "middle", 0.75),
        ("builder", "middle", 0.75),
        ("builder", "middle", None),
    ]
    assert (shown["total"]["tokens"], shown["total"]["cost_usd"], shown["total"]["unknown_cost"]) == (30, 1.5, 1)
    assert "builder (coder, middle) on T1-01 attempt 3: completed in" in project.quick("show", "1", "--usage").out
    assert "tokens 30 and 1 unknown call" in project.quick("show", "1", "--usage").out
    assert "- **Used by agents:** tokens 30 and 1 unknown call; cost $1.50 and" in project.read(SUMMARY)
    assert 'cost: "$1.50 and 1 unknown call"' in project.read(".idumb/brain/execution/1/checkpoint-T1-01.md")
    assert "used by the builder (middle): 10 tokens in, 5 out, $0.75" in project.quick("show", "T1-01").out


def test_a_fresh_agent_continues_after_a_full_context(project: Project, home: Path) -> None:
    """R-RUN-10: with the agent's own summary or one made by idumb; it counts as no failed attempt."""
    full = {"state": "context-exhausted", "write": "half "}
    scene = Scene(
        project, home, {**full, "handover": "The header is there."}, full, {"write": "done"},
        settings="run: {max_attempts: 1}\n",
    )  # fmt: skip
    assert run(project, "--no-verify").code == 0
    assert (scene.calls(), project.read("a.txt")) == (3, "half half done")
    told = [(home / f"told-{number}").read_text(encoding="utf-8") for number in (1, 2, 3)]
    assert ["Another agent worked on this task until its context was full" in text for text in told] == [
        False,
        True,
        True,
    ]
    assert "The header is there." in told[1]
    assert all(words in told[2] for words in ("- created `a.txt`", "> my last words"))
    kept = [project.read(f".idumb/brain/execution/1/context-T1-01-{number}.md") for number in (1, 2)]
    assert "The header is there." in kept[0]
    assert "- created `a.txt`" in kept[1]


def test_the_user_s_template_is_the_builder_s_prompt_and_part_of_consent(project: Project, home: Path) -> None:
    """R-ADAPT-1."""
    (project.folder / ".idumb/prompts").mkdir()
    mine = project.folder / ".idumb/prompts/builder.md"
    mine.write_text("Only $id, $title.\n", encoding="utf-8")
    Scene(project, home, {"write": "done"})
    before = project.approval()
    mine.write_text("Only $id.\n", encoding="utf-8")
    refused = project.quick("execute-phase", "1", "--approve", before, "--json")
    assert (refused.code, refused.error["code"]) == (4, "consent.other-hash")
    assert run(project, "--no-verify").code == 0
    assert (home / "told-1").read_text(encoding="utf-8").startswith("Only T1-01.\n")
    parts = {part["name"]: part for part in project.quick("show", "T1-01", "--envelope", "--json").data["parts"]}
    assert (parts["prompt"]["source"], parts["model"]["value"]) == ("Only $id.\n", "middle")


JUDGE = """#!/bin/sh
cat > $HOME/judged
"""


def test_a_validator_gets_the_criteria_and_the_change(project: Project, home: Path) -> None:
    """R-ADAPT-3, R-RUN-4, R-OPS-1: its usage is counted beside the builder's, for its adapter too."""
    (home / "judge").write_text(JUDGE, encoding="utf-8")
    (home / "judge").chmod(0o755)
    Scene(project, home, {"write": "done\n"})
    settings = project.read(".idumb/config.yaml")
    judge = f"  judge: {{adapter: command, argv: [{json.dumps(str(home / 'judge'))}]}}"
    project.configure(settings.replace("bindings:\n", f"validator: judge\nbindings:\n{judge}\n"))
    assert run(project, "--no-verify").code == 0
    prompt = (home / "judged").read_text(encoding="utf-8")
    assert "grep -q done a.txt" in prompt
    assert "+done" in prompt
    used = project.quick("show", "1", "--usage", "--json").data
    assert [(row["role"], row["binding"], row["adapter"]) for row in used["calls"]] == [
        ("builder", "coder", "command"),
        ("validator", "judge", "command"),
    ]
    calls = {row["by"]: row["calls"] for row in used["sums"] if row["by"] in {"task", "adapter"}}
    assert calls == {"task": 2, "adapter": used["total"]["calls"]}


TALKING = """\
say() { printf '%s' "$1" > $IDUMB_STATE_FILE.new; mv $IDUMB_STATE_FILE.new $IDUMB_STATE_FILE; }
wait_for() { read line < $HOME/$1; }
"""
TOLD = "attempt.told"


def built_by(project: Project, home: Path, script: str) -> str:
    """A project with one task, whose agent follows a script and waits at the pipes `one` and `two`; its approval."""
    for name in ("one", "two"):
        os.mkfifo(home / name)
    (home / "agent.sh").write_text(TALKING + script, encoding="utf-8")
    argv = json.dumps(["sh", str(home / "agent.sh")])
    project.configure(
        f"builder: coder\nbindings:\n  coder: {{adapter: command, argv: {argv}}}\nrun: {{max_attempts: 1}}\n"
    )
    project.plan([task("T1-01", files="create `a.txt`", check="grep -q done a.txt")])
    return project.approval()


def test_a_working_agent_s_status_is_reported_at_once_and_shown_by_other_commands(project: Project, home: Path) -> None:
    """R-ADAPT-2, R-RUN-6: in the events and by `status` in another terminal, until the attempt ends, by a kill too."""
    script = r"""
if [ $IDUMB_ATTEMPT = 1 ]; then
    say '{"state": "working", "message": "reads the code"}'; wait_for one
    say '{"state": "waiting", "message": "log in at\n the \u001b[31mbrowser"}'; wait_for two
fi
echo done > a.txt
"""
    approval = built_by(project, home, script)
    with project.running("execute-phase", "1", "--approve", approval) as run:
        first = run.wait_for(TOLD, "T1-01")
        assert first["payload"] == {"role": "builder", "state": "working", "message": "reads the code", "number": 1}
        (home / "one").write_text("go on\n", encoding="utf-8")
        second = run.wait_for(TOLD, "T1-01")
        assert (second["payload"]["state"], second["payload"]["number"]) == ("waiting", 2)
        told = project.quick("status", "--json").data["phases"][0]["told"]
        fields = (told["task"], told["role"], told["state"], told["at"])
        assert fields == ("T1-01", "builder", "waiting", second["at"])
        os.kill(run.pid, signal.SIGKILL)
        run.end()
    shown = project.quick("status").out
    assert f"T1-01: its builder reported waiting at {second['at']}: log in at the \\x1b[31mbrowser" in shown
    assert project.quick("resume", "1", "--no-verify", "--json").code == 0
    assert [e["payload"]["state"] for e in project.events("--kind", TOLD)] == ["working", "waiting"]
    assert "reported" not in project.quick("status").out
    assert project.quick("status", "--json").data["phases"][0]["told"] is None


def test_progress_shows_a_line_for_it_and_a_reported_completion_is_never_trusted(
    project: Project, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R-ADAPT-2, R-RUN-4, R-RUN-3."""
    approval = built_by(project, home, r"""say '{"state": "done", "message": "all \u001b[2mof it"}'; wait_for one""")
    show = PlainProgress.event

    def show_and_let_go(progress: PlainProgress, event: Event) -> None:
        show(progress, event)
        if event.kind == TOLD:
            (home / "one").write_text("go on\n", encoding="utf-8")

    monkeypatch.setattr(PlainProgress, "event", show_and_let_go)
    ended = project.quick("execute-phase", "1", "--approve", approval)
    assert ended.code == 1
    assert "    the builder says done: all \\x1b[2mof it\n" in ended.err
    assert "a.txt was declared (create) and did not change" in ended.out
